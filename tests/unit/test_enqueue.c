/* SPDX-License-Identifier: BSD-3-Clause */
/* CONTD_ENQUEUE_COMPLETE: nothing runs inside the call that registers, not even where a handler might; but soon after
 * it. */
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/carried.h"
#include "dispatch/thread.h"
#include "signal/attached.h"
#include "unit.h"

TestSuite(enqueue, .timeout = WATCHDOG);

#define FLAGS (CONTD_ENQUEUE_COMPLETE | CONTD_ASYNC_SIGNAL_SAFE)

static struct tally tally;
static struct contd_event event;
static struct contd_carried carried;

static void by_none(struct contd_group *g)
{
	must(contd_event_continue(0, NULL, tally_cb, &tally, g, NULL));
}

static void by_event(struct contd_group *g)
{
	struct contd_event *es[] = {&event};
	struct contd_handle handle;

	contd_event_init(&event);
	must(contd_event_complete(&event, 0));
	must(contd_event_continue(1, es, tally_cb, &tally, g, &handle));
}

static void by_event_alone(struct contd_group *g)
{
	struct contd_event *es[] = {&event};

	contd_event_init(&event);
	must(contd_event_complete(&event, 0));
	must(contd_event_continue(1, es, tally_cb, &tally, g, NULL));
}

static void by_group(struct contd_group *g)
{
	struct contd_group *awaited = group_new(0, -1);

	must(contd_group_continue(awaited, tally_cb, &tally, g, NULL));
	must(contd_group_destroy(awaited));
}

static void by_operation(struct contd_group *g)
{
	carried.status = 0;
	must(contd__carried_begin(&carried, tally_cb, &tally, g));
	contd__carried_at_once(&carried);
}

static void (*const ways[])(struct contd_group *g) = {by_none, by_event, by_event_alone, by_group, by_operation};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void block_ours(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, contd__signals.signal_number);
	pthread_sigmask(how, &set, NULL);
}

/* On the calling thread, or any, which makes no call meanwhile. */
static void not_inside(enum contd_agent agent, uint32_t flags)
{
	struct contd_group *g;

	start(agent);
	must(contd_thread_attach(NULL));
	g = group_new(FLAGS | flags, -1);
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < WAYS; i++) {
			tally = (struct tally){0};
			/* Ticks and other threads' notifications may come at any time: what the call itself does is
			 * asked. */
			block_ours(SIG_BLOCK);
			ways[i](g);
			if (!(flags & CONTD_THREAD_ANY))
				cr_assert_eq(runs(&tally), 0, "way %u", i);
			else if (runs(&tally))
				cr_assert_eq(tally.context, CONTEXT_DAEMON, "way %u", i);
			block_ours(SIG_UNBLOCK);
			compute_until(runs(&tally) == 1);
		}
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(enqueue, not_inside_caller)
{
	not_inside(CONTD_AGENT_CALLER, 0);
}

Test(enqueue, not_inside_region)
{
	not_inside(CONTD_AGENT_REGION, 0);
}

Test(enqueue, not_inside_tick)
{
	not_inside(CONTD_AGENT_TICK, 0);
	not_inside(CONTD_AGENT_TICK, CONTD_THREAD_ANY);
}

Test(enqueue, not_inside_block)
{
	not_inside(CONTD_AGENT_BLOCK, 0);
	not_inside(CONTD_AGENT_BLOCK, CONTD_THREAD_ANY);
}

Test(enqueue, not_inside_spin)
{
	not_inside(CONTD_AGENT_SPIN, 0);
	not_inside(CONTD_AGENT_SPIN, CONTD_THREAD_ANY);
}

/* A purse that says that it will take very long (its interruptions cost much, and little flows in) is waited for a
 * second. */
Test(enqueue, soon_whatever_the_purse_says)
{
	struct contd_group *g;
	uint64_t begin;

	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	g = group_new(FLAGS, -1);
	begin = contd__ticks();
	contd__store(&contd__me->purse.enough_at, begin + 100 * contd__clock.second);
	by_none(g);
	compute_until(runs(&tally) == 1);
	cr_assert_lt(contd__ticks() - begin, 10 * contd__clock.second);
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Where the call is made under a guard its end runs it: that is no part of the call. */
Test(enqueue, at_the_end_of_a_guard)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	g = group_new(FLAGS, -1);
	block_ours(SIG_BLOCK);
	for (unsigned i = 0; i < WAYS; i++) {
		tally = (struct tally){0};
		contd_guard_begin();
		ways[i](g);
		cr_assert_eq(runs(&tally), 0, "way %u", i);
		contd_guard_end();
		cr_assert_eq(runs(&tally), 1, "way %u", i);
	}
	block_ours(SIG_UNBLOCK);
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* By a thread that is not attached: one that is runs it. */
static void register_all(void *data)
{
	for (unsigned i = 0; i < WAYS; i++) {
		tally = (struct tally){0};
		ways[i](data);
		await(runs(&tally) == 1);
		cr_assert(!pthread_equal(tally.thread, pthread_self()));
	}
}

Test(enqueue, by_a_strange_thread)
{
	struct contd_group *g;
	struct helper h;

	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	g = group_new(FLAGS, -1);
	helper_create(&h, false);
	helper_start(&h, register_all, g);
	helper_finish(&h);
	helper_join(&h);
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A poll comes before any tick. */
Test(enqueue, the_next_poll_runs_it)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	g = group_new(FLAGS, -1);
	block_ours(SIG_BLOCK);
	for (unsigned i = 0; i < WAYS; i++) {
		tally = (struct tally){0};
		ways[i](g);
		cr_assert_eq(contd_poll(0), 1);
		cr_assert_eq(runs(&tally), 1);
	}
	block_ours(SIG_UNBLOCK);
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}
