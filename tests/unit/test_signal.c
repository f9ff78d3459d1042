/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <setjmp.h>
#include <sys/resource.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

TestSuite(signal, .timeout = WATCHDOG);

static struct contd_event e1, e2, e3;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2}, *es3[] = {&e3};
static struct tally t1, t2, t3;
static struct helper other;

static void job_complete(void *event)
{
	must(contd_event_complete(event, 0));
}

Test(signal, completion_runs_on_an_attached_thread_here_and_now)
{
	struct contd_group *g, *plain;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, plain, NULL));
	must(contd_event_complete(&e2, 0));
	must(contd_event_complete(&e1, 4));
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(t1.status, 4);
	cr_assert_eq(runs(&t2), 0);
	raise_ours();
	cr_assert_eq(runs(&t2), 0, "unknown code is interrupted: async-signal-safe ones only");
	cr_assert_eq(contd_poll(0), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, notified_from_another_thread)
{
	struct contd_group *g;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	helper_start(&other, job_complete, &e1);
	compute_until(runs(&t1));
	cr_assert_eq(t1.context, CONTEXT_HANDLER);
	cr_assert(pthread_equal(t1.thread, pthread_self()));
	helper_join(&other);
	s = stats_now();
	cr_assert_eq(s.run_handler, 1);
	cr_assert_eq(s.run, 1);
	cr_assert_eq(s.notifications, 1);
	cr_assert_eq(s.ticks, 0);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, region_runs_ordinary_groups_in_the_handler)
{
	struct contd_group *plain;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, plain, NULL));
	must(contd_event_complete(&e1, 0));
	contd_compute_begin();
	contd_compute_begin();
	contd_compute_end();
	raise_ours();
	cr_assert_eq(runs(&t1), 1, "still in the outer region");
	contd_compute_end();
	cr_assert_eq(t1.context, CONTEXT_REGION);
	s = stats_now();
	cr_assert_eq(s.run_region, 1);
	cr_assert_eq(s.run_handler, 0);
	must(contd_event_continue(1, es2, tally_cb, &t2, plain, NULL));
	must(contd_event_complete(&e2, 0));
	raise_ours();
	cr_assert_eq(runs(&t2), 0, "outside");
	cr_assert_eq(contd_poll(0), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, guard_keeps_it_out_and_its_end_picks_it_up)
{
	struct contd_group *g;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	contd_guard_begin();
	contd_guard_begin();
	helper_do(&other, job_complete, &e1);
	compute_until(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED);
	cr_assert_eq(runs(&t1), 0);
	contd_guard_end();
	cr_assert_eq(runs(&t1), 0);
	contd_guard_end();
	cr_assert_eq(runs(&t1), 1);
	s = stats_now();
	cr_assert_eq(s.guarded, 1);
	/* Completed under a guard by the thread itself. */
	contd_guard_begin();
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(runs(&t2), 0);
	contd_guard_end();
	cr_assert_eq(runs(&t2), 1);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void spoil_errno(int status, void *data)
{
	tally_cb(status, data);
	errno = EDOM;
}

static void on_usr1(int signo)
{
	(void)signo;
	contd_event_complete(&e2, 0);
}

Test(signal, errno_is_kept)
{
	struct contd_group *g;
	int seen;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, spoil_errno, &t1, g, NULL));
	must(contd_event_continue(1, es2, spoil_errno, &t2, g, NULL));
	must(contd_event_continue(1, es3, spoil_errno, &t3, g, NULL));
	complete_quietly(&e1, 0);
	errno = 12345;
	raise_ours();
	seen = errno;
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(seen, 12345);
	/* contd_event_complete() in a handler of the program's keeps it too. */
	signal(SIGUSR1, on_usr1);
	errno = 12345;
	pthread_kill(pthread_self(), SIGUSR1);
	seen = errno;
	cr_assert_eq(runs(&t2), 1);
	cr_assert_eq(seen, 12345);
	/* ... and the end of a guard. */
	contd_guard_begin();
	complete_quietly(&e3, 0);
	raise_ours();
	errno = 12345;
	contd_guard_end();
	seen = errno;
	cr_assert_eq(runs(&t3), 1);
	cr_assert_eq(seen, 12345);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The notified thread has the signal blocked: however many complete, one signal is sent. */
Test(signal, notifications_are_coalesced)
{
	enum { N = 500 };
	static struct contd_event event[N];
	static struct tally tally[N];
	struct contd_group *g;
	struct contd_stats s;
	sigset_t ours;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *es[] = {&event[i]};

		must(contd_event_continue(1, es, tally_cb, &tally[i], g, NULL));
	}
	sigemptyset(&ours);
	sigaddset(&ours, contd__signals.signal_number);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	for (unsigned i = 0; i < N; i++)
		helper_do(&other, job_complete, &event[i]);
	helper_join(&other);
	s = stats_now();
	cr_assert_eq(s.notifications, 1);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	/* More than one scan's budget: what is left comes without any call. */
	compute_until(contd_group_outstanding(g) == 0);
	for (unsigned i = 0; i < N; i++) {
		cr_assert_eq(runs(&tally[i]), 1);
		cr_assert_eq(tally[i].context, CONTEXT_HANDLER);
	}
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The same with timers: the rest comes by ticks. */
/*
 * One that was sent and has not come for a second is taken for lost (a debugger, a handler of the program's that stood
 * in ours' place): the next completion sends another. Before that it is believed to be on its way.
 */
Test(signal, a_notification_that_was_swallowed_is_sent_again)
{
	struct contd_group *g;
	uint64_t until;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	contd__store(&contd__me->signalled_at, contd__ticks());
	contd__store_seq(&contd__me->signalled, 1);
	helper_do(&other, job_complete, &e1);
	for (until = now_ns() + 20000000; now_ns() < until;)
		;
	cr_assert_eq(runs(&t1), 0);
	cr_assert_eq(stats_now().notifications, 0);
	contd__store(&contd__me->signalled_at, contd__ticks() - contd__clock.second * 2);
	helper_do(&other, job_complete, &e2);
	compute_until(runs(&t1) && runs(&t2));
	helper_join(&other);
	cr_assert_eq(stats_now().notifications, 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The queue of signals has no room: the thread's timer, whose signal has its place from the start, comes instead. */
Test(signal, a_notification_that_the_kernel_refuses_comes_by_timer)
{
	struct rlimit none, before;
	struct contd_group *g;
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	cr_assert_eq(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	none = before;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	helper_do(&other, job_complete, &e1);
	compute_until(runs(&t1));
	s = stats_now();
	cr_assert_eq(s.notify_failed, 1);
	cr_assert_eq(s.notifications, 0);
	/* The next one goes the usual way. */
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	helper_do(&other, job_complete, &e2);
	compute_until(runs(&t2));
	s = stats_now();
	cr_assert_eq(s.notify_failed, 1);
	cr_assert_eq(s.notifications, 1);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, what_a_scan_leaves_comes_without_a_call)
{
	enum { N = 500 };
	static struct contd_event event[N];
	static struct tally tally[N];
	struct contd_group *g;

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *es[] = {&event[i]};

		must(contd_event_continue(1, es, tally_cb, &tally[i], g, NULL));
	}
	for (unsigned i = 0; i < N; i++)
		complete_quietly(&event[i], 0);
	raise_ours();
	compute_until(contd_group_outstanding(g) == 0);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(runs(&tally[i]), 1);
	compute_until(contd__load(&contd__me->armed) == 0);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A chain of continuations, each made by the one before inside the handler, is not lost at the end of a scan. */
static struct contd_group *chain_group;
static uint32_t chain_left = 300, chain_refused;

static void chain_cb(int status, void *data)
{
	tally_cb(status, data);
	if (contd__sub(&chain_left, 1) > 1 && contd_event_continue(0, NULL, chain_cb, data, chain_group, NULL))
		contd__add(&chain_refused, 1);
}

Test(signal, chain_inside_the_handler_goes_on)
{
	start(CONTD_AGENT_REGION);
	chain_group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, chain_cb, &t1, chain_group, NULL));
	must(contd_event_complete(&e1, 0));
	compute_until(contd_group_outstanding(chain_group) == 0);
	cr_assert_eq(chain_refused, 0);
	cr_assert_eq(runs(&t1), 300);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Reserve: a callback in the handler may register at least 32 more, then it is told. */
static struct contd_group *reserve_group;
static struct contd_event reserve_event[6000];
static struct tally reserve_tally[6000];
static uint32_t reserve_got;
static int reserve_rc;

static void reserve_cb(int status, void *data)
{
	tally_cb(status, data);
	for (reserve_got = 0; reserve_got < 6000; reserve_got++) {
		struct contd_event *es[] = {&reserve_event[reserve_got]};

		reserve_rc = contd_event_continue(1, es, tally_cb, &reserve_tally[reserve_got], reserve_group, NULL);
		if (reserve_rc)
			break;
	}
}

Test(signal, reserve_of_slots_in_the_handler)
{
	start(CONTD_AGENT_CALLER);
	reserve_group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned i = 0; i < 30; i++) {
		struct contd_event *es[] = {&reserve_event[5000 + i]};

		must(contd_event_continue(1, es, tally_cb, &reserve_tally[5000 + i], reserve_group, NULL));
	}
	must(contd_event_continue(1, es1, reserve_cb, &t1, reserve_group, NULL));
	complete_quietly(&e1, 0);
	raise_ours();
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(reserve_rc, -EAGAIN);
	cr_assert_geq(reserve_got, 32);
	cr_assert_lt(reserve_got, 5000);
	for (uint32_t i = 0; i < reserve_got; i++)
		must(contd_event_complete(&reserve_event[i], 0));
	for (uint32_t i = 0; i < 30; i++)
		must(contd_event_complete(&reserve_event[5000 + i], 0));
	contd_poll(0);
	for (uint32_t i = 0; i < reserve_got; i++)
		cr_assert_eq(runs(&reserve_tally[i]), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------- timers --- */

static uint64_t word __attribute__((aligned(8)));

Test(signal, ticks_find_words_and_stop_when_nothing_is_pending)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *g;
	uint64_t ticks;

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	ticks = stats_now().ticks;
	cr_assert_eq(contd__load(&contd__me->armed), 0);
	cr_assert_eq(stats_now().tick_ns, 0);
	usleep(50000);
	cr_assert_eq(stats_now().ticks, ticks, "nothing is pending: no tick");
	must(contd_word_continue(&w, tally_cb, &t1, g, NULL));
	cr_assert_gt(stats_now().tick_ns, 0);
	compute_until(stats_now().ticks > ticks + 3);
	cr_assert_eq(runs(&t1), 0);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t1));
	cr_assert_eq(t1.context, CONTEXT_HANDLER);
	compute_until(contd__load(&contd__me->armed) == 0);
	ticks = stats_now().ticks;
	usleep(50000);
	/* One may have been on its way. */
	cr_assert_leq(stats_now().ticks, ticks + 1);
	ticks = stats_now().ticks;
	usleep(50000);
	cr_assert_eq(stats_now().ticks, ticks);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, agent_caller_has_no_ticks)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w, tally_cb, &t1, g, NULL));
	word = 1;
	usleep(50000);
	cr_assert_eq(stats_now().ticks, 0);
	cr_assert_eq(runs(&t1), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t1), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, every_attached_thread_ticks_and_a_region_is_served)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *plain;

	start(CONTD_AGENT_REGION);
	plain = group_new(0, -1);
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&w, tally_cb, &t1, plain, NULL));
	contd_compute_begin();
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	while (!runs(&t1))
		compute_step();
	contd_compute_end();
	cr_assert_eq(t1.context, CONTEXT_REGION);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------ attaching, detaching --- */

Test(signal, attach_nests_and_detach_refuses)
{
	start(CONTD_AGENT_CALLER);
	must_fail(contd_thread_detach(), EPERM);
	must(contd_thread_attach(NULL));
	must(contd_thread_attach(NULL));
	must(contd_thread_detach());
	cr_assert(contd__tls.flags & CONTD__TLS_ATTACHED);
	contd_compute_begin();
	must_fail(contd_thread_detach(), EBUSY);
	contd_compute_end();
	contd_guard_begin();
	must_fail(contd_thread_detach(), EBUSY);
	contd_guard_end();
	must(contd_thread_detach());
	must_fail(contd_thread_detach(), EPERM);
	cr_assert_not(contd__tls.flags & CONTD__TLS_ATTACHED);
	cr_assert_eq(contd_fini(), 0);
}

static void nothing(void *data)
{
	(void)data;
}

Test(signal, stray_signal_to_a_thread_that_is_not_attached)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	helper_create(&other, false);
	must(contd_event_complete(&e1, 0));
	raise_ours();
	pthread_kill(other.thread, contd__signals.signal_number);
	kill(getpid(), contd__signals.signal_number);
	helper_do(&other, nothing, NULL);
	usleep(1000);
	cr_assert_eq(runs(&t1), 0);
	must(contd_thread_attach(NULL));
	/* From outside: kill(2) and sigqueue(3) are not ours. */
	compute_until(runs(&t1));
	must(contd_thread_detach());
	helper_join(&other);
	cr_assert_eq(contd_fini(), 0);
}

static void *attach_and_exit(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	return NULL;
}

Test(signal, thread_exits_while_attached)
{
	struct contd_group *g;

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	/* More threads than records: those of ended threads are used again. */
	for (unsigned i = 0; i < ATTACHED_MAX + 100; i++) {
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, attach_and_exit, NULL), 0);
		pthread_join(thread, NULL);
	}
	cr_assert_leq(contd__signals.count, 4);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(runs(&t1), 0);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
}

static int small_rc;
static bool small_nested;
static char small_text[256];

static void *attach_small(void *data)
{
	struct contd_thread_attr attr = {.size = sizeof(attr), .stack_bytes = (uint32_t)(uintptr_t)data};

	if (small_nested)
		must(contd_thread_attach(NULL));
	small_rc = contd_thread_attach(&attr);
	snprintf(small_text, sizeof(small_text), "%s", contd_error_text());
	if (!small_rc)
		contd_thread_detach();
	return NULL;
}

Test(signal, too_small_a_stack)
{
	pthread_attr_t attr;
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	cr_assert_eq(pthread_create(&thread, &attr, attach_small, (void *)(uintptr_t)(1024 * 1024)), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(small_rc, -ENOBUFS);
	cr_assert(strstr(small_text, "stack"));
	small_nested = true;
	cr_assert_eq(pthread_create(&thread, &attr, attach_small, (void *)(uintptr_t)(1024 * 1024)), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(small_rc, -ENOBUFS, "attached already: the second call's wish counts, too");
	small_nested = false;
	cr_assert_eq(pthread_create(&thread, &attr, attach_small, (void *)(uintptr_t)16384), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(small_rc, 0);
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, no_timer_to_be_had)
{
	struct rlimit before, none = {0, 0};

	start(CONTD_AGENT_CALLER);
	getrlimit(RLIMIT_SIGPENDING, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_SIGPENDING, &none);
	must_fail(contd_thread_attach(NULL), EAGAIN);
	cr_assert_not(contd__tls.flags & CONTD__TLS_ATTACHED);
	must_fail(contd_thread_detach(), EPERM);
	setrlimit(RLIMIT_SIGPENDING, &before);
	must(contd_thread_attach(NULL));
	cr_assert_eq(contd__signals.count, 1, "the refused one's record is used");
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, alternate_stack_is_not_used)
{
	struct contd_group *g;
	size_t bytes = 256 * 1024;
	stack_t alt = {.ss_sp = malloc(bytes), .ss_size = bytes};

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	cr_assert_eq(sigaltstack(&alt, NULL), 0);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	complete_quietly(&e1, 0);
	raise_ours();
	cr_assert_eq(runs(&t1), 1);
	cr_assert(t1.stack < (uintptr_t)alt.ss_sp || t1.stack >= (uintptr_t)alt.ss_sp + bytes);
	alt.ss_flags = SS_DISABLE;
	sigaltstack(&alt, NULL);
	free(alt.ss_sp);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------ the signal is taken --- */

static volatile sig_atomic_t foreign;
static volatile sig_atomic_t foreign_info;

static void foreign_handler(int signo)
{
	(void)signo;
	foreign++;
}

static void foreign_action(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	foreign++;
	foreign_info = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
}

Test(signal, taken_is_refused)
{
	struct contd_config config = {.size = sizeof(config)};
	struct sigaction now;

	signal(SIGRTMAX - 3, foreign_handler);
	must_fail(contd_init(&config), EBUSY);
	must_fail(contd_init(NULL), EBUSY);
	sigaction(SIGRTMAX - 3, NULL, &now);
	cr_assert_eq(now.sa_handler, foreign_handler, "nothing has changed");
	config.signal_number = SIGRTMAX - 4;
	must(contd_init(&config));
	raise(SIGRTMAX - 3);
	cr_assert_eq(foreign, 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(signal, chain_passes_foreign_signals_on)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .signal_taken = CONTD_SIGNAL_CHAIN};
	struct sigaction action = {.sa_sigaction = foreign_action, .sa_flags = SA_SIGINFO};
	union sigval value = {.sival_int = 77};
	struct contd_group *g;

	sigaction(SIGRTMAX - 3, &action, NULL);
	must(contd_init(&config));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	sigqueue(getpid(), SIGRTMAX - 3, value);
	await(foreign == 1); /* not attached */
	cr_assert_eq(foreign_info, 77);
	must(contd_thread_attach(NULL));
	sigqueue(getpid(), SIGRTMAX - 3, value);
	await(foreign == 2); /* attached, and not ours */
	kill(getpid(), SIGRTMAX - 3);
	await(foreign == 3);
	/* Ours goes no further. */
	helper_create(&other, false);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	helper_start(&other, job_complete, &e1);
	compute_until(runs(&t1));
	cr_assert_eq(foreign, 3);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	sigqueue(getpid(), SIGRTMAX - 3, value);
	await(foreign == 4); /* also after the end */
}

/* The program puts a handler in the place of contd's that passes on to it, and contd starts again with that one before
 * it. */
static struct sigaction replaced;
static volatile sig_atomic_t in_between;

static void passes_on(int signo, siginfo_t *info, void *context)
{
	in_between++;
	replaced.sa_sigaction(signo, info, context);
}

Test(signal, chain_ends_where_a_handler_passes_on_to_contd_s)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .signal_taken = CONTD_SIGNAL_CHAIN};
	struct sigaction first = {.sa_sigaction = foreign_action, .sa_flags = SA_SIGINFO},
			 second = {.sa_sigaction = passes_on, .sa_flags = SA_SIGINFO};
	union sigval value = {.sival_int = 77};

	sigaction(SIGRTMAX - 3, &first, NULL);
	must(contd_init(&config));
	sigaction(SIGRTMAX - 3, &second, &replaced);
	sigqueue(getpid(), SIGRTMAX - 3, value);
	await(in_between == 1 && foreign == 1);
	cr_assert_eq(contd_fini(), 0);
	for (int i = 1; i <= 2; i++) {
		must(contd_init(&config));
		sigqueue(getpid(), SIGRTMAX - 3, value);
		await(in_between == 1 + i && foreign == 1 + i);
		cr_assert_eq(foreign_info, 77);
		cr_assert_eq(contd_fini(), 0);
	}
}

/* An earlier handler that leaves by siglongjmp(3) gets the next signal, too. */
static sigjmp_buf left;

static void leaves(int signo)
{
	(void)signo;
	foreign++;
	siglongjmp(left, 1);
}

Test(signal, chain_to_a_handler_that_jumps_out)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .signal_taken = CONTD_SIGNAL_CHAIN};
	static volatile int round;

	signal(SIGRTMAX - 3, leaves);
	must(contd_init(&config));
	for (round = 1; round <= 3; round++) {
		if (sigsetjmp(left, 1) == 0)
			raise(SIGRTMAX - 3);
		cr_assert_eq(foreign, round);
	}
	cr_assert_eq(contd_fini(), 0);
}

/* The handler that was there blocks a signal: it is blocked when contd's handler has called it. */
static volatile sig_atomic_t was_blocked;

static void looks_at_the_mask(int signo)
{
	sigset_t now;

	(void)signo;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	was_blocked = sigismember(&now, SIGUSR2);
	foreign++;
}

Test(signal, chain_blocks_what_the_handler_blocks)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .signal_taken = CONTD_SIGNAL_CHAIN};
	struct sigaction action = {.sa_handler = looks_at_the_mask};

	sigaddset(&action.sa_mask, SIGUSR2);
	sigaction(SIGRTMAX - 3, &action, NULL);
	must(contd_init(&config));
	kill(getpid(), SIGRTMAX - 3);
	await(foreign);
	cr_assert_eq(was_blocked, 1);
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------ the end --- */

static uint32_t in_callback, let_go;

static void slow_cb(int status, void *data)
{
	contd__store_release(&in_callback, 1);
	while (!contd__load_acquire(&let_go))
		;
	for (volatile unsigned i = 0; i < 20000000; i++)
		;
	tally_cb(status, data);
}

static void *computing(void *data)
{
	must(contd_thread_attach(NULL));
	contd__store_release((uint32_t *)data, 1);
	while (contd__load_acquire((uint32_t *)data) != 2)
		compute_step();
	return NULL;
}

/* A handler on another thread is in the middle of a callback: contd_fini() waits for it. */
Test(signal, fini_waits_for_handlers)
{
	static uint32_t state;
	struct contd_group *g;
	pthread_t thread;
	unsigned seen;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	cr_assert_eq(pthread_create(&thread, NULL, computing, &state), 0);
	await(contd__load_acquire(&state) == 1);
	must(contd_event_continue(1, es1, slow_cb, &t1, g, NULL));
	must(contd_event_complete(&e1, 0));
	await(contd__load_acquire(&in_callback));
	contd__store_release(&let_go, 1);
	contd_fini();
	seen = runs(&t1);
	cr_assert_eq(seen, 1, "the callback was still running when contd_fini() returned");
	contd__store_release(&state, 2);
	pthread_join(thread, NULL);
}

/* Init, attach on another thread, fini: over and over, and no record is lost. */
static uint32_t round_state;

static void *attach_each_round(void *data)
{
	(void)data;
	for (;;) {
		uint32_t state;

		while ((state = contd__load_acquire(&round_state)) == 0)
			sched_yield();
		if (state == 2)
			return NULL;
		must(contd_thread_attach(NULL));
		contd__store_release(&round_state, 0);
	}
}

Test(signal, attached_across_fini)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, attach_each_round, NULL), 0);
	for (unsigned i = 0; i < 50; i++) {
		start(CONTD_AGENT_CALLER);
		contd__store_release(&round_state, 1);
		await(contd__load_acquire(&round_state) == 0);
		cr_assert_eq(contd_fini(), 0);
	}
	contd__store_release(&round_state, 2);
	pthread_join(thread, NULL);
	cr_assert_leq(contd__signals.count, 2);
}

/*
 * A thread that was attached when contd ended is not attached after the next contd_init(). Continuations that it makes
 * ready run on attached threads.
 */
Test(signal, attached_in_an_earlier_life)
{
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	helper_create(&other, true);
	helper_do(&other, nothing, NULL);
	cr_assert_eq(contd_fini(), 0);
	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	helper_start(&other, job_complete, &e1);
	compute_until(runs(&t1));
	cr_assert(pthread_equal(t1.thread, pthread_self()), "it ran on a thread that is not attached");
	helper_finish(&other);
	must(contd_thread_detach());
	other.attach = false;
	helper_join(&other);
	cr_assert_eq(contd_fini(), 0);
}

/* A thread ends, attached, while contd does. */
static uint32_t exiting, may_exit;

static void *exits_attached(void *unused)
{
	(void)unused;
	must(contd_thread_attach(NULL));
	contd__store_release(&exiting, 1);
	while (!contd__load_acquire(&may_exit))
		sched_yield();
	return NULL;
}

static void exit_meanwhile(const char *name)
{
	static uint32_t once;

	/* contd_fini() is about to take the record out of use. */
	if (strcmp(name, "detach_begun") == 0 && !contd__xchg(&once, 1)) {
		contd__store_release(&may_exit, 1);
		usleep(20000);
	}
}

/* In the place of the C library's: its number may be another timer's by the second time. */
static uint32_t deleted;

int timer_delete(timer_t timer)
{
	int (*real)(timer_t) = (int (*)(timer_t))(uintptr_t)dlsym(RTLD_NEXT, "timer_delete");

	contd__add(&deleted, 1);
	return real(timer);
}

Test(signal, thread_exits_while_contd_ends)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	cr_assert_eq(pthread_create(&thread, NULL, exits_attached, NULL), 0);
	await(contd__load_acquire(&exiting));
	contd__store_release(&contd__testpoint_hook, exit_meanwhile);
	cr_assert_eq(contd_fini(), 0);
	contd__store_release(&contd__testpoint_hook, NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(deleted, 1);
	cr_assert_eq(contd__signals.count, 1);
	cr_assert_eq(contd__signals.record[0]->nested, 0);
}
