/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ringing for the processes of this MPI job on this host (contd_bell_ring), for contd_mpi_ring() and for the ring library;
 * each has this code for itself. On MPI's public functions alone, and without contd being initialized.
 *
 *  operation           thread  handler  progress
 *  contd__ring_rank      yes     no     lock-free; may block shortly where a peer is looked for
 *  contd__ring_all       yes     no     the same, for each member
 */
#ifndef CONTD_MPI_RING_H
#define CONTD_MPI_RING_H

#include <stddef.h>

#include <mpi.h>

#define CONTD_JOB_TEXT 65 /* of contd_bell_listen(), its end included */

/* What names this job on this host: the launcher's name for it where it gives one, else the process that started us. */
void contd__mpi_job(char job[CONTD_JOB_TEXT]);

/* Ring the process of that rank of the communicator (the remote group of an intercommunicator). 1 if it was rung, else 0. */
int contd__ring_rank(int rank, MPI_Comm comm);

/* Ring every member that waits. Returns how many. */
int contd__ring_all(MPI_Comm comm);

/* Ring every peer that has been found so far and waits, whatever the communicator. Nanoseconds a peer. */
int contd__ring_known(void);

#endif
