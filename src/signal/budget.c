/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reached from the signal handler: async-signal-safe code only. The budget of an attached thread's interruptions: how
 * often it ticks, and whether one more notification or ring can be paid for.
 *
 * Ticks alone may take eight tenths of the overhead budget. Nine tenths flow into the thread's purse, which pays for
 * all interruptions; one tenth of a second's worth may be saved up (dispatch/purse.h). Callbacks are work, and cost
 * nothing here.
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/limits.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "signal/attached.h"
#include "signal/budget.h"

uint64_t contd__budget_interval_sig(uint64_t empty_ticks)
{
	double cost_ns = (double)(contd__load(&contd__signals.kernel_ticks) + empty_ticks) / contd__clock.ticks_per_ns;
	double ns = cost_ns * (1 << 20) / (double)contd__load(&contd__limits.tick_rate);
	double least = (double)contd__load(&contd__limits.tick_min);
	double most = (double)contd__load(&contd__limits.tick_max);

	ns = ns > least ? ns : least;
	ns = ns < most ? ns : most;
	/* If ticks came faster than they are handled, the thread would never get on. */
	return (uint64_t)(ns > 2 * cost_ns ? ns : 2 * cost_ns);
}

uint64_t contd__quiet_interval_sig(const struct contd__attached *me)
{
	uint32_t where = contd__load(&me->inspector) ? WHERE_REGION | WHERE_INSPECTED : WHERE_REGION;
	uint32_t quiet = contd__sources_steady_sig(where) ? 0 : me->quiet;
	uint64_t ns = contd__budget_interval_sig(me->empty_ticks), most = contd__load(&contd__limits.tick_max);

	return contd__quiet_interval(quiet, ns, ns > most ? ns : most);
}

/* A handler that lost its processor for a while does not tell what an interruption costs. */
uint64_t contd__plausible_sig(const struct contd__attached *me)
{
	return 2 * me->empty_ticks + contd__load(&contd__signals.kernel_ticks) / 4;
}

uint64_t contd__dearest_sig(const struct contd__attached *me)
{
	uint64_t tick = contd__load(&contd__signals.kernel_ticks), notice = contd__load(&contd__signals.notice_ticks);

	return (tick > notice ? tick : notice) + contd__plausible_sig(me);
}

void contd__pay_sig(struct contd__attached *me, enum contd__interruption kind, uint64_t now, uint64_t handler_ticks)
{
	uint64_t kernel = contd__load(kind == BY_TIMER ? &contd__signals.kernel_ticks : &contd__signals.notice_ticks);
	uint64_t most = contd__plausible_sig(me);

	CONTD_COUNT(kernel_ticks, kernel);
	contd__purse_pay_sig(&me->purse, now, kernel + (handler_ticks < most ? handler_ticks : most),
			     contd__load(&contd__signals.notice_ticks) + me->empty_ticks);
}
