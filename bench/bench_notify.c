/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long it takes until another thread, on another core, has been told: from before the call to the clock reading
 * there.
 *
 * contd    an event is completed; contd signals the thread that computes, whose handler runs the continuation
 * signal   rt_tgsigqueueinfo(2) to the same thread, with a handler that does nothing but read the clock
 * eventfd  write(2) to an eventfd that a thread is blocked on in read(2)
 * futex    a word is changed, and FUTEX_WAKE for a thread in FUTEX_WAIT
 *
 * The last two are what a program without signals would do: another thread on the core of the one that computes. In
 * turns, one of each a millisecond, so that no limit on their number matters; a figure is the median of the ratios of
 * batches.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <contd/contd.h>

#include "bench.h"

#define BATCH 16u
#define MOST_NS 15000000000u /* on a busy machine */
#define PAUSE_NS 250000.0    /* on average, after each */

enum { CONTD, SIGNAL, EVENTFD, FUTEX, KINDS };

static const char *const kind_name[KINDS] = {"contd", "signal", "eventfd", "futex"};

struct kind {
	double *latency, *call; /* all of them, ns */
	size_t n;
};

static struct kind kinds[KINDS];
static uint64_t arrived; /* clock reading at the other end; 0: not there yet */
static bool stop;
static pid_t computing; /* thread that is interrupted */
static int bare_signal, fd;
static uint32_t word;
static uint64_t lost;
static struct contd_group *group;
static struct contd_event event;

static void tell(void)
{
	__atomic_store_n(&arrived, bench_now(), __ATOMIC_RELEASE);
}

/* --------------------------------------------------------------------------- the other end --- */

static int core[2] = {-1, -1};

static void bind_to(int which)
{
	cpu_set_t set;

	if (which < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(which, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void find_cores(void)
{
	cpu_set_t set;
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			core[n++] = i;
}

static void callback(int status, void *data)
{
	(void)status;
	(void)data;
	tell();
}

static void handler(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	(void)context;
	tell();
}

static void *compute(void *arg)
{
	volatile uint64_t x = 1;

	bind_to(core[0]);
	bench_check(contd_thread_attach(NULL), "contd_thread_attach");
	__atomic_store_n(&computing, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		x = x * 6364136223846793005u + 1;
	bench_check(contd_thread_detach(), "contd_thread_detach");
	return arg;
}

static void *eventfd_reader(void *arg)
{
	uint64_t n;

	bind_to(core[0]);
	while (read(fd, &n, sizeof(n)) == sizeof(n) && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		tell();
	return arg;
}

static void *futex_waiter(void *arg)
{
	uint32_t seen = 0;

	bind_to(core[0]);
	for (;;) {
		uint32_t now = __atomic_load_n(&word, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
			return arg;
		if (now == seen) {
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
			continue;
		}
		seen = now;
		tell();
	}
}

/* ---------------------------------------------------------------------------------- telling --- */

static void send_signal(void)
{
	siginfo_t info = {.si_code = SI_QUEUE};

	info.si_pid = getpid();
	info.si_uid = getuid();
	while (syscall(SYS_rt_tgsigqueueinfo, getpid(), computing, bare_signal, &info)) {
		/* EAGAIN: the queue of signals is full; its limit is the user's, with all other programs. */
		if (errno != EAGAIN) {
			perror("rt_tgsigqueueinfo");
			exit(1);
		}
		sched_yield();
	}
}

static void write_eventfd(void)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one)) {
		perror("eventfd");
		exit(1);
	}
}

static void wake_futex(void)
{
	__atomic_add_fetch(&word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The other end is to be in its loop or asleep, and the calls not in step with the kernel's clock. */
static void pause_a_while(uint64_t *seed)
{
	uint64_t until = bench_now() + (uint64_t)((0.5 + bench_random(seed)) * PAUSE_NS);

	while (bench_now() < until)
		;
}

/*
 * One of contd's that takes 500 ms is counted as lost if it is found ready, and run here so that the benchmark goes on.
 * On a busy machine the other end may be without its processor for longer than that.
 */
static double await(unsigned kind, uint64_t begin)
{
	bool looked = false;
	uint64_t t;

	while ((t = __atomic_load_n(&arrived, __ATOMIC_ACQUIRE)) == 0) {
		uint64_t waited = bench_now() - begin;

		if (waited > 500000000 && kind == CONTD && !looked) {
			looked = true;
			lost += contd_poll(0) > 0;
		}
		if (waited > 30000000000) {
			fprintf(stderr, "bench_notify: %s: nothing in 30 s\n", kind_name[kind]);
			exit(1);
		}
	}
	return t > begin ? (double)(t - begin) : 0;
}

static double once(unsigned kind, uint64_t *seed)
{
	struct contd_event *e = &event;
	struct kind *k = &kinds[kind];
	uint64_t begin, end;
	double ns;

	if (kind == CONTD) {
		contd_event_init(e);
		bench_check(contd_event_continue(1, &e, callback, NULL, group, NULL), "contd_event_continue");
	}
	__atomic_store_n(&arrived, 0, __ATOMIC_RELEASE);
	pause_a_while(seed);
	begin = bench_now();
	if (kind == CONTD)
		contd_event_complete(e, 0);
	else if (kind == SIGNAL)
		send_signal();
	else if (kind == EVENTFD)
		write_eventfd();
	else
		wake_futex();
	end = bench_now();
	ns = await(kind, begin);
	k->call[k->n] = (double)(end - begin);
	k->latency[k->n++] = ns;
	return ns;
}

static void report(struct bench_pairs pairs[KINDS], const struct contd_stats *s)
{
	struct kind *mine = &kinds[CONTD];

	for (unsigned other = SIGNAL; other < KINDS; other++) {
		struct kind *k = &kinds[other];
		char name[64];
		struct bench_line line = {.bench = "bench_notify",
					  .name = name,
					  .figure = bench_pairs_ratio(&pairs[other]),
					  .unit = "ratio",
					  .has_target = other == SIGNAL,
					  .target = 1.2,
					  .direction = "max"};

		snprintf(name, sizeof(name), "against %s", kind_name[other]);
		bench_print(&line,
			    "\"contd_ns\":%.0f,\"contd_p99_ns\":%.0f,\"contd_p999_ns\":%.0f,\"contd_call_ns\":%.0f,"
			    "\"other_ns\":%.0f,\"other_p99_ns\":%.0f,\"other_p999_ns\":%.0f,\"other_call_ns\":%.0f,"
			    "\"samples\":%zu,\"lost\":%llu,\"notifications\":%llu",
			    bench_median(mine->latency, mine->n), bench_quantile(mine->latency, mine->n, 0.99),
			    bench_quantile(mine->latency, mine->n, 0.999), bench_median(mine->call, mine->n),
			    bench_median(k->latency, k->n), bench_quantile(k->latency, k->n, 0.99),
			    bench_quantile(k->latency, k->n, 0.999), bench_median(k->call, k->n), k->n,
			    (unsigned long long)lost, (unsigned long long)s->notifications);
	}
}

static void measure(unsigned batches)
{
	struct bench_pairs pairs[KINDS];
	struct contd_stats s = {.size = sizeof(s)};
	uint64_t seed = 1, end = bench_now() + MOST_NS;

	for (unsigned k = 0; k < KINDS; k++) {
		kinds[k].latency = malloc(batches * BATCH * sizeof(double));
		kinds[k].call = malloc(batches * BATCH * sizeof(double));
		if (!kinds[k].latency || !kinds[k].call)
			exit(1);
		bench_pairs_init(&pairs[k], batches);
	}
	for (unsigned b = 0; b < batches && (b < 8 || bench_now() < end); b++) {
		double v[KINDS][BATCH], median[KINDS];

		for (unsigned i = 0; i < BATCH; i++)
			for (unsigned k = 0; k < KINDS; k++)
				v[(k + i) % KINDS][i] = once((k + i) % KINDS, &seed);
		for (unsigned k = 0; k < KINDS; k++)
			median[k] = bench_median(v[k], BATCH);
		for (unsigned k = SIGNAL; k < KINDS; k++)
			bench_pairs_add(&pairs[k], median[CONTD], median[k]);
	}
	bench_check(contd_stats_get(&s), "contd_stats_get");
	report(pairs, &s);
	for (unsigned k = 0; k < KINDS; k++) {
		free(kinds[k].latency);
		free(kinds[k].call);
		bench_pairs_fini(&pairs[k]);
	}
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	struct contd_config config = {.size = sizeof(config), .overhead_percent = 50};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	void *(*const ends[])(void *) = {compute, eventfd_reader, futex_waiter};
	struct sigaction action;
	pthread_t thread[3];

	find_cores();
	config.signal_number = SIGRTMAX - 3;
	bare_signal = SIGRTMAX - 5;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(bare_signal, &action, NULL);
	unsetenv("CONTD_SIGNAL"); /* would have the last word */
	unsetenv("CONTD_OVERHEAD_PERCENT");
	fd = eventfd(0, EFD_CLOEXEC);
	bench_check(fd < 0 ? -errno : 0, "eventfd");
	bench_check(contd_init(&config), "contd_init");
	bench_check(contd_group_create(&attr, &group), "contd_group_create");
	for (unsigned i = 0; i < 3; i++)
		bench_check(-pthread_create(&thread[i], NULL, ends[i], NULL), "pthread_create");
	bind_to(core[1]);
	while (!__atomic_load_n(&computing, __ATOMIC_ACQUIRE))
		sched_yield();
	measure(o.quick ? 8 : 300);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	write_eventfd();
	wake_futex();
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	contd_group_destroy(group);
	contd_fini();
	close(fd);
	return 0;
}
