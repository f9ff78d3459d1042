/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* needs: sessions */
/* As sessions.c: only one thread calls MPI. */
#define LEVEL "MPI_THREAD_SINGLE"
#define MULTIPLE false
#include "sessions.c"
