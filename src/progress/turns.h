/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that call MPI by turns (MPI_THREAD_SERIALIZED). Each is attached in its first call; ticks come to the one
 * that has called last. inside.h says how calls and ticks exclude each other.
 *
 *     operation               thread  handler  progress
 *     contd__turn_begin         yes     no     blocking
 *     contd__turn_end           yes     no     wait-free
 *     contd__turn_wait          yes     no     blocking
 *     contd__turn_over          yes     no     blocking, for a second at most
 *     contd__turn_leave         yes     no     wait-free in the number of attached threads
 */
#ifndef CONTD_PROGRESS_TURNS_H
#define CONTD_PROGRESS_TURNS_H

#include "progress/inside.h"

/* A call of MPI begins on the calling thread; `how` is what contd__enter() has said. Returns that, for a thread that is
 * attached now. */
enum contd__entered contd__turn_begin(enum contd__entered how, uintptr_t frame, struct contd__mark *mark);
void contd__turn_end(enum contd__entered how);

/* Around a call of MPI that is only passed on. */
enum contd__entered contd__call_begin(uintptr_t frame, struct contd__mark *mark);
void contd__call_end(enum contd__entered how, const struct contd__mark *mark);

/* After an addition to `loading` or `locked`: until no tick makes progress any more. */
void contd__turn_wait(void);

/* After `ending` was stored: until no other thread's tick makes progress. At each thread level. */
void contd__turn_over(void);

/* The thread makes no more progress. */
void contd__turn_leave(void);

#endif
