/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* one host: the ranks have memory in common */
/* one_key_regions.c with MPI_THREAD_SINGLE. */
#define LEVEL MPI_THREAD_SINGLE
#include "one_key_regions.c"
