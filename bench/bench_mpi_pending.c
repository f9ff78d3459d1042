/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that computes in a region, with a few receives pending and with a million more on another communicator, in
 * turns: latency of a message, time in the handler a tick, and the interval between ticks that comes of it. The million
 * is completed and posted again in each round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <contd/mpi.h>

#include "bench.h"

#define TAG_DATA 1
#define TAG_ORDER 2
#define LEAD_NS 1000000u
#define MOST 1024u /* messages in a phase */

struct order {
	uint64_t begin;
	uint64_t messages, spacing; /* then that many messages */
	uint64_t flood;             /* else: so many of the million */
	uint64_t end;               /* else: that is all */
};

struct arrival {
	uint64_t sent, seen;
};

struct side {
	double *latency, *tick, *interval;
	size_t n, rounds;
};

static MPI_Comm other;
static MPI_Request cr = MPI_REQUEST_NULL, cr_many = MPI_REQUEST_NULL;
static struct arrival arrivals[MOST];
static volatile uint64_t sink;

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void sender(void)
{
	uint64_t seed = 3;

	for (;;) {
		struct order o;
		MPI_Request request;
		uint64_t at;
		int done = 0;

		MPI_Irecv(&o, sizeof(o), MPI_BYTE, 0, TAG_ORDER, MPI_COMM_WORLD, &request);
		while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
			sleep_until(bench_now() + 200000);
		if (o.end)
			return;
		for (uint64_t i = 0; i < o.flood; i++)
			MPI_Send(&i, sizeof(i), MPI_BYTE, 0, TAG_DATA, other);
		at = o.begin;
		for (uint64_t i = 0; i < o.messages; i++) {
			uint64_t now;

			at += (uint64_t)((0.5 + bench_random(&seed)) * (double)o.spacing);
			sleep_until(at);
			now = bench_now();
			MPI_Send(&now, sizeof(now), MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD);
		}
	}
}

static void order(struct order o)
{
	MPI_Send(&o, sizeof(o), MPI_BYTE, 1, TAG_ORDER, MPI_COMM_WORLD);
}

static void arrived(MPI_Status *status, void *data)
{
	struct arrival *a = data;

	(void)status;
	__atomic_store_n(&a->seen, bench_now(), __ATOMIC_RELAXED);
}

static void counted(MPI_Status *status, void *data)
{
	(void)status;
	++*(uint64_t *)data;
}

static void compute_until(uint64_t end)
{
	uint64_t x = sink | 1;

	contd_compute_begin();
	while (bench_now() < end)
		for (unsigned i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	contd_compute_end();
	sink = x;
}

static void phase(struct side *s, uint64_t messages)
{
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	struct order o = {.messages = messages, .spacing = 1000000};

	for (uint64_t i = 0; i < messages; i++) {
		MPI_Request request;

		arrivals[i].seen = 0;
		MPI_Irecv(&arrivals[i].sent, sizeof(uint64_t), MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD, &request);
		MPI_Continue(&request, arrived, &arrivals[i], MPI_STATUS_IGNORE, cr);
	}
	/* The ticks' interval is to be found before. */
	compute_until(bench_now() + 20000000);
	bench_check(contd_stats_get(&before), "contd_stats_get");
	o.begin = bench_now() + LEAD_NS;
	order(o);
	compute_until(o.begin + (messages + messages / 8) * o.spacing);
	bench_check(contd_stats_get(&after), "contd_stats_get");
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	for (uint64_t i = 0; i < messages; i++)
		s->latency[s->n++] = (double)(arrivals[i].seen - arrivals[i].sent);
	s->tick[s->rounds] = after.ticks > before.ticks ? (double)(after.handler_ns - before.handler_ns) /
								  (double)(after.ticks - before.ticks)
							: 0;
	s->interval[s->rounds++] = (double)before.tick_ns;
}

static void side_init(struct side *s, size_t rounds, size_t messages)
{
	s->latency = malloc(rounds * messages * sizeof(double));
	s->tick = malloc(rounds * sizeof(double));
	s->interval = malloc(rounds * sizeof(double));
	if (!s->latency || !s->tick || !s->interval)
		exit(1);
}

static void report(struct side *few, struct side *many, size_t pending, double post_ns, double complete_ns)
{
	struct bench_line line = {.bench = "bench_mpi_pending",
				  .name = "latency",
				  .unit = "ratio",
				  .has_target = true,
				  .target = 1.2,
				  .direction = "max"};

	line.figure = bench_median(many->latency, many->n) / bench_median(few->latency, few->n);
	bench_print(&line,
		    "\"pending\":%zu,\"many_us\":%.1f,\"many_p99_us\":%.1f,\"few_us\":%.1f,\"few_p99_us\":%.1f,"
		    "\"samples\":%zu,\"post_ns\":%.0f,\"complete_ns\":%.0f",
		    pending, bench_median(many->latency, many->n) * 1e-3,
		    bench_quantile(many->latency, many->n, 0.99) * 1e-3, bench_median(few->latency, few->n) * 1e-3,
		    bench_quantile(few->latency, few->n, 0.99) * 1e-3, many->n, post_ns, complete_ns);
	line.name = "tick";
	line.figure = bench_median(many->tick, many->rounds) / bench_median(few->tick, few->rounds);
	bench_print(&line, "\"many_ns\":%.0f,\"few_ns\":%.0f,\"many_interval_us\":%.1f,\"few_interval_us\":%.1f",
		    bench_median(many->tick, many->rounds), bench_median(few->tick, few->rounds),
		    bench_median(many->interval, many->rounds) * 1e-3, bench_median(few->interval, few->rounds) * 1e-3);
}

static void receiver(bool quick)
{
	size_t pending = quick ? 100000 : 1000000, rounds = quick ? 1 : 3, messages = quick ? 100 : 800;
	uint64_t *buffer = malloc(pending * sizeof(*buffer)), ran = 0;
	double post[3], complete[3];
	struct side few = {0}, many = {0};
	MPI_Info info;

	if (!buffer)
		exit(1);
	side_init(&few, rounds, messages);
	side_init(&many, rounds, messages);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	MPI_Continue_init(info, &cr);
	MPI_Continue_init(info, &cr_many);
	MPI_Info_free(&info);
	for (size_t r = 0; r < rounds; r++) {
		uint64_t t;

		phase(&few, messages);
		t = bench_now();
		for (size_t i = 0; i < pending; i++) {
			MPI_Request request;

			MPI_Irecv(&buffer[i], sizeof(buffer[i]), MPI_BYTE, 1, TAG_DATA, other, &request);
			MPI_Continue(&request, counted, &ran, MPI_STATUS_IGNORE, cr_many);
		}
		post[r] = (double)(bench_now() - t) / (double)pending;
		phase(&many, messages);
		t = bench_now();
		order((struct order){.flood = pending});
		MPI_Wait(&cr_many, MPI_STATUS_IGNORE);
		complete[r] = (double)(bench_now() - t) / (double)pending;
	}
	order((struct order){.end = 1});
	if (ran != rounds * pending) {
		fprintf(stderr, "bench_mpi_pending: %llu ran, not %zu\n", (unsigned long long)ran, rounds * pending);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	report(&few, &many, pending, bench_median(post, rounds), bench_median(complete, rounds));
	MPI_Request_free(&cr);
	MPI_Request_free(&cr_many);
	free(buffer);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	int level, rank, size;

	setenv("CONTD_OVERHEAD_PERCENT", "10", 0); /* ticks often enough for their cost to show */
	setenv("CONTD_BELL", "0", 0);              /* and nothing but ticks */
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fputs("bench_mpi_pending: needs 2 ranks\n", stderr);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	if (rank == 0)
		receiver(o.quick);
	else
		sender();
	MPI_Comm_free(&other);
	MPI_Finalize();
	return 0;
}
