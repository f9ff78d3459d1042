/* SPDX-License-Identifier: BSD-3-Clause */
/* contd_checkpoint(): what a handler would do here, without one. */
#include <sys/wait.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"

TestSuite(checkpoint, .timeout = WATCHDOG);

static struct contd_event e1, e2, e3;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2}, *es3[] = {&e3};
static struct tally t1, t2, t3;
static uint64_t word1;
static const struct contd_word w1 = {&word1, 0, 1, CONTD_WORD_EQ};

static void calls(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		contd_checkpoint();
}

static void begin(double percent, uint64_t tick_max_ns)
{
	struct contd_config config = {.size = sizeof(config),
				      .agent = CONTD_AGENT_CALLER,
				      .overhead_percent = percent,
				      .tick_max_ns = tick_max_ns,
				      .scan_ns = 1000000000};

	must(contd_init(&config));
}

/* Something is ready that no bit tells of: the next call looks, and the rate is that of the calls that were made. */
Test(checkpoint, a_look_that_comes_earlier_keeps_the_rate)
{
	begin(2, 1000000);
	contd__self.checkpoint.calls = 60000;
	contd__tls.checkpoint = 60000;
	calls(10);
	cr_assert_eq(contd__tls.checkpoint, 59990);
	contd__checkpoint_now_sig();
	cr_assert_eq(contd__tls.checkpoint, 0, "the next one looks");
	cr_assert_eq(contd__self.checkpoint.calls, 10, "and finds that 10 were made");
	contd__checkpoint_now_sig();
	cr_assert_eq(contd__self.checkpoint.calls, 10, "more of them change nothing");
	must(contd_fini());
}

/* ---------------------------------------------------------------------------------------------------- what runs --- */

static void runs_what_may_run(void *attach)
{
	struct contd_group *safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), *plain = group_new(0, -1);
	struct contd_group *poll_only = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_POLL_ONLY, -1);

	if (attach)
		must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, safe, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, plain, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, poll_only, NULL));
	calls(1000);
	cr_assert_eq(runs(&t1) + runs(&t2) + runs(&t3), 0);
	complete_quietly(&e1, 0);
	complete_quietly(&e2, 0);
	complete_quietly(&e3, 0);
	contd_checkpoint();
	cr_assert_eq(runs(&t1), 1, "by the first call after it became ready");
	cr_assert_eq(t1.context, CONTEXT_HANDLER);
	calls(100000);
	cr_assert_eq(runs(&t2), 0, "outside regions async-signal-safe ones only");
	contd_compute_begin();
	contd_checkpoint();
	contd_compute_end();
	cr_assert_eq(runs(&t2), 1);
	cr_assert_eq(t2.context, CONTEXT_REGION);
	cr_assert_eq(runs(&t3), 0, "poll-only");
	must(contd_group_wait(poll_only, -1));
	if (attach)
		must(contd_thread_detach());
}

Test(checkpoint, on_an_attached_thread)
{
	start(CONTD_AGENT_CALLER);
	runs_what_may_run(&t1);
	cr_assert_eq(contd_fini(), 0);
}

Test(checkpoint, on_a_thread_that_is_not_attached)
{
	start(CONTD_AGENT_CALLER);
	runs_what_may_run(NULL);
	cr_assert_eq(contd_fini(), 0);
}

static void *fresh_thread(void *data)
{
	calls(*(unsigned *)data);
	return NULL;
}

/* One that contd has never heard of. */
Test(checkpoint, on_a_thread_that_is_new)
{
	unsigned n = 1;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	must(contd_event_continue(1, es1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	complete_quietly(&e1, 0);
	cr_assert_eq(pthread_create(&thread, NULL, fresh_thread, &n), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(runs(&t1), 1);
	cr_assert(pthread_equal(t1.thread, thread));
	cr_assert_eq(contd_fini(), 0);
}

Test(checkpoint, within_the_handlers_count)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = 3, .scan_ns = 1000000000};
	struct contd_group *g;

	must(contd_init(&config));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE, -1);
	for (unsigned i = 0; i < 10; i++)
		must(contd_event_continue(0, NULL, tally_cb, &t1, g, NULL));
	for (unsigned i = 1; i <= 4; i++) {
		contd_checkpoint();
		cr_assert_eq(runs(&t1), i < 4 ? 3 * i : 10);
	}
	cr_assert_eq(contd_fini(), 0);
}

/* -------------------------------------------------------------------------------------------- where it must not --- */

Test(checkpoint, under_a_guard)
{
	start(CONTD_AGENT_CALLER);
	must(contd_event_continue(1, es1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	complete_quietly(&e1, 0);
	contd_guard_begin();
	calls(200000);
	contd_guard_begin();
	calls(10);
	contd_guard_end();
	calls(10);
	cr_assert_eq(runs(&t1), 0);
	contd_guard_end();
	contd_checkpoint();
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(contd_fini(), 0);
}

static unsigned nested;

static void checkpoint_cb(int status, void *data)
{
	unsigned before = runs(&t2);

	complete_quietly(&e2, 0);
	calls(100);
	nested += runs(&t2) - before;
	tally_cb(status, data);
}

Test(checkpoint, in_a_callback)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	for (unsigned how = 0; how < 3; how++) {
		contd_event_init(&e1);
		contd_event_init(&e2);
		must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
		must(contd_event_continue(1, es1, checkpoint_cb, &t1, g, NULL));
		complete_quietly(&e1, 0);
		if (how == 2)
			contd_compute_begin();
		if (how)
			calls(2);
		else
			while (contd_poll(0))
				;
		if (how == 2)
			contd_compute_end();
		cr_assert_eq(nested, 0);
		cr_assert_eq(runs(&t1), how + 1);
		cr_assert_eq(runs(&t2), how + 1);
	}
	cr_assert_eq(contd_fini(), 0);
}

Test(checkpoint, before_and_after_contds_life)
{
	for (unsigned life = 0; life < 3; life++) {
		unsigned before = runs(&t1);

		calls(100000);
		start(CONTD_AGENT_CALLER);
		contd_event_init(&e1);
		must(contd_event_continue(1, es1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
		complete_quietly(&e1, 0);
		if (life == 2) {
			cr_assert_eq(contd_fini(), 1);
			calls(100000);
			cr_assert_eq(runs(&t1), before);
			continue;
		}
		contd_checkpoint();
		cr_assert_eq(runs(&t1), before + 1);
		cr_assert_eq(contd_fini(), 0);
		calls(100000);
	}
}

Test(checkpoint, in_the_child_of_a_fork)
{
	int status;
	pid_t child;

	start(CONTD_AGENT_CALLER);
	must(contd_event_continue(1, es1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	complete_quietly(&e1, 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		calls(200000);
		contd_compute_begin();
		calls(200000);
		contd_compute_end();
		_exit((int)runs(&t1));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	contd_checkpoint();
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(checkpoint, keeps_errno)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_word_continue(&w1, tally_cb, &t2, g, NULL));
	for (unsigned i = 0; i < 10000; i++) {
		if (i % 100 == 0) {
			contd_event_init(&e1);
			must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
			complete_quietly(&e1, 0);
		}
		errno = ENOTTY;
		contd_checkpoint();
		cr_assert_eq(errno, ENOTTY);
	}
	cr_assert_eq(runs(&t1), 100);
	word1 = 1;
	must(contd_group_wait(g, -1));
	cr_assert_eq(contd_fini(), 0);
}

/* ---------------------------------------------------------------------------------------------------- how often --- */

#define COST_NS 20000u
static uint64_t cost_ticks;
static uint32_t looks_begun;

/* A look that costs something. */
static void count_looks(const char *point)
{
	uint64_t end = contd__ticks() + cost_ticks;

	if (strcmp(point, "look_begun") != 0)
		return;
	contd__add(&looks_begun, 1);
	while (contd__ticks() < end)
		;
}

/* In so many calls no more looks than the budget has room for. */
static void looks_stay_within(double percent, uint64_t pause)
{
	uint32_t looks, looked = contd__load(&looks_begun);
	uint64_t begun, passed;
	double most;

	begun = contd__ticks();
	do {
		for (unsigned k = 0; k < 1000; k++) {
			contd_checkpoint();
			for (volatile uint64_t p = 0; p < pause; p++)
				;
		}
		passed = contd__ticks() - begun;
		looks = contd__load(&looks_begun) - looked;
	} while (looks < 12);
	/* Eight tenths of the budget are for looking; one that had just been allowed, and one at the end. */
	most = (double)passed * percent / 100 * 0.8 / (double)cost_ticks + 2;
	cr_assert_leq((double)looks, most, "%g %%: %u looks, instead of %g", percent, looks, most);
}

static void looks_are_bounded(uint32_t ready_flags)
{
	static const double percents[] = {0.5, 2, 10};
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct tally t = {0};

	for (unsigned i = 0; i < 3; i++) {
		begin(percents[i], 10000000000);
		cost_ticks = (uint64_t)(COST_NS * contd__clock.ticks_per_ns);
		__atomic_store_n(&contd__testpoint_hook, count_looks, __ATOMIC_RELEASE);
		word1 = 0;
		must(contd_word_continue(&w1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
		if (ready_flags != UINT32_MAX) {
			contd_event_init(&e);
			must(contd_event_continue(1, es, tally_cb, &t, group_new(ready_flags, -1), NULL));
			complete_quietly(&e, 0);
		}
		looks_stay_within(percents[i], 0);
		looks_stay_within(percents[i], 1000);
		looks_stay_within(percents[i], 0); /* a loop that has become faster */
		cr_assert_eq(runs(&t), 0);
		contd_compute_begin();
		looks_stay_within(percents[i], 0);
		contd_compute_end();
		word1 = 1;
		contd_poll(0);
		__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
		cr_assert_eq(contd_fini(), 0);
		t.runs = 0;
	}
}

Test(checkpoint, looks_are_paid_by_the_budget)
{
	looks_are_bounded(UINT32_MAX);
}

/* A class is marked all the time that this thread may not run here. */
Test(checkpoint, what_others_run_costs_no_look_a_call)
{
	looks_are_bounded(0);
}
Test(checkpoint, what_the_daemon_may_run_costs_no_look_a_call)
{
	looks_are_bounded(CONTD_THREAD_ANY);
}

/* A peer has rung for the last thing that was pending: after that there is nothing to look at. */
Test(checkpoint, a_ring_costs_one_look)
{
	uint64_t begun;
	uint32_t looks;
	char job[32];

	begin(10, 10000000);
	snprintf(job, sizeof(job), "checkpoint-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	must(contd_word_continue(&w1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	while (!contd__load(&contd__page->armed.by.thread))
		contd_checkpoint();
	word1 = 1;
	contd__store_seq(&contd__page->armed.by.thread, 0); /* as contd_bell_ring() does */
	contd_checkpoint();
	cr_assert_eq(runs(&t1), 1);
	__atomic_store_n(&contd__testpoint_hook, count_looks, __ATOMIC_RELEASE);
	begun = now_ns();
	calls(10000);
	looks = contd__load(&looks_begun);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	/* While nothing is pending there is one in a millisecond at most. */
	cr_assert_leq(looks, (now_ns() - begun) / 1000000 + 2);
	cr_assert_eq(contd_fini(), 0);
}

/* A word is found, at last, by calls that are far between: the count of calls follows their pace. */
static unsigned calls_until_found(void)
{
	unsigned n = 0;

	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	for (; !runs(&t1); n++) {
		cr_assert_lt(n, 5000, "%u calls have not found it", n);
		usleep(100);
		contd_checkpoint();
	}
	word1 = 0;
	t1.runs = 0;
	return n;
}

Test(checkpoint, words_are_found)
{
	struct contd_group *g;

	begin(10, 2000000);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	for (unsigned i = 0; i < 10; i++) {
		must(contd_word_continue(&w1, tally_cb, &t1, g, NULL));
		for (unsigned k = 0; k < 20; k++) {
			usleep(100);
			contd_checkpoint();
		}
		calls_until_found();
	}
	cr_assert_eq(contd_fini(), 0);
}

/* Calls in a callback, or under a guard, while something is ready: they count for nothing, and delay nothing. */
Test(checkpoint, calls_that_may_not_look_delay_none)
{
	struct contd_group *g;

	begin(10, 2000000);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_word_continue(&w1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	must(contd_event_continue(1, es3, checkpoint_cb, &t3, g, NULL));
	complete_quietly(&e3, 0);
	calls(2);
	cr_assert_eq(runs(&t3), 1);
	calls_until_found();
	contd_guard_begin();
	calls(100000);
	contd_guard_end();
	must(contd_word_continue(&w1, tally_cb, &t1, g, NULL));
	calls_until_found();
	cr_assert_eq(contd_fini(), 0);
}

/* Callbacks are work: what they take is not what a look costs. */
static uint64_t long_ticks;

static void long_cb(int status, void *data)
{
	uint64_t begun = contd__ticks();

	while (contd__ticks() - begun < long_ticks)
		;
	tally_cb(status, data);
}

Test(checkpoint, callbacks_are_not_charged)
{
	struct contd_handle h;
	struct contd_group *g;

	begin(0.5, 10000000000);
	long_ticks = (uint64_t)(100000000 * contd__clock.ticks_per_ns);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_word_continue(&(struct contd_word){&word1, 0, 2, CONTD_WORD_EQ}, tally_cb, &t1, g, &h));
	must(contd_event_continue(1, es2, long_cb, &t2, g, NULL));
	contd_checkpoint();
	complete_quietly(&e2, 0);
	contd_checkpoint();
	cr_assert_eq(runs(&t2), 1);
	/* Charged, it would be 25 s; where an empty look lost its processor for 10 ms, 2.5 s. */
	cr_assert_lt(contd__self.checkpoint.due, contd__ticks() + 100 * long_ticks);
	must(contd_cancel(h));
	cr_assert_eq(contd_fini(), 0);
}

/* A virtual machine that was moved may find the clock an hour back: looks go on. */
Test(checkpoint, a_clock_that_goes_back)
{
	begin(2, 1000000);
	word1 = 0;
	must(contd_word_continue(&w1, tally_cb, &t1, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	calls(1000);
	contd__self.checkpoint.due = contd__ticks() + contd__clock.second * 3600;
	word1 = 1;
	calls(200000); /* more than one counts off */
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(contd_fini(), 0);
}
