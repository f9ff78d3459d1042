/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a call of MPI that this library stands in front of: the mark (inside.h), the turn (turns.h), and what
 * the loader has changed (closure.h).
 *
 *     operation               thread  handler  progress
 *     contd__call_in, _begin    yes     no     wait-free, if one thread calls MPI and no library is new; else blocking
 *     contd__call_out, _end     yes     no     the same
 */
#ifndef CONTD_PROGRESS_CALL_H
#define CONTD_PROGRESS_CALL_H

#include "progress/inside.h"
#include "progress/turns.h"

/* Several threads call MPI: the calling one is attached now, if this is its first call, and takes its turn. */
enum contd__entered contd__call_shared(enum contd__entered how, uintptr_t frame, struct contd__mark *mark);

/* The libraries are not those that were read last. by_mpi: the call is over, and what is new is MPI's. */
void contd__call_read(bool by_mpi);

static inline __attribute__((always_inline)) void contd__call_look(bool by_mpi)
{
	if (__builtin_expect(contd__load(&contd__progress.loads) != contd__load(&contd__progress.generation) &&
				     contd__load(&contd__progress.places),
			     0))
		contd__call_read(by_mpi);
}

/* `frame` is the caller's; *mark is for contd__call_out(). */
static inline __attribute__((always_inline)) enum contd__entered contd__call_in(uintptr_t frame,
										struct contd__mark *mark)
{
	enum contd__entered how = contd__enter(&contd__inside.mpi, frame, mark);

	if (__builtin_expect(contd__progress.shared, 0))
		how = contd__call_shared(how, frame, mark);
	if (how == ENTERED_OUTER) {
		contd__floating_keep();
		contd__call_look(false);
	}
	return how;
}

/* Is it one that has to be counted, and left by contd__call_out()? */
static inline bool contd__call_counts(enum contd__entered how)
{
	return how == ENTERED_OUTER || how == ENTERED_LOOSE;
}

static inline __attribute__((always_inline)) void contd__call_out(enum contd__entered how,
								  const struct contd__mark *mark)
{
	if (how == ENTERED_OUTER)
		contd__call_look(true);
	contd__leave(&contd__inside.mpi, how, mark);
	if (__builtin_expect(contd__progress.shared, 0))
		contd__turn_end(how);
}

/* The same around a call that is only passed on. */
enum contd__entered contd__call_begin(uintptr_t frame, struct contd__mark *mark);
void contd__call_end(enum contd__entered how, const struct contd__mark *mark);

#endif
