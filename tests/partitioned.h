/* SPDX-License-Identifier: BSD-3-Clause */
/* HAS_PARTITIONED: this MPI has partitioned communication. Include it after mpi.h. */
#ifndef TESTS_PARTITIONED_H
#define TESTS_PARTITIONED_H

/* Open MPI 5.0 has it, and says that it is of MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PARTITIONED
#endif

#endif
