/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads that call MPI: MPI_THREAD_SERIALIZED, by turns, and MPI_THREAD_MULTIPLE. Each is attached in its
 * first call (call.c). By turns, ticks come to the thread that has called last; with MPI_THREAD_MULTIPLE to each of
 * them. If contd's thread makes progress, none is attached, and its calls are only counted. inside.h says how calls and
 * ticks exclude each other.
 *
 *     operation               thread  handler  progress
 *     contd__turn_begin         yes     no     blocking
 *     contd__turn_end           yes     no     wait-free
 *     contd__turn_join          yes     no     blocking
 *     contd__turn_wait          yes     no     blocking
 *     contd__turn_read          yes     no     blocking
 *     contd__turn_over          yes     no     blocking, for a second at most
 *     contd__program_ends       yes     no     blocking, for a second at most
 *     contd__turn_end_all       yes     no     blocking
 *     contd__turn_leave, _left  yes     no     wait-free in the number of attached threads
 */
#ifndef CONTD_PROGRESS_TURNS_H
#define CONTD_PROGRESS_TURNS_H

#include "progress/inside.h"

/* A call of MPI begins on the calling thread; `how` is what contd__enter() has said, and not that the thread is unseen.
 * Returns that, as it is now. */
enum contd__entered contd__turn_begin(enum contd__entered how, uintptr_t frame, struct contd__mark *mark);
void contd__turn_end(enum contd__entered how);

/* The calling thread calls MPI. Without that its calls are counted, too, and cost more. */
void contd__turn_join(void);

/* After an addition to `loading` or `locked`: until no tick makes progress any more. With MPI_THREAD_MULTIPLE for a
 * second at most. */
void contd__turn_wait(void);

/* After an addition to `loading` and `loads`: read the libraries again. */
void contd__turn_read(void);

/* After `ending` or `user_code` was stored, or an addition to `loading`: until no other thread's tick makes progress.
 * At each thread level; for a second at most. */
void contd__turn_over(void);

/* The program ends: no tick makes progress any more, when this returns; for the last of them it waits a second at most.
 */
void contd__program_ends(void);

/* After `ending` was stored: until no tick makes progress, and none will. */
void contd__turn_end_all(void);

/* The thread makes no more progress. */
void contd__turn_leave(void);

/* The thread has ended, perhaps inside a call. */
void contd__turn_left(void);

#endif
