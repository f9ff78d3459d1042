/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that block contd's signal, or all signals, and processes that start with it blocked or ignored. */
#include <sys/wait.h>

#include "coexist.h"

#define N 500

static struct contd_event event[N];
static atomic_int runs[N], total;
static pthread_t main_thread;
static atomic_int elsewhere;

static void count_cb(int status, void *data)
{
	(void)status;
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&elsewhere, 1);
	atomic_fetch_add((atomic_int *)data, 1);
	atomic_fetch_add(&total, 1);
}

static void *complete_all(void *data)
{
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < N; i++)
		MUST(contd_event_complete(&event[i], 0));
	return NULL;
}

/* N continuations, all made ready by another thread. */
static void make_ready(void)
{
	pthread_t thread;

	main_thread = pthread_self();
	atomic_store(&total, 0);
	for (int i = 0; i < N; i++) {
		struct contd_event *es[] = {&event[i]};

		contd_event_init(&event[i]);
		atomic_store(&runs[i], 0);
		MUST(contd_event_continue(1, es, count_cb, &runs[i], ticking_safe, NULL));
	}
	CHECK_EQ(pthread_create(&thread, NULL, complete_all, NULL), 0);
	pthread_join(thread, NULL);
}

static void each_once(void)
{
	CHECK_EQ(atomic_load(&total), N);
	for (int i = 0; i < N; i++)
		CHECK_EQ(atomic_load(&runs[i]), 1);
	CHECK_EQ(atomic_load(&elsewhere), 0);
}

static void mask(int how, bool all)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, OURS);
	if (all)
		sigfillset(&set);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static void spend(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

/* Everything stays ready while the signal is blocked; unblocking is enough, no call is made. */
static void runs_after_unblocking(bool all)
{
	ticking_begin();
	for (int round = 0; round < 10; round++) {
		uint64_t ticks;

		mask(SIG_BLOCK, all);
		ticks = ticks_now();
		make_ready();
		spend(5000000);
		CHECK_EQ(atomic_load(&total), 0);
		CHECK_EQ(ticks_now(), ticks);
		mask(SIG_UNBLOCK, all);
		COMPUTE_UNTIL(atomic_load(&total) == N);
		each_once();
	}
	ticking_end();
}

static void one_blocked(void)
{
	runs_after_unblocking(false);
}

static void all_blocked(void)
{
	runs_after_unblocking(true);
}

/* ... and poll, test and wait run it meanwhile. */
static void polled_while_blocked(void)
{
	ticking_begin();
	for (int round = 0; round < 30; round++) {
		int complete = 0, ran = 0;

		mask(SIG_BLOCK, round % 2);
		make_ready();
		CHECK_EQ(atomic_load(&total), 0);
		if (round % 3 == 0) {
			ran = contd_poll(N / 2);
			CHECK_EQ(ran, N / 2);
			CHECK_EQ(atomic_load(&total), N / 2);
		}
		if (round % 3 != 2)
			ran += contd_poll(0);
		else
			ran += contd_group_test(ticking_safe, &complete);
		CHECK_EQ(ran, N);
		CHECK_EQ(complete, 0); /* the word is outstanding still */
		each_once();
		mask(SIG_UNBLOCK, round % 2);
	}
	ticking_end();
}

/* Blocked in sections of any length, over and over, with the feeder at work. */
static void blocked_now_and_then(void)
{
	ticking_begin();
	feed_begin(NULL);
	for (int i = 0; i < 20000; i++) {
		mask(SIG_BLOCK, i % 2);
		for (volatile int k = i % 97; k > 0; k--)
			;
		mask(SIG_UNBLOCK, i % 2);
	}
	feed_end();
	ticking_end();
}

/* Long: what has expired meanwhile is one tick, with the rest in its overrun count. */
static void blocked_for_long(void)
{
	uint64_t ticks, overruns;

	ticking_begin();
	mask(SIG_BLOCK, true);
	ticks = ticks_now();
	overruns = stats_now().overruns;
	make_ready();
	spend(1000000000);
	CHECK_EQ(ticks_now(), ticks);
	mask(SIG_UNBLOCK, true);
	COMPUTE_UNTIL(atomic_load(&total) == N);
	CHECK(stats_now().overruns > overruns);
	each_once();
	ticking_end();
}

/* A handler that blocks everything while it runs. */
static atomic_int in_usr1;

static void on_usr1(int signo)
{
	int before = atomic_load(&total);

	(void)signo;
	for (volatile int k = 0; k < 100000; k++)
		;
	if (atomic_load(&total) == before)
		atomic_fetch_add(&in_usr1, 1);
}

static void blocked_by_a_handler(void)
{
	struct sigaction action = {.sa_handler = on_usr1};

	sigfillset(&action.sa_mask);
	CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
	ticking_begin();
	feed_begin(NULL);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(atomic_load(&in_usr1), 300);
	feed_end();
	ticking_end();
}

/* -------------------------------------------------------------------------------------------- inherited by exec --- */

static void exec_self(const char *name)
{
	char path[] = "/proc/self/exe", *argv[] = {path, NULL, NULL};

	argv[1] = (char *)(uintptr_t)name;
	fflush(NULL);
	execv(path, argv);
	DIE("execv: %s", strerror(errno));
}

static void inherited_mask(void)
{
	mask(SIG_BLOCK, true);
	exec_self("inherited_mask_child");
}

/* Attaching unblocks it, on this thread, and no other signal. */
static void inherited_mask_child(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, OURS) == 1);
	CHECK(sigismember(&now, SIGUSR1) == 1);
	ticking_begin();
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, OURS) == 0);
	CHECK(sigismember(&now, SIGUSR1) == 1);
	feed_begin(NULL);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 1000);
	feed_end();
	ticking_end();
}

static void inherited_ignored(void)
{
	CHECK(signal(OURS, SIG_IGN) != SIG_ERR);
	exec_self("inherited_ignored_child");
}

/* The program has set an action for the signal: it is refused, or, with the chain, taken over. */
static void inherited_ignored_child(void)
{
	struct contd_config c = ticking_config();
	struct sigaction now;

	CHECK_EQ(contd_init(&c), -EBUSY);
	CHECK(strstr(contd_error_text(), "CONTD_SIGNAL_CHAIN"));
	CHECK_SYS(sigaction(OURS, NULL, &now));
	CHECK(now.sa_handler == SIG_IGN);
	c.signal_taken = CONTD_SIGNAL_CHAIN;
	MUST(contd_init(&c));
	MUST(contd_thread_attach(NULL));
	ticking_watch();
	kill(getpid(), OURS); /* not contd's: ignored, as before */
	feed_begin(NULL);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 1000);
	feed_end();
	ticking_end();
	kill(getpid(), OURS);
}

static const struct coexist_case cases[] = {
	{"one", one_blocked},
	{"all", all_blocked},
	{"polled", polled_while_blocked},
	{"now_and_then", blocked_now_and_then},
	{"long", blocked_for_long},
	{"by_a_handler", blocked_by_a_handler},
	{"inherited_mask", inherited_mask},
	{"inherited_ignored", inherited_ignored},
	/* no tests, but what the two above become */
	{.name = "inherited_mask_child", inherited_mask_child},
	{.name = "inherited_ignored_child", inherited_ignored_child},
};

COEXIST_CASES(cases)
