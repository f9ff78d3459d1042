/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sampling profiler beside contd, as gperftools works: SIGPROF, a thousand times a second of processor time, with a
 * handler that unwinds. Both go on, whichever interrupts the other.
 */
#include <execinfo.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#include "coexist.h"

#define SAMPLE_NS 1000000
#define CPU_NS 600000000ull

static atomic_ullong samples, deep, in_contd, unwound;
static atomic_int interrupted_by_contd, wanted;

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void on_sample(int signo, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	int saved = errno;
	void *frames[64];
	int n = backtrace(frames, 64);

	(void)signo;
	(void)info;
	atomic_fetch_add(&samples, 1);
	atomic_fetch_add(&unwound, (unsigned)n);
	if (n >= 3)
		atomic_fetch_add(&deep, 1);
	/* While its handler runs, contd's signal is blocked: what this one interrupted. */
	if (sigismember(&uc->uc_sigmask, OURS)) {
		atomic_fetch_add(&in_contd, 1);
	} else if (atomic_load(&wanted)) {
		/* The reverse: stay here until contd has interrupted this handler. */
		unsigned long long ran = atomic_load(&feed_ran);
		uint64_t limit = now_ns() + 5000000000ull;

		while (atomic_load(&feed_ran) == ran && now_ns() < limit)
			;
		if (atomic_load(&feed_ran) != ran) {
			atomic_fetch_add(&interrupted_by_contd, 1);
			atomic_fetch_sub(&wanted, 1);
		}
	}
	errno = saved;
}

static void profiler_install(void)
{
	struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
	void *frames[4];

	backtrace(frames, 4); /* loads the unwinder, which allocates */
	CHECK_SYS(sigaction(SIGPROF, &action, NULL));
}

/* Longer than a tick, so that samples fall into it. */
static void callback_work(void)
{
	for (volatile int i = 0; i < 3000; i++)
		;
}

static void verdict(uint64_t cpu)
{
	uint64_t expected = cpu / SAMPLE_NS, n = atomic_load(&samples);

	printf("%llu samples of %llu, %.1f frames each, %llu of them in contd's handler\n", (unsigned long long)n,
	       (unsigned long long)expected, (double)atomic_load(&unwound) / (double)(n ? n : 1),
	       (unsigned long long)atomic_load(&in_contd));
	/* Kernels that account by the tick (100 to 1000 a second) give fewer; none gives more. */
	CHECK(n >= expected / 30);
	CHECK(n <= expected + expected / 10 + 5);
	CHECK(atomic_load(&deep) >= n / 2);
}

static void sample_by_setitimer(void)
{
	struct itimerval on = {{0, SAMPLE_NS / 1000}, {0, SAMPLE_NS / 1000}}, off = {{0, 0}, {0, 0}};
	uint64_t begin;

	profiler_install();
	ticking_begin();
	feed_begin(callback_work);
	begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	CHECK_SYS(setitimer(ITIMER_PROF, &on, NULL));
	COMPUTE_UNTIL(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) > begin + CPU_NS);
	CHECK_SYS(setitimer(ITIMER_PROF, &off, NULL));
	verdict(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin);
	feed_end();
	ticking_end();
}

static timer_t timer_of_thread(void)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	struct itimerspec on = {{0, SAMPLE_NS}, {0, SAMPLE_NS}};
	timer_t timer;

#ifdef sigev_notify_thread_id
	ev.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
	CHECK_SYS(timer_create(CLOCK_THREAD_CPUTIME_ID, &ev, &timer));
	CHECK_SYS(timer_settime(timer, 0, &on, NULL));
	return timer;
}

static void sample_by_thread_timer(void)
{
	uint64_t begin;
	timer_t timer;

	profiler_install();
	ticking_begin();
	feed_begin(callback_work);
	begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	timer = timer_of_thread();
	COMPUTE_UNTIL(cpu_ns(CLOCK_THREAD_CPUTIME_ID) > begin + CPU_NS);
	CHECK_SYS(timer_delete(timer));
	verdict(cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	feed_end();
	ticking_end();
}

static void raise_sample(void)
{
	pthread_kill(pthread_self(), SIGPROF);
}

/* Every callback is interrupted by a sample, so every one that the handler runs has contd's frames below it. */
static void sample_inside_contd(void)
{
	uint64_t ran;

	profiler_install();
	ticking_begin();
	feed_begin(raise_sample);
	COMPUTE_UNTIL(atomic_load(&feed_ran) > 2000);
	ran = feed_end();
	CHECK_EQ(atomic_load(&samples), ran);
	CHECK_EQ(atomic_load(&in_contd), stats_now().run_handler);
	CHECK(atomic_load(&in_contd) > 0);
	ticking_end();
}

/* Samples that last until contd has interrupted them and has run a continuation there. */
static void contd_inside_sample(void)
{
	timer_t timer;

	profiler_install();
	ticking_begin();
	feed_begin(NULL);
	atomic_store(&wanted, 200);
	timer = timer_of_thread();
	COMPUTE_UNTIL(atomic_load(&wanted) == 0);
	CHECK_SYS(timer_delete(timer));
	CHECK_EQ(atomic_load(&interrupted_by_contd), 200);
	feed_end();
	ticking_end();
}

static const struct coexist_case cases[] = {
	{"setitimer", sample_by_setitimer},
	{"thread_timer", sample_by_thread_timer},
	{"inside_contd", sample_inside_contd},
	{"around_contd", contd_inside_sample},
};

COEXIST_CASES(cases)
