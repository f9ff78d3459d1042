/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread looks at what a pending slot waits for, which counts as one event more: SLOT_LOOKED_AT. Here the looker is
 * made by hand; tests/mpi/race_recheck.c has the one that there is.
 */
#include "unit.h"
#include "base/atomic.h"
#include "dispatch/complete.h"
#include "dispatch/slot.h"
#include "rcu/table.h"

TestSuite(races_looked, .timeout = WATCHDOG);

static struct contd_group *g;
static struct tally t;

static void invoke(struct contd__slot *s)
{
	tally_cb(0, s->data);
}

static struct contd__slot *slot_new(uint32_t n, uint32_t *generation)
{
	int rc = 0;
	struct contd__slot *s = contd__slot_get_sig(g, &rc);

	s->invoke = invoke;
	s->data = &t;
	s->source = KIND_SOURCE;
	*generation = contd__slot_publish_sig(s, n);
	return s;
}

static void look_begin(struct contd__slot *s)
{
	contd__add(&s->state, SLOT_WORD(0, SLOT_LOOKED_AT, 0));
}

static void begin(void)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	t.runs = 0;
}

static void end(void)
{
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(races_looked, all_events_come_while_it_is_looked_at)
{
	uint32_t generation;
	struct contd__slot *s;

	begin();
	s = slot_new(2, &generation);
	look_begin(s);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 2), 0);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, SLOT_LOOKED_AT), 1, "the looker was the last");
	cr_assert_eq(contd_poll(0), 1);
	end();
}

/* One looks again and again, the other one counts the events: the slot becomes ready once. */
enum { ROUNDS = SLOW_BUILD ? 300 : 3000 };
static struct contd__slot *raced;
static uint32_t raced_generation, ready;

static void job_count(void *data)
{
	(void)data;
	for (unsigned i = 0; i < 2; i++)
		contd__add(&ready, (uint32_t)contd__slot_event_done_sig(raced, raced_generation, 1));
}

Test(races_looked, looked_at_and_counted_at_once)
{
	struct helper helper;

	begin();
	helper_create(&helper, false);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t w;

		raced = slot_new(2, &raced_generation);
		ready = 0;
		helper_start(&helper, job_count, NULL);
		w = contd__load_acquire(&raced->state);
		while (SLOT_STATE(w) == SLOT_PENDING) {
			if (!contd__cas(&raced->state, &w, w + SLOT_WORD(0, SLOT_LOOKED_AT, 0)))
				continue;
			cr_assert_eq(SLOT_STATE(contd__load_acquire(&raced->state)), SLOT_PENDING);
			for (volatile unsigned k = 0; k < i % 64; k++)
				;
			cr_assert_eq(SLOT_STATE(contd__load_acquire(&raced->state)), SLOT_PENDING);
			contd__add(&ready,
				   (uint32_t)contd__slot_event_done_sig(raced, raced_generation, SLOT_LOOKED_AT));
			w = contd__load_acquire(&raced->state);
		}
		helper_finish(&helper);
		cr_assert_eq(ready, 1);
		cr_assert_eq(contd_poll(0), 1);
		cr_assert_eq(runs(&t), i + 1);
	}
	t.runs = 1;
	helper_join(&helper);
	end();
}
