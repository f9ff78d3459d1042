/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/prctl.h>

#include "unit.h"
#include "base/atomic.h"
#include "dispatch/thread.h"

TestSuite(daemon, .timeout = WATCHDOG);

static struct contd_event e1, e2, e3;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2}, *es3[] = {&e3};
static struct tally t1, t2, t3;
static uint64_t word1, word2;
static const struct contd_word w1 = {&word1, 0, 1, CONTD_WORD_EQ};
static const struct contd_word w2 = {&word2, 0, 1, CONTD_WORD_EQ};

static clockid_t daemon_clock;
static char daemon_name[32];
static pthread_t daemon_thread;

static void who_cb(int status, void *data)
{
	prctl(PR_GET_NAME, daemon_name);
	pthread_getcpuclockid(pthread_self(), &daemon_clock);
	daemon_thread = pthread_self();
	tally_cb(status, data);
}

static uint64_t daemon_cpu_ns(void)
{
	struct timespec ts;

	cr_assert_eq(clock_gettime(daemon_clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

Test(daemon, runs_any_and_never_application_ones)
{
	struct contd_group *any, *application, *poll_only;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	application = group_new(0, -1);
	poll_only = group_new(CONTD_THREAD_ANY | CONTD_POLL_ONLY, -1);
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, application, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, poll_only, NULL));
	must(contd_event_complete(&e2, 0));
	must(contd_event_complete(&e3, 0));
	must(contd_event_continue(1, es1, who_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 5));
	await(runs(&t1));
	cr_assert_eq(t1.status, 5);
	cr_assert_eq(t1.context, CONTEXT_DAEMON);
	cr_assert_str_eq(daemon_name, "contd");
	cr_assert_not(pthread_equal(t1.thread, pthread_self()));
	/* It has scanned, and looks again and again while a word is watched. */
	must(contd_word_continue(&w1, tally_cb, &t1, any, NULL));
	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	await(runs(&t1) == 2);
	cr_assert(pthread_equal(t1.thread, daemon_thread));
	cr_assert_eq(runs(&t2), 0);
	cr_assert_eq(runs(&t3), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert(pthread_equal(t2.thread, pthread_self()));
	must(contd_group_wait(poll_only, -1));
	cr_assert(pthread_equal(t3.thread, pthread_self()));
	await(stats_now().run == 4);
	s = stats_now();
	cr_assert_eq(s.run_daemon, 2);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, agent_tick_starts_it)
{
	struct contd_group *any;

	start(CONTD_AGENT_TICK);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_continue(1, es1, who_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 0));
	await(runs(&t1));
	cr_assert_str_eq(daemon_name, "contd");
	cr_assert_eq(contd_fini(), 0, "which also ends it");
	start(CONTD_AGENT_CALLER);
	must_fail(contd_daemon_stop(), EPERM);
	cr_assert_eq(contd_fini(), 0);
}

/* Its own callbacks poll, test and wait: application continuations are still not its to run. */
static struct contd_group *application_group, *any_group;
static int polled, tested, test_complete;

static void polling_cb(int status, void *data)
{
	polled = contd_poll(0);
	tested = contd_group_test(application_group, &test_complete);
	tally_cb(status, data);
}

Test(daemon, polling_on_it_runs_no_application_ones)
{
	start(CONTD_AGENT_CALLER);
	any_group = group_new(CONTD_THREAD_ANY, -1);
	application_group = group_new(0, -1);
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, application_group, NULL));
	must(contd_event_complete(&e2, 0));
	must(contd_event_continue(1, es1, polling_cb, &t1, any_group, NULL));
	must(contd_event_complete(&e1, 0));
	await(runs(&t1));
	cr_assert_eq(polled, 0);
	cr_assert_eq(tested, 0);
	cr_assert_eq(test_complete, 0);
	cr_assert_eq(runs(&t2), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert(pthread_equal(t2.thread, pthread_self()));
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

static void waiting_cb(int status, void *data)
{
	polled = contd_group_wait(application_group, -1);
	tally_cb(status, data);
}

Test(daemon, waiting_on_it_leaves_application_ones_to_others)
{
	start(CONTD_AGENT_CALLER);
	any_group = group_new(CONTD_THREAD_ANY, -1);
	application_group = group_new(0, -1);
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, application_group, NULL));
	must(contd_event_continue(1, es1, waiting_cb, &t1, any_group, NULL));
	must(contd_event_complete(&e1, 0));
	usleep(2000);
	must(contd_event_complete(&e2, 0));
	usleep(2000);
	must(contd_group_wait(application_group, -1));
	await(runs(&t1));
	cr_assert_eq(polled, 0);
	cr_assert(pthread_equal(t2.thread, pthread_self()));
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, notifies_an_attached_thread)
{
	struct contd_group *g;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER); /* no ticks: only the daemon finds the word */
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_daemon_start(NULL));
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w1, tally_cb, &t1, g, NULL));
	compute_step();
	cr_assert_eq(runs(&t1), 0);
	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t1));
	cr_assert_eq(t1.context, CONTEXT_HANDLER);
	cr_assert(pthread_equal(t1.thread, pthread_self()));
	must(contd_daemon_stop());
	s = stats_now();
	cr_assert_eq(s.ticks, 0);
	cr_assert_eq(s.run_handler, 1);
	cr_assert_eq(s.run_daemon, 0);
	cr_assert_geq(s.notifications, 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, runs_async_signal_safe_any_ones_itself)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(NULL));
	must(contd_word_continue(&w1, tally_cb, &t1, g, NULL));
	__atomic_store_n(&word1, 1, __ATOMIC_RELEASE);
	await(runs(&t1));
	cr_assert_eq(t1.context, CONTEXT_DAEMON);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, words_are_found_while_the_thread_computes)
{
	enum { WORDS = 300 };
	static uint64_t words[WORDS];
	static struct tally t[WORDS];
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(NULL));
	for (unsigned i = 0; i < WORDS; i++) {
		struct contd_word w = {&words[i], 0, i, CONTD_WORD_GE};

		if (i == 0)
			w.value = 1;
		must(contd_word_continue(&w, tally_cb, &t[i], g, NULL));
	}
	for (unsigned i = WORDS; i-- > 0;) {
		cr_assert_eq(runs(&t[i]), 0);
		__atomic_store_n(&words[i], i + 1, __ATOMIC_RELEASE);
		if (i % 50 == 0)
			compute_until(runs(&t[i]));
	}
	for (unsigned i = 0; i < WORDS; i++) {
		compute_until(runs(&t[i]));
		cr_assert_eq(t[i].context, CONTEXT_DAEMON);
	}
	must(contd_daemon_stop());
	for (unsigned i = 0; i < WORDS; i++)
		cr_assert_eq(runs(&t[i]), 1);
	cr_assert_eq(contd_fini(), 0);
}

/* 200 ms pass without the daemon having been given the processor at all. The first of them may still see it go to
 * bed. */
static bool idles(void)
{
	for (unsigned i = 0; i < 20; i++) {
		uint64_t before = daemon_cpu_ns();

		usleep(200000);
		if (daemon_cpu_ns() == before)
			return true;
	}
	return false;
}

Test(daemon, sleeps_while_nothing_is_pending)
{
	struct contd_daemon_attr attr = {sizeof(attr), 1000000};
	struct contd_group *any, *application, *safe;
	struct contd_handle h;
	uint64_t before;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	application = group_new(0, -1);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_daemon_start(&attr));
	must(contd_event_continue(1, es1, who_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 0));
	await(runs(&t1));
	cr_assert(idles());
	/* It sleeps on for work that it may not run, or that only a call completes. */
	contd_event_init(&e1);
	must(contd_event_continue(1, es1, tally_cb, &t1, any, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, application, NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, safe, NULL));
	must(contd_event_complete(&e2, 0));
	must(contd_event_complete(&e3, 0));
	cr_assert(idles());
	/* A watched word is. */
	before = daemon_cpu_ns();
	must(contd_word_continue(&w1, tally_cb, &t1, any, &h));
	await(daemon_cpu_ns() > before);
	before = daemon_cpu_ns();
	await(daemon_cpu_ns() > before);
	must(contd_cancel(h));
	cr_assert(idles());
	/* And it is awake again at once. */
	must(contd_event_complete(&e1, 0));
	await(runs(&t1) == 2);
	cr_assert_eq(t1.context, CONTEXT_DAEMON);
	cr_assert_eq(contd_poll(0), 2);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

static bool runs_on_daemon(struct contd_group *any)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct tally t = {0};

	must(contd_event_continue(1, es, tally_cb, &t, any, NULL));
	must(contd_event_complete(&e, 0));
	for (unsigned i = 0; i < 20 && !runs(&t); i++)
		usleep(1000);
	must(contd_group_wait(any, -1));
	return t.context == CONTEXT_DAEMON;
}

Test(daemon, starts_are_counted)
{
	struct contd_group *any;

	start(CONTD_AGENT_TICK);
	any = group_new(CONTD_THREAD_ANY, -1);
	for (unsigned i = 0; i < 10; i++)
		must(contd_daemon_start(NULL));
	for (unsigned i = 0; i < 10; i++)
		must(contd_daemon_stop());
	await(runs_on_daemon(any)); /* the agent's own is left */
	must_fail(contd_daemon_stop(), EPERM);
	must(contd_configure(&(struct contd_config){.size = sizeof(struct contd_config), .agent = CONTD_AGENT_CALLER}));
	for (unsigned i = 0; i < 20; i++)
		cr_assert_not(runs_on_daemon(any));
	must_fail(contd_daemon_stop(), EPERM);
	for (unsigned i = 0; i < 50; i++) {
		must(contd_daemon_start(NULL));
		must(contd_daemon_stop());
	}
	must(contd_daemon_start(NULL));
	await(runs_on_daemon(any));
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, ready_before_it_starts)
{
	struct contd_group *any;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_continue(1, es1, tally_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 0));
	must(contd_word_continue(&w2, tally_cb, &t2, any, NULL));
	word2 = 1;
	must(contd_daemon_start(NULL));
	await(runs(&t1) && runs(&t2));
	cr_assert_eq(t1.context, CONTEXT_DAEMON);
	cr_assert_eq(t2.context, CONTEXT_DAEMON);
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

/* A chain that never ends keeps it busy: it can still be stopped, and the rest stays ready. */
static unsigned busy_runs;
static struct contd_event done_event;

static void busy_cb(int status, void *data)
{
	struct contd_event *es[] = {&done_event};

	(void)status;
	__atomic_fetch_add(&busy_runs, 1, __ATOMIC_ACQ_REL);
	must(contd_event_continue(1, es, busy_cb, data, data, NULL));
}

static void slow_cb(int status, void *data)
{
	contd__store_release((uint32_t *)data, 1);
	for (volatile unsigned i = 0; i < 20000000; i++)
		;
	tally_cb(status, &t1);
}

Test(daemon, stop_waits_for_what_it_runs)
{
	static uint32_t begun;
	struct contd_group *any;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es1, slow_cb, &begun, any, NULL));
	must(contd_event_complete(&e1, 0));
	await(contd__load_acquire(&begun));
	must(contd_daemon_stop());
	cr_assert_eq(runs(&t1), 1, "its callback was still running");
	cr_assert_eq(contd_fini(), 0);
}

Test(daemon, stop_while_busy)
{
	struct contd_group *any;

	start(CONTD_AGENT_CALLER);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_complete(&done_event, 0));
	must(contd_word_continue(&w1, tally_cb, &t1, any, NULL)); /* looked at for ever */
	must(contd_event_continue(1, es1, busy_cb, any, any, NULL));
	must(contd_event_complete(&e1, 0));
	for (unsigned i = 0; i < 20; i++) {
		unsigned before = __atomic_load_n(&busy_runs, __ATOMIC_ACQUIRE), stopped;

		must(contd_daemon_start(NULL));
		await(__atomic_load_n(&busy_runs, __ATOMIC_ACQUIRE) > before + 3);
		must(contd_daemon_stop());
		stopped = __atomic_load_n(&busy_runs, __ATOMIC_ACQUIRE);
		usleep(1000);
		cr_assert_eq(__atomic_load_n(&busy_runs, __ATOMIC_ACQUIRE), stopped);
	}
	must(contd_daemon_start(NULL));
	cr_assert_eq(contd_fini(), 2, "the chain's next link and the word");
}

static void *starter(void *data)
{
	(void)data;
	for (unsigned i = 0; i < 100; i++) {
		must(contd_daemon_start(NULL));
		must(contd_daemon_stop());
	}
	return NULL;
}

Test(daemon, started_and_stopped_by_several)
{
	pthread_t thread[3];

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, starter, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	must_fail(contd_daemon_stop(), EPERM);
	cr_assert_eq(contd_fini(), 0);
}

/* An instruction raises them: blocked, they would end the program, and its handler would not run. */
static bool is_fault(int s)
{
	return s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGTRAP || s == SIGSYS;
}

static void signals_cb(int status, void *data)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (int s = 1; s <= SIGRTMAX; s++)
		if (s != SIGKILL && s != SIGSTOP && (s < 32 || s >= SIGRTMIN) && sigismember(&now, s) == is_fault(s))
			status++;
	tally_cb(status, data);
}

Test(daemon, takes_no_signal_of_the_programs)
{
	struct contd_group *any;

	start(CONTD_AGENT_TICK);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_continue(1, es1, signals_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 0));
	await(runs(&t1));
	cr_assert_eq(t1.status, 0, "%d are not as they should be", t1.status);
	cr_assert_eq(contd_fini(), 0);
}

/* A fault in a callback is the program's handler's to see. */
static void faulty_cb(int status, void *data)
{
	fault();
	tally_cb(status, data);
}

Test(daemon, faults_reach_the_programs_handler)
{
	struct contd_group *any;

	faults_begin();
	start(CONTD_AGENT_TICK);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_event_continue(1, es1, faulty_cb, &t1, any, NULL));
	must(contd_event_complete(&e1, 0));
	await(runs(&t1));
	cr_assert_eq(faults(), 1);
	cr_assert_eq(contd_fini(), 0);
}
