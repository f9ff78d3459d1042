/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <contd/contd.h>

#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"

struct contd__interrupt contd__interrupt;

uint32_t contd__whom_sig(uint32_t flags)
{
	if (flags & (CONTD_POLL_ONLY | GROUP_PULL))
		return 0;
	if (flags & CONTD_ASYNC_SIGNAL_SAFE)
		return KICK_SIGNAL;
	/* The bit was set before. Partner: contd__daemon_hand_over(). */
	return flags & CONTD_THREAD_ANY && contd__load_seq(&contd__wake.daemon_mode) ? 0 : KICK_REGION;
}

/*
 * In a look of this thread's (react.c): it may have been past the group already, as where a signal handler of the
 * program's completes this. It looks again for the note. What a callback completes it finds without: it goes through a
 * class once more when one has run.
 */
static void noted_by_look(void)
{
	if (!contd__self.frame)
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
}

/*
 * A thread that computes in a region runs it here and now, or at the end of what keeps it. Else another one is
 * interrupted. If there is none, whoever begins a region next looks (contd__region_rearm()).
 */
static void kick_region(void)
{
	const struct contd__signal_ops *ops;
	bool attached = contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED;

	if (attached && contd__self.context == CONTEXT_REGION) {
		noted_by_look();
		return;
	}
	if (attached && contd__tls.region && contd__self.context == CONTEXT_THREAD) {
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
		contd__guard_pickup();
		return;
	}
	/* Dekker: the bit was set, then this is loaded. Partner: contd__region_rearm(), which stores this, then
	 * looks. */
	if (!contd__load_seq(&contd__interrupt.regions))
		return;
	ops = contd__load_acquire(&contd__interrupt.ops);
	if (ops)
		ops->notify_region();
}

static void kick_signal(void)
{
	const struct contd__signal_ops *ops;

	if (contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED) {
		if (contd__self.context != CONTEXT_THREAD) {
			noted_by_look();
			return;
		}
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
		contd__guard_pickup();
		return;
	}
	ops = contd__load_acquire(&contd__interrupt.ops);
	if (ops)
		ops->notify();
}

void contd__kick_sig(uint32_t kicks)
{
	if (kicks & KICK_SIGNAL)
		kick_signal();
	if (kicks & KICK_REGION)
		kick_region();
}

void contd__deferred_sig(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	/* Without the pick-up of contd_guard_end(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__tls.guard--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (contd__tls.guard || !(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) ||
	    contd__self.context != CONTEXT_THREAD)
		return;
	contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
	if (ops)
		ops->later();
}
