/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0: slices with messages (on) and without (off) in turns, off on off on ... off.
 *
 * latency  from before the send to the clock reading in the callback, or after the Testsome that found it
 * loss     share of iterations not done: each on slice's rate against the mean of the rates in the off slices on its
 *          two sides, the median of these; nothing is pending in an off slice, and nothing of contd's runs
 * aside    processor time of the process's other threads while a slice is on, where they have a core of their own
 * cost     loss + aside
 *
 * Slices in which another program had the processor for more than 1 % do not count, unless hardly any would be left.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "curve.h"

#define CHUNK_NS 20000
#define LEAD_NS 500000u  /* rank 1 sleeps between looks for orders */
#define TAIL_NS 7000000u /* no message so late in a slice: it would be seen only after the slice */

struct curve_arrival curve_arrivals[CURVE_MOST + 1];
unsigned curve_arrival_count;

struct plan {
	uint64_t on_ns, off_ns;
	unsigned slices;
	uint64_t spacing_ns;
};

struct slice {
	double rate;   /* iterations a ns */
	double others; /* processor time of other threads, as a share of the slice */
	bool disturbed;
};

struct figures {
	double *latency;
	size_t samples, late;
	double *ratio, *aside, *interval_us;
	size_t pairs, undisturbed; /* undisturbed ones come first */
	size_t intervals;
};

static const struct curve_way *way;
static const struct curve_mode *mode;

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		fputs("curve: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

/* -------------------------------------------------------------------------------- slices --- */

typedef uint64_t compute_function(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end);

static struct slice slice(compute_function *compute, const struct curve_kernel *kernel, uint64_t chunk, uint64_t begin,
			  uint64_t length)
{
	struct slice s;
	uint64_t process = cpu_ns(CLOCK_PROCESS_CPUTIME_ID), thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t done = compute(kernel, chunk, begin + length), wall = bench_now() - begin, mine;

	thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - thread;
	process = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - process;
	mine = mode->spare ? thread : process;
	s.rate = (double)done / (double)wall;
	s.others = process > thread ? (double)(process - thread) / (double)wall : 0;
	s.disturbed = mine + wall / 100 < wall;
	return s;
}

static struct slice slice_off(const struct curve_kernel *kernel, uint64_t chunk, const struct plan *plan)
{
	return slice(curve_compute, kernel, chunk, bench_now(), plan->off_ns);
}

static struct slice slice_on(const struct curve_kernel *kernel, uint64_t chunk, const struct plan *plan,
			     struct figures *f)
{
	struct curve_order order = {.spacing = plan->spacing_ns};
	uint64_t end;
	struct slice s;
	double us;

	order.messages = (plan->on_ns - TAIL_NS) / plan->spacing_ns;
	/* The last spacings may be long ones. */
	if (order.messages > 4)
		order.messages -= order.messages / 32 + 1;
	if (order.messages > CURVE_MOST)
		order.messages = CURVE_MOST;
	curve_arrival_count = (unsigned)order.messages + 1;
	memset(curve_arrivals, 0, curve_arrival_count * sizeof(curve_arrivals[0]));
	way->post();
	order.begin = bench_now() + LEAD_NS;
	end = order.begin + plan->on_ns;
	order.last = end + LEAD_NS;
	MPI_Send(&order, sizeof(order), MPI_BYTE, 1, CURVE_TAG_ORDER, MPI_COMM_WORLD);
	/* The agent's start-up is not timed, nor is its work until then. */
	curve_compute(kernel, chunk, order.begin);
	s = slice(way->compute, kernel, chunk, bench_now(), end - bench_now());
	us = way->interval_us();
	if (us > 0)
		f->interval_us[f->intervals++] = us;
	way->finish();
	for (unsigned i = 0; i < order.messages; i++) {
		f->latency[f->samples++] = (double)(curve_arrivals[i].seen - curve_arrivals[i].message.sent);
		f->late += curve_arrivals[i].seen > end;
	}
	return s;
}

/* How many iterations take CHUNK_NS. */
static uint64_t chunk_of(const struct curve_kernel *kernel)
{
	double best = INFINITY;

	for (unsigned i = 0; i < 50; i++) {
		uint64_t begin = bench_now();
		double ns;

		kernel->run(1000);
		ns = (double)(bench_now() - begin) / 1000;
		best = ns < best ? ns : best;
	}
	return (uint64_t)(CHUNK_NS / best) + 1;
}

/* ------------------------------------------------------------------------------- figures --- */

/* Put the newest pair, and its slice's latencies, behind the last one that counts. */
static void figures_promote(struct figures *f, size_t newest)
{
	size_t each = f->samples / f->pairs, to = f->undisturbed++;

	for (size_t i = 0; i < each; i++) {
		double *a = &f->latency[newest * each + i], *b = &f->latency[to * each + i], swap = *a;

		*a = *b;
		*b = swap;
	}
	for (unsigned i = 0; i < 2; i++) {
		double *v = i ? f->aside : f->ratio, swap = v[newest];

		v[newest] = v[to];
		v[to] = swap;
	}
}

static void figures_add(struct figures *f, const struct slice *before, const struct slice *on,
			const struct slice *after)
{
	size_t newest = f->pairs++;

	f->ratio[newest] = on->rate / ((before->rate + after->rate) / 2);
	f->aside[newest] = mode->spare ? on->others : 0;
	if (!before->disturbed && !on->disturbed && !after->disturbed)
		figures_promote(f, newest);
}

static void print(const struct curve_options *o, const struct curve_kernel *kernel, struct figures *f,
		  const struct curve_result *result, double iteration_ns)
{
	char name[160];
	struct bench_line line = {.bench = "bench_mpi_curve", .name = name, .unit = "us", .direction = "max"};
	/* Where hardly a slice is undisturbed, no pair tells much: then all of them, and the counts show it. */
	size_t n = f->undisturbed >= f->pairs / 4 + 1 ? f->undisturbed : f->pairs, samples = f->samples / f->pairs * n;
	double loss = 100 * (1 - bench_median(f->ratio, n)), aside = 100 * bench_median(f->aside, n);
	double low = 100 * (1 - bench_quantile(f->ratio, n, 0.75)),
	       high = 100 * (1 - bench_quantile(f->ratio, n, 0.25));
	/* Half the width of what the median could be, from the spread of the pairs. */
	double doubt = n > 1 ? 1.25 * (high - low) / 1.35 / sqrt((double)n) : 100;

	snprintf(name, sizeof(name), "%s %s", mode->name, kernel->name);
	line.figure = bench_median(f->latency, samples) * 1e-3;
	bench_print(&line,
		    "\"series\":\"%s\",\"setting\":\"%s\",\"mode\":\"%s\",\"contd\":%s,\"kernel\":\"%s\",\"rate\":%.0f,"
		    "\"median_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f,\"samples\":%zu,\"late\":%zu,"
		    "\"cost_percent\":%.3f,\"loss_percent\":%.3f,\"loss_low\":%.3f,\"loss_high\":%.3f,\"doubt\":%.3f,"
		    "\"aside_percent\":%.3f,\"slices\":%zu,\"undisturbed\":%zu,\"send_us\":%.2f,\"send_p99_us\":%.2f,"
		    "\"interval_us\":%.1f,\"iteration_ns\":%.1f,\"cores\":%d",
		    mode->series, mode->setting, mode->name, curve_uses_contd(mode) ? "true" : "false", kernel->name,
		    o->rate, line.figure, bench_quantile(f->latency, samples, 0.99) * 1e-3,
		    bench_quantile(f->latency, samples, 0.999) * 1e-3, bench_quantile(f->latency, samples, 1) * 1e-3,
		    samples, f->late, loss + aside, loss, low, high, doubt, aside, f->pairs, f->undisturbed,
		    result->send_us, result->send_p99_us, bench_median(f->interval_us, f->intervals), iteration_ns,
		    curve_cores);
}

static void measure(const struct curve_options *o, const struct curve_kernel *kernel, const struct plan *plan)
{
	struct figures f = {.latency = allocate(plan->slices * CURVE_MOST, sizeof(double)),
			    .ratio = allocate(plan->slices, sizeof(double)),
			    .aside = allocate(plan->slices, sizeof(double)),
			    .interval_us = allocate(plan->slices, sizeof(double))};
	struct curve_order order = {0};
	struct curve_result result;
	struct slice before;
	uint64_t chunk;

	kernel->prepare();
	chunk = chunk_of(kernel);
	/* Once for nothing: threads get started, interrupt intervals get found. */
	slice_on(kernel, chunk, plan, &f);
	curve_bind(curve_core[0], mode->spare ? curve_core[curve_cores > 2 ? 2 : 1] : curve_core[0]);
	f.samples = f.late = f.intervals = 0;
	before = slice_off(kernel, chunk, plan);
	for (unsigned i = 0; i < plan->slices; i++) {
		struct slice on = slice_on(kernel, chunk, plan, &f), after = slice_off(kernel, chunk, plan);

		figures_add(&f, &before, &on, &after);
		before = after;
	}
	MPI_Send(&order, sizeof(order), MPI_BYTE, 1, CURVE_TAG_ORDER, MPI_COMM_WORLD);
	MPI_Recv(&result, sizeof(result), MPI_BYTE, 1, CURVE_TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	print(o, kernel, &f, &result, before.rate > 0 ? 1 / before.rate : 0);
	free(f.latency);
	free(f.ratio);
	free(f.aside);
	free(f.interval_us);
}

void curve_receiver(const struct curve_options *o)
{
	struct plan plan = {80000000, 35000000, 32, (uint64_t)(1e9 / o->rate)};
	struct curve_order end = {.end = 1};

	mode = o->mode;
	if (o->quick) {
		plan.on_ns = 40000000;
		plan.off_ns = 10000000;
		plan.slices = 3;
	}
	way = curve_uses_contd(mode) ? curve_way_contd(mode) : curve_way_polling(mode);
	way->start(mode);
	for (size_t i = 0; i < curve_kernel_count; i++)
		if (!o->kernel || strcmp(o->kernel, curve_kernels[i].name) == 0)
			measure(o, &curve_kernels[i], &plan);
	way->stop();
	MPI_Send(&end, sizeof(end), MPI_BYTE, 1, CURVE_TAG_ORDER, MPI_COMM_WORLD);
}
