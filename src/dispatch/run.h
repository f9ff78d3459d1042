/* SPDX-License-Identifier: BSD-3-Clause */
/* Running callbacks: one at a time on a thread, in a frame, under a guard. */
#ifndef CONTD_DISPATCH_RUN_H
#define CONTD_DISPATCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/late.h"
#include "dispatch/thread.h"
#include "dispatch/ways.h"
#include "rcu/table.h"

/*
 * The same as contd__slot_event_done_sig with the last n events, but the continuation runs here instead of becoming
 * ready. Returns 1 if it ran. If other events are still missing, the n are counted, and that is all.
 */
CONTD_INTERNAL_API int contd__slot_run_inline(struct contd__slot *s, uint32_t generation, uint32_t n);

/*
 * The second half of that, for callers that find an event in the middle of other work. They first take the slot
 * (contd__slot_take_sig), and run it with this, soon and on the same thread.
 */
void contd__slot_run_taken(struct contd__slot *s);

/*
 * The end of a call that registers s, with n of its events complete, the call's own hold among them. If these are the
 * last ones the continuation runs here (here: it may), or is ready. Afterwards s is not the call's any more.
 */
static inline void contd__slot_registered(struct contd__slot *s, uint32_t generation, uint32_t n, bool here)
{
	if (here)
		contd__slot_run_inline(s, generation, n);
	else
		contd__slot_event_done_sig(s, generation, n);
}

/* The same where nothing but the group says whether it may run here. */
static inline void contd__slot_registered_with(struct contd_group *g, struct contd__slot *s, uint32_t generation,
					       uint32_t n)
{
	bool deferring = contd__defer_begin_sig(g->flags);

	contd__slot_registered(s, generation, n, contd__may_run_inline(g));
	contd__defer_end_sig(deferring);
}

/* Run a slot that is READY and gets no bit; if it has been cancelled meanwhile, it is freed. */
void contd__slot_run_unmarked(struct contd__slot *s);

/* Run a slot that the caller has made RUNNING. `pinned`: the caller holds a pin, as scans do; else the slot keeps the
 * group. */
void contd__slot_run_sig(struct contd_group *g, struct contd__slot *s, bool pinned);

/* These go around what contd__call_in_frame() calls. No other function uses them. */
static inline void contd__frame_enter_sig(struct contd__frame *f, const struct contd_group *g,
					  const struct contd__slot *slot, const void *site)
{
	f->group = g;
	f->given_back = NULL;
	f->slot = slot;
	f->outer = contd__self.frame;
	f->site = NULL;
	f->since = 0;
	f->guard = contd__tls.guard;
	/* A continuation is not interrupted by another one: the handler leaves it for the end of the guard. */
	contd_guard_begin();
	contd__store(&contd__self.frame, f); /* other threads read it: thread.h */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (contd__late_watched_sig()) {
		f->site = contd__self.watched.site;
		f->since = contd__self.watched.since;
		contd__store(&contd__self.watched.since, contd__ticks());
		/* Release: pairs with the acquire in contd__threads_running. */
		contd__store_release(&contd__self.watched.site, site);
	}
}

static inline void contd__frame_leave_sig(struct contd__frame *f, uint32_t ran)
{
	if (__builtin_expect(contd__self.watched.site != NULL, 0)) {
		contd__late_note_sig(contd__self.watched.site, LATE_CONTINUATION,
				     contd__ticks() - contd__self.watched.since);
		contd__store(&contd__self.watched.site, NULL);
		/* Release: pairs with the acquire in contd__threads_running, which then sees that the site is another.
		 */
		contd__store_release(&contd__self.watched.since, f->since);
		contd__store_release(&contd__self.watched.site, f->site);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&contd__self.frame, f->outer);
	CONTD_COUNT(run, ran);
	if (contd__in_handler())
		CONTD_COUNT(run_handler, ran);
	else if (contd__in_region_look_sig())
		CONTD_COUNT(run_region, ran);
	else if (contd__on_daemon_sig())
		CONTD_COUNT(run_daemon, ran);
	/* Without the pick-up of contd_guard_end(): see contd__pickup(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__tls.guard <= f->guard, 0)) {
		contd__tls.guard = f->guard; /* the callback has ended one guard too many: this one */
		contd__unbalanced(CONTD__END_OF_GUARD);
	} else {
		contd__tls.guard--;
	}
}

/*
 * Every continuation is called here, whatever its road: call(what) calls a callback of g, or several if the watchdog is
 * off, and returns how many. Around it: frame, guard, count. `slot`: the slot that becomes free afterwards, or NULL.
 * site: the callback, for the watchdog. Three functions call this:
 *
 *     contd__slot_call (below)        it has a slot, or what a slot would hold
 *     run_some (carried.c)            operations carry them: several of one group in one frame
 *     contd__call_at_once (below)     it runs in the call that registers it: there is nothing but the call's arguments
 *
 * contd_mpi_op_run() calls done() itself, as no continuation, if it has waited for the operation: in the modes that do
 * so, and if there is no memory for a continuation.
 *
 * Always inline: call is a constant then, and costs no indirect call.
 */
static inline __attribute__((always_inline)) uint32_t contd__call_in_frame(const struct contd_group *g,
									   const struct contd__slot *slot,
									   const void *site,
									   uint32_t (*call)(void *what), void *what)
{
	struct contd__frame f;
	uint32_t ran;

	contd__frame_enter_sig(&f, g, slot, site);
	ran = call(what);
	contd__frame_leave_sig(&f, ran);
	return ran;
}

struct contd__invocation {
	void (*invoke)(struct contd__slot *);
	struct contd__slot *as;
};

static inline uint32_t contd__invoke_as(void *what)
{
	const struct contd__invocation *i = what;
	void (*invoke)(struct contd__slot *) = i->invoke; /* call-graph.allow has this name */

	invoke(i->as);
	return 1;
}

/* A slot's continuation, or one that has what a slot would hold: `as` is that, and `slot` the slot that becomes free
 * afterwards, or NULL. `invoke` is as->invoke, or does the same. */
static inline void contd__slot_call(const struct contd_group *g, struct contd__slot *as, struct contd__slot *slot,
				    void (*invoke)(struct contd__slot *))
{
	struct contd__invocation i = {invoke, as};

	contd__call_in_frame(g, slot, (const void *)(uintptr_t)as->cb.any, contd__invoke_as, &i);
}

/*
 * A signal that comes while a continuation runs, or a completion in it, leaves CONTD__TLS_MISSED. Code that runs
 * continuations on a thread calls this when the last of them has ended, and before the thread sleeps or goes back to
 * the program:
 *
 *     contd__drive (wait.c): for test, wait, poll and drain
 *     run_work, contd_work_run (executor.c)
 *     contd__run_at_once (below): in the call that registers it
 *     test_waking (modes/modes.c)
 *     contd__run_ready, cr_progress, testing_end (mpi/calls.c): before the end of the test that they belong to: its
 *     max_poll holds for what is picked up, too
 *
 * In a handler, and under a guard, it does nothing: contd__react_sig() scans until nothing is left, or has another
 * signal sent.
 */
static inline void contd__pickup(void)
{
	/* After the end of the guard: a signal that comes before that leaves a note, and one that comes later does not.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED, 0))
		contd__guard_pickup();
}

/*
 * All that a continuation waits for is complete in the call that registers it, and it may run there. run(what) has it
 * called in a frame, and counts it off. This is what goes around that, whatever holds the continuation:
 *
 *     contd__slot_run_inline (run.c)      a slot
 *     contd__carried_at_once (carried.c)  its operation
 *     contd__call_at_once (below)         only the arguments of the call
 *
 * Always inline, as contd__call_in_frame().
 */
static inline __attribute__((always_inline)) void contd__run_at_once(void (*run)(void *what), void *what)
{
	CONTD_COUNT(run_inline, 1);
	contd__wake_untold_sig(); /* the callback may wait for what they do */
	run(what);
	contd__pickup();
}

struct contd__bare {
	const struct contd_group *group;
	const void *site;
	uint32_t (*call)(void *what);
	void (*over)(void *what);
	void *what;
};

static inline __attribute__((always_inline)) void contd__bare_run(void *what)
{
	const struct contd__bare *b = what;

	contd__call_in_frame(b->group, NULL, b->site, b->call, b->what);
	b->over(b->what);
}

/* call(what) calls the callback, and returns 1; over(what), after it, counts it off. Both should be constants. */
static inline __attribute__((always_inline)) void contd__call_at_once(const struct contd_group *g, const void *site,
								      uint32_t (*call)(void *what),
								      void (*over)(void *what), void *what)
{
	struct contd__bare b = {g, site, call, over, what};

	contd__run_at_once(contd__bare_run, &b);
}

/* The clocks of two processors may differ. If the claim seems to be earlier than the slot was ready, by no more than
 * this, it did not wait (units of 32 clock ticks). */
#define BEHIND (1u << 24)

/* A continuation begins that has been ready since then, in such units. */
static inline void contd__count_latency(uint32_t since)
{
	uint32_t waited = contd__ticks_short() - since;
	unsigned b = waited == 0 || waited > 0u - BEHIND ? 0 : 32u - (unsigned)__builtin_clz(waited);

	CONTD_COUNT(latency[b], 1);
}

/* Calls the slot's callback as contd_callback. */
void contd__invoke_user_sig(struct contd__slot *s);

/* The slot holds a continuation of the program's. */
static inline void contd__slot_holds_user(struct contd__slot *s, contd_callback *cb, void *data, int32_t status)
{
	s->invoke = contd__invoke_user_sig;
	s->cb.user = cb;
	s->data = data;
	contd__store(&s->out.status, status);
}

#endif
