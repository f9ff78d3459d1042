/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"
#include "base/atomic.h"
#include "dispatch/wake.h"

TestSuite(wait, .timeout = WATCHDOG);

static struct contd_event e;
static struct contd_event *es[] = {&e};
static struct tally t;
static struct contd_group *g;

static void complete_soon(void *data)
{
	(void)data;
	usleep(20000);
	contd_event_complete(&e, 0);
}

Test(wait, asleep_until_it_completes)
{
	struct helper h;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_POLL_ONLY, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	helper_create(&h, false);
	helper_start(&h, complete_soon, NULL);
	must(contd_group_wait(g, -1));
	cr_assert_eq(runs(&t), 1);
	cr_assert(pthread_equal(t.thread, pthread_self()));
	helper_join(&h);
	cr_assert_eq(contd_fini(), 0);
}

Test(wait, times_out)
{
	uint64_t before = now_ns();

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must_fail(contd_group_wait(g, 0), ETIMEDOUT);
	must_fail(contd_group_wait(g, 20000000), ETIMEDOUT);
	cr_assert_geq(now_ns() - before, 20000000);
	must_fail(contd_group_wait(g, -2), EINVAL);
	must(contd_event_complete(&e, 0));
	must(contd_group_wait(g, 0));
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_fini(), 0);
}

/* max_poll does not limit a wait. */
Test(wait, runs_all)
{
	enum { N = 1000 };
	static struct tally tally[N];

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_POLL_ONLY, 3);
	for (unsigned i = 0; i < N; i++)
		must(contd_event_continue(0, NULL, tally_cb, &tally[i], g, NULL));
	must(contd_group_wait(g, -1));
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(runs(&tally[i]), 1);
	cr_assert_eq(contd_fini(), 0);
}

/* One that waits for a group runs what is ready elsewhere; several wait for the same group. */
static uint32_t waiting;

static void *waiter(void *data)
{
	contd__add(&waiting, 1);
	must(contd_group_wait(data, -1));
	return NULL;
}

Test(wait, several_waiters_all_return)
{
	enum { N = 4 };
	pthread_t thread[N];

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, waiter, g), 0);
	await(contd__load_seq(&waiting) == N);
	usleep(5000);
	must(contd_event_complete(&e, 0));
	for (unsigned i = 0; i < N; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd__wake.sleepers, 0);
	cr_assert_eq(contd_fini(), 0);
}

/* The last continuation is run by the handler of the waiting thread itself, or by another thread. */
Test(wait, attached_thread_waits)
{
	struct helper h;

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	helper_create(&h, true);
	for (unsigned i = 0; i < 100; i++) {
		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		helper_start(&h, complete_soon, NULL);
		must(contd_group_wait(g, -1));
		cr_assert_eq(runs(&t), i + 1);
		helper_finish(&h);
		if (SLOW_BUILD && i == 10)
			break;
	}
	helper_join(&h);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Ping-pong through sleeping waiters: a lost wake-up hangs. */
enum { ROUNDS = 20000 };
static struct contd_event ball[2][ROUNDS];

static void *player(void *data)
{
	unsigned me = (unsigned)(uintptr_t)data;
	struct contd_group *own = group_new(CONTD_POLL_ONLY, -1);
	static struct tally tally[2];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct contd_event *mine[] = {&ball[me][i]};

		if (me == 0)
			must(contd_event_complete(&ball[1][i], 0));
		must(contd_event_continue(1, mine, tally_cb, &tally[me], own, NULL));
		must(contd_group_wait(own, -1));
		if (me == 1)
			must(contd_event_complete(&ball[0][i], 0));
	}
	cr_assert_eq(runs(&tally[me]), ROUNDS);
	must(contd_group_destroy(own));
	return NULL;
}

Test(wait, no_wake_up_is_lost)
{
	pthread_t thread[2];

	start(CONTD_AGENT_CALLER);
	for (uintptr_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, player, (void *)i), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(contd_fini(), 0);
}
