/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_MPI_FINALIZE_H
#define CONTD_MPI_FINALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/*
 * MPI_Finalize was called, and MPI works as before. Drive what is outstanding until all has run, or nothing completes
 * any more; once. `together`: until every process has called MPI_Finalize, if contd is known to be part of each; also
 * in a process that has never used contd.
 */
void contd__mpi_drive_to_end(bool together);

/* Tasks of contd_mpi_op_run(): those that an executor has and has not begun, those that run, and of these on this
 * thread. MPI_Finalize waits for them. Written by the functions below. */
extern uint32_t contd__tasks_queued, contd__tasks_running;
extern __thread uint32_t contd__tasks_here __attribute__((tls_model("initial-exec")));

/* An executor gets a task; it has not taken it. */
static inline void contd__task_queued(void)
{
	contd__add(&contd__tasks_queued, 1);
}

static inline void contd__task_refused(void)
{
	contd__sub(&contd__tasks_queued, 1);
}

/* A task begins on this thread; it ends. */
static inline void contd__task_begins(void)
{
	contd__tasks_here++;
	contd__add(&contd__tasks_running, 1);
	contd__sub(&contd__tasks_queued, 1); /* at each moment it counts as one of the two */
}

static inline void contd__task_ends(void)
{
	contd__sub(&contd__tasks_running, 1);
	contd__tasks_here--;
}

/* contd__mpi_open is 0, and the backend has stopped. Continuations that have not run are reported, and never run. */
void contd__mpi_cancel_rest(void);

#endif
