/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal handler: async-signal-safe code only. */
#include <errno.h>

#include "dispatch/group.h"
#include "signal/signal.h"

struct contd__signals contd__signals;
__thread struct contd__attached *contd__me __attribute__((tls_model("initial-exec")));

/* Somebody's handler was there before, and is to have what is not ours. */
static bool chained(int signo)
{
	const struct sigaction *before = &contd__signals.before[signo];

	return before->sa_flags & SA_SIGINFO || (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN);
}

/*
 * contd's timers and notifications carry a mark. Where nobody else has the signal, any that a timer or a thread of this
 * process sends is taken as a request to look.
 */
static bool ours(int signo, const siginfo_t *info)
{
	if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
		return info->si_value.sival_ptr == &contd__signals || (info->si_code == SI_TIMER && !chained(signo));
	return info->si_code == SI_TKILL && !chained(signo);
}

static void pass_on(int signo, siginfo_t *info, void *context)
{
	const struct sigaction *before = &contd__signals.before[signo];

	if (!chained(signo))
		return;
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signo, info, context);
	else
		before->sa_handler(signo);
}

/* Is the thread attached? Then contd_fini() on another one waits for the end of this. */
static bool enter(struct contd__attached *me)
{
	if (!(contd__tls.flags & CONTD__TLS_ATTACHED) || !me)
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

void contd__handler(int signo, siginfo_t *info, void *context)
{
	int saved = errno;
	struct contd__attached *me = contd__me;
	uint64_t begin, cost;
	uint32_t ran = 0;

	/* A stray one of ours finds the thread not attached. */
	if (!ours(signo, info) || !enter(me)) {
		if (!ours(signo, info))
			pass_on(signo, info, context);
		errno = saved;
		return;
	}
	begin = contd__ticks();
	if (info->si_code == SI_TIMER) {
		CONTD_COUNT(ticks, 1);
		CONTD_COUNT(overruns, (uint64_t)info->si_overrun);
	} else {
		/* Before looking: who makes something ready after this sends another one. */
		contd__xchg(&me->signalled, 0);
	}
	if (me->calibrating) {
		me->calibration_ticks++;
		leave(me);
		errno = saved;
		return;
	}
	CONTD_TESTPOINT("handler_entered");
	if (contd__tls.guard) {
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
		CONTD_COUNT(guarded, 1);
	} else {
		ran = contd__react_sig();
	}
	cost = contd__ticks() - begin;
	if (info->si_code == SI_TIMER)
		contd__tick_done_sig(me, cost, ran != 0);
	CONTD_COUNT(handler_ticks, contd__ticks() - begin);
	CONTD_COUNT(kernel_ticks, contd__load(&contd__signals.kernel_ticks));
	leave(me);
	errno = saved;
}
