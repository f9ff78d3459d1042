/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. Timers of attached threads; timer_settime(2) is
 * async-signal-safe (signal-safety(7)). */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/page.h"
#include "dispatch/run.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/word.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "signal/budget.h"
#include "signal/timer.h"

#define USELESS_TICKS 4u /* in a row, outside regions, after which a timer stops until the next region begins */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static bool set_first(struct contd__attached *a, uint64_t first, uint64_t ns)
{
	struct itimerspec ts = {timespec_of(ns), timespec_of(first)};
	int saved = errno;
	bool done = timer_settime(a->timer, 0, &ts, NULL) == 0;

	errno = saved;
	return done;
}

static bool set(struct contd__attached *a, uint64_t ns)
{
	return set_first(a, ns, ns);
}

void contd__timer_off_sig(struct contd__attached *a)
{
	set(a, 0);
}

static void arm_one(struct contd__attached *a)
{
	if (contd__load_seq(&a->armed) || contd__xchg(&a->armed, 1))
		return;
	CONTD_TESTPOINT("arm_claimed");
	contd__add(&a->senders, 1);
	if (contd__load_seq(&a->tid) && !set(a, contd__load(&a->interval_ns)))
		contd__xchg(&a->armed, 0); /* the next one tries again */
	contd__sub(&a->senders, 1);
}

void contd__tick_at_sig(struct contd__attached *a, uint64_t at)
{
	uint64_t now = contd__ticks(), ns = at > now ? (uint64_t)((double)(at - now) / contd__clock.ticks_per_ns) : 0;

	contd__xchg(&a->armed, 1);
	contd__add(&a->senders, 1);
	if (contd__load_seq(&a->tid)) {
		/* Only that tick comes so soon: at the shortest interval ticks would go on until the thread handles
		 * one. */
		ns = ns < contd__load(&contd__limits.tick_min) ? contd__load(&contd__limits.tick_min) : ns;
		set_first(a, ns, contd__load(&a->interval_ns));
	}
	contd__sub(&a->senders, 1);
}

/* Would ticks on this thread be of use? Something ready counts too: what a scan's budget has left for the next one. */
static bool useful(const struct contd__attached *a)
{
	if (contd__load_seq(&contd__words.pending) || contd__waits_sig(CLASSES_SIGNAL))
		return true;
	if (contd__load_seq(&a->inspector) && !contd__load_seq(&a->off_turn) &&
	    contd__sources_pending_sig(WHERE_INSPECTED))
		return true;
	return !contd__load_seq(&a->resting) &&
	       (contd__sources_pending_sig(WHERE_REGION) || contd__waits_sig(CLASSES_ALL));
}

void contd__arm_sig(void)
{
	/* Acquire: pairs with the release in record_take (attach.c). */
	uint32_t n = contd__load_acquire(&contd__signals.count);
	bool timers = contd__load(&contd__signals.timers),
	     block = contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK;

	/* The bell is armed when this thread's next region begins: it is not armed yet, or by a thread whose
	 * checkpoints watch it, and that may have left its region. */
	if (contd__me && (contd__load(&contd__signals.listens) || block)) {
		uint32_t armed = contd__load_seq(&contd__page->armed.by.thread);

		if (!armed ||
		    (armed & BELL_WATCHED && (armed & ~BELL_WATCHED) != (uint32_t)contd__load(&contd__me->tid)))
			contd__or(&contd__tls.flags, CONTD__TLS_REARM);
	}
	/* Dekker: something became pending, then this loads. Partner: a thread that computes, and had no use for the
	 * bell: contd__bell_wanted_sig(). */
	contd__bell_ask_sig();
	if (!timers)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (contd__load_seq(&a->tid) && !contd__load_seq(&a->armed) && useful(a))
			arm_one(a);
	}
}

/*
 * This thread has just set its timer. If another one put off a notification to a tick in between, that would be lost,
 * and so would all later ones, which would take it for one that is on its way.
 */
static void keep_put_off(struct contd__attached *me)
{
	if (contd__load_seq(&me->signalled))
		contd__tick_at_sig(me, contd__purse_enough_at(&me->purse, contd__ticks()));
}

void contd__refill_sig(void)
{
	struct contd__attached *me = contd__me;
	/* This interruption is paid for last. Otherwise each of these ticks would come too soon by what the one before
	 * has cost. */
	uint64_t now = contd__ticks(), in = contd__purse_half_full_in(&me->purse, now, contd__dearest_sig(me));

	if (contd__load_seq(&me->armed))
		return; /* a tick comes already, and does the same */
	contd__tick_at_sig(me, now + (in < contd__clock.second ? in : contd__clock.second));
	keep_put_off(me);
}

static void stop(struct contd__attached *me)
{
	set(me, 0);
	me->quiet = 0;
	contd__store(&me->interval_ns, contd__budget_interval_sig(me->empty_ticks));
	contd__xchg(&me->armed, 0);
	CONTD_TESTPOINT("timer_stopped");
	/* Look again: what became pending before the exchange found the timer armed. */
	if (contd__load(&contd__signals.timers) && useful(me))
		arm_one(me);
	else
		keep_put_off(me);
}

void contd__rest_sig(struct contd__attached *me)
{
	contd__xchg(&me->resting, 1);
	contd__or(&contd__tls.flags, CONTD__TLS_REARM);
	contd__bell_disarm_sig(me, false);
}

void contd__tick_done_sig(struct contd__attached *me, uint64_t cost, bool ran, bool guarded)
{
	uint64_t now_in_force = contd__load(&me->interval_ns), want, most;

	me->useless = contd__tls.region ? 0 : me->useless + 1;
	if (me->useless >= USELESS_TICKS)
		contd__rest_sig(me);
	if (!contd__load(&contd__signals.timers) || !useful(me)) {
		stop(me);
		if (!guarded)
			contd__bell_settle_sig(me, ran); /* no other tick does it */
		return;
	}
	if (!ran && !guarded) { /* callbacks are work, and the budget is for ticks; under a guard it has not looked */
		most = contd__plausible_sig(me);
		me->empty_ticks = (15 * me->empty_ticks + (cost < most ? cost : most)) / 16;
	}
	if (!guarded) {
		contd__quiet_count(&me->quiet, ran);
		contd__bell_settle_sig(me, ran);
	}
	want = contd__quiet_interval_sig(me);
	if (want > now_in_force + now_in_force / 8 || want + want / 8 < now_in_force) {
		contd__store(&me->interval_ns, want);
		set(me, want);
		keep_put_off(me);
	}
}

void contd__region_rearm(void)
{
	struct contd__attached *me = contd__me;

	/* A region in a callback has no effect: the next one looks. */
	if (contd__in_continuation_sig())
		return;
	contd__and(&contd__tls.flags, ~CONTD__TLS_REARM);
	if (!me || !contd__load_seq(&me->tid))
		return;
	/* Take the flag away, then store this, then look at what is ready. Partners: contd__notify_region_sig(), which
	 * says why; and kick_region() (dispatch/interrupt.c), which loads this after the mark. */
	if (!contd__load_seq(&contd__interrupt.regions))
		contd__interrupt_regions_sig(1);
	CONTD_TESTPOINT("region_told");
	me->useless = 0;
	me->handed_on = 0;
	me->checkpoints_seen = contd__self.checkpoint.at; /* this region has had none */
	contd__xchg(&me->resting, 0);
	if (contd__load(&contd__signals.timers) && useful(me))
		arm_one(me);
	/* The look that goes with arming the bell, on this thread itself: the handler is kept out. */
	if (contd__tls.guard == 0) {
		contd__tls.guard++;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		contd__bell_settle_sig(me, 0);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		contd__tls.guard--;
	} else if (contd__bell_wanted_sig(me)) { /* the end of the guard arms it */
		me->told = 1;
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
	}
	/* If something is ready already, do as if a notification had come here; under a guard, at its end. */
	if (contd__on_thread_sig() && contd__waits_sig(CLASSES_ALL))
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
	contd__pickup();
}
