/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HAS_MPI_4: this MPI has the operations of MPI 4: persistent collective and partitioned ones, MPI_Isendrecv,
 * MPI_Comm_idup_with_info. (Sessions: MPI_SESSION_NULL is defined.) Include it after mpi.h.
 */
#ifndef TESTS_MPI4_H
#define TESTS_MPI4_H

/* Open MPI 5.0 has them, and says that it is of MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_MPI_4
#endif

#endif
