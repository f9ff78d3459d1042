/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many requests are outstanding. Those that are not persistent become MPI_REQUEST_NULL when they are complete, so
 * counting suffices. Of persistent ones there is a table of handles; also of reductions by operations of the program's,
 * because whether one is outstanding must not depend on requests that were begun unseen.
 *
 *     operation               thread  handler  progress
 *     all                       yes*    no     wait-free, but for the memory of the table
 *     * in a call of MPI, as the thread level has it. With MPI_THREAD_MULTIPLE the counts are lock-free, and the table
 *       has a lock
 */
#ifndef CONTD_PROGRESS_OUTSTANDING_H
#define CONTD_PROGRESS_OUTSTANDING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* One more, or so many fewer, of contd__progress.requests, .started or .windows. */
void contd__more(uint32_t *which);
void contd__fewer(uint32_t *which, int n);

/* Persistent requests. reduces: by an operation of the program's. */
void contd__persistent_made(MPI_Request request, bool reduces);
void contd__persistent_started(MPI_Request request);
void contd__persistent_complete(MPI_Request request); /* no matter whether it is one, or was started */

/* It is about to be freed: forget it. If MPI refuses that, it is kept. */
struct contd__persistent {
	bool is, started, reduces;
};
struct contd__persistent contd__persistent_freed(MPI_Request request);
void contd__persistent_kept(MPI_Request request, struct contd__persistent persistent);
extern uint32_t contd__persistents;

/* A reduction by an operation of the program's. */
void contd__reduction_begun(MPI_Request request);

/* Around a call that may complete requests: those that become MPI_REQUEST_NULL in it reduce no more. */
struct contd__looked_at {
	MPI_Request one, *all; /* as they were; NULL: nothing is reduced */
	int count;
};
void contd__look_at(struct contd__looked_at *before, int count, const MPI_Request requests[]);
void contd__looked(struct contd__looked_at *before, const MPI_Request requests[]);

#endif
