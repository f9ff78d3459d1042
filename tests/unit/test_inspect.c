/* SPDX-License-Identifier: BSD-3-Clause */
/* Ticks that are inspected: src/signal/inspect.h. */
#include "unit.h"

#include <string.h>

#include "base/testpoint.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "signal/attached.h"
#include "signal/inspect.h"
#include "source.h"

static uint32_t asked, elsewhere_asked, points, allowed, ended;
static bool answer, rests;
static struct contd__attached *inspected;

static bool allows(const void *context)
{
	contd__add(&asked, 1);
	if (contd__me != inspected || !context)
		contd__add(&elsewhere_asked, 1);
	if (contd__load(&rests))
		contd__inspect_rest_sig(true);
	if (contd__load(&answer))
		contd__add(&allowed, 1);
	return contd__load(&answer);
}

static void after(void)
{
	contd__add(&ended, 1);
}

static const struct contd__inspector inspector = {allows, after};

static void hook(const char *name)
{
	if (!strcmp(name, "inspected"))
		contd__add(&points, 1);
}

static void begin(bool yes)
{
	start(CONTD_AGENT_REGION);
	asked = elsewhere_asked = points = allowed = ended = 0;
	answer = yes;
	rests = false;
	must(contd_thread_attach(NULL));
	inspected = contd__me;
	source_register(&source_a, WHERE_INSPECTED, false);
	source_register(&source_b, WHERE_REGION | WHERE_THREAD, false);
	contd__store(&contd__testpoint_hook, hook);
	cr_assert(contd__inspect(&inspector));
}

static void wait_ns(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		compute_step();
}

Test(inspect, drives_where_it_is_allowed)
{
	begin(true);
	source_begin(&source_a);
	compute_until(looks_at(&source_a, WHERE_THREAD) >= 20); /* in a handler, which is in no region */
	cr_assert_eq(looks_at(&source_a, WHERE_REGION), 0);
	cr_assert_eq(elsewhere_asked, 0);
	cr_assert_eq(points, looks_at(&source_a, WHERE_THREAD));
	cr_assert_eq(contd__self.context, CONTEXT_THREAD);
	must(contd_fini());
}

Test(inspect, does_not_drive_where_it_is_not)
{
	begin(false);
	source_begin(&source_a);
	compute_until(contd__load(&asked) >= 20);
	cr_assert_eq(looks_at(&source_a, WHERE_THREAD), 0);
	contd__store(&answer, true);
	compute_until(looks_at(&source_a, WHERE_THREAD) >= 1);
	must(contd_fini());
}

/* Also that ticks stop, once there is nothing left to look at. */
Test(inspect, no_ticks_if_nothing_is_pending)
{
	uint64_t ticks;

	begin(true);
	wait_ns(50000000);
	cr_assert_eq(stats_now().ticks, 0);
	source_finish(&source_a);
	source_begin(&source_a);
	compute_until(contd__load(&source_a.found) >= 1);
	wait_ns(50000000);
	ticks = stats_now().ticks;
	wait_ns(50000000);
	cr_assert_eq(stats_now().ticks, ticks);
	source_begin(&source_a);
	compute_until(looks_at(&source_a, WHERE_THREAD) >= 3);
	must(contd_fini());
}

/* For the program's own sources and continuations the thread is outside regions, as before. */
Test(inspect, is_no_region_for_others)
{
	struct contd_group *group;
	struct contd_event event;
	struct tally t = {0};

	begin(true);
	group = group_new(0, -1);
	source_continue(&source_a, &event, tally_cb, &t, group);
	source_begin(&source_b);
	source_finish(&source_a);
	compute_until(contd__load(&source_a.found) >= 1);
	source_begin(&source_a);
	compute_until(looks_at(&source_a, WHERE_THREAD) >= 20);
	cr_assert_eq(runs(&t), 0);
	cr_assert_eq(looks_at(&source_b, WHERE_REGION), 0);
	cr_assert_eq(looks_at(&source_b, WHERE_THREAD), 0);
	contd_compute_begin();
	compute_until(looks_at(&source_b, WHERE_REGION) >= 1);
	contd_compute_end();
	cr_assert_eq(runs(&t), 1);
	must(contd_group_destroy(group));
	must(contd_fini());
}

/* Async-signal-safe continuations run, as they do after any tick outside regions. */
Test(inspect, what_may_run_in_handlers_runs)
{
	struct contd_group *group;
	struct contd_event event;
	struct tally t = {0};

	begin(true);
	group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	source_continue(&source_a, &event, tally_cb, &t, group);
	source_finish(&source_a);
	compute_until(runs(&t) == 1);
	must(contd_group_destroy(group));
	must(contd_fini());
}

Test(inspect, not_under_a_guard)
{
	uint32_t before;

	begin(true);
	contd_guard_begin();
	source_begin(&source_a);
	wait_ns(100000000);
	before = contd__load(&asked);
	contd_guard_end();
	cr_assert_eq(before, 0);
	compute_until(contd__load(&asked) >= 1);
	must(contd_fini());
}

static void without_inspector(void *data)
{
	uint64_t *ticks = data;

	must(contd_thread_attach(NULL));
	contd__pending_sig();
	wait_ns(50000000);
	*ticks = contd__self.counters.ticks;
	must(contd_thread_detach());
}

Test(inspect, threads_without_an_inspector_do_not_tick)
{
	struct helper h;
	uint64_t ticks = 1;

	begin(true);
	source_begin(&source_a);
	helper_create(&h, false);
	helper_do(&h, without_inspector, &ticks);
	helper_join(&h);
	cr_assert_eq(ticks, 0);
	cr_assert_eq(elsewhere_asked, 0);
	must(contd_fini());
}

Test(inspect, ends_with_null_and_with_detaching)
{
	uint32_t before;

	begin(true);
	source_begin(&source_a);
	compute_until(contd__load(&asked) >= 1);
	cr_assert(contd__inspect(NULL));
	before = contd__load(&asked);
	wait_ns(50000000);
	cr_assert_eq(contd__load(&asked), before);
	cr_assert(contd__inspect(&inspector));
	compute_until(contd__load(&asked) >= before + 1);
	must(contd_thread_detach());
	cr_assert_not(contd__inspect(&inspector));
	must(contd_thread_attach(NULL));
	before = contd__load(&asked);
	contd__pending_sig();
	wait_ns(50000000);
	cr_assert_eq(contd__load(&asked), before);
	must(contd_fini());
}

Test(inspect, is_told_when_what_was_allowed_is_over)
{
	begin(true);
	source_begin(&source_a);
	compute_until(contd__load(&ended) >= 20);
	cr_assert_eq(contd__load(&ended), contd__load(&allowed));
	contd__store(&answer, false);
	compute_until(contd__load(&asked) >= contd__load(&allowed) + 20);
	cr_assert_eq(contd__load(&ended), contd__load(&allowed));
	must(contd_fini());
}

Test(inspect, threads_that_rest_do_not_tick)
{
	uint32_t before;

	begin(false);
	source_begin(&source_a);
	compute_until(contd__load(&asked) >= 3);
	contd__store(&rests, true);
	before = contd__load(&asked);
	compute_until(contd__load(&asked) > before); /* it rests now */
	contd__store(&rests, false);
	before = contd__load(&asked);
	contd__pending_sig();
	wait_ns(50000000);
	cr_assert_eq(contd__load(&asked), before);
	contd__inspect_again(false);
	compute_until(contd__load(&asked) >= before + 3);
	must(contd_fini());
}

static void again_from_elsewhere(void *data)
{
	(void)data;
	contd__inspect_again(true);
}

Test(inspect, another_thread_ends_the_rest)
{
	struct helper h;
	uint32_t before;

	begin(false);
	source_begin(&source_a);
	contd__store(&rests, true);
	compute_until(contd__load(&asked) >= 1);
	contd__store(&rests, false);
	wait_ns(50000000);
	before = contd__load(&asked);
	helper_create(&h, false);
	helper_do(&h, again_from_elsewhere, NULL);
	helper_join(&h);
	compute_until(contd__load(&asked) >= before + 3);
	must(contd_fini());
}
