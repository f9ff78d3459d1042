/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_MPI_FINALIZE_H
#define CONTD_MPI_FINALIZE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * MPI_Finalize was called, and MPI works as before. Drive what is outstanding until all has run, or nothing completes
 * any more; once. `together`: until every process has called MPI_Finalize, if contd is known to be part of each; also
 * in a process that has never used contd.
 */
void contd__mpi_drive_to_end(bool together);

/* Tasks of contd_mpi_op_run(): those that an executor has and has not begun, those that run, and of these on this
 * thread. */
extern uint32_t contd__tasks_queued, contd__tasks_running;
extern __thread uint32_t contd__tasks_here __attribute__((tls_model("initial-exec")));

/* contd__mpi_open is 0, and the backend has stopped. Continuations that have not run are reported, and never run. */
void contd__mpi_cancel_rest(void);

#endif
