/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
#define LEVEL MPI_THREAD_SINGLE
#include "persistent_free.c"
