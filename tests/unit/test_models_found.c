/* SPDX-License-Identifier: BSD-3-Clause */
/* Defects that the models in models/ have found in the code. Each is now a mutant there. */
#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/group_set.h"
#include "dispatch/wake.h"
#include "signal/attached.h"

TestSuite(models_found, .timeout = WATCHDOG);

static struct contd_group *group;
static struct contd_event event[2];
static struct contd_event *first[] = {&event[0]}, *second[] = {&event[1]};
static struct tally tally[2];
static uint32_t stage;

static void reached(uint32_t is)
{
	contd__store_release(&stage, is);
}

static uint32_t reached_by_now(void)
{
	return contd__load_acquire(&stage);
}

/* ------------------------------------------------------------------ group.pml, TEST_NO_PIN --- */

static unsigned freed;

static void count_freed(void *owner)
{
	(void)owner;
	freed++;
}

static void destroy_it(int status, void *data)
{
	(void)status;
	(void)data;
	must(contd_group_destroy(group));
}

static void give_back_inside(bool wait)
{
	const struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ENQUEUE_COMPLETE, .max_poll = -1};
	int complete;

	start(CONTD_AGENT_CALLER);
	/* More than there are places in a root. */
	for (unsigned i = 0; i < 5000; i++) {
		must(contd_group_create(&attr, &group));
		group->freed = count_freed;
		must(contd_event_continue(0, NULL, destroy_it, NULL, group, NULL));
		if (wait)
			must(contd_group_wait(group, -1));
		else
			cr_assert_geq(contd_group_test(group, &complete), 0);
	}
	contd__reap(true);
	cr_assert_eq(freed, 5000);
}

Test(models_found, given_back_in_a_test)
{
	give_back_inside(false);
}

Test(models_found, given_back_in_a_wait)
{
	give_back_inside(true);
}

/* ---------------------------------------------------------------- chain.pml, NO_COUNT_LOOK --- */

static __thread bool scanning;

/* Between the count's 0 and the look at the waiter. */
static void stop_there(struct contd_group *g)
{
	(void)g;
	if (!scanning)
		return;
	reached(1);
	await(reached_by_now() == 2);
}

static void *scan(void *arg)
{
	scanning = true;
	contd_poll(0);
	return arg;
}

Test(models_found, waits_for_a_group_from_then_on)
{
	struct contd_group *other;
	pthread_t thread;
	int complete;

	start(CONTD_AGENT_CALLER);
	group = group_new(CONTD_ENQUEUE_COMPLETE, -1);
	other = group_new(0, -1);
	group->idle = stop_there;
	must(contd_event_continue(1, first, tally_cb, &tally[0], group, NULL));
	must(contd_event_complete(&event[0], 0));
	cr_assert_eq(pthread_create(&thread, NULL, scan, NULL), 0);
	await(reached_by_now() == 1);
	cr_assert_eq(contd_group_test(group, &complete), 0);
	cr_assert(complete);
	must(contd_event_continue(1, second, tally_cb, &tally[0], group, NULL));
	must(contd_group_continue(group, tally_cb, &tally[1], other, NULL));
	reached(2);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	contd_poll(0);
	cr_assert_eq(runs(&tally[1]), 0, "it ran with %u outstanding in the group", contd_group_outstanding(group));
	must(contd_event_complete(&event[1], 0));
	contd_poll(0); /* the group's, and in the next revolution who waits for it */
	contd_poll(0);
	cr_assert_eq(runs(&tally[1]), 1);
}

/* ------------------------------------------------------------------ sleep.pml, WORD_SILENT --- */

static void *wait_for_it(void *arg)
{
	must(contd_group_wait(group, -1));
	reached(1);
	return arg;
}

static void complete_first(int status, void *data)
{
	(void)data;
	must(contd_event_complete(&event[0], status));
}

Test(models_found, a_word_wakes_who_waits)
{
	static volatile uint64_t memory;
	struct contd_word word = {.address = &memory, .value = 1, .op = CONTD_WORD_EQ};
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	group = group_new(0, -1);
	must(contd_event_continue(1, first, tally_cb, &tally[0], group, NULL));
	cr_assert_eq(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
	await(contd__load_seq(&contd__wake.sleepers));
	usleep(50000);
	must(contd_word_continue(&word, complete_first, NULL, group_new(0, -1), NULL));
	__atomic_store_n(&memory, 1, __ATOMIC_RELEASE);
	await(reached_by_now() == 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* ------------------------------------------------------------------ notify.pml, EXIT_SILENT --- */

static __thread bool sending;
static uint32_t attached;

static void *attach_and_end(void *arg)
{
	must(contd_thread_attach(NULL));
	contd__store_release(&attached, 1);
	await(reached_by_now() == 1);
	return arg;
}

/* The sender has seen that thread; it ends before the signal is sent. */
static void at_send(const char *name)
{
	if (!sending || strcmp(name, "notify_before_send") != 0)
		return;
	sending = false;
	reached(1);
	await(contd__load_seq(&contd__signals.record[0]->tid) == 0);
}

static void *send_it(void *arg)
{
	sending = true;
	must(contd_event_complete(&event[0], 0));
	return arg;
}

Test(models_found, a_thread_that_ends_hands_on)
{
	pthread_t ending, sender;

	start(CONTD_AGENT_CALLER);
	group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, first, tally_cb, &tally[0], group, NULL));
	cr_assert_eq(pthread_create(&ending, NULL, attach_and_end, NULL), 0);
	await(contd__load_acquire(&attached));
	must(contd_thread_attach(NULL));
	contd__store(&contd__signals.turn, 0);
	__atomic_store_n(&contd__testpoint_hook, at_send, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&sender, NULL, send_it, NULL), 0);
	cr_assert_eq(pthread_join(sender, NULL), 0);
	cr_assert_eq(pthread_join(ending, NULL), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	compute_until(runs(&tally[0]));
}

/* ------------------------------------------------------------------ tree.pml, SETTLE_SILENT --- */

static int settling;
static pthread_t waiter;

static void at_settle(const char *name)
{
	if (settling == 1 && strcmp(name, "settle_empty") == 0) {
		settling = 2;
		must(contd_event_complete(&event[1], 0)); /* as another thread might, just now */
	} else if (settling == 2 && strcmp(name, "settle_cleared") == 0) {
		settling = 3;
		cr_assert_eq(pthread_create(&waiter, NULL, wait_for_it, NULL), 0);
		await(contd__load_seq(&contd__wake.sleepers));
		usleep(100000);
	}
}

Test(models_found, who_settles_tells)
{
	start(CONTD_AGENT_CALLER);
	group = group_new(0, -1);
	beyond_first_chunk(group);
	must(contd_event_continue(1, first, tally_cb, &tally[0], group, NULL));
	must(contd_event_continue(1, second, tally_cb, &tally[0], group, NULL));
	must(contd_event_complete(&event[0], 0));
	__atomic_store_n(&contd__testpoint_hook, at_settle, __ATOMIC_RELEASE);
	settling = 1;
	contd_poll(0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(settling, 3);
	await(reached_by_now() == 1);
	cr_assert_eq(pthread_join(waiter, NULL), 0);
}
