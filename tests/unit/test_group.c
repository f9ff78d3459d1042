/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
#include <contd/executor.h>

#include "unit.h"

TestSuite(group, .timeout = WATCHDOG);

Test(group, complete_while_nothing_is_registered)
{
	struct contd_group *g;
	int complete = -1;

	start(CONTD_AGENT_CALLER);
	must(contd_group_create(NULL, &g));
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 1);
	must(contd_group_wait(g, 0));
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

Test(group, destroyed_before_its_continuations_ran)
{
	struct contd_event e[3] = {CONTD_EVENT_INIT};
	struct contd_group *g;
	struct tally t[3] = {{0}};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < 3; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
	}
	must(contd_event_complete(&e[0], 0));
	must(contd_group_destroy(g));
	cr_assert_eq(contd_poll(0), 1);
	must(contd_event_complete(&e[1], 0));
	must(contd_event_complete(&e[2], 0));
	cr_assert_eq(contd_poll(0), 2);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(runs(&t[i]), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(group, fini_counts_what_never_ran)
{
	struct contd_event e[3] = {CONTD_EVENT_INIT};
	struct contd_group *g;
	struct tally t[3] = {{0}};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < 3; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
	}
	must(contd_group_destroy(g));
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 2);
	cr_assert_eq(runs(&t[1]) + runs(&t[2]), 0);
}

Test(group, many_are_created_and_destroyed)
{
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 20000; i++) {
		struct contd_group *g = group_new(i % 2 ? CONTD_POLL_ONLY : 0, -1);

		must(contd_event_continue(0, NULL, tally_cb, &t, g, NULL));
		must(contd_group_wait(g, -1));
		must(contd_group_destroy(g));
	}
	cr_assert_eq(runs(&t), 20000);
	cr_assert_eq(contd_fini(), 0);
}

Test(group, the_4097th_is_refused_until_one_is_destroyed)
{
	static struct contd_group *g[4097];
	struct contd_group *poll_only, *again = (struct contd_group *)1;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 4096; i++)
		g[i] = group_new(0, -1);
	must_fail(contd_group_create(NULL, &again), EAGAIN);
	cr_assert_eq(again, (struct contd_group *)1);
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(0, NULL, tally_cb, &t, poll_only, NULL));
	must(contd_group_wait(poll_only, -1));
	must(contd_group_destroy(g[1234]));
	must(contd_group_create(NULL, &again));
	must(contd_event_continue(0, NULL, tally_cb, &t, again, NULL));
	must(contd_event_continue(0, NULL, tally_cb, &t, g[4095], NULL));
	cr_assert_eq(runs(&t), 3);
	cr_assert_eq(contd_fini(), 0);
}

/* Destroyed groups keep their places until contd frees them. A call that needs a place frees them first. */
Test(group, a_place_that_was_given_back_is_there_for_all_who_want_one)
{
	static struct contd_group *g[4096];
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *poll_only, *to_executor;
	struct contd_executor *executor;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(NULL, &executor));
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(1, es, tally_cb, &t, poll_only, NULL));
	for (unsigned i = 0; i < 4096; i++)
		g[i] = group_new(0, -1);
	must_fail(contd_group_destroy(poll_only), EAGAIN);
	cr_assert(poll_only->flags & CONTD_POLL_ONLY);
	must(contd_group_destroy(g[77]));
	must(contd_group_destroy(poll_only));
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t), 1);

	/* The same with an executor's places. */
	for (unsigned i = 0; i < 4096; i++)
		if (i != 77)
			must(contd_group_set_executor(g[i], executor));
	g[77] = group_new(0, -1);
	to_executor = group_new(0, -1);
	must(contd_group_set_executor(g[77], executor));
	must_fail(contd_group_set_executor(to_executor, executor), EAGAIN);
	must(contd_group_destroy(g[5]));
	must(contd_group_set_executor(to_executor, executor));
	cr_assert_eq(contd_fini(), 0);
	must(contd_executor_destroy(executor));
}

Test(group, poll_only_is_left_alone_by_others)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g, *other;
	struct tally t = {0};
	int complete;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, -1);
	other = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	raise_ours();
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(contd_group_test(other, &complete), 0);
	must(contd_group_wait(other, -1));
	usleep(20000);
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(contd_group_test(g, &complete), 1);
	cr_assert_eq(complete, 1);
	cr_assert_eq(runs(&t), 1);
	must(contd_daemon_stop());
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static struct contd_group *inner, *outer;
static struct tally inside;
static int inside_complete, inside_rc, inside_other, inside_fini;

static void inside_cb(int status, void *data)
{
	(void)status;
	(void)data;
	contd_group_test(outer, &inside_complete);
	inside_rc = contd_group_wait(outer, -1);
	inside_other = contd_group_wait(inner, -1);
	inside_fini = contd_fini();
}

Test(group, test_and_wait_inside_its_own_continuation)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};

	start(CONTD_AGENT_CALLER);
	outer = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	inner = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(1, es, tally_cb, &inside, inner, NULL));
	must(contd_event_complete(&e, 0));
	must(contd_event_continue(0, NULL, inside_cb, NULL, outer, NULL));
	inside_complete = -1;
	must(contd_group_wait(outer, -1));
	cr_assert_eq(inside_complete, 0);
	cr_assert_eq(inside_rc, -EDEADLK);
	cr_assert_eq(inside_other, 0, "another group's wait works, poll-only too");
	cr_assert_eq(inside_fini, -EDEADLK);
	cr_assert_eq(runs(&inside), 1);
	cr_assert_eq(contd_fini(), 0);
}

static unsigned reg_runs;

static void reg_cb(int status, void *data)
{
	unsigned n = (unsigned)(uintptr_t)data;

	(void)status;
	reg_runs++;
	if (n)
		must(contd_event_continue(0, NULL, reg_cb, (void *)(uintptr_t)(n - 1), outer, NULL));
}

/* A continuation that another one registers counts before the old one is released: the waiter does not return in
 * between. */
Test(group, waiter_sees_what_a_continuation_registers)
{
	start(CONTD_AGENT_CALLER);
	outer = group_new(0, -1);
	must(contd_event_continue(0, NULL, reg_cb, (void *)(uintptr_t)99, outer, NULL));
	must(contd_group_wait(outer, -1));
	cr_assert_eq(reg_runs, 100);
	cr_assert_eq(contd_fini(), 0);
}

Test(group, counted_users_of_init)
{
	struct contd_group *g;

	must(contd_init(NULL));
	must(contd_init(NULL));
	g = group_new(0, -1);
	cr_assert_eq(contd_fini(), 0);
	must(contd_group_wait(g, 0));
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
	must_fail(contd_fini(), EPERM);
	for (unsigned i = 0; i < 50; i++) {
		struct tally t = {0};

		must(contd_init(NULL));
		must(contd_thread_attach(NULL));
		g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
		must(contd_event_continue(0, NULL, tally_cb, &t, g, NULL));
		cr_assert_eq(runs(&t), 1);
		cr_assert_eq(contd_fini(), 0);
	}
}
