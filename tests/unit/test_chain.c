/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

TestSuite(chain, .timeout = WATCHDOG);

static struct contd_event e[4];
static struct contd_event *es[4][1] = {{&e[0]}, {&e[1]}, {&e[2]}, {&e[3]}};
static struct tally t[4], after;
static struct contd_group *a, *b, *c;

static void begin(void)
{
	start(CONTD_AGENT_CALLER);
	a = group_new(0, -1);
	b = group_new(0, -1);
	c = group_new(0, -1);
}

Test(chain, runs_when_all_of_the_awaited_have_run)
{
	begin();
	for (unsigned i = 0; i < 3; i++)
		must(contd_event_continue(1, es[i], tally_cb, &t[i], a, NULL));
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	cr_assert_eq(contd_group_outstanding(b), 1);
	must(contd_event_complete(&e[0], 0));
	must(contd_event_complete(&e[1], 9));
	contd_poll(0);
	cr_assert_eq(runs(&after), 0);
	must(contd_event_complete(&e[2], 0));
	must(contd_group_wait(b, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(after.status, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(runs(&t[i]), 1);
	/* Again, with the same groups. */
	contd_event_init(&e[0]);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, NULL));
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	must(contd_event_complete(&e[0], 0));
	must(contd_group_wait(b, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 2);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, complete_already)
{
	begin();
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	cr_assert_eq(runs(&after), 1, "inside the call");
	must(contd_group_continue(a, tally_cb, &after, group_new(CONTD_ENQUEUE_COMPLETE, -1), NULL));
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&after), 2);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, one_at_a_time)
{
	struct contd_handle h = {(void *)1, 1};

	begin();
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, NULL));
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	must_fail(contd_group_continue(a, tally_cb, &after, c, &h), EBUSY);
	cr_assert(h.slot == (void *)1 && h.generation == 1, "outputs are set on success only");
	cr_assert_eq(contd_group_outstanding(c), 0);
	must(contd_event_complete(&e[0], 0));
	must(contd_group_wait(b, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, cycles_are_refused)
{
	begin();
	for (unsigned i = 0; i < 3; i++)
		must(contd_event_continue(1, es[i], tally_cb, &t[i], i == 0 ? a : i == 1 ? b : c, NULL));
	must_fail(contd_group_continue(a, tally_cb, &after, a, NULL), ELOOP);
	must(contd_group_continue(a, tally_cb, &after, b, NULL)); /* b waits for a */
	must_fail(contd_group_continue(b, tally_cb, &after, a, NULL), ELOOP);
	must(contd_group_continue(b, tally_cb, &after, c, NULL)); /* c waits for b */
	must_fail(contd_group_continue(c, tally_cb, &after, a, NULL), ELOOP);
	cr_assert_eq(contd_group_outstanding(a), 1);
	for (unsigned i = 0; i < 3; i++)
		must(contd_event_complete(&e[i], 0));
	must(contd_group_wait(c, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 2);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, cancelled)
{
	struct contd_handle h;

	begin();
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, NULL));
	must(contd_group_continue(a, tally_cb, &after, b, &h));
	must(contd_cancel(h));
	cr_assert_eq(contd_group_outstanding(b), 0);
	must(contd_group_continue(a, tally_cb, &t[1], c, NULL)); /* its place is free */
	must(contd_event_complete(&e[0], 0));
	must(contd_group_wait(c, PATIENCE_SECONDS * 1000000000ll));
	must_fail(contd_cancel(h), EALREADY);
	cr_assert_eq(runs(&after), 0);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, a_cancellation_completes_the_awaited_group)
{
	struct contd_handle h;

	begin();
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, &h));
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	must(contd_cancel(h));
	must(contd_group_wait(b, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain, groups_destroyed_before_they_are_complete)
{
	begin();
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, NULL));
	must(contd_group_continue(a, tally_cb, &after, b, NULL));
	must(contd_group_destroy(a));
	must(contd_group_destroy(b));
	must(contd_event_complete(&e[0], 0));
	while (contd_poll(0))
		;
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(contd_fini(), 0);
}

/* A thousand groups in a row. */
Test(chain, long_row)
{
	static struct contd_group *row[1000];

	begin();
	must(contd_event_continue(1, es[0], tally_cb, &t[0], a, NULL));
	for (unsigned i = 0; i < 1000; i++) {
		row[i] = group_new(i % 3 ? 0 : CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_group_continue(i ? row[i - 1] : a, tally_cb, &after, row[i], NULL));
	}
	must_fail(contd_group_continue(row[999], tally_cb, &after, a, NULL), ELOOP);
	must(contd_event_complete(&e[0], 0));
	must(contd_group_wait(row[999], PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&after), 1000);
	cr_assert_eq(contd_fini(), 0);
}
