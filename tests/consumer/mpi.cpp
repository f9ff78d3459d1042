// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "mpi.c"
