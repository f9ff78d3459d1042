/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The portable backend, on any MPI-3.1 and with nothing but its public functions.
 *
 *     portable.c        CRs as handles of generalized requests that never complete; polling pending operations
 *     portable_plain.c  MPI's completion calls for requests that are no CRs, which look after those operations
 *     handles.c         which handles are CRs, which are persistent
 *     mpich_forgets.c   persistent requests of which MPI tells once only
 *     wrappers.c        MPI_Test and its kin, which stand before MPI's own
 */
#ifndef CONTD_MPI_PORTABLE_H
#define CONTD_MPI_PORTABLE_H

#include <mpi.h>

#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"

extern const struct contd__mpi_backend contd__mpi_portable;

/* MPI's functions; looking after what is pending meanwhile. */
extern const struct contd__request_functions contd__portable_plain;

/* In a call about something else: pending operations are looked at too. */
void contd__portable_look_around(void);

/* Is there something that a waiting thread should look after? Then it does. */
bool contd__portable_attends(void);
void contd__portable_attend(void);

/* As struct contd__mpi_backend says. */
int contd__portable_test_any(size_t count, MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int contd__portable_test_all(size_t count, MPI_Request *requests, int *flag, MPI_Status *statuses);

/*
 * Where calls do not come to contd, and nothing of contd's was started: may requests be asked about (peek, peek_next)?
 * Not where MPI tells of a persistent request once only.
 */
bool contd__portable_asks(void);

void contd__portable_cr_free(struct contd__cr *cr);

/* MPI_Request_free of a persistent request: true, where its continuation waits for it; then it is freed when it has
 * completed. */
struct contd__handle;
bool contd__portable_free_later(struct contd__handle *h);

/* Look at pending operations, in turn, so many at least; how many were found complete. */
uint32_t contd__portable_poll(uint32_t least);

/* Is there anything that a waiting thread should look after: operations, or continuations that are ready? */
bool contd__portable_busy(void);

#endif
