/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "signal/inspect.h"
#include "signal/timer.h"

bool contd__inspect_sig(const struct contd__attached *me, const void *context)
{
	const struct contd__inspector *inspector = contd__load(&me->inspector); /* its own thread has set it */
	uint64_t work = contd__self.work;
	enum contd__context before;

	if (!inspector || !contd__sources_pending_sig(WHERE_INSPECTED) || !inspector->allows(context))
		return false;
	/* What a source reports, it reports from a handler. */
	before = contd__context_enter_sig(CONTEXT_HANDLER);
	CONTD_TESTPOINT("inspected");
	contd__sources_drive_sig(WHERE_INSPECTED, NULL, false);
	if (inspector->after)
		inspector->after();
	contd__context_leave_sig(before);
	return contd__self.work != work;
}

bool contd__inspect(const struct contd__inspector *inspector)
{
	struct contd__attached *me = contd__me;

	if (!me || !contd__load(&me->tid))
		return false;
	/* Sequentially consistent: store this, then look at what is pending. The partner is a thread that makes
	 * something pending and then looks whether this thread has a use for ticks, in contd__arm_sig(). */
	contd__store_seq(&me->inspector, inspector);
	contd__store_seq(&me->off_turn, 0);
	contd__arm_sig();
	return true;
}

void contd__inspect_rest_sig(bool rests)
{
	contd__store_seq(&contd__me->off_turn, rests);
}

void contd__inspect_again(bool each)
{
	/* Acquire: pairs with the release in record_take (attach.c). */
	uint32_t n = contd__load_acquire(&contd__signals.count);
	bool any = contd__me && contd__xchg(&contd__me->off_turn, 0);

	for (uint32_t i = 0; each && i < n; i++)
		any |= contd__xchg(&contd__signals.record[i]->off_turn, 0) != 0;
	if (any)
		contd__arm_sig();
}
