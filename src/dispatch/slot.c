/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/group.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

struct contd__slot *contd__slot_get_sig(struct contd_group *g, int *errp)
{
	struct contd__table *t = &g->table;
	struct contd__slot *s;

	if (contd__in_handler()) {
		s = contd__slot_alloc_sig(t);
		if (!s)
			*errp = contd__fail(-EAGAIN, "the group's reserve of slots is used up: register from a thread");
		return s;
	}
	if (__builtin_expect(!contd__self.registered, 0))
		contd__ordinary->thread_register();
	for (;;) {
		/* Acquire: pairs with the release in contd__table_grow. */
		uint32_t limit = contd__load_acquire(&t->limit), used;
		int rc;

		s = contd__slot_alloc_sig(t);
		used = contd__load(&t->used);
		if (s && (used > limit || limit - used >= TABLE_RESERVE || limit >= TABLE_SLOTS_MAX))
			return s;
		/* Grow while the reserve is still there. If memory is short, this continuation goes first. */
		rc = contd__ordinary->grow(t, limit);
		if (rc == 0)
			CONTD_COUNT(grown, 1);
		if (s)
			return s;
		if (rc) {
			*errp = contd__fail(
				rc, rc == -ENOSPC ? "2^24 continuations are outstanding in this group; use more groups"
						  : "out of memory for more continuations");
			return NULL;
		}
	}
}

uint32_t contd__slot_publish_sig(struct contd__slot *s, uint32_t n)
{
	uint32_t generation = SLOT_GENERATION(contd__load(&s->state));

	contd__store(&s->link, contd__registered_now());
	contd__add(&s->group->life, 1);
	/* Release: pairs with the acquires in count_events() (complete.c) and run_claimed() (scan.c). Threads that
	 * complete or claim the slot see what it holds. */
	contd__store_release(&s->state, SLOT_WORD(generation, n, SLOT_PENDING));
	CONTD_TESTPOINT("publish_pending");
	CONTD_COUNT(registered, 1);
	return generation;
}

int contd__slot_withdraw_sig(struct contd__slot *s, uint32_t generation)
{
	uint64_t w = contd__load_acquire(&s->state);

	while (SLOT_GENERATION(w) == generation && (SLOT_STATE(w) == SLOT_PENDING || SLOT_STATE(w) == SLOT_READY)) {
		/* The canceller's own hold: while it looks at what the slot waited for, completers may count the rest,
		 * and the slot must not become another continuation's. */
		uint32_t hold = SLOT_STATE(w) == SLOT_PENDING;

		if (contd__cas(&s->state, &w, SLOT_WORD(generation, SLOT_REMAINING(w) + hold, SLOT_CANCELLED)))
			return (int)hold;
	}
	return -EALREADY;
}
