/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* also: tick CONTD_AGENT=tick */
/* grequest_handler with MPI_THREAD_MULTIPLE: there the other thread calls MPI itself, and the daemon may. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "grequest_handler.c"
