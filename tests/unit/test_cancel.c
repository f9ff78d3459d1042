/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "base/atomic.h"

TestSuite(cancel, .timeout = WATCHDOG);

Test(cancel, pending_never_runs_and_frees_its_events)
{
	struct contd_event e[3] = {CONTD_EVENT_INIT}, *es[] = {&e[0], &e[1], &e[2]};
	struct contd_handle h, h2;
	struct contd_group *g;
	struct tally t = {0}, again = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(3, es, tally_cb, &t, g, &h));
	must(contd_event_complete(&e[1], 0));
	must(contd_cancel(h));
	must_fail(contd_cancel(h), EALREADY);
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_wait(g, -1));
	/* The events are free to be reused at once. */
	contd_event_init(&e[1]);
	must(contd_event_continue(3, es, tally_cb, &again, g, &h2));
	for (unsigned i = 0; i < 3; i++)
		must(contd_event_complete(&e[i], 0));
	must_fail(contd_cancel(h), EALREADY);
	must(contd_group_wait(g, -1));
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(runs(&again), 1);
	must_fail(contd_cancel(h2), EALREADY);
	cr_assert_eq(stats_now().cancelled, 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(cancel, ready_never_runs)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_handle h;
	struct contd_group *g, *poll_only;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, &h));
	must(contd_event_complete(&e, 0));
	must(contd_cancel(h));
	cr_assert_eq(contd_poll(0), 0);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	must(contd_event_continue(0, NULL, tally_cb, &t, poll_only, &h));
	must(contd_cancel(h));
	must_fail(contd_cancel(h), EALREADY);
	must(contd_group_wait(poll_only, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* A continuation that waits for a group runs if the group's last continuation is cancelled when it is ready, though no
 * thread tests the group. */
Test(cancel, ready_is_outstanding_no_more)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *poll_only, *waiting;
	struct contd_handle h;
	struct tally t = {0}, after = {0};

	start(CONTD_AGENT_CALLER);
	poll_only = group_new(CONTD_POLL_ONLY, -1);
	waiting = group_new(0, -1);
	must(contd_event_continue(1, es, tally_cb, &t, poll_only, &h));
	must(contd_group_continue(poll_only, tally_cb, &after, waiting, NULL));
	must(contd_event_complete(&e, 0));
	must(contd_cancel(h));
	cr_assert_eq(contd_group_outstanding(poll_only), 0);
	must(contd_group_wait(waiting, 1000000000));
	cr_assert_eq(runs(&after), 1);
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(contd_fini(), 0);
}

static struct contd_handle self_handle;
static int self_rc;

static void cancel_itself(int status, void *data)
{
	(void)status;
	(void)data;
	self_rc = contd_cancel(self_handle);
}

Test(cancel, running_is_too_late)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	must(contd_event_continue(0, NULL, cancel_itself, NULL, g, &self_handle));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(self_rc, -EALREADY);
	/* The handle is set before the callback can run: also where that is inside the call. */
	g = group_new(0, -1);
	self_rc = 0;
	self_handle = (struct contd_handle){NULL, 0};
	must(contd_event_continue(0, NULL, cancel_itself, NULL, g, &self_handle));
	cr_assert_eq(self_rc, -EALREADY);
	cr_assert_eq(contd_fini(), 0);
}

/* A slot is used over and over: none of the old handles reaches the new continuation. */
Test(cancel, stale_handles_are_recognized)
{
	enum { N = 5000 };
	static struct contd_handle h[N];
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g;
	struct tally t = {0};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++)
		must(contd_event_continue(0, NULL, tally_cb, &t, g, &h[i]));
	cr_assert_eq(runs(&t), N);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	for (unsigned i = 0; i < N; i++)
		must_fail(contd_cancel(h[i]), EALREADY);
	must(contd_event_complete(&e, 0));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t), N + 1);
	cr_assert_eq(contd_fini(), 0);
}

/* Cancel meets complete and claim on other threads: it ran, or was cancelled, and never both. */
enum { N = 30000 };
static struct contd_event event[N];
static struct tally tally[N];
static struct contd_handle handle[N];
static uint32_t turn, over;

static void *completer(void *data)
{
	(void)data;
	for (uint32_t i = 0; i < N; i++) {
		while (contd__load_acquire(&turn) <= i)
			sched_yield();
		contd_event_complete(&event[i], 0);
	}
	return NULL;
}

static void *runner(void *data)
{
	(void)data;
	while (!contd__load_acquire(&over))
		contd_poll(0);
	return NULL;
}

Test(cancel, races_with_completion_and_claim)
{
	struct contd_group *g;
	pthread_t thread[2];
	unsigned cancelled = 0, ran = 0;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (uint32_t i = 0; i < N; i++) {
		struct contd_event *es[] = {&event[i]};

		must(contd_event_continue(1, es, tally_cb, &tally[i], g, &handle[i]));
	}
	cr_assert_eq(pthread_create(&thread[0], NULL, completer, NULL), 0);
	cr_assert_eq(pthread_create(&thread[1], NULL, runner, NULL), 0);
	for (uint32_t i = 0; i < N; i++) {
		int rc;

		contd__store_release(&turn, i + 1);
		for (volatile unsigned spin = 0; spin < i % 64 * 8; spin++)
			;
		rc = contd_cancel(handle[i]);
		cr_assert(rc == 0 || rc == -EALREADY);
		if (rc == 0) {
			cancelled++;
			handle[i].slot = NULL;
		}
	}
	pthread_join(thread[0], NULL);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	contd__store_release(&over, 1);
	pthread_join(thread[1], NULL);
	for (uint32_t i = 0; i < N; i++) {
		cr_assert_eq(runs(&tally[i]), handle[i].slot ? 1 : 0);
		ran += runs(&tally[i]);
	}
	cr_assert_eq(cancelled + ran, N);
	s = stats_now();
	cr_assert_eq(s.run, ran);
	cr_assert_eq(s.cancelled, cancelled);
	cr_assert_eq(s.registered, N);
	cr_assert_eq(contd_fini(), 0);
}
