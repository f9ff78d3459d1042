/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/resource.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/thread.h"

TestSuite(daemon_life, .timeout = WATCHDOG);

static struct contd_event e;
static struct contd_event *es[] = {&e};
static struct tally t;
static struct contd_group *g;
static uint64_t word __attribute__((aligned(8)));

/* A lost wake-up hangs: each is completed when the daemon may be about to sleep. */
Test(daemon_life, wakes_each_time)
{
	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(NULL));
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t until = now_ns() + PATIENCE_SECONDS * 1000000000ull;

		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		for (volatile unsigned spin = 0; spin < i; spin++)
			;
		must(contd_event_complete(&e, 0));
		while (runs(&t) != i + 1) {
			sched_yield();
			cr_assert_lt(now_ns(), until, "round %u", i);
		}
	}
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

static int on_daemon_start, on_daemon_stop;

static void on_daemon_cb(int status, void *data)
{
	on_daemon_start = contd_daemon_start(NULL);
	on_daemon_stop = contd_daemon_stop();
	tally_cb(status, data);
}

Test(daemon_life, neither_started_nor_stopped_on_itself)
{
	start(CONTD_AGENT_TICK);
	g = group_new(CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE, -1);
	must(contd_event_continue(0, NULL, on_daemon_cb, &t, g, NULL));
	await(runs(&t));
	cr_assert_eq(on_daemon_start, -EDEADLK);
	cr_assert_eq(on_daemon_stop, -EDEADLK);
	cr_assert_eq(contd_fini(), 0);
}

static void *nothing(void *data)
{
	return data;
}

Test(daemon_life, no_thread_to_be_had)
{
	struct rlimit before, none;
	pthread_t thread;
	int rc;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	cr_skip_test("the sanitizer needs memory, too");
#endif
	start(CONTD_AGENT_CALLER);
	getrlimit(RLIMIT_AS, &before);
	/* The thread's stack cannot be mapped. */
	none = before;
	none.rlim_cur = 1;
	setrlimit(RLIMIT_AS, &none);
	rc = pthread_create(&thread, NULL, nothing, NULL);
	if (rc == 0) {
		setrlimit(RLIMIT_AS, &before);
		pthread_join(thread, NULL);
		cr_skip_test("threads can still be made");
	}
	must_fail(contd_daemon_start(NULL), EAGAIN);
	setrlimit(RLIMIT_AS, &before);
	must(contd_daemon_start(NULL));
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

/* A long tick does not keep it from ending. */
Test(daemon_life, stops_in_the_middle_of_a_tick, .timeout = 9)
{
	struct contd_daemon_attr attr = {sizeof(attr), 10000000000};
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_word_continue(&w, tally_cb, &t, g, NULL));
	must(contd_daemon_start(&attr));
	usleep(50000);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 1);
}

static int configure_agent(enum contd_agent agent)
{
	return contd_configure(&(struct contd_config){.size = sizeof(struct contd_config), .agent = agent});
}

/* tick_ns is of those who have started it with that. */
Test(daemon_life, tick_goes_with_who_wanted_it)
{
	struct contd_daemon_attr attr = {sizeof(attr), 10000000000}, none = {sizeof(none), 0};

	start(CONTD_AGENT_CALLER);
	/* They have stopped it before the settings start it, */
	must(contd_daemon_start(&attr));
	must_fail(contd_daemon_start(&none), EBUSY);
	must(contd_daemon_stop());
	must(configure_agent(CONTD_AGENT_TICK));
	must(contd_daemon_start(&none));
	must(contd_daemon_stop());
	must(configure_agent(CONTD_AGENT_CALLER));
	/* or after that. */
	must(contd_daemon_start(&attr));
	must(configure_agent(CONTD_AGENT_TICK));
	must_fail(contd_daemon_start(&none), EBUSY);
	must(contd_daemon_stop());
	must(contd_daemon_start(&none));
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

/* Between two polls, however far apart, it runs what becomes ready for it. */
static uint32_t pauses;

static void count_pauses(const char *name)
{
	if (strcmp(name, "daemon_rests") == 0 || strcmp(name, "daemon_naps") == 0)
		contd__add(&pauses, 1);
}

Test(daemon_life, completion_in_the_middle_of_a_tick, .timeout = 9)
{
	struct contd_daemon_attr attr = {sizeof(attr), 10000000000};
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	start(CONTD_AGENT_CALLER);
	__atomic_store_n(&contd__testpoint_hook, count_pauses, __ATOMIC_RELEASE);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd_word_continue(&w, tally_cb, &t, g, NULL));
	must(contd_daemon_start(&attr));
	for (unsigned i = 0; i < 20; i++) {
		await(contd__load(&pauses) > i); /* it is about to sleep, or does */
		contd_event_init(&e);
		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		must(contd_event_complete(&e, 0));
		await(runs(&t) == i + 1);
	}
	must(contd_daemon_stop());
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(contd_fini(), 1);
}

/* ---------------------------------------------------------------------------------------------------- hand over --- */

/* It ends with something ready that its completer has left to it; a thread that computes in a region gets it. */
static uint32_t computing, handed_over, about_to_sleep, ending;

static void ends_instead(const char *name)
{
	if (strcmp(name, "daemon_sleeps") == 0) {
		contd__store_release(&about_to_sleep, 1);
		await(contd__load_acquire(&ending));
	} else if (strcmp(name, "daemon_ends") == 0) {
		contd__store_release(&ending, 1);
	}
}

static void *compute_meanwhile(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	contd_compute_begin();
	contd__store_release(&computing, 1);
	compute_until(contd__load_acquire(&handed_over));
	contd_compute_end();
	must(contd_thread_detach());
	return NULL;
}

static int end_it(bool by_settings)
{
	return by_settings ? configure_agent(CONTD_AGENT_CALLER) : contd_daemon_stop();
}

static void hand_over_cb(int status, void *data)
{
	tally_cb(status, data);
	contd__store_release(&handed_over, 1);
}

static void hands_over(bool by_settings)
{
	pthread_t thread;

	__atomic_store_n(&contd__testpoint_hook, ends_instead, __ATOMIC_RELEASE);
	start(by_settings ? CONTD_AGENT_TICK : CONTD_AGENT_CALLER);
	g = group_new(CONTD_THREAD_ANY, -1);
	if (!by_settings)
		must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es, hand_over_cb, &t, g, NULL));
	cr_assert_eq(pthread_create(&thread, NULL, compute_meanwhile, NULL), 0);
	await(contd__load_acquire(&computing) && contd__load_acquire(&about_to_sleep));
	must(contd_event_complete(&e, 0));
	must(end_it(by_settings));
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert_eq(t.context, CONTEXT_REGION);
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon_life, hands_over_when_stopped)
{
	hands_over(false);
}
Test(daemon_life, hands_over_when_the_agent_changes)
{
	hands_over(true);
}

/* ---------------------------------------------------------------------------------------------- nobody to tell --- */

/*
 * A continuation is ready that only an attached thread may run, and no thread is attached: the daemon still naps
 * between its looks. Nothing else ends its naps here.
 */
enum { NAPS = 4 };
static uint64_t nap_at[NAPS];
static uint32_t naps;

static void note_nap(const char *name)
{
	uint32_t i = contd__load(&naps);

	if (strcmp(name, "daemon_naps") != 0 || i == NAPS)
		return;
	nap_at[i] = now_ns();
	contd__store_release(&naps, i + 1);
}

Test(daemon_life, naps_with_nobody_to_tell)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_CALLER};
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	c.tick_min_ns = 500000000;
	c.tick_max_ns = 500000000;
	must(contd_init(&c));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_event_complete(&e, 0));
	must(contd_word_continue(&w, tally_cb, &t, g, NULL)); /* to be looked at for ever */
	__atomic_store_n(&contd__testpoint_hook, note_nap, __ATOMIC_RELEASE);
	must(contd_daemon_start(NULL));
	await(contd__load_acquire(&naps) == NAPS);
	must(contd_daemon_stop());
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	for (unsigned i = 2; i < NAPS; i++)
		cr_assert_gt(nap_at[i] - nap_at[i - 1], c.tick_min_ns / 2, "nap %u", i);
	cr_assert_eq(contd_fini(), 2);
}
