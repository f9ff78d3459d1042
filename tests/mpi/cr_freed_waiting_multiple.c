/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* cr_freed_waiting.c with MPI_THREAD_MULTIPLE, where the CR is kept in another way. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "cr_freed_waiting.c"
