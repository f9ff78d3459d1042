/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/rest.h"
#include "progress/begin.h"
#include "progress/closure.h"
#include "progress/turns.h"
#include "signal/inspect.h"

#define P contd__progress
#define MOST_NS 1000000000

/* for_good: also with MPI_THREAD_MULTIPLE. */
static void wait_for_tick(bool for_good)
{
	int64_t end = 0;
	uint32_t turn;

	while ((turn = contd__load_seq(&P.turn)) & TURN_TICK) {
		contd__rest();
		if (for_good || !P.multiple || !(turn & TURN_LOOKS))
			continue;
		end = end ? end : contd__now_ns() + MOST_NS;
		if (contd__now_ns() > end)
			return;
	}
}

void contd__turn_wait(void)
{
	/* In the tick itself MPI takes such locks, too. */
	if (P.shared && !contd__inside.ticks && !contd__mark_is_live(&contd__inside.mpi, CONTD__FRAME))
		wait_for_tick(false);
}

/* Whoever ends the program, or forks, from inside MPI may hold a lock that the tick waits for: so not for ever. */
void contd__turn_over(void)
{
	int64_t end = contd__now_ns() + MOST_NS;

	while (contd__load_seq(&P.turn) & TURN_TICK && !contd__inside.ticks && contd__now_ns() < end)
		contd__rest();
}

enum contd__entered contd__turn_begin(enum contd__entered how, uintptr_t frame, struct contd__mark *mark)
{
	if (how == ENTERED_UNSEEN) {
		if (contd__load(&P.ending))
			return how;
		contd__progress_join();
		how = contd__enter(&contd__inside.mpi, frame, mark);
	}
	if (how != ENTERED_OUTER && !(how == ENTERED_LOOSE && contd__inside.loose == 1))
		return how;
	if (!contd__inside.in_call) {
		contd__inside.in_call = true;
		if (contd__add(&P.turn, 1) & TURN_TICK)
			wait_for_tick(false);
	}
	if (P.multiple || P.by_thread)
		return how;
	if (contd__load(&P.last) != contd__this_thread() && contd__on_own_stack(frame)) {
		/* Dekker with judge_shared(): store this, then take away that the thread rests. */
		contd__store_seq(&P.last, contd__this_thread());
		contd__inspect_again(false);
	}
	return how;
}

/* If a call was left by a jump, the end of the thread's next one makes good for that. */
void contd__turn_end(enum contd__entered how)
{
	if (contd__inside.loose || (how != ENTERED_OUTER && contd__inside.mpi.frame) || !contd__inside.in_call)
		return;
	contd__inside.in_call = false;
	contd__sub(&P.turn, 1);
}

/* It takes part as a call of MPI does, so that no handler is in the table that is replaced. */
void contd__turn_read(void)
{
	/* The end of the tick, or of the call, reads. */
	if (contd__inside.ticks || contd__mark_is_live(&contd__inside.mpi, CONTD__FRAME))
		return;
	contd__add(&P.turn, 1);
	wait_for_tick(false);
	contd__closure_read(false);
	contd__sub(&P.turn, 1);
}

void contd__turn_end_all(void)
{
	contd__add(&P.turn, 1);
	wait_for_tick(true);
}

void contd__turn_left(void)
{
	/* pthread_cancel(3) may have ended it in a call of MPI. */
	if (contd__inside.in_call) {
		contd__inside.in_call = false;
		contd__inside.mpi.frame = 0;
		contd__sub(&P.turn, 1);
	}
	contd__turn_leave();
}

void contd__turn_leave(void)
{
	uintptr_t me = contd__this_thread();

	if (!contd__inside.high)
		return;
	contd__inspect(NULL);
	/* Its later calls are counted, as on an unknown stack. */
	contd__inside.low = contd__inside.high = 1;
	if (contd__cas(&P.last, &me, 0))
		contd__inspect_again(true);
}
