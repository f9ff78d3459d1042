/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal handler: async-signal-safe code only. */
#include <errno.h>

#include "dispatch/group.h"
#include "signal/signal.h"

struct contd__signals contd__signals;
__thread struct contd__attached *contd__me __attribute__((tls_model("initial-exec")));

static void pass_on(int signo, siginfo_t *info, void *context)
{
	const struct sigaction *before = &contd__signals.before;

	if (!contd__signals.chain)
		return;
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signo, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signo);
}

void contd__handler(int signo, siginfo_t *info, void *context)
{
	int saved = errno;
	struct contd__attached *me = contd__me;
	uint64_t begin, cost;
	uint32_t ran = 0;

	/* Ours are timers' and threads' of this process; a stray one finds the thread not attached. */
	if ((info->si_code != SI_TIMER && info->si_code != SI_TKILL) || !(contd__tls.flags & CONTD__TLS_ATTACHED) || !me ||
	    contd__load(&me->tid) == 0) {
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
	else if (contd__marked_sig(CLASSES_SIGNAL) && contd__signals.timers)
		contd__arm_one_sig(me); /* the budget has left some */
	CONTD_COUNT(handler_ticks, contd__ticks() - begin);
	CONTD_COUNT(kernel_ticks, contd__signals.kernel_ticks);
	errno = saved;
}
