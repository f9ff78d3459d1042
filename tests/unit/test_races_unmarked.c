/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations that are ready and have no bit (struct contd__unmarked): only the thread that alone uses contd leaves
 * them so, and each other one that looks finds them. Here the source is made by hand; that of MPI is in mpi/op_set.c.
 */
#include <poll.h>

#include "unit.h"

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/complete.h"
#include "dispatch/slot.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "rcu/table.h"

TestSuite(races_unmarked, .timeout = WATCHDOG);

#define MOST 3u
static struct contd__unmarked unmarked[MOST];
static struct tally tally[MOST];
static struct contd_group *g, *other;
static struct helper helper;
static struct contd_handle handle;
static unsigned sequence[MOST], ran;

/* At this point, once. */
static const char *hook_name;
static void (*hook_act)(void);

static void hook(const char *name)
{
	void (*act)(void) = hook_act;

	if (!act || strcmp(name, hook_name))
		return;
	hook_act = NULL;
	act();
}

static void hook_at(const char *name, void (*act)(void))
{
	hook_name = name;
	hook_act = act;
	contd__store_release(&contd__testpoint_hook, hook);
}

static void invoke(struct contd__slot *s)
{
	struct tally *t = s->data;

	sequence[ran++] = (unsigned)(t - tally);
	tally_cb(0, t);
}

static void begin(void)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	other = group_new(0, -1);
	contd__thread_ensure();
	helper_create(&helper, false); /* calls nothing of contd's before its first job */
}

/* Registered: it carries the continuation, or (with_slot) has a slot. */
static void registered(unsigned i, bool with_slot)
{
	struct contd__unmarked *u = &unmarked[i];
	int rc = 0;

	*u = (struct contd__unmarked){.as = {.group = g,
					     .invoke = invoke,
					     .cb.any = (void (*)(void))invoke,
					     .data = &tally[i],
					     .source = KIND_SOURCE}};
	if (!with_slot) {
		must(contd__carried_room(g, 1));
		contd__add(&g->life, 1);
		CONTD_COUNT(registered, 1);
		return;
	}
	u->slot = contd__slot_get_sig(g, &rc);
	u->slot->invoke = invoke;
	u->slot->data = &tally[i];
	u->slot->source = KIND_SOURCE;
	handle = (struct contd_handle){u->slot, contd__slot_publish_sig(u->slot, 1)};
}

static void complete(unsigned i)
{
	struct contd__unmarked *u = &unmarked[i];

	contd__complete_or_take_sig(u->slot, handle.generation, u, NULL);
}

/* `n` ran, in order, and all is quiet. */
static void end(unsigned n)
{
	cr_assert_eq(hook_act, NULL, "%s was never passed", hook_name);
	contd__store_release(&contd__testpoint_hook, NULL);
	helper_join(&helper);
	while (contd_poll(0))
		;
	cr_assert_eq(contd__load(&contd__put_off_carried), NULL);
	cr_assert_eq(ran, n, "%u ran", ran);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(sequence[i], i, "place %u: %u", i, sequence[i]);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_fini(), 0);
}

static bool has_no_bit(void)
{
	return contd__load(&contd__put_off_carried) && !contd__table_any_sig(&g->table);
}

/* ------------------------------------------------------------------------------------------------ who finds it --- */

static void taken(bool with_slot)
{
	struct contd__unmarked *u;

	begin();
	registered(0, with_slot);
	complete(0);
	cr_assert(has_no_bit());
	u = contd__unmarked_take_sig(g);
	cr_assert_eq(u, &unmarked[0]);
	cr_assert_eq(contd_poll(0), 0);
	contd__unmarked_run(u);
	end(1);
}

Test(races_unmarked, taken_by_a_test_of_its_group)
{
	taken(false);
}

Test(races_unmarked, taken_with_its_slot)
{
	taken(true);
}

Test(races_unmarked, not_taken_for_another_group)
{
	begin();
	registered(0, false);
	complete(0);
	cr_assert_eq(contd__unmarked_take_sig(other), NULL);
	cr_assert(contd__table_any_sig(&g->table));
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

Test(races_unmarked, of_several_none_is_taken)
{
	begin();
	for (unsigned i = 0; i < MOST; i++)
		registered(i, i == 1);
	for (unsigned i = 0; i < MOST; i++)
		complete(i);
	cr_assert_eq(contd__unmarked_take_sig(g), NULL);
	cr_assert_eq(contd_poll(0), MOST);
	for (unsigned i = 0; i < MOST; i++)
		cr_assert_eq(runs(&tally[i]), 1);
	for (unsigned i = 0; i < MOST; i++) /* those with new slots may come before the one that had one */
		sequence[i] = i;
	end(MOST);
}

Test(races_unmarked, found_by_test_and_wait)
{
	int complete_now = 0;

	begin();
	registered(0, false);
	complete(0);
	cr_assert_eq(contd_group_test(g, &complete_now), 1);
	cr_assert(complete_now);
	registered(1, true);
	complete(1);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	end(2);
}

static uint32_t under_way;

static void progress(bool last)
{
	(void)last;
	contd__store(&under_way, 0);
	complete(0);
}

static uint32_t pending(void)
{
	return contd__load(&under_way);
}

static struct contd__source source = {
	.name = "unmarked", .where = WHERE_THREAD, .progress = progress, .pending = pending};

/* No other scan than that of the test itself finds it. */
Test(races_unmarked, found_by_the_test_of_a_poll_only_group_that_completes_it)
{
	int complete_now = 0;

	begin();
	must(contd__source_register(&source));
	g = group_new(CONTD_POLL_ONLY, -1);
	registered(0, false);
	under_way = 1;
	cr_assert_eq(contd_group_test(g, &complete_now), 1);
	cr_assert(complete_now);
	end(1);
}

/* Taken by a thread that drives a source; a function that the source calls looks for continuations. */
Test(races_unmarked, taken_and_given_a_slot_after_all)
{
	struct contd__taking taking;

	begin();
	registered(0, false);
	contd__taking_init(&taking, UINT32_MAX);
	taking.unmarked = &unmarked[0];
	contd__self.carried.take = &taking;
	cr_assert_eq(contd_poll(0), 1);
	contd__self.carried.take = NULL;
	cr_assert_eq(taking.unmarked, NULL);
	end(1);
}

/* The thread is not attached, so nothing but the next checkpoint finds it. */
Test(races_unmarked, found_by_the_next_checkpoint_in_a_region)
{
	begin();
	contd_compute_begin();
	for (unsigned i = 0; i < 100; i++)
		contd_checkpoint();
	contd_compute_end();
	registered(0, false);
	complete(0);
	contd_guard_begin();
	contd_checkpoint(); /* it must not look here */
	contd_guard_end();
	contd_compute_begin();
	contd_checkpoint();
	cr_assert_eq(runs(&tally[0]), 1);
	contd_compute_end();
	end(1);
}

Test(races_unmarked, found_by_a_thread_that_attaches_itself)
{
	begin();
	registered(0, false);
	complete(0);
	must(contd_thread_attach(NULL));
	cr_assert_eq(runs(&tally[0]), 0);
	contd_compute_begin();
	compute_until(runs(&tally[0]));
	contd_compute_end();
	must(contd_thread_detach());
	end(1);
}

static void polls(void *data)
{
	*(int *)data = contd_poll(0);
}

Test(races_unmarked, found_by_another_thread)
{
	int found = 0;

	begin();
	registered(0, false);
	complete(0);
	helper_do(&helper, polls, &found);
	cr_assert_eq(found, 1);
	end(1);
}

Test(races_unmarked, found_by_the_daemon)
{
	struct contd_group *anybody_s = NULL;

	begin();
	registered(0, false);
	anybody_s = group_new(CONTD_THREAD_ANY, -1);
	unmarked[0].as.group = anybody_s;
	contd__add(&anybody_s->life, 1);
	contd__sub(&g->life, 1);
	complete(0);
	cr_assert(contd__load(&contd__put_off_carried));
	must(contd_daemon_start(&(struct contd_daemon_attr){.size = sizeof(struct contd_daemon_attr)}));
	await(runs(&tally[0]));
	must(contd_daemon_stop());
	end(1);
}

/* ----------------------------------------------------------------------------------------------- marked at once --- */

static void is_marked(void)
{
	registered(0, false);
	complete(0);
	cr_assert(contd__table_any_sig(&g->table));
	cr_assert_eq(contd__load(&contd__put_off_carried), NULL);
}

Test(races_unmarked, marked_at_once_if_there_is_another_thread)
{
	int found = 0;

	begin();
	helper_do(&helper, polls, &found);
	is_marked();
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

Test(races_unmarked, marked_at_once_on_an_attached_thread)
{
	begin();
	must(contd_thread_attach(NULL));
	is_marked();
	must(contd_thread_detach());
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

Test(races_unmarked, marked_at_once_for_the_descriptor)
{
	struct pollfd p = {.events = POLLIN};

	begin();
	p.fd = contd_fd();
	is_marked();
	cr_assert_eq(poll(&p, 1, 0), 1);
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

/* ------------------------------------------------------------------------------------------------------ windows --- */

static void waits(void *data)
{
	*(int *)data = contd_group_wait(g, -1);
}

static int waited = 1;

static void another_sleeps(void)
{
	helper_start(&helper, waits, &waited);
	await(contd__load(&contd__wake.sleepers));
	usleep(20000);
}

/* It has looked before the push, and is told after it. */
Test(races_unmarked, another_thread_goes_to_sleep_before_the_push)
{
	begin();
	registered(0, false);
	hook_at("unmarked_alone", another_sleeps);
	complete(0);
	await(runs(&tally[0]));
	helper_finish(&helper);
	cr_assert_eq(waited, 0);
	end(1);
}

static int polled;

static void another_polls(void)
{
	helper_do(&helper, polls, &polled);
}

Test(races_unmarked, another_thread_polls_before_the_push)
{
	begin();
	registered(0, false);
	hook_at("unmarked_alone", another_polls);
	complete(0);
	cr_assert_eq(polled, 0);
	cr_assert(contd__table_any_sig(&g->table), "there is another thread, and it has looked");
	cr_assert_eq(contd_poll(0), 1);
	end(1);
}

Test(races_unmarked, another_thread_polls_after_the_push)
{
	begin();
	registered(0, true);
	hook_at("unmarked_pushed", another_polls);
	complete(0);
	cr_assert_eq(polled, 1);
	end(1);
}

Test(races_unmarked, another_thread_polls_when_it_is_taken)
{
	struct contd__unmarked *u;

	begin();
	registered(0, false);
	complete(0);
	hook_at("unmarked_taken", another_polls);
	u = contd__unmarked_take_sig(g);
	cr_assert_not_null(u);
	cr_assert_eq(polled, 0);
	contd__unmarked_run(u);
	end(1);
}

static int cancelled = 1;

static void cancel(void)
{
	cancelled = contd_cancel(handle);
}

static void cancelled_at(const char *point, bool run)
{
	struct contd__unmarked *u;

	begin();
	registered(0, true);
	hook_at(point, cancel);
	complete(0);
	u = run ? contd__unmarked_take_sig(g) : NULL;
	cr_assert_eq(cancelled, 0);
	if (u)
		contd__unmarked_run(u);
	end(0);
}

Test(races_unmarked, cancelled_before_the_push)
{
	cancelled_at("unmarked_alone", false);
}

Test(races_unmarked, cancelled_after_the_push)
{
	cancelled_at("unmarked_pushed", false);
}

Test(races_unmarked, cancelled_when_taken)
{
	cancelled_at("unmarked_taken", true);
}
