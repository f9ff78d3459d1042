/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal handler: async-signal-safe code only. */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/late.h"
#include "dispatch/react.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "signal/budget.h"
#include "signal/handler.h"
#include "signal/inspect.h"
#include "signal/notify.h"
#include "signal/timer.h"

static bool is_handler(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* There was a handler before contd's: it gets the signals that are not contd's. */
static bool chained(int signo)
{
	return is_handler(&contd__signals.before[signo]);
}

/*
 * contd's timers, notifications and rings carry a mark. If there is no other handler, any signal that a timer or a
 * thread of this process sends is taken as a request to look.
 */
static bool ours(int signo, const siginfo_t *info)
{
	const void *mark = info->si_value.sival_ptr;

	if (info->si_code == CONTD_SI_CODE &&
	    (mark == &contd__signals || mark == &contd__signals.notice_mark || mark == &contd__signals.bell_mark))
		return true;
	return (info->si_code == SI_TIMER || info->si_code == SI_TKILL) && !chained(signo);
}

/* For a signal that is contd's. */
static enum contd__interruption kind_of(const siginfo_t *info)
{
	if (info->si_code == SI_TKILL || info->si_value.sival_ptr == &contd__signals.notice_mark)
		return BY_NOTICE;
	return info->si_value.sival_ptr == &contd__signals.bell_mark ? BY_BELL : BY_TIMER;
}

/* Not inline: call-graph.allow names it as the place of these calls, whatever the compiler's flags are. */
static __attribute__((noinline)) void call_foreign(const struct sigaction *action, int signo, siginfo_t *info,
						   void *context)
{
	if (!is_handler(action))
		return;
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(signo, info, context);
	else
		action->sa_handler(signo);
}

/* A signal that is passed on to the program's handler, and how often; of handlers that are under way, innermost. */
struct passing {
	const void *info;
	uintptr_t frame; /* where on the stack */
	uint32_t times;
};
static __thread struct passing passing __attribute__((tls_model("initial-exec")));

/*
 * The program may replace contd's handler with one that calls contd's. After the next contd_init() contd's handler
 * calls that one, and it comes back here with the same signal, deeper on the stack. Then the signal goes to the handler
 * that was installed before both, and the third time nowhere. (A handler may leave by siglongjmp(3): then the next
 * signal can have the same address, but is no deeper.)
 */
static void pass_on(int signo, siginfo_t *info, void *context)
{
	struct passing outer = passing;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uint32_t times = outer.info == info && here < outer.frame ? outer.times + 1 : 1;

	passing = (struct passing){info, here, times};
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (times == 1)
		call_foreign(&contd__signals.before[signo], signo, info, context);
	else if (times == 2)
		call_foreign(&contd__signals.beneath[signo], signo, info, context);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	passing = outer;
}

/* Is the thread attached? Then contd_fini() on another thread waits for the end of this handler. */
static bool enter(struct contd__attached *me)
{
	if (!(contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED) || !me)
		return false;
	contd__store_seq(&me->inside, 1);
	if (contd__load_seq(&me->tid))
		return true;
	contd__store_release(&me->inside, 0);
	return false;
}

static void leave(struct contd__attached *me)
{
	/* Release: pairs with the look in record_retire (attach.c). */
	contd__store_release(&me->inside, 0);
}

/* A signal that is not contd's, or one on a thread that is not attached (a ring may come to any: bell.c). */
static void stray(int signo, siginfo_t *info, void *context)
{
	if (!ours(signo, info)) {
		pass_on(signo, info, context);
	} else if (kind_of(info) == BY_BELL) {
		/* The page stays meanwhile. Dekker with contd__peers_end(), which takes it away and then loads this. */
		contd__add(&contd__signals.strays, 1);
		CONTD_TESTPOINT("bell_stray");
		contd__bell_rung_sig();
		contd__hand_on_sig(NULL, true);
		contd__sub(&contd__signals.strays, 1);
	}
}

/* Returns whether the signal stands for a notification or a ring. A tick does if a notification was put off to it; with
 * agent `caller`, which has no other ticks, each does. */
static bool arrived(struct contd__attached *me, enum contd__interruption kind, const siginfo_t *info)
{
	/* Before looking: a thread that makes something ready after this sends another one. A tick does this, too: a
	 * notification may have been put off to it. */
	bool told = contd__xchg(&me->signalled, 0) || kind != BY_TIMER || !contd__load(&contd__signals.timers);

	if (kind == BY_TIMER) {
		CONTD_COUNT(ticks, 1);
		CONTD_COUNT(overruns, (uint64_t)info->si_overrun);
	} else if (kind == BY_BELL) {
		CONTD_COUNT(rings, 1);
		contd__bell_rung_sig();
	}
	return told;
}

/*
 * A ring that reached a thread outside regions is for another one. Its next region arms the bell again. A notification
 * may be such a ring, and so may a tick to which one was put off. The daemon rings so: it takes the bell away and then
 * interrupts, and an interruption that is on its way is enough. A thread that hands a ring on does the same.
 */
static void hand_on(struct contd__attached *me, enum contd__interruption kind)
{
	if (kind == BY_BELL) {
		contd__or(&contd__tls.flags, CONTD__TLS_REARM);
		me->handed_on = 1;
		contd__hand_on_sig(me, true);
	} else {
		contd__bell_outside_sig(me);
	}
}

/* For a handler that ran no callback: callbacks are noted one by one. */
static void note_late(uint64_t cost)
{
	enum contd__context before = contd__context_enter_sig(contd__tls.region ? CONTEXT_REGION : CONTEXT_HANDLER);

	contd__late_note_sig((const void *)(uintptr_t)contd__handler, LATE_HANDLER, cost);
	contd__context_leave_sig(before);
}

/*
 * Does a tick come too soon after the last handler? If handlers take longer than the interval (long callbacks, or a
 * source's work), the next tick is always pending when one ends, and the thread would never get on. So the thread has
 * half as long for itself as the last handler took, but no more than half an interval: the timer goes on, and its next
 * tick looks. A tick that stands for a notification always looks.
 */
static bool too_soon(const struct contd__attached *me, enum contd__interruption kind, uint64_t now)
{
	uint64_t most = (uint64_t)((double)contd__load(&me->interval_ns) * contd__clock.ticks_per_ns);

	return kind == BY_TIMER && now - me->left_at < (me->took < most ? me->took : most) / 2 &&
	       !contd__load_seq(&me->signalled);
}

static uint64_t less(uint64_t cost, uint64_t work)
{
	return work < cost ? cost - work : 0;
}

void contd__handler(int signo, siginfo_t *info, void *context)
{
	int saved = errno;
	/* As errno: the thread may be about to ask for it. */
	const char *text = contd__error_text, *call = contd__error_call;
	struct contd__attached *me = contd__me;
	uint64_t begin, cost, work = contd__self.work;
	enum contd__interruption kind;
	uint32_t ran = 0;
	bool guarded, told, found = false;

	if (!ours(signo, info) || !enter(me)) {
		stray(signo, info, context);
		contd__error_back_sig(text, call);
		errno = saved;
		return;
	}
	begin = contd__ticks();
	kind = kind_of(info);
	if (me->calibrating) {
		if (++me->calibration_ticks == CALIBRATION_TICKS_MOST)
			contd__timer_off_sig(me);
		CONTD_TESTPOINT("calibration_tick");
		/* Whether it is the calibration's own signal or not: the end of the calibration looks. */
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
		if (kind == BY_BELL) {
			contd__bell_rung_sig();
			contd__hand_on_sig(me, true);
		}
		leave(me);
		errno = saved;
		return;
	}
	if (__builtin_expect(too_soon(me, kind, begin), 0)) {
		CONTD_COUNT(ticks, 1);
		contd__pay_sig(me, kind, begin, 0);
		leave(me);
		errno = saved;
		return;
	}
	told = arrived(me, kind, info);
	CONTD_TESTPOINT("handler_entered");
	/* A read-side section is a guard: a callback may wait for a thread that waits for the end of that section. So
	 * is a continuation, also one that has ended a guard too many. */
	guarded = contd__tls.guard != 0 || contd__in_continuation_sig() || contd__reading_sig();
	if (guarded) {
		/* A plain tick that interrupts the look at the end of a guard leaves no note: that look would begin
		 * again, and if looks take longer than the interval it would never end. The next tick looks. */
		if (told || !contd__looks_under_guard_sig())
			contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
		if (told && contd__tls.region)
			me->told = 1; /* and the region may have ended when the guard does */
		CONTD_COUNT(guarded, 1);
	} else {
		ran = contd__react_sig(kind == BY_BELL ? LOOK_RUNG : LOOK);
		if (kind == BY_TIMER)
			found = contd__inspect_sig(me, context);
	}
	cost = contd__ticks() - begin;
	if (kind == BY_TIMER) {
		contd__tick_done_sig(me, less(cost, contd__self.work - work), ran != 0 || found, guarded);
	} else if (!guarded) {
		ran += contd__bell_settle_sig(me, ran);
	}
	if (told && !contd__tls.region)
		hand_on(me, kind);
	cost = contd__ticks() - begin;
	/* Callbacks are work, but what is around them is not. */
	contd__pay_sig(me, kind, begin + cost, ran ? me->empty_ticks : less(cost, contd__self.work - work));
	CONTD_COUNT(handler_ticks, cost);
	contd__strays_handler_sig(cost);
	if (contd__late_watched_sig() && !ran)
		note_late(cost);
	me->left_at = begin + cost;
	me->took = cost;
	leave(me);
	contd__error_back_sig(text, call);
	errno = saved;
}
