/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only place that knows whose continuations are tested: contd's, or with -DCONFORMANCE_MPI_EXT those that the MPI
 * declares in its mpi-ext.h. Those know the revised interface only, so the sources of the draft are left out then:
 *   cd tests/conformance
 *   mpicc -std=gnu11 -D_GNU_SOURCE -DCONFORMANCE_MPI_EXT -o conformance -pthread \
 *     $(ls *.c | grep -vE '_draft|_mixed|^contd|^dlclose')
 *   ./conformance --list |
 *     while IFS='|' read -r name ranks rest; do mpirun -n $ranks ./conformance $name </dev/null; done
 * The four that end abnormally (CONFORMANCE_ENDS) go through ./expect, as in CMakeLists.txt.
 */
#ifndef CONFORMANCE_INTERFACE_H
#define CONFORMANCE_INTERFACE_H

#include <mpi.h>

#ifdef CONFORMANCE_MPI_EXT
#include <mpi-ext.h>
#ifndef OMPI_HAVE_MPI_EXT_CONTINUE
#error "this MPI's mpi-ext.h has no continuations"
#endif
#define CONFORMANCE_DRAFT 0
#define CONFORMANCE_REVISED 1
#else
#include <contd/mpi.h>
#define CONFORMANCE_DRAFT 1
#ifndef CONFORMANCE_REVISED
#define CONFORMANCE_REVISED 1
#endif
#endif

#endif
