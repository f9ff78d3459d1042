/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* signal.c with MPI_THREAD_SINGLE. */
#define LEVEL MPI_THREAD_SINGLE
#include "signal.c"
