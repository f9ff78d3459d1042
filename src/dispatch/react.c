/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/react.h"
#include "dispatch/scan.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"
#include "rcu/reader.h"

#define RUNG_DRIVES 16u

uint32_t contd__react_sig(enum contd__looking how)
{
	uint32_t ran;
	/* The look that goes with arming a bell belongs to the interruption before it. */
	struct contd__budget budget = {
		.count = contd__load(&contd__limits.scan_count), .by = SCAN_INTERRUPTION, .rounds = how == LOOK_LAST};
	const struct contd__signal_ops *ops;
	enum contd__context before;
	bool region = contd__tls.region && !contd__in_continuation_sig(), again = false;
	uint32_t classes = region ? CLASSES_ALL : CLASSES_SIGNAL, drives = !region            ? 0
									   : how == LOOK_RUNG ? RUNG_DRIVES
											      : 1;

	before = contd__context_enter_sig(region ? CONTEXT_REGION : CONTEXT_HANDLER);
	CONTD_TESTPOINT("look_begun");
	contd__words_look_sig(budget.count);
	contd__carried_retry_sig();
	while (drives--) {
		contd__sources_drive_sig(WHERE_REGION, NULL, how == LOOK_LAST);
		if (contd__marked_sig(classes))
			break;
	}
	budget.deadline = contd__ticks() + contd__load(&contd__limits.scan_ticks);
	ran = contd__scan_sig(classes, &budget);
	/* This scan has set a hint again (tell_again). Threads that were told before have found nothing, so no other
	 * thread comes for it. Under a guard the end of the guard does this. */
	while (contd__tls.guard == 0 && !contd__spent_sig(&budget) && contd__marked_sig(classes) &&
	       contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) {
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		ran += contd__scan_sig(classes, &budget);
	}
	contd__context_leave_sig(before);
	/* The same, with the budget used up. Under a guard the end of the guard acts on the note. In the handler no
	 * other code would. */
	if (contd__tls.guard == 0 && contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) {
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		again = true;
	}
	ops = contd__load_acquire(&contd__interrupt.ops);
	if (!ops)
		return ran;
	/* The budget or a max_poll left something, or a callback made something ready behind the scan. No other signal
	 * need come for that. */
	if (budget.left)
		ops->later();
	else if (contd__marked_sig(classes))
		ops->again(ran != 0 || again);
	/* The thread has left the region for which the signal came, or this is the end of a guard after it. Other
	 * threads may compute in regions. */
	if (!region && contd__marked_sig(CLASSES_ALL & ~CLASSES_SIGNAL) && contd__load_seq(&contd__interrupt.regions))
		ops->notify_region();
	return ran;
}

uint32_t contd__react_under_guard(enum contd__looking how)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);
	uint32_t ran;

	contd__tls.guard++;
	contd__self.looking = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ran = contd__react_sig(how);
	if (ops && contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED)
		ops->looked(ran);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__self.looking = 0;
	contd__tls.guard--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* before the caller looks for a note again */
	return ran;
}

void contd__guard_pickup(void)
{
	int saved = errno; /* contd_event_complete() and contd_guard_end() are allowed in handlers */

	/* In a scan (a handler's, too) and in a read-side critical section the note stays until its end. */
	while (contd__tls.guard == 0 && !contd__in_continuation_sig() &&
	       contd__load(&contd__tls.flags) & CONTD__TLS_MISSED && contd__on_thread_sig() && !contd__reading_sig()) {
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		if (!(contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED))
			break;
		contd__react_under_guard(LOOK);
	}
	errno = saved;
}
