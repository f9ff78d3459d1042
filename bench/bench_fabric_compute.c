/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver that computes while messages come over libfabric at random times, by what looks for them:
 *
 *   region          ticks at 2 % on the thread that computes in regions
 *   tick, block, spin  the daemon, which runs the callbacks itself; the thread computes and knows nothing
 *   block, region   the daemon sleeps, and interrupts the thread that computes in a region
 *   poll N          no contd: a read of the queue after every N units of work, of about a microsecond each
 *
 * latency: from before the send to the callback, both by CLOCK_MONOTONIC; median and 99th percentile.
 * lost:    work done in a window with messages, by processor time of the thread, beside one without and without
 *          anything that looks. In turns, median of the ratios. By processor time, for other programs take the
 *          processor as well.
 * quiet:   how many pairs of windows no other program has taken the processor in for more than 3 %: only those count,
 *          unless they are too few.
 * daemon:  processor time of the process' other threads, as a share of the windows. They need another core, or this
 *          time is lost too.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include <contd/fabric.h>

#include "bench.h"
#include "fabric/setup.h"

#define WINDOW_NS 20000000u
#define MESSAGES 8u
#define LAST_NS 18000000u
#define WINDOWS 40u
#define LATENCIES (MESSAGES * WINDOWS)

struct mode {
	const char *name;
	uint32_t agent;
	bool contd, region, any; /* any: the daemon runs the callbacks */
	unsigned units;          /* polling: between two reads */
};

static const struct mode modes[] = {
	{.name = "region", .agent = CONTD_AGENT_REGION, .contd = true, .region = true},
	{.name = "tick", .agent = CONTD_AGENT_TICK, .contd = true, .any = true},
	{.name = "block", .agent = CONTD_AGENT_BLOCK, .contd = true, .any = true},
	{.name = "block, region", .agent = CONTD_AGENT_BLOCK, .contd = true, .region = true},
	{.name = "spin", .agent = CONTD_AGENT_SPIN, .contd = true, .any = true},
	{.name = "poll 1", .units = 1},
	{.name = "poll 10", .units = 10},
	{.name = "poll 100", .units = 100},
};

static void order(int fd, char what)
{
	if (write(fd, &what, 1) != 1)
		exit(1);
}

/* ------------------------------------------------------------------------------------------------------- sender --- */

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Until it is complete, as far as this side is concerned. */
static void send_one(struct fabric_end *end, fi_addr_t to)
{
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	uint64_t sent = bench_now();
	ssize_t rc;

	while ((rc = fi_send(end->ep, &sent, sizeof(sent), NULL, to, &context)) == -FI_EAGAIN)
		(void)fi_cq_read(end->cq, NULL, 0);
	fabric_check(rc, "fi_send");
	while ((rc = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN)
		;
	fabric_check(rc, "fi_cq_read");
}

/* One at once for 'm', a window's for 'w', the end for anything else. */
static void sender(struct fabric_end *end, int fd)
{
	char name[FABRIC_NAME], what;
	uint64_t seed = 7;
	fi_addr_t to;

	if (recv(fd, name, sizeof(name), MSG_WAITALL) != (ssize_t)sizeof(name))
		exit(1);
	to = fabric_insert(end, name);
	while (read(fd, &what, 1) == 1 && (what == 'm' || what == 'w')) {
		uint64_t begin = bench_now(), at[MESSAGES];

		if (what == 'm') {
			send_one(end, to);
			continue;
		}
		for (unsigned i = 0; i < MESSAGES; i++)
			at[i] = begin + (uint64_t)(bench_random(&seed) * LAST_NS);
		qsort(at, MESSAGES, sizeof(at[0]), by_time);
		for (unsigned i = 0; i < MESSAGES; i++) {
			sleep_until(at[i]);
			send_one(end, to);
		}
	}
}

/* ----------------------------------------------------------------------------------------------------- receiver --- */

struct receive {
	struct contd_fabric_op op;
	uint64_t sent;
};

static struct fabric_end end;
static struct contd_group *group;
static struct receive receives[MESSAGES];
static uint32_t arrived; /* in this window */
static double latency[LATENCIES], quiet_latency[LATENCIES];
static size_t latencies, quiet_latencies;
static bool measuring;

/* On this thread, on the daemon, or on both at once. */
static void note(const struct receive *r)
{
	double us = (double)(bench_now() - r->sent) / 1000;
	size_t at;

	if (measuring && (at = __atomic_fetch_add(&latencies, 1, __ATOMIC_RELAXED)) < LATENCIES)
		latency[at] = us;
	/* Release: pairs with the acquire in finish(). */
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

static void on_message(int status, void *data)
{
	fabric_check(status, "a receive");
	note(data);
}

static void post(const struct mode *m)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct receive *r = &receives[i];

		if (m->contd) {
			fabric_check(contd_fabric_begin_continue(end.queue, &r->op, on_message, r, group),
				     "contd_fabric_begin_continue");
		}
		fabric_check(fi_recv(end.ep, &r->sent, sizeof(r->sent), NULL, FI_ADDR_UNSPEC, &r->op), "fi_recv");
	}
}

static void read_queue(void)
{
	struct fi_cq_tagged_entry entry[MESSAGES];
	ssize_t n = fi_cq_read(end.cq, entry, MESSAGES);

	if (n < 0 && n != -FI_EAGAIN)
		fabric_check(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++)
		note(entry[i].op_context);
}

static uint64_t cpu_time(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static volatile uint64_t sink;

/* Units of work until then. */
static uint64_t compute_until(uint64_t until, unsigned poll_units)
{
	uint64_t units = 0, x = sink | 1;

	while (bench_now() < until) {
		for (unsigned i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		units++;
		if (poll_units && units % poll_units == 0)
			read_queue();
	}
	sink = x;
	return units;
}

/* Units of work a nanosecond of this thread's; *others: processor time of the others, as a share; *quiet: left as it
 * is, or false. */
static double window(const struct mode *m, bool messages, double *others, bool *quiet)
{
	uint64_t begin = bench_now(), thread = cpu_time(CLOCK_THREAD_CPUTIME_ID),
		 process = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t units;

	if (messages && m->region)
		contd_compute_begin();
	units = compute_until(begin + WINDOW_NS, messages ? m->units : 0);
	if (messages && m->region)
		contd_compute_end();
	thread = cpu_time(CLOCK_THREAD_CPUTIME_ID) - thread;
	process = cpu_time(CLOCK_PROCESS_CPUTIME_ID) - process;
	if ((double)(bench_now() - begin) * 0.97 > (double)thread)
		*quiet = false;
	*others = process > thread ? (double)(process - thread) / WINDOW_NS : 0;
	return (double)units / (double)thread;
}

static void finish(const struct mode *m)
{
	while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < MESSAGES)
		if (m->contd)
			contd_poll(0);
		else
			read_queue();
}

static void connect_both(const struct mode *m, int fd)
{
	arrived = 0;
	post(m);
	for (unsigned i = 0; i < MESSAGES; i++)
		order(fd, 'm');
	finish(m);
}

static void print(const struct mode *m, const char *provider, const struct bench_pairs *p, double *latencies_us,
		  size_t n, double *share, size_t windows, size_t quiet)
{
	char name[64];

	snprintf(name, sizeof(name), "%s, %s", m->name, provider);
	bench_print(&(struct bench_line){.bench = "bench_fabric_compute",
					 .name = name,
					 .figure = bench_median(latencies_us, n),
					 .unit = "us",
					 .direction = "max"},
		    "\"p99_us\":%.1f,\"lost_percent\":%.2f,\"daemon_percent\":%.2f,\"quiet\":%zu,\"windows\":%zu",
		    bench_quantile(latencies_us, n, 0.99), 100 * (1 - bench_pairs_ratio(p)),
		    100 * bench_median(share, windows), quiet, windows);
}

static void receiver(const struct mode *m, const char *provider, int fd, unsigned windows)
{
	struct bench_pairs all, quiet_ones;
	double others, *share = malloc(windows * sizeof(*share));

	bench_pairs_init(&all, windows);
	bench_pairs_init(&quiet_ones, windows);
	connect_both(m, fd);
	measuring = true;
	for (unsigned i = 0; i < windows && share; i++) {
		bool quiet = true;
		double with, without = window(m, false, &others, &quiet);
		size_t before = latencies;

		arrived = 0;
		post(m);
		order(fd, 'w');
		with = window(m, true, &share[i], &quiet);
		finish(m);
		bench_pairs_add(&all, with, without);
		if (!quiet)
			continue;
		bench_pairs_add(&quiet_ones, with, without);
		for (; before < latencies; before++)
			quiet_latency[quiet_latencies++] = latency[before];
	}
	order(fd, 'e');
	if (quiet_ones.n >= windows / 4 && quiet_ones.n)
		print(m, provider, &quiet_ones, quiet_latency, quiet_latencies, share, windows, quiet_ones.n);
	else
		print(m, provider, &all, latency, latencies, share, windows, quiet_ones.n);
	free(share);
	bench_pairs_fini(&all);
	bench_pairs_fini(&quiet_ones);
}

/* New processes for each mode: a sender, and a receiver. */
static int run(const struct mode *m, const char *provider, int fd, bool receives_here, unsigned windows)
{
	struct contd_config config = {.size = sizeof(config), .agent = m->agent};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = m->any ? CONTD_THREAD_ANY : 0, .max_poll = -1};
	bool contd = m->contd && receives_here;

	if (contd) {
		bench_check(contd_init(&config), "contd_init");
		bench_check(contd_group_create(&attr, &group), "contd_group_create");
		if (m->region)
			bench_check(contd_thread_attach(NULL), "contd_thread_attach");
	}
	if (!fabric_open(&end, provider, contd, m->agent == CONTD_AGENT_BLOCK && contd))
		return 77;
	if (receives_here) {
		if (write(fd, end.name, sizeof(end.name)) != (ssize_t)sizeof(end.name))
			return 1;
		receiver(m, provider, fd, windows);
	} else {
		sender(&end, fd);
	}
	fabric_close(&end);
	if (contd) {
		bench_check(contd_group_destroy(group), "contd_group_destroy");
		bench_check(contd_fini(), "contd_fini");
	}
	return 0;
}

static int run_mode(const struct mode *m, const char *provider, unsigned windows)
{
	int pair[2], status[2], rc = 0;
	pid_t child[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
		perror("socketpair");
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (child[i] < 0) {
			perror("fork");
			exit(1);
		}
		if (child[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(pair[1 - i]);
			exit(run(m, provider, pair[i], i == 1, windows));
		}
	}
	close(pair[0]);
	close(pair[1]);
	for (int i = 0; i < 2; i++) {
		waitpid(child[i], &status[i], 0);
		if (WIFEXITED(status[i]) && WEXITSTATUS(status[i]) == 77)
			fprintf(stderr, "bench_fabric_compute: no provider %s here\n", provider);
		else if (status[i])
			rc = 1;
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--mode NAME]");
	bool found = false;
	int rc = 0;

	for (unsigned p = 0; p < fabric_provider_count; p++)
		for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
			if (o.mode && strcmp(o.mode, modes[i].name) != 0)
				continue;
			found = true;
			rc |= run_mode(&modes[i], fabric_providers[p], o.quick ? 3 : WINDOWS);
		}
	if (!found)
		fprintf(stderr, "bench_fabric_compute: no mode %s\n", o.mode);
	return rc || !found;
}
