/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* cr_rounds.c with MPI_THREAD_MULTIPLE, where calls do not come by turns. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "cr_rounds.c"
