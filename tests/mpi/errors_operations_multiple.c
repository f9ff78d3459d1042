/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: OMPI_MCA_osc=^rdma */
/* not on mpich: see errors_operations.c */
/* errors_operations.c with MPI_THREAD_MULTIPLE. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "errors_operations.c"
