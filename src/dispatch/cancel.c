/* SPDX-License-Identifier: BSD-3-Clause */
/* Withdrawing a continuation, whatever it waits for. */
#include <errno.h>

#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/chain.h"
#include "dispatch/complete.h"
#include "dispatch/event.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"
#include "rcu/table.h"

int contd_cancel(struct contd_handle handle)
{
	struct contd__slot *s = handle.slot;
	enum contd__slot_kind kind;
	uint32_t taken = 0;
	bool reader;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!s)
		return contd__fail(-EINVAL,
				   "contd_cancel: handle names nothing; give what the call that registered has stored");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_cancel: not in a signal handler");
	contd__thread_ensure();
	/* If the continuation waits for a group, that group is outstanding until the withdrawal. Afterwards it may
	 * complete and be freed. The read-side critical section keeps its memory for contd__group_await_end(). */
	reader = contd__enter_sig();
	rc = contd__slot_withdraw_sig(s, (uint32_t)handle.generation);
	if (rc < 0) {
		contd__leave_sig(reader);
		return contd__fail(rc, "contd_cancel: handle's continuation runs, ran, or was cancelled before: "
				       "nothing is left to do");
	}
	CONTD_COUNT(cancelled, 1);
	CONTD_TESTPOINT("cancel_withdrawn");
	if (rc == 0) {
		contd__slot_withdrawn_rcu(s->group, s);
		contd__leave_sig(reader);
		return 0;
	}
	kind = (enum contd__slot_kind)(s->source & 3);
	if (kind == KIND_GROUP)
		taken = contd__group_await_end((struct contd_group *)(s->source & ~(uintptr_t)3), s);
	contd__leave_sig(reader);
	/* The other kinds need no read-side critical section: events are the program's memory. And words must be
	 * outside one: contd__word_remove() waits for the end of a look, and the looking thread may wait for a grace
	 * period. */
	if (kind == KIND_EVENT)
		taken = contd__events_detach_sig(s, (uint32_t)handle.generation);
	else if (kind == KIND_WORD)
		taken = contd__word_remove(s);
	contd__slot_event_done_sig(s, (uint32_t)handle.generation, taken + 1);
	return 0;
}
