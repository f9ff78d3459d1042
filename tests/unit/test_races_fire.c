/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a waiting before all events are there (contd__slot_fire_sig), and somebody who looks at what the slot waits
 * for: SLOT_LOOKED_AT. Here the looker is made by hand; tests/mpi/race_recheck.c has the one that there is.
 */
#include "unit.h"

TestSuite(races_fire, .timeout = WATCHDOG);

static struct contd_group *g;
static struct tally t;

static void invoke(struct contd__slot *s)
{
	tally_cb(0, s->data);
}

static struct contd__slot *slot_new(uint32_t n, uint32_t *generation)
{
	int rc = 0;
	struct contd__slot *s = contd__slot_get(g, &rc);

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
	g = group_new(0, 0);
	t.runs = 0;
}

static void end(void)
{
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(races_fire, ends_the_waiting)
{
	uint32_t generation;
	struct contd__slot *s;

	begin();
	s = slot_new(3, &generation);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 1), 0);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 1);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 0, "once");
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 1), 0, "what comes late counts nothing");
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 1), 0);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 0, "stale");
	end();
}

Test(races_fire, not_while_it_is_looked_at)
{
	uint32_t generation;
	struct contd__slot *s;

	begin();
	s = slot_new(2, &generation);
	look_begin(s);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 0);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 1), 0);
	cr_assert_eq(contd_poll(0), 0);
	/* The looker's end, and then its turn to fire. */
	cr_assert_eq(contd__slot_event_done_sig(s, generation, SLOT_LOOKED_AT), 0);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 1);
	cr_assert_eq(contd_poll(0), 1);
	end();
}

Test(races_fire, all_events_come_while_it_is_looked_at)
{
	uint32_t generation;
	struct contd__slot *s;

	begin();
	s = slot_new(2, &generation);
	look_begin(s);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, 2), 0);
	cr_assert_eq(contd__slot_fire_sig(s, generation), 0);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd__slot_event_done_sig(s, generation, SLOT_LOOKED_AT), 1, "the looker was the last");
	cr_assert_eq(contd__slot_fire_sig(s, generation), 0);
	cr_assert_eq(contd_poll(0), 1);
	end();
}

/* One looks again and again, one fires, one counts: the slot becomes ready once. */
enum { ROUNDS = SLOW_BUILD ? 300 : 3000 };
static struct contd__slot *raced;
static uint32_t raced_generation, ready;

static void job_fire(void *data)
{
	(void)data;
	for (unsigned i = 0; i < 20; i++)
		contd__add(&ready, (uint32_t)contd__slot_fire_sig(raced, raced_generation));
}

Test(races_fire, looked_at_and_fired_at_once)
{
	struct helper helper;

	begin();
	helper_create(&helper, false);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t w;

		raced = slot_new(2, &raced_generation);
		ready = 0;
		helper_start(&helper, job_fire, NULL);
		w = contd__load_acquire(&raced->state);
		while (SLOT_STATE(w) == SLOT_PENDING) {
			if (!contd__cas(&raced->state, &w, w + SLOT_WORD(0, SLOT_LOOKED_AT, 0)))
				continue;
			cr_assert_eq(SLOT_STATE(contd__load_acquire(&raced->state)), SLOT_PENDING);
			for (volatile unsigned k = 0; k < i % 64; k++)
				;
			cr_assert_eq(SLOT_STATE(contd__load_acquire(&raced->state)), SLOT_PENDING);
			contd__slot_event_done_sig(raced, raced_generation, SLOT_LOOKED_AT);
			contd__add(&ready, (uint32_t)contd__slot_fire_sig(raced, raced_generation));
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
