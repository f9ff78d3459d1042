/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs written for Open MPI's continuations branch: #include <mpi-ext.h> finds this file (pkg-config module
 * contd-mpi-ext), which goes on to the MPI's own where it has one and says that continuations are there. It may be
 * included before mpi.h, which Open MPI 4.1's own file may not.
 */
#ifndef CONTD_MPI_EXT_H
#define CONTD_MPI_EXT_H

#include <mpi.h>

#if defined(__has_include_next)
#if __has_include_next(<mpi-ext.h>)
#include_next <mpi-ext.h>
#endif
#endif

#include <contd/mpi.h>

#ifndef OMPI_HAVE_MPI_EXT_CONTINUE
#define OMPI_HAVE_MPI_EXT_CONTINUE 1
#endif

#endif
