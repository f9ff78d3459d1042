/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/chain.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/run.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

static pthread_mutex_t chain_lock = PTHREAD_MUTEX_INITIALIZER; /* group-waits-for-group edges, against cycles */

/* Would a cycle close if g waited for `awaited`? Follow the groups that wait for g. */
static bool closes_cycle_locked(const struct contd_group *awaited, const struct contd_group *g)
{
	bool cycle = false;
	bool reader = contd__enter_sig(); /* keeps the groups of slots that fire meanwhile */

	while (g && !(cycle = g == awaited)) {
		const struct contd__slot *s = contd__word_slot(contd__load_acquire(&g->waiter));

		g = s ? s->group : NULL;
	}
	contd__leave_sig(reader);
	return cycle;
}

int contd__group_await(struct contd_group *awaited, struct contd__slot *s)
{
	uint64_t none = 0, me = contd__slot_word(s, SLOT_GENERATION(contd__load(&s->state)));
	int rc = 0;

	pthread_mutex_lock(&chain_lock);
	if (closes_cycle_locked(awaited, s->group))
		rc = contd__fail(-ELOOP, "contd_group_continue: awaited would wait for itself, through group; register "
					 "with another group");
	else if (!contd__cas(&awaited->waiter, &none, me))
		rc = contd__fail(
			-EBUSY,
			"contd_group_continue: awaited has a continuation already; a group may have one at a time");
	pthread_mutex_unlock(&chain_lock);
	CONTD_TESTPOINT("chain_waiting");
	/* If it is complete by now, no other thread may come to fire the continuation: take it back. */
	if (!rc && contd__group_outstanding_sig(awaited) == 0 && contd__cas(&awaited->waiter, &me, 0))
		rc = 1;
	return rc;
}

uint32_t contd__group_await_end(struct contd_group *awaited, struct contd__slot *s)
{
	uint64_t me = contd__slot_word(s, SLOT_GENERATION(contd__load(&s->state)));

	return contd__cas(&awaited->waiter, &me, 0);
}

int contd_group_continue(struct contd_group *awaited, contd_callback *cb, void *data, struct contd_group *group,
			 struct contd_handle *handlep)
{
	struct contd__slot *s;
	uint32_t generation;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!awaited || !cb || !group)
		return contd__fail(-EINVAL, !awaited ? CONTD_NULL("contd_group_continue", "awaited")
					    : !cb    ? CONTD_NULL("contd_group_continue", "cb")
						     : CONTD_NULL("contd_group_continue", "group"));
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_continue: not in a signal handler");
	s = contd__slot_get_sig(group, &rc);
	if (!s)
		return contd__fail_in(__func__, rc);
	contd__slot_holds_user(s, cb, data, 0);
	s->source = (uintptr_t)awaited | KIND_GROUP;
	generation = contd__slot_publish_sig(s, 2); /* one for the group, one for this call */
	rc = contd__group_await(awaited, s);
	if (rc < 0) {
		CONTD_COUNT(registered, -1);
		/* Two events (the group and this call), and one for the withdrawal, unless another thread has cancelled
		 * it meanwhile. */
		contd__slot_event_done_sig(s, generation, 2 + (contd__slot_withdraw_sig(s, generation) > 0));
		return rc;
	}
	if (handlep)
		*handlep = (struct contd_handle){s, generation};
	contd__slot_registered_with(group, s, generation, 1 + (uint32_t)rc);
	return 0;
}
