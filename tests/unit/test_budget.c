/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "dispatch/react.h"
#include "signal/attached.h"

TestSuite(budget, .timeout = WATCHDOG);

enum { N = 1000 };
static struct contd_event e[N];
static struct tally t[N];

static void register_ready(struct contd_group *g, unsigned from, unsigned to, bool quietly)
{
	for (unsigned i = from; i < to; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
		must(quietly ? complete_quietly(&e[i], 0) : contd_event_complete(&e[i], 0));
	}
}

static unsigned total(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		n += runs(&t[i]);
	return n;
}

Test(budget, max_poll_bounds_each_test)
{
	struct contd_group *g, *other;
	int complete = -1;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, 7);
	other = group_new(0, -1);
	register_ready(g, 0, 100, false);
	register_ready(other, 100, 150, false);
	cr_assert_eq(contd_group_test(g, &complete), 57, "seven of this group, and all of the other one");
	cr_assert_eq(total(0, 100), 7);
	cr_assert_eq(total(100, 150), 50);
	cr_assert_eq(complete, 0);
	for (unsigned i = 2; i <= 14; i++) {
		cr_assert_eq(contd_group_test(g, &complete), 7);
		cr_assert_eq(total(0, 100), i * 7);
		cr_assert_eq(complete, 0);
	}
	cr_assert_eq(contd_group_test(g, &complete), 2);
	cr_assert_eq(complete, 1);
	/* So many of it in each look of another call. */
	for (unsigned i = 0; i < 100; i++)
		contd_event_init(&e[i]);
	register_ready(g, 0, 100, false);
	cr_assert_eq(contd_group_test(other, &complete), 7);
	must(contd_group_wait(g, -1));
	cr_assert_eq(contd_fini(), 0);
}

Test(budget, max_poll_none_leaves_it_to_others)
{
	struct contd_group *g, *other;
	int complete;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, 0);
	other = group_new(0, -1);
	register_ready(g, 0, 10, false);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(contd_group_test(other, &complete), 10);
	register_ready(g, 10, 20, false);
	cr_assert_eq(contd_poll(4), 4);
	must(contd_group_wait(g, -1));
	cr_assert_eq(total(0, 20), 20);
	cr_assert_eq(contd_fini(), 0);
}

/* A test inside a continuation of another one counts for itself; one nested in a test of the same group is charged. */
static struct contd_group *nested_group;
static unsigned nested_ran;

static void nested_cb(int status, void *data)
{
	int complete, ran = contd_group_test(nested_group, &complete);

	tally_cb(status, data);
	if (ran > 0)
		nested_ran += (unsigned)ran;
}

Test(budget, nested_test_has_its_own)
{
	struct contd_group *g;
	struct tally outer_tally = {0};
	int complete;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	nested_group = group_new(CONTD_POLL_ONLY, 3);
	register_ready(nested_group, 0, 10, false);
	must(contd_event_continue(0, NULL, nested_cb, &outer_tally, g, NULL));
	cr_assert_eq(contd_group_test(g, &complete), 1);
	cr_assert_eq(nested_ran, 3);
	cr_assert_eq(total(0, 10), 3);
	must(contd_group_wait(nested_group, -1));
	cr_assert_eq(total(0, 10), 10);
	cr_assert_eq(contd_fini(), 0);
}

Test(budget, poll_runs_at_most_what_it_was_told)
{
	struct contd_group *g[4];

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 4; i++) {
		g[i] = group_new(0, -1);
		register_ready(g[i], i * 25, i * 25 + 25, false);
	}
	cr_assert_eq(contd_poll(10), 10);
	cr_assert_eq(total(0, 100), 10);
	cr_assert_eq(contd_poll(1), 1);
	cr_assert_eq(contd_poll(89), 89);
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(total(0, 100), 100);
	cr_assert_eq(contd_fini(), 0);
}

Test(budget, handler_scan_counts)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = 10, .scan_ns = 1000000000};
	struct contd_group *g;
	sigset_t ours;

	must(contd_init(&config));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	register_ready(g, 0, 100, true);
	/* The signal for what is left comes at the end of each handler: keep it back. */
	sigemptyset(&ours);
	sigaddset(&ours, contd__signals.signal_number);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	for (unsigned i = 1; i <= 10; i++) {
		contd__react_sig(LOOK);
		cr_assert_eq(total(0, 100), i * 10);
	}
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void long_cb(int status, void *data)
{
	uint64_t until = now_ns() + 2000000;

	while (now_ns() < until)
		;
	tally_cb(status, data);
}

Test(budget, handler_scan_is_timed)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_ns = 1000000};
	struct contd_group *g;
	sigset_t ours;

	must(contd_init(&config));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < 5; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, long_cb, &t[i], g, NULL));
		must(complete_quietly(&e[i], 0));
	}
	sigemptyset(&ours);
	sigaddset(&ours, contd__signals.signal_number);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	for (unsigned i = 1; i <= 5; i++) {
		contd__react_sig(LOOK);
		cr_assert_eq(total(0, 5), i, "the time is over after each one");
	}
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* One group is always ready; anything else that becomes ready is still reached within one revolution. */
static struct contd_group *busy_group;
static uint64_t busy_runs;
static bool busy_over;

static void busy_cb(int status, void *data)
{
	(void)status;
	busy_runs++;
	if (!busy_over)
		must(contd_event_continue(0, NULL, busy_cb, data, busy_group, NULL));
}

static void others_are_reached(uint32_t busy_flags, uint32_t other_flags)
{
	enum { BUSY = 20, OTHERS = 30 };
	unsigned scans = 0;

	start(CONTD_AGENT_CALLER);
	busy_group = group_new(busy_flags | CONTD_ENQUEUE_COMPLETE, -1);
	for (unsigned i = 0; i < BUSY; i++)
		must(contd_event_continue(0, NULL, busy_cb, NULL, busy_group, NULL));
	for (unsigned i = 0; i < OTHERS; i++)
		register_ready(group_new(other_flags, -1), i, i + 1, false);
	for (; total(0, OTHERS) < OTHERS; scans++) {
		cr_assert_lt(scans, 4 * (BUSY + OTHERS), "%u of %u were reached", total(0, OTHERS), (unsigned)OTHERS);
		cr_assert_eq(contd_poll(1), 1);
	}
	busy_over = true;
	must(contd_group_wait(busy_group, -1));
	cr_assert_eq(contd_fini(), 0);
}

Test(budget, groups_take_turns)
{
	others_are_reached(0, 0);
}
Test(budget, signal_safe_groups_take_turns)
{
	others_are_reached(CONTD_ASYNC_SIGNAL_SAFE, CONTD_ASYNC_SIGNAL_SAFE);
}
Test(budget, kinds_take_turns)
{
	others_are_reached(CONTD_ASYNC_SIGNAL_SAFE, 0);
}
Test(budget, kinds_take_turns_too)
{
	others_are_reached(0, CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY);
}

/* Within one group: new ones all the time, in slots before and behind, and the old ones are reached. */
Test(budget, cursor_of_a_group_goes_round)
{
	unsigned scans = 0;

	start(CONTD_AGENT_CALLER);
	busy_group = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	for (unsigned i = 0; i < 20; i++)
		must(contd_event_continue(0, NULL, busy_cb, NULL, busy_group, NULL));
	register_ready(busy_group, 0, 300, false);
	for (; total(0, 300) < 300; scans++) {
		cr_assert_lt(scans, 2000, "%u of 300 were reached", total(0, 300));
		cr_assert_eq(contd_poll(1), 1);
	}
	busy_over = true;
	must(contd_group_wait(busy_group, -1));
	cr_assert_eq(contd_fini(), 0);
}

/* An unbounded poll ends, though there is always more. */
Test(budget, poll_ends)
{
	start(CONTD_AGENT_CALLER);
	busy_group = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	for (unsigned i = 0; i < 100; i++)
		must(contd_event_continue(0, NULL, busy_cb, NULL, busy_group, NULL));
	for (unsigned i = 0; i < 10; i++)
		cr_assert_geq(contd_poll(0), 50);
	cr_assert_lt(busy_runs, 100000);
	busy_over = true;
	must(contd_group_wait(busy_group, -1));
	cr_assert_eq(contd_fini(), 0);
}
