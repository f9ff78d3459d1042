/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/run.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

void contd__invoke_user_sig(struct contd__slot *s)
{
	s->cb.user(contd__load(&s->out.status), s->data);
}

void contd__slot_run_sig(struct contd_group *g, struct contd__slot *s, bool pinned)
{
	contd__slot_call(g, s, s, s->invoke);
	if (pinned)
		contd__slot_finish_pinned_sig(g, s);
	else
		contd__slot_finish_sig(g, s);
}

void contd__slot_run_unmarked(struct contd__slot *s)
{
	/* Acquire: as in run_claimed() (scan.c). */
	uint64_t w = contd__load_acquire(&s->state);

	while (SLOT_STATE(w) == SLOT_READY) {
		if (!contd__cas(&s->state, &w, SLOT_WORD(SLOT_GENERATION(w), 0, SLOT_RUNNING)))
			continue;
		contd__count_latency(contd__load(&s->link));
		contd__slot_run_sig(s->group, s, false);
		return;
	}
	contd__slot_finish_sig(s->group, s);
}

void contd__slot_run_taken(struct contd__slot *s)
{
	CONTD_COUNT(latency[0], 1);
	contd__slot_run_sig(s->group, s, false);
}

static inline void run_taken(void *slot)
{
	contd__slot_run_taken(slot);
}

int contd__slot_run_inline(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	int last = contd__slot_take_sig(s, generation, n);

	if (last)
		contd__run_at_once(run_taken, s);
	else
		contd__pickup();
	return last;
}
