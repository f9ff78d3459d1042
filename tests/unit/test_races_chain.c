/* SPDX-License-Identifier: BSD-3-Clause */
/* A continuation that waits for a group, and is cancelled while that group comes to its end. */
#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"

TestSuite(races_chain, .timeout = WATCHDOG);

static struct contd_event awaited_event, *awaited_events[] = {&awaited_event};
static struct contd_group *awaited, *g;
static uint32_t hits;
static struct helper other;

/* More dead groups than one grace period waits for. */
static void reap_all(void)
{
	for (unsigned i = 0; i < 40; i++)
		must(contd_group_destroy(group_new(0, -1)));
}

static uint32_t reaping, freed;

static void awaited_is_freed(void *owner)
{
	(void)owner;
	contd__store_seq(&freed, 1);
}

/* On another thread, because the canceller stands in contd_cancel(). */
static void job_end_awaited(void *data)
{
	(void)data;
	must(contd_event_complete(&awaited_event, 0));
	contd_poll(0);
	must(contd_group_destroy(awaited));
	contd__store_seq(&reaping, 1);
	reap_all();
}

static void hook(const char *name)
{
	if (strcmp(name, "cancel_withdrawn") || contd__add(&hits, 1))
		return;
	/* It cannot come to its end before contd_cancel() has looked: a grace period waits for that. */
	helper_start(&other, job_end_awaited, NULL);
	await(contd__load_seq(&reaping));
	usleep(100000);
	cr_assert_not(contd__load_seq(&freed), "the awaited group was freed while a canceller is about to look at it");
}

Test(races_chain, awaited_group_is_given_back_while_the_chain_is_cancelled)
{
	struct contd_handle h;
	struct tally ran = {0}, never = {0};

	start(CONTD_AGENT_CALLER);
	helper_create(&other, false);
	g = group_new(0, -1);
	awaited = group_new(0, -1);
	awaited->freed = awaited_is_freed;
	must(contd_event_continue(1, awaited_events, tally_cb, &ran, awaited, NULL));
	must(contd_group_continue(awaited, tally_cb, &never, g, &h));
	__atomic_store_n(&contd__testpoint_hook, hook, __ATOMIC_RELEASE);
	must(contd_cancel(h));
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(hits > 0, 1);
	cr_assert_eq(runs(&ran), 1);
	cr_assert_eq(runs(&never), 0);
	helper_join(&other);
	cr_assert_eq(contd_fini(), 0);
}
