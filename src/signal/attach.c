/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching and detaching threads; reserving the signal. Ordinary threads only. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/sized.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/thread.h"
#include "signal/attach.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "signal/budget.h"
#include "signal/calibrate.h"
#include "signal/handler.h"
#include "signal/notify.h"
#include "signal/peers.h"
#include "signal/timer.h"

#define S contd__signals

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define STACK_DEFAULT 16384u
#define STACK_HANDLER 4096u /* contd's own frames (under 1 KiB by -fstack-usage) and a margin */

static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------------------------------------------ records --- */

static struct contd__attached *record_take(void)
{
	struct contd__attached *a = NULL;

	pthread_mutex_lock(&record_lock);
	for (uint32_t i = 0; i < S.count && !a; i++)
		if (contd__load(&S.record[i]->tid) == 0 && S.record[i]->nested == 0)
			a = S.record[i];
	if (!a && S.count < ATTACHED_MAX) {
		a = contd__memalign(64, (sizeof(*a) + 63) & ~(size_t)63);
		if (a) {
			memset(a, 0, sizeof(*a));
			S.record[S.count] = a;
		}
	}
	if (a) {
		a->nested = 1; /* taken; tid is published when the record is whole */
		contd__store(&a->signalled, 0);
		contd__store(&a->armed, 1); /* no thread arms it yet */
		a->empty_ticks = 0;
		a->useless = 0;
		a->quiet = 0;
		a->told = 0;
		a->handed_on = 0;
		contd__store_seq(&a->unasked, UNASKED_NOT);
		contd__store_seq(&a->inspector, NULL);
		contd__store_seq(&a->off_turn, 0);
		a->tls = &contd__tls;
		a->self = &contd__self;
		contd__purse_open(&a->purse, contd__ticks());
		if (S.count < ATTACHED_MAX && a == S.record[S.count])
			contd__store_release(&S.count, S.count + 1);
	}
	pthread_mutex_unlock(&record_lock);
	return a;
}

static void record_give_back(struct contd__attached *a)
{
	pthread_mutex_lock(&record_lock);
	a->nested = 0;
	pthread_mutex_unlock(&record_lock);
}

/*
 * Take a thread's record out of use: afterwards no thread sends to it or sets its timer. false: another thread does so,
 * or has done so, because contd_fini() may run while a thread ends.
 */
static bool record_retire(struct contd__attached *a)
{
	/* Counted, so that contd_fini(), which may run while a thread ends, does not take the page away meanwhile. */
	contd__add(&a->senders, 1);
	contd__bell_disarm_sig(a, true);
	contd__sub(&a->senders, 1);
	CONTD_TESTPOINT("detach_begun");
	if (!contd__xchg(&a->tid, 0))
		return false;
	CONTD_TESTPOINT("detach_cleared");
	while (contd__load_seq(&a->senders))
		contd__rest();
	/* After contd_fini() no callback runs. Dekker with the handler, which sets `inside` and then loads tid. */
	while (a != contd__me && contd__load_seq(&a->inside))
		contd__rest();
	timer_delete(a->timer);
	return true;
}

/* ------------------------------------------------------------------------------------------------------- checks --- */

/* Is there room below this frame for the kernel's frame, ours and the callbacks'? */
static bool stack_suffices(uint32_t callbacks)
{
	unsigned long kernel = getauxval(AT_MINSIGSTKSZ); /* with the processor's registers: getauxval(3) */
	char here;
	pthread_attr_t attr;
	void *base;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr))
		return true; /* unknown: a stack that pthreads did not make */
	pthread_attr_getstack(&attr, &base, &size);
	pthread_attr_destroy(&attr);
	if (&here < (char *)base || &here > (char *)base + size)
		return true; /* a user-level thread's own stack */
	return (size_t)(&here - (char *)base) > (kernel ? kernel : 4096) + STACK_HANDLER + callbacks;
}

static int timer_make(struct contd__attached *a, pid_t tid)
{
	struct sigevent ev;

	memset(&ev, 0, sizeof(ev));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = S.signal_number;
	ev.sigev_notify_thread_id = tid;
	ev.sigev_value.sival_ptr = &S; /* the mark by which the handler knows contd's signals */
	return timer_create(CLOCK_MONOTONIC, &ev, &a->timer) ? -errno : 0;
}

/* ----------------------------------------------------------------------------------------------- attach, detach --- */

/* Signals of contd that are still pending go to a handler that finds the thread not attached. */
static void detach_self(void)
{
	struct contd__attached *a = contd__me;

	if (!a)
		return;
	record_retire(a);
	contd__store(&contd__tls.flags, 0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__me = NULL;
	record_give_back(a);
}

/* A notification meant for this thread may have been lost with it. */
static void tell_others(void)
{
	if (contd__waits_sig(CLASSES_SIGNAL))
		contd__notify_sig();
	if (contd__waits_sig(CLASSES_ALL & ~CLASSES_SIGNAL) && contd__load_seq(&contd__interrupt.regions))
		contd__notify_region_sig();
}

/* The thread ends. */
static void detach_for_good(void)
{
	bool attached = contd__me && contd__load(&contd__me->tid);

	detach_self();
	if (attached)
		tell_others();
}

int contd_thread_attach(const struct contd_thread_attr *given)
{
	struct contd_thread_attr attr = {.size = sizeof(attr)};
	struct contd__attached *a = contd__me;
	sigset_t ours;
	int32_t tid;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (given &&
	    (rc = contd__sized_take(&attr, sizeof(attr), given,
				    CONTD_SIZED_TEXTS("contd_thread_attach", "attr", "struct contd_thread_attr"))) != 0)
		return rc;
	if (attr.flags)
		return contd__fail(-EINVAL, "contd_thread_attach: attr->flags must be 0");
	if (!contd__on_thread_sig())
		return contd__fail(-EPERM, "contd_thread_attach: not in a handler, nor on the daemon thread");
	if (!stack_suffices(attr.stack_bytes ? attr.stack_bytes : STACK_DEFAULT))
		return contd__fail(-ENOBUFS, "contd_thread_attach: too little stack left for a handler; "
					     "give the thread more (pthread_attr_setstacksize)");
	if (a && contd__load(&a->tid)) {
		a->nested++;
		return 0;
	}
	detach_self(); /* from what an earlier contd_fini left */
	contd__thread_ensure();
	tid = (int32_t)syscall(SYS_gettid);
	a = record_take();
	if (!a)
		return contd__fail(-ENOMEM,
				   "contd_thread_attach: out of memory, or 1024 threads are attached; detach some");
	rc = timer_make(a, tid);
	if (rc) {
		record_give_back(a);
		return contd__fail(rc,
				   "contd_thread_attach: cannot make a timer (timer_create); raise RLIMIT_SIGPENDING");
	}
	/* Thread-local data is touched, and the record whole, before the first signal can come. */
	sigemptyset(&ours);
	sigaddset(&ours, S.signal_number);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	contd__me = a;
	contd__store(&contd__tls.flags, CONTD__TLS_ATTACHED);
	contd__rest_sig(a);
	contd__store_seq(&a->tid, tid);
	CONTD_TESTPOINT("attach_published");
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	if (contd__load(&S.kernel_ticks) == 0) {
		int cancel = contd__cancel_off();

		contd__calibrate(a);
		contd__cancel_as(cancel);
	}
	contd__store(&a->interval_ns, contd__budget_interval_sig(a->empty_ticks));
	contd__store_seq(&a->armed, 0);
	contd__arm_sig(); /* for what became pending before */
	if (contd__waits_sig(CLASSES_SIGNAL))
		contd__notify_sig();
	return 0;
}

int contd_thread_detach(void)
{
	struct contd__attached *a = contd__me;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!a || contd__load(&a->tid) == 0)
		return contd__fail(-EPERM,
				   "contd_thread_detach: this thread is not attached; call it on the thread that was");
	if (contd__tls.region || contd__tls.guard || contd__in_continuation_sig() || !contd__on_thread_sig())
		return contd__fail(-EBUSY,
				   "contd_thread_detach: not inside a region, a guard or a continuation; end it first");
	if (a->nested > 1) {
		a->nested--;
		return 0;
	}
	detach_self();
	tell_others();
	return 0;
}

/* -------------------------------------------------------------------------------------------- the whole process --- */

static void stop_all(void)
{
	pthread_mutex_lock(&record_lock); /* a thread that ends meanwhile waits for it, in record_give_back() */
	for (uint32_t i = 0; i < S.count; i++)
		if (record_retire(S.record[i]))
			contd__store(&S.record[i]->tls->flags, 0);
	pthread_mutex_unlock(&record_lock);
	contd__peers_end();
	/* The handler stays: a signal that is still under way must find it. Threads drop their records when they attach
	 * again, or end. */
	detach_self();
}

/* No signal of contd has been sent yet. */
static void give_back(void)
{
	sigaction(S.signal_number, &S.before[S.signal_number], NULL);
}

/* In the child there are no timers, and no thread but this one. */
static void forked(void)
{
	contd__store(&contd__tls.flags, 0);
	contd__me = NULL;
	/* An event that is completed here must not notify the parent's threads. */
	contd__thread_end_calls(NULL);
	contd__interrupt_by(NULL);
	contd__peers_forked();
}

/* Settings have changed: each thread's next tick sees them, and comes at the new interval. */
static void configured(void)
{
	contd__store(&S.timers, contd__config.agent != CONTD_AGENT_CALLER);
	for (uint32_t i = 0; i < S.count; i++) {
		struct contd__attached *a = S.record[i];

		contd__store(&a->interval_ns, contd__budget_interval_sig(0));
		if (contd__load_seq(&a->tid) && contd__load_seq(&a->armed))
			contd__tick_at_sig(a, 0);
	}
	contd__arm_sig();
	contd__bell_taken_sig(); /* a thread may compute that armed no bell by the settings before */
}

/* The end of a guard has done what the guard kept out. Do also what a handler does besides looking. */
static void looked(uint32_t ran)
{
	struct contd__attached *me = contd__me;

	if (!me || !contd__load_seq(&me->tid))
		return;
	contd__bell_settle_sig(me, ran);
	/* An interruption has come under the guard, in a region that has ended before the guard. */
	if (me->told) {
		me->told = 0;
		if (!contd__tls.region)
			contd__bell_outside_sig(me);
	}
}

static uint64_t tick_ns(void)
{
	return contd__me && contd__load(&contd__me->armed) ? contd__load(&contd__me->interval_ns) : 0;
}

static uint64_t tick_cost_ns(void)
{
	return (uint64_t)((double)contd__load(&S.kernel_ticks) / contd__clock.ticks_per_ns);
}

static bool ticks(void)
{
	return contd__load(&S.timers);
}

static bool listens(void)
{
	return contd__load(&S.listens) != 0;
}

static bool is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

/*
 * Cancellation may be asynchronous: the C library makes it so in pthread_cond_wait(3) and its kin. Then it ends the
 * thread by a signal that sigfillset(3) and sigaddset(3) leave out: 32, in glibc and in musl. Keep that out of the
 * handler.
 */
static void keep_cancellation_out(sigset_t *set)
{
	enum { CANCEL = 32, BITS = 8 * sizeof(unsigned long) };

	sigemptyset(set);
	((unsigned long *)(void *)set)[(CANCEL - 1) / BITS] |= 1ul << (CANCEL - 1) % BITS;
}

int contd__signal_start(const struct contd_config *config)
{
	static const struct contd__signal_ops ops = {
		.arm = contd__arm_sig,
		.notify = contd__notify_sig,
		.listens = listens,
		.drain = contd__bell_drain_sig,
		.computing = contd__signals_computing_sig,
		.keeps_bell = contd__signals_keeps_bell_sig,
		.ticks = ticks,
		.notify_region = contd__notify_region_sig,
		.ring = contd__ring_sig,
		.ask = contd__ask_sig,
		.hand_on = contd__hand_on_within_sig,
		.refill = contd__refill_sig,
		.again = contd__again_sig,
		.later = contd__later_sig,
		.stop = stop_all,
		.give_back = give_back,
		.forked = forked,
		.configured = configured,
		.looked = looked,
		.tick_ns = tick_ns,
		.tick_cost_ns = tick_cost_ns,
	};
	struct sigaction action, before;
	bool ours;
	int rc;

	memset(&action, 0, sizeof(action));
	if (sigaction(config->signal_number, NULL, &before))
		return contd__fail(-errno, "contd_init: sigaction(2) fails for the signal; choose another one "
					   "(signal_number, CONTD_SIGNAL)");
	ours = before.sa_flags & SA_SIGINFO && before.sa_sigaction == contd__handler; /* since an earlier contd_init */
	if (ours)
		before = S.before[config->signal_number];
	if (!is_default(&before) && config->signal_taken != CONTD_SIGNAL_CHAIN)
		return contd__fail(-EBUSY,
				   "contd_init: the signal has a handler already; choose another one (signal_number, "
				   "CONTD_SIGNAL) or chain (CONTD_SIGNAL_CHAIN=1)");
	if (!ours) {
		S.beneath[config->signal_number] = S.before[config->signal_number];
		S.before[config->signal_number] = before;
	}
	S.signal_number = config->signal_number;
	S.pid = getpid();
	contd__store(&S.timers, config->agent != CONTD_AGENT_CALLER);
	rc = contd__page_make();
	if (rc)
		return rc;
	action.sa_sigaction = contd__handler;
	/* Not SA_ONSTACK: RCU's read side is not allowed on an alternate stack. */
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	keep_cancellation_out(&action.sa_mask);
	sigorset(&action.sa_mask, &action.sa_mask, &before.sa_mask); /* what the handler that was there relies on */
	if (sigaction(config->signal_number, &action, NULL)) {
		rc = contd__fail(-errno, "contd_init: sigaction(2) fails for the signal; choose another one "
					 "(signal_number, CONTD_SIGNAL)");
		contd__peers_end();
		return rc;
	}
	contd__thread_end_calls(detach_for_good);
	contd__interrupt_by(&ops);
	return 0;
}
