/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of the revised interface (MPIX_*) for one rank that sends to itself. Each case is compared with MPI's own
 * calls Irecv, Isend and MPI_Waitall:
 *
 *   pair          MPI_Start of the CR, Irecv, Isend, MPIX_Continueall, MPI_Wait for the CR
 *   complete      MPIX_Continue on a receive that is complete, its callback included
 *   pending       a receive is attached and waits: from MPI_Send until its continuation has run and MPI_Wait returned
 *   whole         the same with MPI_Start, Irecv and MPIX_Continue
 *   start_wait    MPI_Start of a CR with nothing registered, and MPI_Wait for it: nanoseconds
 *
 * --mode count,CASE,ROUNDS is for counting instructions (bench.h); CASE may be waitall, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/mpi.h>

#include "bench.h"

#define ROUNDS 256u /* a batch: some 50 µs */
#define TAG 7

static uint64_t ran;
static MPI_Request cr = MPI_REQUEST_NULL;
static double clock_ns; /* what reading the clock twice costs */

static int callback(int rc, void *data)
{
	(void)data;
	ran += rc == MPI_SUCCESS;
	return MPI_SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

static int in[ROUNDS], out = 1;

static void post(MPI_Request requests[2])
{
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[0]);
	MPI_Isend(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[1]);
}

/* Each runs n rounds and returns what one of them took, in ns. */
static double waitall(unsigned n)
{
	uint64_t begin = bench_now();
	MPI_Request requests[2];

	for (unsigned i = 0; i < n; i++) {
		post(requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

static double pair(unsigned n)
{
	uint64_t begin = bench_now();
	MPI_Request requests[2];

	for (unsigned i = 0; i < n; i++) {
		MPI_Start(&cr);
		post(requests);
		MPIX_Continueall(2, requests, callback, NULL, 0, MPI_STATUSES_IGNORE, cr);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

static double complete(unsigned n)
{
	static MPI_Request receives[ROUNDS];
	uint64_t taken = 0;

	for (unsigned done = 0; done < n; done += ROUNDS) {
		unsigned some = n - done < ROUNDS ? n - done : ROUNDS;
		uint64_t begin;

		for (unsigned i = 0; i < some; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receives[i]);
		for (unsigned i = 0; i < some; i++)
			MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF);
		MPI_Start(&cr);
		begin = bench_now();
		for (unsigned i = 0; i < some; i++)
			MPIX_Continue(&receives[i], callback, NULL, 0, MPI_STATUS_IGNORE, cr);
		taken += bench_now() - begin;
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	}
	return (double)taken / n;
}

static double pending(unsigned n)
{
	double taken = 0;

	for (unsigned i = 0; i < n; i++) {
		MPI_Request request;
		uint64_t begin;

		MPI_Start(&cr);
		MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
		MPIX_Continue(&request, callback, NULL, 0, MPI_STATUS_IGNORE, cr);
		begin = bench_now();
		MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
		taken += (double)(bench_now() - begin) - clock_ns;
	}
	return taken / n;
}

static double whole(unsigned n)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < n; i++) {
		MPI_Request request;

		MPI_Start(&cr);
		MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &request);
		MPIX_Continue(&request, callback, NULL, 0, MPI_STATUS_IGNORE, cr);
		MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

static double start_wait(unsigned n)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < n; i++) {
		MPI_Start(&cr);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

struct a_case {
	const char *name;
	double (*run)(unsigned n);
	unsigned continuations; /* a round */
	double target[2];       /* single, multiple */
	const char *unit;
};
static const struct a_case cases[] = {
	{"pair", pair, 1, {1.10, 1.0}, "ratio"},       {"complete", complete, 1, {0.25, 0.25}, "ratio"},
	{"pending", pending, 1, {0.8, 0.8}, "ratio"},  {"whole", whole, 1, {0, 0}, "ratio"},
	{"start_wait", start_wait, 0, {20, 20}, "ns"},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* --------------------------------------------------------------------------------------------------------- main --- */

static void measure_clock(void)
{
	double v[4001];

	for (int i = 0; i < 4001; i++) {
		uint64_t begin = bench_now();

		v[i] = (double)(bench_now() - begin);
	}
	clock_ns = bench_median(v, 4001);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple] [--mode count,CASE,ROUNDS]");
	unsigned turns = o.quick ? 200 : 4000;
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level, rc = 0;
	struct bench_pairs before, p[CASES];
	uint64_t expected = 0;

	MPI_Init_thread(&argc, &argv, want, &level);
	if (level < want) {
		fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
		return 1;
	}
	measure_clock();
	/* MPI_Waitall before contd is there: contd's presence must not make it slower. */
	bench_pairs_init(&before, turns);
	for (unsigned i = 0; i < 2 * turns && !o.mode; i++) {
		double a = waitall(ROUNDS);

		if (i >= turns) /* the first ones warm up processor and caches */
			bench_pairs_add(&before, a, 1);
	}
	MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr);
	if (o.mode) {
		struct bench_counted counted[CASES + 1] = {{"waitall", waitall}};

		for (size_t c = 0; c < CASES; c++)
			counted[c + 1] = (struct bench_counted){cases[c].name, cases[c].run};
		rc = bench_count(o.mode, counted, CASES + 1);
		MPI_Request_free(&cr);
		MPI_Finalize();
		return rc;
	}
	for (size_t c = 0; c < CASES; c++)
		bench_pairs_init(&p[c], turns);
	for (unsigned i = 0; i < turns; i++) {
		double base = waitall(ROUNDS);

		for (size_t c = 0; c < CASES; c++) {
			bench_pairs_add(&p[c], cases[c].run(ROUNDS), base);
			expected += ROUNDS * cases[c].continuations;
		}
	}
	for (size_t c = 0; c < CASES; c++) {
		bool ratio = strcmp(cases[c].unit, "ratio") == 0;
		char name[64];

		snprintf(name, sizeof(name), "%s, %s", multiple ? "multiple" : "single", cases[c].name);
		bench_print(&(struct bench_line){.bench = "bench_mpi_self_revised",
						 .name = name,
						 .figure = ratio ? bench_pairs_ratio(&p[c]) : bench_pairs_a(&p[c]),
						 .unit = cases[c].unit,
						 .has_target = cases[c].target[multiple] > 0,
						 .target = cases[c].target[multiple],
						 .direction = "max"},
			    "\"contd_ns\":%.1f,\"waitall_ns\":%.1f,\"waitall_without_contd_ns\":%.1f",
			    bench_pairs_a(&p[c]), bench_pairs_b(&p[c]), bench_pairs_a(&before));
	}
	MPI_Request_free(&cr);
	MPI_Finalize();
	if (ran != expected) {
		fprintf(stderr, "%llu continuations ran, not %llu\n", (unsigned long long)ran,
			(unsigned long long)expected);
		return 1;
	}
	return 0;
}
