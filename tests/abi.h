/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard ABI of MPI 5.0 has numbers for handles under other names, and leaves MPI_Fint to Fortran's library. */
#ifndef CONTD_TESTS_ABI_H
#define CONTD_TESTS_ABI_H

#include <mpi.h>

#ifdef MPI_ABI_VERSION
#define MPI_Fint int
#define MPI_Request_c2f MPI_Request_toint
#define MPI_Request_f2c MPI_Request_fromint
#endif

#endif
