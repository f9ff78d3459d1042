/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver that computes and calls nothing. Rank 0 sends at random times, rank 1 computes in plain loops.
 *
 *   --mode region  MPI_THREAD_FUNNELED, compute regions
 *   --mode daemon  MPI_THREAD_MULTIPLE, no regions: the info key alone
 *
 * latency: from before the send to the callback, both by CLOCK_MONOTONIC, which is the same for all processes of a
 *          machine. Its median is told as a share of the interval at which contd looks: a message arrives anywhere in
 *          it, so that half of it is what one waits for, and the rest is what looking takes.
 * loss:    the receiver computes for windows of the same length, in turns with and without receives pending. What share
 *          of its work it does not get done while contd looks for messages, beside the overhead that was configured.
 *          Pairs of windows in which another program took the processor do not count.
 *
 * mpirun binds each of two ranks to one core, where the daemon takes the core from the computation: such a run is told
 * as "1 cpu". With --bind-to none they have two.
 *
 * Interval: regions are interrupted by the thread's own timer, and contd_stats_get() tells its interval. The daemon's
 * is counted: how often the thread named "contd" went to sleep while receives were pending.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <contd/mpi.h>

#include "bench.h"

#define WINDOW_NS 25000000u /* how long the receiver computes at a time */
#define MESSAGES 8u         /* in a window; their latency is measured */
#define FIRST_NS 500000u    /* when in the window they are sent, so that the last is usually seen inside */
#define LAST_NS 21000000u
#define AFTER_NS 26000000u /* one more, which keeps contd looking till the end of the window */
#define TAG_DATA 1
#define TAG_WINDOW 2

enum { NEXT = 1, END = 2 };

struct message {
	uint64_t sent;
	uint64_t window;
};

/* Receives are posted window by window; a callback writes its own entry only. */
struct arrival {
	struct message message;
	uint64_t seen;
};

/* ------------------------------------------------------------------------------- sender --- */

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

/* Asleep in between: a sender that spins would take the second core from the daemon. */
static void wait_for_order(int *order)
{
	MPI_Request request;
	int done = 0;

	MPI_Irecv(order, 1, MPI_INT, 1, TAG_WINDOW, MPI_COMM_WORLD, &request);
	for (;;) {
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (done)
			return;
		sleep_until(bench_now() + 200000);
	}
}

static void sender(void)
{
	uint64_t seed = 7, window = 0;

	for (;;) {
		uint64_t begin, at[MESSAGES + 1];
		int order;

		wait_for_order(&order);
		if (order == END)
			return;
		begin = bench_now();
		for (unsigned i = 0; i < MESSAGES; i++)
			at[i] = begin + FIRST_NS + (uint64_t)(bench_random(&seed) * (LAST_NS - FIRST_NS));
		at[MESSAGES] = begin + AFTER_NS;
		qsort(at, MESSAGES, sizeof(at[0]), by_time);
		for (unsigned i = 0; i <= MESSAGES; i++) {
			struct message m;

			sleep_until(at[i]);
			m.window = window;
			m.sent = bench_now();
			MPI_Send(&m, sizeof(m), MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD);
		}
		window++;
	}
}

/* ----------------------------------------------------------------------------- receiver --- */

static volatile uint64_t sink;

static void arrived(MPI_Status *status, void *data)
{
	struct arrival *a = data;

	(void)status;
	__atomic_store_n(&a->seen, bench_now(), __ATOMIC_RELAXED);
}

/* Units of work done until then. A unit takes about a microsecond. */
static uint64_t compute_until(uint64_t end)
{
	uint64_t units = 0, x = sink | 1;

	while (bench_now() < end) {
		for (unsigned i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		units++;
	}
	sink = x;
	return units;
}

static int cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
}

/* Processor time of this thread, or, where they share one processor, of the daemon too. */
static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(cpus() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Both halves of a window; between them, outside regions, contd may be asked for the interval. *disturbed: another
 * program has had the processor for more than 1 % of the window.
 */
static uint64_t window(bool region, double *tick_ns, bool *disturbed)
{
	uint64_t cpu = cpu_time();
	struct contd_stats stats = {.size = sizeof(stats)};
	uint64_t begin = bench_now(), units = 0;

	for (unsigned half = 1; half <= 2; half++) {
		if (region)
			contd_compute_begin();
		units += compute_until(begin + half * (WINDOW_NS / 2));
		if (region)
			contd_compute_end();
		if (half == 1) {
			/* On both sides of the comparison: the call takes time too. */
			bench_check(contd_stats_get(&stats), "contd_stats_get");
			*tick_ns = (double)stats.tick_ns;
		}
	}
	cpu = cpu_time() - cpu;
	if (bench_now() - begin > cpu + WINDOW_NS / 100)
		*disturbed = true;
	return units;
}

static bool file_of(const char *tid, const char *name, char *text, size_t bytes)
{
	char path[320];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fread(text, 1, bytes - 1, f);
	text[n] = '\0';
	fclose(f);
	return n > 0;
}

/* How often contd's daemon thread has gone to sleep: voluntary_ctxt_switches in proc(5). */
static uint64_t daemon_naps(void)
{
	static char daemon_tid[32];
	char text[4096], *line;

	if (!daemon_tid[0]) {
		DIR *dir = opendir("/proc/self/task");
		struct dirent *d;

		while (dir && (d = readdir(dir)) != NULL)
			if (d->d_name[0] != '.' && file_of(d->d_name, "comm", text, sizeof(text)) &&
			    strcmp(text, "contd\n") == 0)
				snprintf(daemon_tid, sizeof(daemon_tid), "%.31s", d->d_name);
		if (dir)
			closedir(dir);
	}
	if (!daemon_tid[0] || !file_of(daemon_tid, "status", text, sizeof(text)))
		return 0;
	line = strstr(text, "\nvoluntary_ctxt_switches:");
	return line ? strtoull(line + strlen("\nvoluntary_ctxt_switches:"), NULL, 10) : 0;
}

static void post(struct arrival *arrivals, MPI_Request cr)
{
	for (unsigned i = 0; i <= MESSAGES; i++) {
		MPI_Request request;

		MPI_Irecv(&arrivals[i].message, sizeof(struct message), MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD,
			  &request);
		MPI_Continue(&request, arrived, &arrivals[i], MPI_STATUS_IGNORE, cr);
	}
}

struct figures {
	struct bench_pairs all;  /* units with and without receives pending */
	struct bench_pairs work; /* of these, undisturbed ones */
	double *latency, *interval;
	size_t latencies, intervals;
	size_t late; /* seen after the window only */
};

/* One window with receives pending, one without; which comes first alternates. */
static void pair(struct figures *f, MPI_Request *cr, bool region, bool pending_first)
{
	struct arrival arrivals[MESSAGES + 1] = {0};
	double units[2] = {0}, tick;
	bool disturbed = false;
	int order = NEXT;

	for (unsigned i = 0; i < 2; i++) {
		bool pending = (i == 0) == pending_first;
		uint64_t begin, naps, end;

		if (!pending) {
			units[0] = (double)window(region, &tick, &disturbed);
			continue;
		}
		post(arrivals, *cr);
		MPI_Send(&order, 1, MPI_INT, 0, TAG_WINDOW, MPI_COMM_WORLD);
		naps = region ? 0 : daemon_naps();
		begin = bench_now();
		units[1] = (double)window(region, &tick, &disturbed);
		end = bench_now();
		if (!region) {
			naps = daemon_naps() - naps;
			tick = naps ? (double)(end - begin) / (double)naps : 0;
		}
		if (tick > 0)
			f->interval[f->intervals++] = tick;
		MPI_Wait(cr, MPI_STATUS_IGNORE);
		for (unsigned m = 0; m < MESSAGES; m++) {
			f->latency[f->latencies++] = (double)(arrivals[m].seen - arrivals[m].message.sent);
			f->late += arrivals[m].seen > end;
		}
	}
	bench_pairs_add(&f->all, units[1], units[0]);
	if (!disturbed)
		bench_pairs_add(&f->work, units[1], units[0]);
}

static void report(struct figures *f, bool region, double overhead)
{
	char name[2][64];
	struct contd_stats s = {.size = sizeof(s)};
	struct bench_line line = {.bench = "bench_mpi_compute", .direction = "max"};
	const struct bench_pairs *work;
	double interval = bench_median(f->interval, f->intervals), longest, shortest;
	double median = bench_median(f->latency, f->latencies), p99 = bench_quantile(f->latency, f->latencies, 0.99);

	shortest = bench_quantile(f->interval, f->intervals, 0);
	longest = bench_quantile(f->interval, f->intervals, 1);
	bench_check(contd_stats_get(&s), "contd_stats_get");
	for (unsigned i = 0; i < 2; i++)
		snprintf(name[i], sizeof(name[i]), "%s %s%s", region ? "region" : "daemon", i ? "loss" : "latency",
			 cpus() == 1 ? " (1 cpu)" : "");
	line.name = name[0];
	line.unit = "ratio";
	line.has_target = true;
	line.target = 0.6;
	line.figure = interval > 0 ? median / interval : 1e9;
	bench_print(&line,
		    "\"median_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"interval_us\":%.1f,"
		    "\"interval_min_us\":%.1f,\"interval_max_us\":%.1f,\"messages\":%zu,\"late\":%zu",
		    median * 1e-3, bench_quantile(f->latency, f->latencies, 0.9) * 1e-3, p99 * 1e-3,
		    bench_quantile(f->latency, f->latencies, 1) * 1e-3, interval * 1e-3, shortest * 1e-3,
		    longest * 1e-3, f->latencies, f->late);
	line.name = name[1];
	line.unit = "percent";
	line.target = overhead + 0.5;
	/* Where hardly a window is undisturbed, no pair tells much: then all of them, and the counts show it. */
	work = f->work.n >= f->all.n / 10 ? &f->work : &f->all;
	line.figure = 100 * (1 - bench_pairs_ratio(work));
	bench_print(&line,
		    "\"overhead_percent\":%.2f,\"points_over\":%.2f,\"pairs\":%zu,\"undisturbed\":%zu,\"all_percent\":%"
		    ".2f,\"tick_cost_ns\":%" PRIu64 ",\"ticks\":%" PRIu64 ",\"overruns\":%" PRIu64
		    ",\"notifications\":%" PRIu64 ",\"run_region\":%" PRIu64 ",\"run_handler\":%" PRIu64
		    ",\"run_daemon\":%" PRIu64 ",\"run\":%" PRIu64 ",\"handler_us\":%" PRIu64 ",\"lost_us\":%" PRIu64,
		    overhead, line.figure - overhead, f->all.n, f->work.n, 100 * (1 - bench_pairs_ratio(&f->all)),
		    s.tick_cost_ns, s.ticks, s.overruns, s.notifications, s.run_region, s.run_handler, s.run_daemon,
		    s.run, s.handler_ns / 1000, s.lost_ns / 1000);
}

static void receiver(bool region, bool quick)
{
	unsigned pairs = quick ? 20 : 240;
	const char *env = getenv("CONTD_OVERHEAD_PERCENT");
	MPI_Request cr = MPI_REQUEST_NULL;
	struct figures f = {.latency = malloc(pairs * MESSAGES * sizeof(double)),
			    .interval = malloc(pairs * sizeof(double))};
	MPI_Info info;
	int order = END;

	if (!f.latency || !f.interval)
		exit(1);
	bench_pairs_init(&f.all, pairs);
	bench_pairs_init(&f.work, pairs);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	for (unsigned i = 0; i < pairs; i++)
		pair(&f, &cr, region, i % 2 == 0);
	MPI_Send(&order, 1, MPI_INT, 0, TAG_WINDOW, MPI_COMM_WORLD);
	report(&f, region, env ? strtod(env, NULL) : 2);
	MPI_Request_free(&cr);
	bench_pairs_fini(&f.all);
	bench_pairs_fini(&f.work);
	free(f.latency);
	free(f.interval);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--mode region|daemon]");
	bool region = !o.mode || strcmp(o.mode, "region") == 0;
	int want = region ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, level, rank, size;

	if (!region && strcmp(o.mode, "daemon") != 0) {
		fprintf(stderr, "%s: --mode is region or daemon\n", argv[0]);
		return 2;
	}
	MPI_Init_thread(&argc, &argv, want, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (level < want || size != 2) {
		fprintf(stderr, "%s: needs 2 ranks and thread level %d (got %d and %d)\n", argv[0], want, size, level);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0)
		sender();
	else
		receiver(region, o.quick);
	MPI_Finalize();
	return 0;
}
