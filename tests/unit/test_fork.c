/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
#include <sys/wait.h>

#include <contd/executor.h>

#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "source.h"

#ifdef __SANITIZE_THREAD__
#define not_in_children_with_threads() cr_skip_test("the sanitizer lets no forked child start threads")
#else
#define not_in_children_with_threads() ((void)0)
#endif

TestSuite(fork, .timeout = WATCHDOG);

static struct contd_event e;
static struct contd_event *es[] = {&e};
static struct tally t;
static struct contd_group *g, *any;
static uint64_t word __attribute__((aligned(8)));

/* The child tells by its exit status which of its checks failed; 0: none. */
#define child_check(condition) \
	do { \
		if (!(condition)) \
			_exit(__LINE__ % 250 + 1); \
	} while (0)

static void child_ended_well(pid_t child)
{
	int status = -1;

	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child was killed by signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "the child's check in a line that ends in ...%d (mod 250) failed",
		     WEXITSTATUS(status) - 1);
}

/* Attached, ticking, with a daemon, in a process that also has other threads. */
static void everything_on(void)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	start(CONTD_AGENT_TICK);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	must(contd_word_continue(&w, tally_cb, &t, any, NULL));
}

static void everything_works(void)
{
	must(contd_event_complete(&e, 0));
	cr_assert_eq(runs(&t), 1);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	must(contd_group_wait(any, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(runs(&t), 2);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(fork, calls_in_the_child_fail_cleanly)
{
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_stats s = {.size = sizeof(s)};
	struct contd_group *made = NULL;
	struct contd_handle h = {(void *)0x40, 0};
	int complete;
	pid_t child;

	everything_on();
	child = fork();
	if (child == 0) {
		child_check(contd_init(NULL) == -ECHILD);
		child_check(strlen(contd_error_text()) > 10);
		child_check(contd_group_create(NULL, &made) == -ECHILD && !made);
		child_check(contd_group_test(g, &complete) == -ECHILD);
		child_check(contd_group_wait(g, -1) == -ECHILD);
		child_check(contd_group_destroy(g) == -ECHILD);
		child_check(contd_cancel(h) == -ECHILD);
		child_check(contd_event_continue(0, NULL, tally_cb, &t, g, NULL) == -ECHILD);
		child_check(contd_word_continue(&w, tally_cb, &t, g, NULL) == -ECHILD);
		child_check(contd_group_continue(g, tally_cb, &t, any, NULL) == -ECHILD);
		child_check(contd_poll(0) == -ECHILD);
		child_check(contd_fd() == -ECHILD);
		child_check(contd_thread_attach(NULL) == -ECHILD);
		child_check(contd_thread_detach() == -ECHILD);
		child_check(contd_daemon_start(NULL) == -ECHILD);
		child_check(contd_daemon_stop() == -ECHILD);
		child_check(contd_stats_get(&s) == -ECHILD);
		child_check(contd_fini() == -ECHILD);
		contd_compute_begin();
		contd_compute_end();
		contd_guard_begin();
		contd_guard_end();
		child_check(runs(&t) == 0);
		_exit(0);
	}
	child_ended_well(child);
	everything_works();
}

static volatile sig_atomic_t interruptions;

static void count_interruption(const char *name)
{
	if (strcmp(name, "handler_entered") == 0)
		interruptions++;
}

Test(fork, no_ticks_and_no_callbacks_in_the_child)
{
	pid_t child;

	everything_on();
	__atomic_store_n(&contd__testpoint_hook, count_interruption, __ATOMIC_RELEASE);
	compute_until(interruptions > 0);
	child = fork();
	if (child == 0) {
		uint64_t until = now_ns() + 100000000;

		interruptions = 0;
		__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
		while (now_ns() < until)
			;
		child_check(interruptions == 0);
		child_check(runs(&t) == 0);
		raise_ours();
		child_check(interruptions == 0);
		child_check(runs(&t) == 0);
		exit(0);
	}
	child_ended_well(child);
	everything_works();
}

/* An event that is completed in the child runs nothing there and disturbs no thread of the parent. */
Test(fork, completion_in_the_child_reaches_nobody)
{
	uint64_t notified;
	pid_t child;

	start(CONTD_AGENT_CALLER);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
	__atomic_store_n(&contd__testpoint_hook, count_interruption, __ATOMIC_RELEASE);
	notified = stats_now().notifications;
	child = fork();
	if (child == 0) {
		contd_event_complete(&e, 0);
		child_check(runs(&t) == 0);
		_exit(0);
	}
	child_ended_well(child);
	usleep(10000);
	cr_assert_eq(interruptions, 0, "the child has sent a signal");
	cr_assert_eq(stats_now().notifications, notified);
	must(contd_event_complete(&e, 0));
	cr_assert_eq(runs(&t), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A callback forks and returns in both: nothing else runs in the child, and what ran it returns there. */
static pid_t forked;
static unsigned after;

static void forks(int status, void *data)
{
	(void)status;
	(void)data;
	forked = fork();
}

static void runs_after(int status, void *data)
{
	(void)status;
	(void)data;
	after++;
}

#define READY 40

static struct contd_event ready[READY], never = CONTD_EVENT_INIT;

static void begin_with_many_ready(struct contd_executor *executor)
{
	struct contd_event *pending[] = {&never};

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	if (executor)
		must(contd_group_set_executor(g, executor));
	for (unsigned i = 0; i < READY; i++) {
		struct contd_event *one[] = {&ready[i]};

		contd_event_init(&ready[i]);
		must(contd_event_continue(1, one, i ? runs_after : forks, NULL, g, NULL));
	}
	must(contd_event_continue(1, pending, tally_cb, &t, g, NULL));
	for (unsigned i = 0; i < READY; i++)
		must(contd_event_complete(&ready[i], 0));
}

static void child_ends_if(int rc, int expected)
{
	if (forked)
		return;
	child_check(after == 0);
	child_check(rc == expected);
	_exit(0);
}

static void end_with_many_ready(void)
{
	child_ended_well(forked);
	must(contd_event_complete(&never, 0));
	must(contd_group_wait(g, PATIENCE_SECONDS * 1000000000ll));
	cr_assert_eq(after, READY - 1);
	cr_assert_eq(runs(&t), 1);
	cr_assert_eq(contd_fini(), 0);
}

Test(fork, in_a_callback_of_a_wait)
{
	int rc;

	begin_with_many_ready(NULL);
	rc = contd_group_wait(g, 100000000);
	child_ends_if(rc, -ECHILD);
	cr_assert_eq(rc, -ETIMEDOUT);
	end_with_many_ready();
}

Test(fork, in_a_callback_of_a_poll)
{
	int rc;

	begin_with_many_ready(NULL);
	rc = contd_poll(0);
	child_ends_if(rc, 1);
	cr_assert_eq(rc, READY);
	end_with_many_ready();
}

/* Continuations without a slot, which a source hands over all at once. */
static struct contd_carried carried[READY], *to_hand_over[READY];
static bool handed_over;

static void hand_over(bool last)
{
	(void)last;
	if (!handed_over)
		contd__carried_done_sig(to_hand_over, READY);
	handed_over = true;
}

static uint32_t not_handed_over(void)
{
	return !handed_over;
}

Test(fork, in_a_callback_that_was_carried)
{
	static struct contd__source source = {
		.name = "test", .where = WHERE_THREAD, .progress = hand_over, .pending = not_handed_over};
	int rc;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < READY; i++)
		must(contd__carried_begin(&carried[i], i ? runs_after : forks, NULL, g));
	for (unsigned i = 0; i < READY; i++)
		to_hand_over[i] = &carried[i];
	must(contd__source_register(&source));
	rc = contd_group_wait(g, -1);
	child_ends_if(rc, -ECHILD);
	cr_assert_eq(rc, 0);
	child_ended_well(forked);
	cr_assert_eq(after, READY - 1);
	cr_assert_eq(contd_fini(), 0);
}

static struct contd_executor *executor;

static void begin_executor(struct contd_task task[READY])
{
	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(NULL, &executor));
	for (unsigned i = 0; i < READY; i++) {
		contd_task_init(&task[i], executor, CONTD_PRIORITY_NORMAL, i ? runs_after : forks, NULL);
		must(contd_task_submit(&task[i], 0));
	}
}

static void end_executor(void)
{
	child_ended_well(forked);
	cr_assert_eq(after, READY - 1);
	must(contd_executor_destroy(executor));
	cr_assert_eq(contd_fini(), 0);
}

Test(fork, in_a_task)
{
	static struct contd_task task[READY];
	char text[128];
	int rc;

	begin_executor(task);
	rc = contd_executor_run(executor, 0, 0);
	if (!forked) {
		struct contd_work *work = (struct contd_work *)&task[1];

		contd_work_run(work);
		child_check(contd_executor_destroy(executor) == -ECHILD);
		child_check(contd_executor_describe(executor, text, sizeof(text)) == -ECHILD);
	}
	child_ends_if(rc, -ECHILD);
	cr_assert_eq(rc, READY);
	end_executor();
}

Test(fork, in_a_task_of_a_drain)
{
	static struct contd_task task[READY];
	int rc;

	begin_executor(task);
	rc = contd_executor_drain(executor);
	child_ends_if(rc, -ECHILD);
	cr_assert_eq(rc, 0);
	end_executor();
}

/* The number by which this thread's checkpoints say whom to ring. */
static void watch_the_bell(void)
{
	struct contd_config on = {.size = sizeof(on), .agent = CONTD_AGENT_CALLER, .bell = CONTD_BELL_ON};
	char job[32];

	must(contd_init(&on));
	snprintf(job, sizeof(job), "fork-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	source_register(&source_a, WHERE_REGION, false);
	source_begin(&source_a);
	contd_compute_begin();
	do
		contd__checkpoint(); /* some of them look */
	while (!contd__load(&contd__self.tid));
	contd_compute_end();
}

Test(fork, after_fini_the_child_s_thread_has_a_number_of_its_own)
{
	pid_t child;

	watch_the_bell();
	cr_assert_eq(contd__self.tid, (uint32_t)gettid());
	contd_fini();
	child = fork();
	if (child == 0) {
		watch_the_bell();
		child_check(contd__self.tid == (uint32_t)gettid());
		_exit(0);
	}
	child_ended_well(child);
}

/*
 * In the child the memory of the parent's other threads may be reused, so the child must not walk through lists that
 * hold it.
 */
static void uses_contd(void *data)
{
	(void)data;
	must(contd_init(NULL));
	contd_poll(0);
	cr_assert_eq(contd_fini(), 0);
}

Test(fork, after_fini_where_another_thread_has_used_contd)
{
	struct helper h;
	pid_t child;

	helper_create(&h, false);
	helper_do(&h, uses_contd, NULL);
	child = fork();
	if (child == 0) {
		child_check(contd_init(NULL) == -ECHILD);
		child_check(strlen(contd_error_text()) > 10);
		_exit(0);
	}
	child_ended_well(child);
	helper_join(&h);
	not_in_children_with_threads();
	child = fork();
	if (child == 0) {
		start(CONTD_AGENT_TICK);
		child_check(contd_fini() == 0);
		_exit(0);
	}
	child_ended_well(child);
}

Test(fork, before_init_and_after_fini_the_child_is_free)
{
	pid_t child;

	not_in_children_with_threads();
	for (unsigned i = 0; i < 2; i++) {
		child = fork();
		if (child == 0) {
			start(CONTD_AGENT_TICK);
			g = group_new(CONTD_THREAD_ANY, -1);
			child_check(contd_event_continue(1, es, tally_cb, &t, g, NULL) == 0);
			child_check(contd_event_complete(&e, 0) == 0);
			child_check(contd_group_wait(g, -1) == 0);
			child_check(runs(&t) == 1);
			child_check(contd_fini() == 0);
			_exit(0);
		}
		child_ended_well(child);
		must(contd_init(NULL));
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(fork, exec_while_everything_is_on)
{
	pid_t child;

	everything_on();
	child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "sleep 0.1; exit 0", (char *)NULL);
		_exit(99);
	}
	child_ended_well(child);
	everything_works();
}

/* In a separate process: exec and exit with timers armed and the daemon running. */
Test(fork, exec_and_exit_without_fini)
{
	not_in_children_with_threads();
	for (unsigned i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0) {
			everything_on();
			if (i == 0)
				execl("/bin/sh", "sh", "-c", "sleep 0.1; exit 0", (char *)NULL);
			else if (i == 1)
				exit(0);
			contd_event_complete(&e, 0);
			_exit(0);
		}
		child_ended_well(child);
	}
}

/* A thread other than the main one forks, in the middle of all kinds of work of the others. */
static uint32_t over;

static void *busy(void *data)
{
	(void)data;
	while (!contd__load_acquire(&over)) {
		struct contd_group *own;
		struct tally done = {0};

		must(contd_group_create(NULL, &own));
		must(contd_event_continue(0, NULL, tally_cb, &done, own, NULL));
		must(contd_thread_attach(NULL));
		contd_poll(0);
		must(contd_thread_detach());
		must(contd_group_destroy(own));
		cr_assert_eq(runs(&done), 1);
	}
	return NULL;
}

Test(fork, while_other_threads_work)
{
	pthread_t thread[2];

	start(CONTD_AGENT_REGION);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, busy, NULL), 0);
	for (unsigned i = 0; i < 50; i++) {
		pid_t child = fork();

		if (child == 0) {
			child_check(contd_poll(0) == -ECHILD);
			child_check(contd_fini() == -ECHILD);
			_exit(0);
		}
		child_ended_well(child);
	}
	contd__store_release(&over, 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(contd_fini(), 0);
}

/* A fork while another thread is in contd_init(): the child has half of its work, and a lock that stays held. */
static uint32_t init_begun, child_is_there;

static void wait_for_the_child(const char *name)
{
	if (strcmp(name, "init_begun") != 0)
		return;
	contd__store_release(&init_begun, 1);
	await(contd__load_acquire(&child_is_there));
}

static void *init_meanwhile(void *data)
{
	must(contd_init(NULL));
	return data;
}

Test(fork, while_another_thread_begins)
{
	pthread_t thread;
	pid_t child;

	/* A life before, so that contd knows of forks. */
	start(CONTD_AGENT_CALLER);
	cr_assert_eq(contd_fini(), 0);
	__atomic_store_n(&contd__testpoint_hook, wait_for_the_child, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&thread, NULL, init_meanwhile, NULL), 0);
	await(contd__load_acquire(&init_begun));
	child = fork();
	if (child == 0) {
		alarm(PATIENCE_SECONDS); /* it hangs */
		child_check(contd_init(NULL) == -ECHILD);
		child_check(contd_poll(0) == -ECHILD);
		child_check(contd_fini() == -ECHILD);
		_exit(0);
	}
	contd__store_release(&child_is_there, 1);
	pthread_join(thread, NULL);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	child_ended_well(child);
	cr_assert_eq(contd_fini(), 0);
}
