/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "base/atomic.h"

TestSuite(event, .timeout = WATCHDOG);

Test(event, pending_then_complete)
{
	struct contd_event e = CONTD_EVENT_INIT;

	start(CONTD_AGENT_CALLER);
	cr_assert_eq(contd_event_is_complete(&e), 0);
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_event_is_complete(&e), 1);
	must_fail(contd_event_complete(&e, 0), EALREADY);
	contd_event_init(&e);
	cr_assert_eq(contd_event_is_complete(&e), 0);
	must(contd_event_complete(&e, 1));
	cr_assert_eq(contd_fini(), 0);
}

Test(event, runs_once_after_completion)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g;
	struct tally t = {0};
	int complete = -1;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	cr_assert_eq(contd_group_outstanding(g), 1);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 0);
	must(contd_event_complete(&e, 0));
	cr_assert_eq(runs(&t), 0, "not async-signal-safe, not attached: waits for a call");
	cr_assert_eq(contd_group_test(g, &complete), 1);
	cr_assert_eq(complete, 1);
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(runs(&t), 1);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

Test(event, complete_already_runs_inside_the_call)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *plain, *enqueue, *poll_only, *none;
	struct tally t[5] = {{0}};
	struct contd_stats s;
	int complete;

	start(CONTD_AGENT_CALLER);
	plain = group_new(0, -1);
	enqueue = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	none = group_new(0, 0);
	must(contd_event_complete(&e, 7));
	must(contd_event_continue(1, es, tally_cb, &t[0], plain, NULL));
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 7);
	must(contd_event_continue(1, es, tally_cb, &t[1], enqueue, NULL));
	must(contd_event_continue(1, es, tally_cb, &t[2], poll_only, NULL));
	must(contd_event_continue(1, es, tally_cb, &t[3], none, NULL));
	must(contd_event_continue(0, NULL, tally_cb, &t[4], plain, NULL));
	cr_assert_eq(runs(&t[1]) + runs(&t[2]) + runs(&t[3]), 0);
	cr_assert_eq(runs(&t[4]), 1, "no events: now");
	s = stats_now();
	cr_assert_eq(s.run_inline, 2);
	cr_assert_eq(contd_group_test(none, &complete), 1, "the enqueued one, and no other");
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(runs(&t[3]), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[3]), 1);
	cr_assert_eq(runs(&t[2]), 0, "poll-only");
	cr_assert_eq(contd_group_test(poll_only, &complete), 1);
	cr_assert_eq(runs(&t[2]), 1);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(runs(&t[i]), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(event, several_events_and_the_first_failure)
{
	enum { N = 300 };
	static struct contd_event e[N];
	static struct contd_event *es[N];
	struct contd_group *g;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++)
		es[i] = &e[i];
	must(contd_event_complete(&e[17], 0));
	must(contd_event_continue(N, es, tally_cb, &t, g, NULL));
	for (unsigned i = N; i-- > 0;) {
		cr_assert_eq(contd_poll(0), 0);
		if (i == 200)
			must(contd_event_complete(&e[i], 5));
		else if (i == 100)
			must(contd_event_complete(&e[i], 6));
		else if (i != 17)
			must(contd_event_complete(&e[i], 0));
	}
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(t.status, 5);
	cr_assert_eq(contd_fini(), 0);
}

Test(event, busy_event_changes_nothing)
{
	struct contd_event a = CONTD_EVENT_INIT, b = CONTD_EVENT_INIT, c = CONTD_EVENT_INIT;
	struct contd_event *one[] = {&b}, *all[] = {&a, &b, &c}, *twice[] = {&a, &a};
	struct contd_handle handle = {(void *)1, 2};
	struct contd_group *g;
	struct tally t = {0}, other = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, one, tally_cb, &t, g, NULL));
	must_fail(contd_event_continue(3, all, tally_cb, &other, g, &handle), EBUSY);
	must_fail(contd_event_continue(2, twice, tally_cb, &other, g, &handle), EBUSY);
	cr_assert(handle.slot == (void *)1 && handle.generation == 2, "outputs are set on success only");
	cr_assert_eq(contd_group_outstanding(g), 1);
	must(contd_event_complete(&a, 0));
	must(contd_event_complete(&c, 0));
	cr_assert_eq(contd_poll(0), 0);
	must(contd_event_complete(&b, 3));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(t.status, 3);
	cr_assert_eq(runs(&other), 0);
	cr_assert_eq(contd_fini(), 0);
}

static struct contd_event reused = CONTD_EVENT_INIT;
static struct contd_group *reused_group;
static unsigned reuses;

static void reuse_cb(int status, void *data)
{
	struct contd_event *es[] = {&reused};

	(void)data;
	cr_assert_eq(status, (int)reuses);
	if (++reuses == 1000)
		return;
	contd_event_init(&reused);
	must(contd_event_continue(1, es, reuse_cb, NULL, reused_group, NULL));
	must(contd_event_complete(&reused, (int)reuses));
}

Test(event, used_anew_in_its_continuation)
{
	struct contd_event *es[] = {&reused};

	start(CONTD_AGENT_CALLER);
	reused_group = group_new(0, -1);
	must(contd_event_continue(1, es, reuse_cb, NULL, reused_group, NULL));
	must(contd_event_complete(&reused, 0));
	must(contd_group_wait(reused_group, -1));
	cr_assert_eq(reuses, 1000);
	cr_assert_eq(contd_fini(), 0);
}

/* Two threads complete the same events; each gives one of them 0 and the other -EALREADY. */
enum { RACED = 20000 };
static struct contd_event raced[RACED];
static struct tally raced_tally[RACED];
static uint32_t won[RACED], raced_turn;

static void *racer(void *data)
{
	(void)data;
	for (unsigned i = 0; i < RACED; i++) {
		/* In step, so that they meet. */
		contd__add(&raced_turn, 1);
		while (contd__load_acquire(&raced_turn) < 2 * (i + 1))
			sched_yield();
		if (contd_event_complete(&raced[i], 0) == 0)
			contd__add(&won[i], 1);
	}
	return NULL;
}

Test(event, completed_by_two_threads_at_once)
{
	struct contd_group *g;
	pthread_t thread[2];

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < RACED; i++) {
		struct contd_event *es[] = {&raced[i]};

		must(contd_event_continue(1, es, tally_cb, &raced_tally[i], g, NULL));
	}
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, racer, NULL), 0);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < RACED; i++) {
		cr_assert_eq(won[i], 1);
		cr_assert_eq(runs(&raced_tally[i]), 1);
	}
	cr_assert_eq(contd_fini(), 0);
}

/* Registering meets completing. */
static void *chaser(void *data)
{
	(void)data;
	for (unsigned i = 0; i < RACED; i++) {
		while (contd__load_acquire(&raced_turn) < i)
			sched_yield();
		contd_event_complete(&raced[i], (int)i + 1);
	}
	return NULL;
}

Test(event, registered_while_it_completes)
{
	struct contd_group *g;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	cr_assert_eq(pthread_create(&thread, NULL, chaser, NULL), 0);
	for (unsigned i = 0; i < RACED; i++) {
		struct contd_event *es[] = {&raced[i]};

		contd__store_release(&raced_turn, i);
		must(contd_event_continue(1, es, tally_cb, &raced_tally[i], g, NULL));
	}
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < RACED; i++) {
		cr_assert_eq(runs(&raced_tally[i]), 1);
		cr_assert_eq(raced_tally[i].status, (int)i + 1);
	}
	cr_assert_eq(contd_fini(), 0);
}
