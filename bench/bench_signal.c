/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a signal to the callback that it is for, against what the signal alone costs: a thread sends itself contd's
 * signal, with one continuation just made ready. Against: a bare signal. To make one ready that does not run at once,
 * another thread completes it while the signal is blocked here; the notification is taken away with sigtimedwait(2).
 * The bare side goes through the same motions. From one thread to another: bench_notify.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#include "bench.h"

#define BATCH 16u

static int contd_signal, bare_signal;
static uint64_t arrived; /* clock reading in callback or handler; 0: not there yet */
static uint64_t lost, sent;
static struct contd_group *group;

static uint64_t get(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void set(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static void callback(int status, void *data)
{
	(void)status;
	(void)data;
	set(&arrived, bench_now());
}

static void bare_handler(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	(void)context;
	set(&arrived, bench_now());
}

static void send_bare(pid_t tid, int signo)
{
	while (syscall(SYS_tgkill, getpid(), tid, signo)) {
		/* EAGAIN: the queue of signals is full; its limit is the user's, with all other programs. */
		if (errno != EAGAIN) {
			perror("tgkill");
			exit(1);
		}
		sched_yield();
	}
}

/* Time until `arrived`. One that takes 500 ms is counted as lost, and run here so that the benchmark goes on. */
static double wait_for(uint64_t begin)
{
	uint64_t t;

	sent++;
	while ((t = get(&arrived)) == 0) {
		if (bench_now() - begin > 500000000) {
			lost++;
			if (contd_poll(0) == 0 && get(&arrived) == 0) {
				fprintf(stderr, "bench_signal: neither arrived nor ready: lost\n");
				exit(1);
			}
		}
	}
	return (double)(t - begin);
}

/* Orders for the other thread: nothing, complete the event, send the bare signal, end. */
enum { IDLE, COMPLETE, BARE, END };
static uint64_t order;
static pid_t self;
static struct contd_event self_event;

static void *other(void *arg)
{
	for (;;) {
		uint64_t what = get(&order);

		if (what == END)
			return arg;
		if (what == COMPLETE)
			contd_event_complete(&self_event, 0);
		else if (what == BARE)
			send_bare(self, bare_signal);
		else
			continue;
		set(&order, IDLE);
	}
}

static double self_once(uint64_t what)
{
	int signo = what == COMPLETE ? contd_signal : bare_signal;
	const struct timespec at_once = {0, 0};
	struct contd_event *e = &self_event;
	uint64_t begin;
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, signo);
again:
	set(&arrived, 0);
	if (what == COMPLETE) {
		contd_event_init(e);
		bench_check(contd_event_continue(1, &e, callback, NULL, group, NULL), "contd_event_continue");
	}
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	set(&order, what);
	/* Asleep, this thread would wake up on a core that has gone to sleep. No signal comes if the queue is full. */
	begin = bench_now();
	while (sigtimedwait(&one, NULL, &at_once) != signo && bench_now() - begin < 100000000)
		;
	while (get(&order) != IDLE)
		;
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	if (get(&arrived))
		goto again; /* a timer's tick was pending as well, and has run it */
	begin = bench_now();
	send_bare(self, signo);
	return wait_for(begin);
}

static double self_batch(uint64_t what)
{
	double v[BATCH];

	for (unsigned i = 0; i < BATCH; i++)
		v[i] = self_once(what);
	return bench_median(v, BATCH);
}

static void bench_self(bool quick)
{
	unsigned pairs = quick ? 50 : 3000;
	struct bench_pairs p;
	struct bench_line line = {.bench = "bench_signal",
				  .name = "self",
				  .unit = "ratio",
				  .has_target = true,
				  .target = 1.5,
				  .direction = "max"};
	uint64_t end = bench_now() + (quick ? 1000000000u : 8000000000u);
	pthread_t thread;

	self = (pid_t)syscall(SYS_gettid);
	bench_check(contd_thread_attach(NULL), "contd_thread_attach");
	if (pthread_create(&thread, NULL, other, NULL))
		exit(1);
	bench_pairs_init(&p, pairs);
	lost = sent = 0;
	for (unsigned i = 0; i < pairs && bench_now() < end; i++) {
		double a = self_batch(COMPLETE);

		bench_pairs_add(&p, a, self_batch(BARE));
	}
	set(&order, END);
	pthread_join(thread, NULL);
	bench_check(contd_thread_detach(), "contd_thread_detach");
	line.figure = bench_pairs_ratio(&p);
	bench_print(&line, "\"contd_ns\":%.0f,\"bare_ns\":%.0f,\"signals\":%llu,\"lost\":%llu", bench_pairs_a(&p),
		    bench_pairs_b(&p), (unsigned long long)sent, (unsigned long long)lost);
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	struct contd_config config = {.size = sizeof(config)};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct sigaction action;

	contd_signal = SIGRTMAX - 3;
	bare_signal = SIGRTMAX - 5;
	config.signal_number = contd_signal;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = bare_handler;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(bare_signal, &action, NULL);
	unsetenv("CONTD_SIGNAL"); /* would have the last word */
	bench_check(contd_init(&config), "contd_init");
	bench_check(contd_group_create(&attr, &group), "contd_group_create");
	bench_self(o.quick);
	contd_group_destroy(group);
	contd_fini();
	return 0;
}
