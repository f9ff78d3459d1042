/* SPDX-License-Identifier: BSD-3-Clause */
/* From the first call, which chooses a backend, to MPI_Finalize; and between sessions. */
#ifndef CONTD_MPI_LIFE_H
#define CONTD_MPI_LIFE_H

#include <stdbool.h>

#include "dispatch/group.h"
#include "mpi/backend.h"

/* The backend, started; NULL and *errp where it can't be. */
const struct contd__mpi_backend *contd__mpi_start(const char *call, int *errp);

/*
 * The same for callers that only ask about requests. If contd cannot work because calls of MPI do not come to it, the
 * portable backend answers, and contd stays closed: only peek and peek_next may be called then.
 */
const struct contd__mpi_backend *contd__mpi_start_asking(const char *call, int *errp);

/* MPI_Finalize begins, or, if contd has a session, the process ends; once is enough. */
void contd__mpi_end(void);

/*
 * With sessions alone: the program's last session has ended. If nothing is outstanding, contd's own session ends, and
 * all else of contd stays. It begins again when the program has another session, in contd__mpi_wake(), or in the next
 * call.
 */
void contd__mpi_rest(void);
void contd__mpi_wake(void);

/*
 * The groups of continuations without a CR: of the program's; of those that only complete an event or wake a thread,
 * which is async-signal-safe; and of those that any thread may run. NULL without memory.
 */
enum contd__loose { LOOSE, LOOSE_EVENTS, LOOSE_ANY };
#define LOOSE_GROUPS 3
struct contd_group *contd__mpi_loose(enum contd__loose which);

#endif
