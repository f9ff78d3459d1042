/* SPDX-License-Identifier: BSD-3-Clause */
/* max_poll: a test, a look of another call and an interruption run at most so many of the group; nothing is lost by
 * that. */
#include <poll.h>
#include <sys/syscall.h>

#include "unit.h"
#include "base/atomic.h"
#include "dispatch/source.h"
#include "dispatch/wake.h"
#include "signal/attached.h"

TestSuite(max_poll, .timeout = WATCHDOG);

enum { N = 40, LIMIT = 3 };
static struct contd_event e[N];
static struct tally t[N];
static struct contd_group *g;

/* Make them ready, and notify no thread. */
static void make_ready(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct contd_event *es[] = {&e[i]};

		contd_event_init(&e[i]);
		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
		must(complete_quietly(&e[i], 0));
	}
}

static unsigned total(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += runs(&t[i]);
	return n;
}

static unsigned interruptions(void)
{
	struct contd_stats stats = stats_now();

	return (unsigned)(stats.ticks + stats.notifications);
}

static void block_ours(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, contd__signals.signal_number);
	pthread_sigmask(how, &set, NULL);
}

static void end(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(runs(&t[i]), 1);
	must(contd_group_destroy(g));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A callback that waits for g. */
static int waited;

static void wait_for_g(int status, void *data)
{
	(void)status;
	(void)data;
	waited = contd_group_wait(g, 1000000000);
}

/* A wait in a callback that a test of the same group runs: it runs all of it, whatever the test has left. */
static void waits_in_a_test(int32_t limit)
{
	struct contd_event outer = CONTD_EVENT_INIT, *es[] = {&outer};
	struct contd_group *other;
	int complete = -1;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, limit);
	other = group_new(0, -1);
	make_ready(2 * LIMIT);
	must(contd_event_continue(1, es, wait_for_g, NULL, other, NULL));
	must(contd_event_complete(&outer, 0));
	waited = 1;
	cr_assert_geq(contd_group_test(g, &complete), 1);
	cr_assert_eq(waited, 0, "the wait is %d", waited);
	cr_assert_eq(total(), 2 * LIMIT);
	cr_assert_eq(complete, 1);
	/* And afterwards the limit is there again. */
	make_ready(2 * LIMIT);
	cr_assert_eq(contd_group_test(g, &complete), limit);
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(contd_fini(), 0);
}

Test(max_poll, wait_in_a_test)
{
	waits_in_a_test(LIMIT);
}

Test(max_poll, wait_in_a_test_of_none)
{
	waits_in_a_test(0);
}

static void attached(enum contd_agent agent, uint32_t flags, int32_t limit)
{
	start(agent);
	must(contd_thread_attach(NULL));
	g = group_new(flags, limit);
}

/* With agent `caller` the only ticks are those that the rest is left to. */
Test(max_poll, bounds_a_handler)
{
	unsigned before;

	attached(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE, LIMIT);
	make_ready(N);
	before = interruptions();
	block_ours(SIG_BLOCK);
	contd_guard_begin();
	contd__or(&contd__tls.flags, CONTD__TLS_MISSED);
	contd_guard_end(); /* picks up, as an interruption */
	cr_assert_eq(total(), LIMIT);
	block_ours(SIG_UNBLOCK);
	compute_until(total() == N);
	cr_assert_geq((interruptions() - before) * LIMIT, N - LIMIT, "%u interruptions", interruptions() - before);
	end(N);
}

Test(max_poll, bounds_a_notification)
{
	attached(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE, LIMIT);
	make_ready(N);
	/* Continuations that the first one makes ready wait until this has counted. */
	contd_guard_begin();
	raise_ours();
	cr_assert_eq(total(), 0);
	block_ours(SIG_BLOCK);
	contd_guard_end();
	cr_assert_eq(total(), LIMIT);
	block_ours(SIG_UNBLOCK);
	compute_until(total() == N);
	end(N);
}

Test(max_poll, ticks_take_the_rest)
{
	unsigned before;

	attached(CONTD_AGENT_REGION, CONTD_ASYNC_SIGNAL_SAFE, 1);
	make_ready(N);
	before = interruptions();
	raise_ours();
	compute_until(total() == N);
	cr_assert_geq(interruptions() - before, N - 1, "%u interruptions", interruptions() - before);
	end(N);
}

/* Of a region's ticks too, with a group that no handler may run elsewhere. */
Test(max_poll, bounds_ticks_in_regions)
{
	unsigned before, ran = 0;

	attached(CONTD_AGENT_REGION, 0, LIMIT);
	contd_compute_begin();
	make_ready(N);
	before = interruptions();
	raise_ours();
	compute_until((ran = total()) == N);
	contd_compute_end();
	cr_assert_geq((interruptions() - before) * LIMIT, N - LIMIT, "%u interruptions", interruptions() - before);
	end(N);
}

static unsigned in_first;

static void count_first(int status, void *data)
{
	tally_cb(status, data);
	in_first++;
}

/* Continuations that its callbacks make ready, behind the scan, are left to another interruption. */
Test(max_poll, bounds_what_callbacks_add)
{
	attached(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, count_first, &t[i], g, NULL));
	}
	block_ours(SIG_BLOCK);
	contd_guard_begin();
	must(contd_event_complete(&e[0], 0));
	must(contd_event_complete(&e[1], 0));
	contd_guard_end();
	cr_assert_eq(in_first, 1);
	block_ours(SIG_UNBLOCK);
	compute_until(total() == 2);
	end(2);
}

/* No interruption is allowed any; and none is made for nothing. */
Test(max_poll, none_is_for_calls)
{
	struct contd_stats before;
	int complete;

	attached(CONTD_AGENT_REGION, CONTD_ASYNC_SIGNAL_SAFE, 0);
	before = stats_now();
	contd_guard_begin();
	make_ready(N - 1);
	t[N - 1] = (struct tally){0};
	{
		struct contd_event *es[] = {&e[N - 1]};

		must(contd_event_continue(1, es, tally_cb, &t[N - 1], g, NULL));
		must(contd_event_complete(&e[N - 1], 0));
	}
	contd_guard_end();
	raise_ours();
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	for (uint64_t until = now_ns() + 50000000; now_ns() < until;)
		compute_step();
	cr_assert_eq(total(), 0);
	cr_assert_leq(stats_now().ticks - before.ticks, 4);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(contd_poll(0), N);
	end(N);
}

/* A test has its own bound, whatever interrupts it or comes to it meanwhile. */
static void complete_more(int status, void *data)
{
	(void)status, (void)data;
	for (unsigned i = 0; i < N; i++)
		must(contd_event_complete(&e[i], 0));
}

Test(max_poll, bounds_a_test_that_is_interrupted)
{
	struct contd_group *other;
	struct contd_event first;
	struct contd_event *es[] = {&first};
	int complete;

	attached(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE, LIMIT);
	other = group_new(0, -1);
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *one[] = {&e[i]};

		must(contd_event_continue(1, one, tally_cb, &t[i], g, NULL));
	}
	contd_event_init(&first);
	must(contd_event_continue(1, es, complete_more, NULL, other, NULL));
	must(complete_quietly(&first, 0));
	block_ours(SIG_BLOCK);
	/* It runs `other`'s, after which the interruption that was put off by the guard would have its turn. */
	cr_assert_geq(contd_group_test(g, &complete), 1);
	cr_assert_leq(total(), LIMIT);
	block_ours(SIG_UNBLOCK);
	compute_until(total() == N);
	must(contd_group_destroy(other));
	end(N);
}

/* Calls about other things. */
Test(max_poll, bounds_each_look_of_other_calls)
{
	struct contd_group *other;
	int complete;

	attached(CONTD_AGENT_CALLER, 0, LIMIT);
	other = group_new(0, -1);
	make_ready(N);
	cr_assert_eq(contd_poll(0), LIMIT);
	cr_assert_eq(contd_poll(2), 2);
	cr_assert_eq(contd_group_test(other, &complete), LIMIT);
	cr_assert_eq(complete, 1);
	cr_assert_eq(total(), 2 * LIMIT + 2);
	must(contd_group_wait(g, -1));
	must(contd_group_destroy(other));
	end(N);
}

/* A thread that sleeps on the descriptor is woken if a look has left something. */
Test(max_poll, descriptor_stays_readable)
{
	unsigned polls = 0;
	struct pollfd fd;

	attached(CONTD_AGENT_CALLER, 0, LIMIT);
	fd = (struct pollfd){.fd = contd_fd(), .events = POLLIN};
	cr_assert_geq(fd.fd, 0);
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t[i], g, NULL));
		must(contd_event_complete(&e[i], 0));
	}
	while (total() < N) {
		cr_assert_eq(poll(&fd, 1, 0), 1, "not readable after %u", total());
		cr_assert_leq(contd_poll(0), LIMIT);
		polls++;
	}
	cr_assert_eq(polls, (N + LIMIT - 1) / LIMIT);
	end(N);
}

/* The daemon takes no thread's time. */
Test(max_poll, does_not_bound_the_daemon)
{
	attached(CONTD_AGENT_TICK, CONTD_THREAD_ANY, 1);
	make_ready(N);
	contd__pending_sig();
	contd__wake_daemon_sig(true);
	await(total() == N);
	end(N);
}

static void test_in_region(int status, void *data)
{
	struct contd_group *limited = data;
	int complete = 0;

	(void)status;
	for (unsigned i = 0; i < 2 * N && !complete; i++)
		contd_group_test(limited, &complete);
	in_first = complete ? 1 : 2;
}

/* A callback of a region's handler may test another group, which runs what that test may. */
Test(max_poll, tests_in_a_regions_handler_run)
{
	struct contd_group *plain;
	struct contd_event first;
	struct contd_event *es[] = {&first};

	attached(CONTD_AGENT_CALLER, CONTD_POLL_ONLY, LIMIT);
	plain = group_new(0, -1);
	make_ready(N);
	contd_event_init(&first);
	must(contd_event_continue(1, es, test_in_region, g, plain, NULL));
	must(complete_quietly(&first, 0));
	contd_compute_begin();
	raise_ours();
	compute_until(in_first != 0);
	contd_compute_end();
	cr_assert_eq(in_first, 1, "the test ran %u of %u", total(), N);
	must(contd_group_destroy(plain));
	end(N);
}

/* One call is one interruption, and the next calls take the rest. */
Test(max_poll, bounds_a_checkpoint)
{
	unsigned calls = 0;

	attached(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE, LIMIT);
	make_ready(N);
	block_ours(SIG_BLOCK);
	while (total() < N) {
		unsigned before = total();

		contd_checkpoint();
		cr_assert_leq(total() - before, LIMIT);
		cr_assert_lt(++calls, 1000000u);
	}
	block_ours(SIG_UNBLOCK);
	end(N);
}

/* ----------------------------------------------------------------------------------------- a test inside a test --- */

static struct contd_group *other;

static void test_other(int status, void *data)
{
	int complete;

	tally_cb(status, data);
	cr_assert_geq(contd_group_test(other, &complete), 0);
	cr_assert_eq(total(), 1, "the callback counts for the test that runs it, before it has returned");
}

/* A callback tests another group, which runs continuations of this one: they count for the test around the callback. */
Test(max_poll, bounds_a_test_whose_callback_tests)
{
	int complete;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, 1);
	other = group_new(0, -1);
	for (unsigned i = 0; i < LIMIT; i++) {
		struct contd_event *es[] = {&e[i]};

		contd_event_init(&e[i]);
		must(contd_event_continue(1, es, i ? tally_cb : test_other, &t[i], g, NULL));
		must(contd_event_complete(&e[i], 0));
	}
	cr_assert_eq(contd_group_test(g, &complete), 1);
	cr_assert_eq(total(), 1);
	must(contd_group_wait(g, -1));
	must(contd_group_destroy(other));
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------ a wait in its midst --- */

/* A wait for another group sleeps, although the test around it has used up its max_poll. */
static struct contd_group *other;
static pid_t waiter;

static void wait_inside(int status, void *data)
{
	contd__store_release(&waiter, (pid_t)syscall(SYS_gettid));
	must(contd_group_wait(other, -1));
	tally_cb(status, data);
}

static unsigned long sleeps_of(pid_t tid)
{
	char path[64], line[256];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lu", &n);
	fclose(f);
	return n;
}

static void *complete_when_it_sleeps(void *data)
{
	unsigned long before;

	await(contd__load_acquire(&waiter));
	before = sleeps_of(waiter);
	await(sleeps_of(waiter) > before + 3);
	must(contd_event_complete(data, 0));
	return NULL;
}

Test(max_poll, a_wait_inside_sleeps)
{
	struct contd_event own = CONTD_EVENT_INIT, *owns[] = {&own};
	struct tally others = {0};
	pthread_t thread;
	int complete;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, 1);
	other = group_new(0, -1);
	must(contd_event_continue(1, owns, tally_cb, &others, other, NULL));
	for (unsigned i = 0; i < 2; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, wait_inside, &t[i], g, NULL));
		must(contd_event_complete(&e[i], 0));
	}
	cr_assert_eq(pthread_create(&thread, NULL, complete_when_it_sleeps, &own), 0);
	cr_assert_eq(contd_group_test(g, &complete), 1);
	pthread_join(thread, NULL);
	cr_assert_eq(runs(&others), 1);
	cr_assert_eq(total(), 1);
	must(contd_group_wait(g, -1));
	cr_assert_eq(total(), 2);
	cr_assert_eq(contd_fini(), 0);
}
