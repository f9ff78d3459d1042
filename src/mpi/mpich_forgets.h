/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent requests whose status MPI tells once only: MPICH's MPI_Request_get_status (from 4.2 on) makes them
 * inactive, and a later query or wait is told nothing. The status is kept with the handle here, until the request is
 * started again, freed, or reported by a call that completes it. For the portable backend; other MPIs have none of
 * these.
 *
 *     operation                 thread  handler             in a callback  progress
 *     contd__forgets_*            yes     in a region only      yes        wait-free but for MPI's completion calls
 */
#ifndef CONTD_MPI_MPICH_FORGETS_H
#define CONTD_MPI_MPICH_FORGETS_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

/* Does this MPI forget? Found out by trying, with a communicator of this rank alone, before anything else is asked. */
void contd__forgets_start(MPI_Comm comm);
bool contd__mpich_forgets(void);

/* Is something kept of one of these? */
bool contd__forgets_among(size_t count, const MPI_Request *requests);

/* Completion calls with such requests among theirs: each as its MPI namesake, and they return at once. */
int contd__forgets_one(MPI_Request *request, MPI_Status *status);
int contd__forgets_any(size_t count, const MPI_Request *requests, int *index, MPI_Status *status);
int contd__forgets_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses);
/* For all: what MPI's call, which has returned rc and knows nothing of them, leaves to be filled in. Returns what the
 * call returns. */
int contd__forgets_all(size_t count, const MPI_Request *requests, MPI_Status *statuses, int rc);

#endif
