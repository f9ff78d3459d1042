/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from signal handlers: async-signal-safe code only. One signal to one attached thread. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatch/group.h"
#include "signal/signal.h"

/* Completers may be threads that statistics do not know of. */
#define COUNT(field)                                             \
	do {                                                     \
		if (contd__self.registered)                      \
			CONTD_COUNT(field, 1);                   \
		else                                             \
			contd__add(&contd__dispatch.field, 1);   \
	} while (0)

/* rt_tgsigqueueinfo(2) is a plain system call; unlike pthread_sigqueue(3) it needs no more than the thread's number. */
bool contd__queue_sig(int32_t tid)
{
	siginfo_t info = {.si_code = CONTD_SI_CODE};

	info.si_value.sival_ptr = &contd__signals.notice_mark;
	return syscall(SYS_rt_tgsigqueueinfo, contd__signals.pid, tid, contd__signals.signal_number, &info) == 0;
}

/* With `senders` counted; false: it is nobody's any more. */
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
		COUNT(notifications);
	} else {
		/* EAGAIN: RLIMIT_SIGPENDING. The signal of a timer has had its place in the queue since timer_create(2). */
		COUNT(notify_failed);
		contd__tick_at_sig(a, contd__ticks());
	}
	return true;
}

/*
 * Interrupt this one: by a signal, or, where its overhead budget is used up, by a tick once it can pay again. `signalled`
 * is claimed with `senders` counted only: a record that is given to another thread has none, and begins at 0.
 */
static bool interrupt_counted(struct contd__attached *a, bool whatever)
{
	uint64_t at = contd__load(&a->purse.enough_at), now = contd__ticks();

	if (contd__load_seq(&a->tid) == 0)
		return false;
	/* One that is on its way will see what was made ready before this. But one that has not come for so long may have been
	 * swallowed: by a debugger, or by a handler that the program has put in the place of ours for a while. */
	if (contd__load_seq(&a->signalled) || contd__xchg(&a->signalled, 1)) {
		if (now - contd__load(&a->signalled_at) < contd__dispatch.second)
			return true;
	}
	contd__store(&a->signalled_at, now);
	if (!whatever && at > now) {
		COUNT(put_off);
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

bool contd__signals_computing_sig(int32_t tid)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);
	bool computing = false;

	for (uint32_t i = 0; i < n && !computing; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (contd__load(&a->tid) != tid)
			continue;
		contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
		computing = contd__load_seq(&a->tid) == tid && contd__load(&a->tls->region);
		contd__sub(&a->senders, 1);
	}
	return computing;
}

/* Interrupt a thread that computes in a region, but for `me`. */
static int interrupt_computing(const struct contd__attached *me, bool whatever)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);

	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];
		int32_t tid = contd__load_seq(&a->tid);

		if (a != me && tid && contd__signals_computing_sig(tid) && interrupt(a, whatever))
			return 1;
	}
	return 0;
}

/* The next region of each of them arms the bell again. */
static void rearm(const struct contd__attached *me)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);

	for (uint32_t i = 0; i < n; i++) {
		struct contd__attached *a = contd__signals.record[i];

		if (a == me)
			continue;
		contd__add(&a->senders, 1); /* while this is not 0 the thread does not go */
		if (contd__load_seq(&a->tid))
			contd__or(&a->tls->flags, CONTD__TLS_REARM);
		contd__sub(&a->senders, 1);
	}
}

void contd__hand_on_sig(const struct contd__attached *me)
{
	int saved = errno;

	if (interrupt_computing(me, true))
		return;
	rearm(me);
	/*
	 * Partner: contd_compute_begin(), which counts the region, then looks at the flag, with no fence of its own. One that
	 * has missed the flag is seen to compute. liburcu-memb has registered the process when it was loaded. (Where the kernel
	 * has no membarrier(2) a tick makes up for it.)
	 */
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
	errno = saved;
	interrupt_computing(me, true);
}

int contd__notify_region_sig(void)
{
	return interrupt_computing(NULL, false);
}

void contd__ring_sig(int32_t tid)
{
	uint32_t n = contd__load_acquire(&contd__signals.count);

	for (uint32_t i = 0; i < n; i++)
		if (contd__load_seq(&contd__signals.record[i]->tid) == tid) {
			interrupt(contd__signals.record[i], true);
			return;
		}
}

void contd__again_sig(bool ran)
{
	/* A signal to oneself comes before the next instruction: only where the scan has got anywhere. */
	if (contd__load(&contd__signals.timers))
		contd__arm_sig();
	else if (ran)
		contd__notify_sig();
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
	if (contd__xchg(&me->signalled, 1) && now - contd__load(&me->signalled_at) < contd__dispatch.second)
		return;
	contd__store(&me->signalled_at, now);
	at = contd__load(&me->purse.enough_at);
	contd__tick_at_sig(me, at > now ? at : now); /* one shortest interval from now at the earliest */
}
