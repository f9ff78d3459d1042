/* SPDX-License-Identifier: BSD-3-Clause */
/* Forks and threads' ends while everything ticks as fast as it can be made to. */
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include "unit.h"
#include "base/atomic.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

TestSuite(fork_ticks, .timeout = WATCHDOG);

extern char **environ;

static struct contd_event e1, e2;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2};
static struct tally t1, t2;
static uint64_t word;
static const struct contd_word w1 = {&word, 0, 1, CONTD_WORD_EQ};
static struct contd_group *safe, *any;

static void start_all(void)
{
	struct contd_config c = {
		.size = sizeof(c), .agent = CONTD_AGENT_TICK, .overhead_percent = 50, .tick_min_ns = 1000};

	must(contd_init(&c));
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	any = group_new(CONTD_THREAD_ANY, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es1, tally_cb, &t1, safe, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, any, NULL));
	must(contd_word_continue(&w1, tally_cb, &t1, safe, NULL));
	cr_assert_gt(stats_now().tick_ns, 0);
}

/* It goes on. */
static void end_all(void)
{
	uint64_t ticks = stats_now().ticks;

	compute_until(stats_now().ticks > ticks);
	cr_assert_eq(runs(&t1) + runs(&t2), 0);
	must(contd_event_complete(&e1, 0));
	must(contd_event_complete(&e2, 0));
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t1) == 2);
	await(runs(&t2) == 1);
	cr_assert_eq(t2.context, CONTEXT_DAEMON);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void child_ends_well(pid_t pid)
{
	int status = -1;

	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "check %d in the child", WEXITSTATUS(status));
}

Test(fork_ticks, many_times)
{
	enum { TIMES = SLOW_BUILD ? 60 : 300 };
	uint64_t ticks;

	start_all();
	ticks = stats_now().ticks;
	for (unsigned i = 0; i < TIMES; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			uint64_t before = contd__self.counters.ticks;

			for (volatile unsigned k = 0; k < 100000; k++)
				;
			_exit(contd__self.counters.ticks != before ? 1 : contd_poll(0) != -ECHILD ? 2 : 0);
		}
		child_ends_well(pid);
	}
	cr_assert_gt(stats_now().ticks, ticks);
	end_all();
}

Test(fork_ticks, child_of_the_child)
{
	pid_t pid;

	start_all();
	pid = fork();
	if (pid == 0) {
		int status = 0;

		pid = fork();
		if (pid == 0)
			_exit(contd_poll(0) != -ECHILD);
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 60);
	}
	child_ends_well(pid);
	end_all();
}

Test(fork_ticks, child_does_not_raise_the_parents_descriptor)
{
	struct pollfd p = {.events = POLLIN};
	pid_t pid;

	start(CONTD_AGENT_CALLER);
	any = group_new(0, -1);
	p.fd = contd_fd();
	cr_assert_geq(p.fd, 0);
	cr_assert_eq(contd_poll(0), 0);
	must(contd_event_continue(1, es1, tally_cb, &t1, any, NULL));
	pid = fork();
	if (pid == 0)
		_exit(contd_event_complete(&e1, 0) ? 1 : 0);
	child_ends_well(pid);
	cr_assert_eq(poll(&p, 1, 0), 0, "the parent is told of what the child completed");
	must(contd_event_complete(&e1, 0));
	cr_assert_eq(poll(&p, 1, 0), 1);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 0);
}

static void *forking_thread(void *data)
{
	pid_t pid;

	must(contd_thread_attach(NULL));
	pid = fork();
	if (pid == 0) {
		if (contd_thread_detach() != -ECHILD)
			_exit(1);
		if (SLOW_BUILD)
			_exit(0);   /* sanitizers end with another exit status */
		pthread_exit(NULL); /* the only one: the process exits, with 0 */
	}
	*(pid_t *)data = pid;
	return NULL; /* the parent's thread ends attached */
}

Test(fork_ticks, by_an_attached_thread_that_ends_attached)
{
	pthread_t thread;
	pid_t pid = -1;

	start_all();
	fflush(NULL);
	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, forking_thread, &pid), 0);
		pthread_join(thread, NULL);
		child_ends_well(pid);
	}
	cr_assert_leq(contd__signals.count, 2, "their records are used again");
	end_all();
}

Test(fork_ticks, spawned_program)
{
	char program[] = "sleep", seconds[] = "0.05", *const argv[] = {program, seconds, NULL};
	pid_t pid = -1;

	start_all();
	cr_assert_eq(posix_spawnp(&pid, program, NULL, NULL, argv, environ), 0);
	child_ends_well(pid);
	end_all();
}

static uint32_t others_attached, others_may_end;

static void *ends_attached(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	must(contd_thread_attach(NULL));
	contd__add(&others_attached, 1);
	while (!contd__load_acquire(&others_may_end))
		compute_step();
	return NULL;
}

Test(fork_ticks, threads_end_attached)
{
	pthread_t thread[3];

	start_all();
	for (unsigned round = 0; round < 10; round++) {
		contd__store(&others_attached, 0);
		contd__store(&others_may_end, 0);
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(pthread_create(&thread[i], NULL, ends_attached, NULL), 0);
		await(contd__load_acquire(&others_attached) == 3);
		contd__store_release(&others_may_end, 1);
		for (unsigned i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
	}
	cr_assert_leq(contd__signals.count, 4, "their records are used again");
	end_all();
}
