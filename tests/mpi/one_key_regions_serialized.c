/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* one host: the ranks have memory in common */
/* one_key_regions.c with MPI_THREAD_SERIALIZED. */
#define LEVEL MPI_THREAD_SERIALIZED
#include "one_key_regions.c"
