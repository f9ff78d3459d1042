/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interruptions that take longer than the interval between two. When one ends the next tick is pending, so the thread
 * came to nothing else, as long as there was something to be looked for.
 */
#include "source.h"
#include "unit.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/thread.h"

TestSuite(long_looks, .timeout = WATCHDOG);

#define INTERVAL_NS 50000
#define LOOK_NS 1000000
#define SOME 20u
#define LOOKS 500u /* after which nothing is pending any more */

static void begin(void)
{
	struct contd_config config = {.size = sizeof(config),
				      .agent = CONTD_AGENT_TICK,
				      .overhead_percent = 50,
				      .tick_min_ns = INTERVAL_NS,
				      .tick_max_ns = INTERVAL_NS};

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
}

/* -------------------------------------------------------------------------------------------------- a source's --- */

static uint32_t looks(void)
{
	return looks_at(&source_a, WHERE_REGION);
}

static struct tally tally;
static struct contd_event event;

/* The thread is in a region, and the source works a millisecond each time that it is looked at. */
static void begin_with_source(void)
{
	struct contd_group *group;

	begin();
	group = group_new(0, -1);
	source_register(&source_a, WHERE_REGION, false);
	source_a.cost_ticks = (uint64_t)(LOOK_NS * contd__clock.ticks_per_ns);
	source_a.works = true;
	source_a.finish_after = LOOKS;
	source_continue(&source_a, &event, tally_cb, &tally, group);
	contd_compute_begin();
}

static void end(void)
{
	compute_until(runs(&tally) == 1);
	contd_compute_end();
}

Test(long_looks, work_of_a_source)
{
	begin_with_source();
	compute_until(looks() >= SOME);
	cr_assert_lt(looks(), LOOKS, "the thread came to nothing while the source was looked at");
	end();
}

/* Ticks interrupt the look at the end of a guard. */
Test(long_looks, at_a_guards_end)
{
	begin_with_source();
	for (uint32_t i = 0; i < SOME; i++) {
		contd_guard_begin();
		compute_until(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED);
		contd_guard_end();
		cr_assert_lt(looks(), LOOKS, "the guard's end did not return while the source was looked at");
	}
	end();
}
