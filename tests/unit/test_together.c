/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that a source completes together; and a single one: its continuation is taken and run without a ready bit. */
#include "unit.h"
#include "dispatch/event.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"

TestSuite(together, .timeout = WATCHDOG);

#define MOST EVENTS_TOGETHER

static struct contd_event event[MOST];
static struct contd_event *es[MOST];
static struct tally tally[MOST];
static struct contd_group *g;
static uint32_t finished; /* of the events, to be completed at the next look */
static uint32_t first;    /* of these */

static void progress(bool last)
{
	uint32_t n = finished;

	(void)last;
	finished = 0;
	if (n)
		contd__events_complete_sig(es + first, n);
}

static uint32_t pending(void)
{
	return 1;
}

static struct contd__source source = {
	.name = "together", .where = WHERE_THREAD | WHERE_REGION, .progress = progress, .pending = pending};

static void on(uint32_t i, contd_callback *cb)
{
	must(contd_event_continue(1, &es[i], cb, &tally[i], g, NULL));
}

static void begin(uint32_t flags, int32_t max_poll, uint32_t n)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(flags, max_poll);
	must(contd__source_register(&source));
	for (uint32_t i = 0; i < MOST; i++)
		es[i] = &event[i];
	for (uint32_t i = 0; i < n; i++)
		on(i, tally_cb);
}

static void end(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		cr_assert_eq(runs(&tally[i]), 1, "%u", i);
		cr_assert_eq(tally[i].status, 0);
	}
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(stats_now().run, n);
	cr_assert_eq(contd__self.carried.take, NULL);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

/* Scans that found something: none, where the continuation was taken. */
static uint64_t scans(void)
{
	return stats_now().scans;
}

/* A poll, which finds so many events from `from` on complete, and runs one continuation, which it takes. */
static void takes_one(uint32_t from, uint32_t events)
{
	first = from;
	finished = events;
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(scans(), 0);
}

Test(together, many)
{
	begin(0, -1, MOST);
	finished = MOST;
	cr_assert_eq(contd_poll(0), MOST);
	cr_assert_gt(scans(), 0);
	end(MOST);
}

Test(together, one_is_taken)
{
	begin(0, -1, 1);
	takes_one(0, 1);
	end(1);
}

Test(together, one_of_several_that_nobody_waits_for)
{
	begin(0, -1, 1);
	must(contd_event_complete(es[1], 5)); /* complete already: left alone */
	takes_one(0, 4);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert(contd_event_is_complete(es[i]));
	end(1);
}

Test(together, not_while_another_one_is_ready)
{
	begin(0, -1, 2);
	must(contd_event_complete(es[0], 0));
	first = 1;
	finished = 1;
	cr_assert_eq(contd_poll(0), 2);
	end(2);
}

Test(together, not_before_its_last_event)
{
	begin(0, -1, 0);
	must(contd_event_continue(2, es, tally_cb, &tally[0], g, NULL));
	finished = 1;
	cr_assert_eq(contd_poll(0), 0);
	takes_one(1, 1);
	end(1);
}

Test(together, not_of_a_poll_only_group)
{
	begin(CONTD_POLL_ONLY, -1, 1);
	finished = 1;
	cr_assert_eq(contd_poll(0), 0);
	cr_assert_eq(runs(&tally[0]), 0);
	must(contd_group_wait(g, 0));
	end(1);
}

Test(together, not_beyond_a_test_s_limit)
{
	int complete = 1;

	begin(0, 0, 1);
	finished = 1;
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 0);
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

Test(together, not_outside_a_look)
{
	begin(0, -1, 1);
	contd__events_complete_sig(es, 1);
	cr_assert_eq(runs(&tally[0]), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_gt(scans(), 0);
	end(1);
}

static void complete_next(int status, void *data)
{
	tally_cb(status, data);
	must(contd_event_complete(es[1], 0));
}

/* The taken continuation counts: one more would be one too many. */
Test(together, a_poll_s_limit_holds)
{
	begin(0, -1, 0);
	on(0, complete_next);
	on(1, tally_cb);
	finished = 1;
	cr_assert_eq(contd_poll(1), 1);
	cr_assert_eq(runs(&tally[1]), 0);
	cr_assert_eq(contd_poll(1), 1);
	end(2);
}

static void poll_inside(int status, void *data)
{
	tally_cb(status, data);
	takes_one(1, 1);
	cr_assert_eq(runs(&tally[1]), 1);
}

/* A callback that was taken may wait for another one, which is taken in turn. */
Test(together, inside_one_that_was_taken)
{
	begin(0, -1, 0);
	on(0, poll_inside);
	on(1, tally_cb);
	takes_one(0, 1);
	end(2);
}

/* In a handler that interrupts a thread in a region nothing is taken: the scan is about to come. */
Test(together, not_in_a_region)
{
	begin(0, -1, 1);
	must(contd_thread_attach(NULL));
	finished = 1;
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	cr_assert_eq(runs(&tally[0]), 1);
	cr_assert_gt(scans(), 0);
	must(contd_thread_detach());
	end(1);
}
