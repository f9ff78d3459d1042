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
	/* Dekker: the bit was set, then this is loaded. Partner: contd__daemon_hand_over(). */
	return flags & CONTD_THREAD_ANY && contd__load_seq(&contd__wake.daemon_mode) ? 0 : KICK_REGION;
}

/*
 * This thread is in a look (react.c), which may be past the group already, for example if a signal handler of the
 * program completes this. The note makes it look again. Events that a callback completes need no note: after a callback
 * the look scans its classes once more.
 */
static void noted_by_look(void)
{
	if (!contd__in_continuation_sig())
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
}

/*
 * If this thread computes in a region, it runs the continuation here and now, or at the end of what prevents that. If
 * not, another thread is interrupted. If there is none, the thread that begins a region next looks
 * (contd__region_rearm()).
 */
static void kick_region(void)
{
	const struct contd__signal_ops *ops;
	bool attached = contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED;

	if (attached && contd__in_region_look_sig()) {
		noted_by_look();
		return;
	}
	if (attached && contd__tls.region && contd__on_thread_sig()) {
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
		if (!contd__on_thread_sig()) {
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

void contd__interrupt_fini(void)
{
	contd__store(&contd__interrupt.regions, 0);
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
	if (contd__tls.guard || !(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) || !contd__on_thread_sig())
		return;
	contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
	if (ops)
		ops->later();
}
