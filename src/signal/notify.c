/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. One signal to one attached thread. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/classes.h"
#include "dispatch/interrupt.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"
#include "signal/attached.h"
#include "signal/bell.h"
#include "signal/notify.h"
#include "signal/timer.h"

/* rt_tgsigqueueinfo(2) is a plain system call; unlike pthread_sigqueue(3) it needs no more than the thread's number. */
bool contd__queue_sig(int32_t tid)
{
	siginfo_t info = {.si_code = CONTD_SI_CODE};

	info.si_value.sival_ptr = &contd__signals.notice_mark;
	return syscall(SYS_rt_tgsigqueueinfo, contd__signals.pid, tid, contd__signals.signal_number, &info) == 0;
}

/* With `senders` counted. false: the record is of no thread any more. */
static bool send_signal(struct contd__attached *a)
{
	int saved = errno;
	int32_t tid = contd__load_seq(&a->tid);
	bool sent;

	CONTD_TESTPOINT("notify_before_send");
	if (!tid)
		return false;
	sent = contd__queue_sig(tid);
	errno = saved;
	if (sent) {
		CONTD_COUNT_STRAY(notifications);
	} else {
		/* EAGAIN: RLIMIT_SIGPENDING. The signal of a timer has had its place in the queue since
		 * timer_create(2). */
		CONTD_COUNT_STRAY(notify_failed);
		contd__tick_at_sig(a, contd__ticks());
	}
	return true;
}

/*
 * Interrupt this thread: by a signal, or, if its overhead budget is used up, by a tick once it can pay again.
 * `signalled` is claimed with `senders` counted only: a record that is given to another thread has none, and begins at
 * 0.
 */
static bool interrupt_counted(struct contd__attached *a, bool whatever)
{
	uint64_t now = contd__ticks(), at = contd__purse_enough_at(&a->purse, now);

	if (contd__load_seq(&a->tid) == 0)
		return false;
	/* A notification that is on its way will see what was made ready before this. But one that has not come for so
	 * long may have been swallowed: by a debugger, or by a handler that the program has put in the place of contd's
	 * for a while. */
	if (contd__load_seq(&a->signalled) || contd__xchg(&a->signalled, 1)) {
		if (now - contd__load(&a->signalled_at) < contd__clock.second)
			return true;
	}
	contd__store(&a->signalled_at, now);
	if (!whatever && at > now) {
		CONTD_COUNT_STRAY(put_off);
		contd__tick_at_sig(a, at);
		return true;
	}
	if (send_signal(a))
		return true;
	contd__xchg(&a->signalled, 0);
	return false;
}

static bool interrupt(struct contd__attached *a, bool whatever)
{
	bool done;

	contd__add(&a->senders, 1);
	done = interrupt_counted(a, whatever);
	contd__sub(&a->senders, 1);
	return done;
}

int contd__notify_sig(void)
{
	/* Acquire: pairs with the release in record_take (attach.c). */
	uint32_t n = contd__load_acquire(&contd__signals.count);
	uint32_t turn = contd__load(&contd__signals.turn);
	uint64_t now = contd__ticks();

	/* First those that can pay for it. */
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct contd__attached *a = contd__signals.record[(turn + i) % n];

		if (contd__load_seq(&a->tid) == 0 || (contd__load(&a->purse.enough_at) > now) != (i >= n))
			continue;
		if (interrupt(a, false)) {
			contd__store(&contd__signals.turn, (turn + i + 1) % n);
			return 1;
		}
	}
	return 0;
}

static bool computes(struct contd__attached *a)
{
	bool computing;

	if (!contd__load_seq(&a->tid))
		return false;
	contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
	computing = contd__load_seq(&a->tid) && contd__attached_computes_sig(a);
	contd__sub(&a->senders, 1);
	return computing;
}

static bool some_compute(void)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);

	for (uint32_t i = 0; i < n; i++)
		if (computes(contd__signals.record[i]))
			return true;
	return false;
}

/* Interrupt a thread that computes in a region, but not `me`: first those that can pay for it. */
static int interrupt_computing(const struct contd__attached *me, bool whatever)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);
	uint64_t now = contd__ticks();

	for (uint32_t i = 0; i < 2 * n; i++) {
		struct contd__attached *a = contd__signals.record[i % n];

		if (a == me || (contd__load(&a->purse.enough_at) > now) != (i >= n) || !computes(a))
			continue;
		if (interrupt(a, whatever))
			return 1;
	}
	return 0;
}

/* Tell each of them: its next region arms the bell again, and looks at what is ready. Returns how many others had not
 * been told before. */
static uint32_t rearm(const struct contd__attached *me)
{
	uint32_t n = contd__load_acquire(&contd__signals.count), told = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (a == me)
			continue;
		contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
		if (contd__load_seq(&a->tid) && !(contd__load_seq(&a->tls->flags) & CONTD__TLS_REARM) &&
		    !(contd__or(&a->tls->flags, CONTD__TLS_REARM) & CONTD__TLS_REARM))
			told += a != contd__me;
		contd__sub(&a->senders, 1);
	}
	return told;
}

/*
 * Partner: contd_compute_begin(), which counts the region, then looks at its flags, without a fence. This is the fence:
 * a thread that has missed CONTD__TLS_REARM is seen to compute after it. liburcu-memb registered the process for it
 * when it was loaded. false: the kernel has no membarrier(2).
 */
static bool barrier_everywhere(void)
{
	int saved = errno;
	bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;

	errno = saved;
	return done;
}

/* Without membarrier(2) a signal is the barrier: in its handler a thread sees whether it computes, and what is
 * ready. */
static int interrupt_all(const struct contd__attached *me, bool whatever)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);
	int done = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (a != contd__me && a != me)
			done |= interrupt(a, whatever);
	}
	return done;
}

/* Threads have been told to look (rearm()): interrupt one that computes already, and may not have seen it. */
static void interrupt_told(const struct contd__attached *me, bool whatever)
{
	if (barrier_everywhere())
		interrupt_computing(me, whatever);
	else
		interrupt_all(me, whatever);
}

void contd__hand_on_sig(const struct contd__attached *me, bool whatever)
{
	if (!interrupt_computing(me, whatever) && rearm(me))
		interrupt_told(me, whatever);
}

void contd__hand_on_within_sig(void)
{
	contd__hand_on_sig(contd__me, false);
}

struct asking {
	const struct contd__attached *me; /* not this thread */
	int32_t watcher;                  /* nor this one: its checkpoints see a ring, as long as its region lasts */
	bool of_all;
};

static bool may_be_asked(const struct contd__attached *a, const struct asking *q)
{
	uint32_t unasked = contd__load_seq(&a->unasked);

	return a != q->me && contd__load(&a->tid) != q->watcher && unasked != UNASKED_NOT &&
	       (unasked != UNASKED_FOR_ALL || q->of_all);
}

/* Interrupt one of them that computes: first those that can pay for it. The others may still be asked. */
static bool ask_computing(const struct asking *q)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);
	uint64_t now = contd__ticks();
	bool done = false;

	for (uint32_t i = 0; i < 2 * n && !done; i++) {
		struct contd__attached *a = contd__signals.record[i % n];

		if (!may_be_asked(a, q) || (contd__load(&a->purse.enough_at) > now) != (i >= n))
			continue;
		contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
		if (contd__load_seq(&a->tid) && contd__attached_computes_sig(a) &&
		    contd__xchg(&a->unasked, UNASKED_NOT) != UNASKED_NOT) {
			contd__or(&a->tls->flags, CONTD__TLS_REARM); /* this region may end first */
			done = interrupt_counted(a, false);
		}
		contd__sub(&a->senders, 1);
	}
	return done;
}

/* Tell each of them. Returns how many others had not been told before. */
static uint32_t ask_next_regions(const struct asking *q)
{
	uint32_t n = contd__load_acquire(&contd__signals.count), told = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (!may_be_asked(a, q) || contd__load_seq(&a->unasked) == UNASKED_TOLD)
			continue;
		contd__add(&a->senders, 1); /* as above */
		if (contd__load_seq(&a->tid) && contd__xchg(&a->unasked, UNASKED_TOLD) != UNASKED_TOLD) {
			contd__or(&a->tls->flags, CONTD__TLS_REARM);
			told += a != contd__me;
		}
		contd__sub(&a->senders, 1);
	}
	return told;
}

void contd__ask_sig(void)
{
	uint32_t armed = contd__load_seq(&contd__load_seq(&contd__page)->armed.by.thread);
	struct asking asking = {
		/* In a look the end of the look arms this thread's bell. */
		.me = contd__on_thread_sig() ? NULL : contd__me,
		.watcher = armed & BELL_WATCHED && contd__signals_computing_sig((int32_t)(armed & ~BELL_WATCHED))
				   ? (int32_t)(armed & ~BELL_WATCHED)
				   : -1,
		.of_all = contd__load_seq(&contd__words.pending) || contd__sources_of_all_sig(WHERE_REGION),
	};

	if (ask_computing(&asking) || !ask_next_regions(&asking))
		return;
	CONTD_TESTPOINT("regions_asked");
	/* As in interrupt_told(); but only those that were told have missed it. */
	if (barrier_everywhere())
		ask_computing(&asking);
	else
		interrupt_all(asking.me, false);
}

/*
 * Completers load `regions`, so that a completion costs one load while no thread uses regions. A region that begins and
 * has been told to look (contd__region_rearm()) sets it before it looks. It is taken back here, as follows:
 *
 *  1. No thread seems to compute. Store 0, then tell every thread to look when its next region begins, then the
 *     barrier.
 *  2. A thread that was told does this, in order: take CONTD__TLS_REARM away, store 1, look at what is ready. Suppose
 *     that a completer has marked something and then loads 0. If the store of 1 comes later, that look sees the mark.
 *     If the store of 1 came before the store of 0, then so did the taking away: CONTD__TLS_REARM is set again, and
 *     either the next region looks, or 3.
 *  3. A region that has begun without seeing that it was told is seen to compute after the barrier. Store 1 again, then
 *     interrupt it: its handler looks later than every completer that has loaded the 0.
 */
int contd__notify_region_sig(void)
{
	if (interrupt_computing(NULL, false))
		return 1;
	if (!contd__load_seq(&contd__interrupt.regions))
		return 0;
	contd__interrupt_regions_sig(0);
	CONTD_TESTPOINT("regions_taken_back");
	if (rearm(NULL) && !barrier_everywhere())
		return interrupt_all(NULL, false);
	if (!some_compute())
		return 0;
	contd__interrupt_regions_sig(1);
	return interrupt_computing(NULL, false);
}

void contd__ring_sig(int32_t tid)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__load_seq(&contd__signals.record[i]->tid) == tid && interrupt(contd__signals.record[i], true))
			return;
	/* It has detached, or ended, since the bell was taken from it. */
	contd__bell_taken_sig();
}

void contd__again_sig(bool ran)
{
	/* A thread's signal to itself comes before the next instruction: send one only if the scan has got anywhere. */
	if (contd__load(&contd__signals.timers)) {
		contd__arm_sig();
	} else if (ran) {
		if (contd__marked_sig(CLASSES_SIGNAL))
			contd__notify_sig();
		else
			contd__notify_region_sig();
	}
}

void contd__later_sig(void)
{
	struct contd__attached *me = contd__me;
	uint64_t now = contd__ticks(), at;

	if (!me || !contd__load_seq(&me->tid)) {
		contd__notify_sig();
		return;
	}
	/* As in interrupt_counted(): one that is on its way is enough, unless it has been swallowed. */
	if (contd__xchg(&me->signalled, 1) && now - contd__load(&me->signalled_at) < contd__clock.second)
		return;
	contd__store(&me->signalled_at, now);
	at = contd__purse_enough_at(&me->purse, now);
	contd__tick_at_sig(me, at); /* one shortest interval from now at the earliest */
}
