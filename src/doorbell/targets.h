/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a persistent request or a window is about.
 *
 *  operation              thread  progress
 *  contd__made_add          yes   blocking (a short lock)
 *  contd__made_remove       yes   blocking (a short lock)
 *  contd__made_start        yes   blocking (a short lock)
 *  contd__window            yes   lock-free, but for the first use of a window
 */
#ifndef CONTD_RING_TARGETS_H
#define CONTD_RING_TARGETS_H

#include "mpi/ring.h"

/* The request is a send to, or with `bytes` a long receive from, that rank; or, with -1, a collective one of
 * `members`. */
void contd__made_add(MPI_Request request, int world, struct contd__members *members, int64_t bytes);
void contd__made_remove(MPI_Request request);

/* It is started, or a part of it is ready: ring the peers that must know. If the request is not known, these are
 * all. */
void contd__made_start(MPI_Request request);

/* The members of the window's group; NULL: they cannot be found now. */
struct contd__members *contd__window(MPI_Win win);

#endif
