/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/rest.h"
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

void contd__program_ends(void)
{
	/* Dekker with a tick: store this, then look whether one is under way. */
	contd__store_seq(&P.ending, 1);
	contd__turn_over();
}

void contd__turn_join(void)
{
	static uint32_t registered; /* 1: membarrier(2) works, 2: it does not */
	struct contd__caller *c;

	if (!contd__load(&registered)) {
		bool works = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) &&
			     !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);

		contd__store(&registered, works ? 1 : 2);
	}
	if (contd__load(&registered) == 2)
		return;
	for (c = contd__load_acquire(&P.callers); c; c = c->next)
		if (!contd__load(&c->taken) && !contd__xchg(&c->taken, 1))
			break;
	if (!c) {
		c = aligned_alloc(__alignof__(*c), sizeof(*c));
		if (!c)
			return;
		*c = (struct contd__caller){0, 1, contd__load(&P.callers)};
		while (!contd__cas(&P.callers, &c->next, c))
			;
	}
	contd__inside.caller = c;
}

/* Also for a thread that counts as one in MPI: a handler may have left go_in() by siglongjmp(3), while it waited. */
static void go_in(void)
{
	struct contd__caller *c = contd__inside.caller;

	if (!c) {
		if (!contd__inside.in_call)
			contd__add(&P.turn, 1);
		contd__inside.in_call = true;
		if (contd__load_seq(&P.turn) & TURN_TICK)
			wait_for_tick(false);
		return;
	}
	contd__inside.in_call = true;
	contd__store(&c->inside, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the processor's part is membarrier(2) in contd__turn_take_sig() */
	/* Acquire: with the end of a tick, which has done something in MPI. */
	if (contd__load_acquire(&P.turn) & TURN_TICK)
		wait_for_tick(false);
}

static void go_out(void)
{
	contd__inside.in_call = false;
	if (contd__inside.caller)
		contd__store_release(&contd__inside.caller->inside, 0); /* with contd__callers_inside_sig() */
	else
		contd__sub(&P.turn, 1);
}

enum contd__entered contd__turn_begin(enum contd__entered how, uintptr_t frame, struct contd__mark *mark)
{
	/* The mark of a call that was left by a jump may come to life again, when the stack grows down once more. But
	 * below a call the thread counts as one in MPI. */
	if (how == ENTERED_INNER && !contd__inside.in_call && !contd__inside.ticks) {
		contd__store(&contd__inside.mpi.frame, 0);
		how = contd__enter(&contd__inside.mpi, frame, mark);
	}
	if (how != ENTERED_OUTER && !(how == ENTERED_LOOSE && contd__inside.loose == 1))
		return how;
	go_in();
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
	go_out();
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
		contd__inside.mpi.frame = 0;
		go_out();
	}
	if (contd__inside.caller)
		contd__store_release(&contd__inside.caller->taken, 0);
	contd__inside.caller = NULL;
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
