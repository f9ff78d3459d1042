/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads take a slot out of PENDING. One makes the exchange, and the slot runs and is free before the other one,
 * which has read the word before that, tries its exchange. The loser must leave no trace in a slot that is another
 * continuation's by then.
 */
#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
#include "dispatch/slot.h"
#include "rcu/table.h"

TestSuite(races_count, .timeout = WATCHDOG);

enum { SLOTS = 3 };
static struct contd_group *g;
static struct tally t;
static struct contd__slot *raced;
static uint32_t generation;
static const char *point;
static unsigned hits;

static void invoke(struct contd__slot *s)
{
	tally_cb(0, s->data);
}

static struct contd__slot *slot_new(uint32_t *generationp)
{
	int rc = 0;
	struct contd__slot *s = contd__slot_get_sig(g, &rc);

	cr_assert_not_null(s);
	s->invoke = invoke;
	s->data = &t;
	s->source = KIND_SOURCE;
	*generationp = contd__slot_publish_sig(s, 1);
	return s;
}

/* The other one wins, and the slot is free again, in front of two others. */
static void win(const char *name)
{
	if (strcmp(name, point) != 0 || hits++)
		return;
	cr_assert_eq(contd__slot_event_done_sig(raced, generation, 1), 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(SLOT_STATE(contd__load(&raced->state)), SLOT_FREE);
}

static void lose_at(const char *name, int (*lose)(void))
{
	struct contd__slot *s[SLOTS];
	uint32_t of[SLOTS];

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < SLOTS; i++)
		s[i] = slot_new(&of[i]);
	for (unsigned i = 0; i < SLOTS; i++)
		cr_assert_eq(contd__slot_event_done_sig(s[i], of[i], 1), 1);
	cr_assert_eq(contd_poll(0), SLOTS);

	raced = slot_new(&generation);
	point = name;
	__atomic_store_n(&contd__testpoint_hook, win, __ATOMIC_RELEASE);
	cr_assert_eq(lose(), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_gt(hits, 0, "%s is never passed", name);

	/* The free slots are those that there were. */
	for (unsigned i = 0; i < SLOTS; i++) {
		s[i] = slot_new(&of[i]);
		cr_assert_lt(s[i]->index, SLOTS);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(s[i], s[k]);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		cr_assert_eq(contd__slot_event_done_sig(s[i], of[i], 1), 1);
	cr_assert_eq(contd_poll(0), SLOTS);
	cr_assert_eq(runs(&t), 2 * SLOTS + 1);
	cr_assert_eq(contd_fini(), 0);
}

static int count(void)
{
	return contd__slot_event_done_sig(raced, generation, 1);
}

Test(races_count, the_loser_counts)
{
	lose_at("count_before_exchange", count);
}
