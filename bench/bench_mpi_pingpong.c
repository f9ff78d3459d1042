/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks toss a small message to and fro: driven by continuations (the callback of a receive sends the answer),
 * against Irecv + Wait. Both send first and post afterwards, when the other rank is already at work.
 *
 *   Wait, Test       the callback posts the next receive and attaches itself to it, while the main thread waits for the
 *                    continuation request, or tests it
 *   revised, chain   the same with MPIX_Continue and MPI_Wait
 *   revised, round   the main thread posts each receive: MPI_Start, Irecv, MPIX_Continue, MPI_Wait
 *
 * The nanoseconds say more than the ratio: a message between cores that are far apart takes three times as long as one
 * between close ones, and a virtual machine may have either, from one run to the next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/mpi.h>

#include "bench.h"

#define ROUNDS 100 /* there and back, a batch: some 50 µs */
#define TAG 7

static int rank, peer;
static MPI_Request cr = MPI_REQUEST_NULL, revised = MPI_REQUEST_NULL;

/* Rank 0 numbers the messages, rank 1 sends them back; each checks what it gets. */
static long in, number;
static int left; /* messages that are to be received in this batch */
static unsigned long wrong, ran;

static void post(MPI_Request *request)
{
	MPI_Irecv(&in, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD, request);
}

static void serve(void)
{
	if (rank == 0)
		MPI_Send(&number, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD);
}

/* To what has been received. */
static void answer(void)
{
	wrong += in != number;
	left--;
	number += rank == 0;
	if (rank == 1 || left)
		MPI_Send(&number, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD);
	number += rank == 1;
}

/* ----------------------------------------------------------------------------------------------------- variants --- */

static void callback(MPI_Status *status, void *data);

static void post_and_attach(void)
{
	MPI_Request request;

	post(&request);
	MPI_Continue(&request, callback, NULL, MPI_STATUS_IGNORE, cr);
}

static void callback(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	ran++;
	answer();
	if (left)
		post_and_attach();
}

static void by_continuations_wait(void)
{
	post_and_attach();
	serve();
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
}

static void by_continuations_test(void)
{
	int done = 0;

	post_and_attach();
	serve();
	while (!done)
		MPI_Test(&cr, &done, MPI_STATUS_IGNORE);
}

static int chained(int rc, void *data);

static void post_and_chain(void)
{
	MPI_Request request;

	post(&request);
	MPIX_Continue(&request, chained, NULL, 0, MPI_STATUS_IGNORE, revised);
}

static int chained(int rc, void *data)
{
	(void)data;
	ran += rc == MPI_SUCCESS;
	answer();
	if (left)
		post_and_chain();
	return MPI_SUCCESS;
}

static void by_revised_chain(void)
{
	MPI_Start(&revised);
	post_and_chain();
	serve();
	MPI_Wait(&revised, MPI_STATUS_IGNORE);
}

static int one_round(int rc, void *data)
{
	(void)data;
	ran += rc == MPI_SUCCESS;
	answer();
	return MPI_SUCCESS;
}

static void by_revised_rounds(void)
{
	MPI_Request request;

	MPI_Start(&revised);
	post(&request);
	MPIX_Continue(&request, one_round, NULL, 0, MPI_STATUS_IGNORE, revised);
	serve();
	for (;;) {
		MPI_Wait(&revised, MPI_STATUS_IGNORE);
		if (!left)
			return;
		MPI_Start(&revised);
		post(&request);
		MPIX_Continue(&request, one_round, NULL, 0, MPI_STATUS_IGNORE, revised);
	}
}

static void by_wait(void)
{
	MPI_Request request;

	post(&request);
	serve();
	for (;;) {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		answer();
		if (!left)
			return;
		post(&request);
	}
}

/* ns for one way. */
static double batch(void (*variant)(void))
{
	uint64_t begin = bench_now();

	left = ROUNDS;
	variant();
	return (double)(bench_now() - begin) / (2 * ROUNDS);
}

static const struct variant {
	const char *name;
	void (*run)(void);
	double target;
} variants[] = {
	{"Wait", by_continuations_wait, 1.05},
	{"Test", by_continuations_test, 1.03},
	{"revised, chain", by_revised_chain, 1.03},
	{"revised, round", by_revised_rounds, 1.03},
};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* --------------------------------------------------------------------------------------------------------- main --- */

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple]");
	unsigned pairs = o.quick ? 500 : 10000, before_pairs = pairs / 4;
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level, size;
	unsigned long wrong_all;
	struct bench_pairs before, p[VARIANTS];

	MPI_Init_thread(&argc, &argv, want, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (level < want || size != 2) {
		fprintf(stderr, "bench_mpi_pingpong: needs 2 ranks and the thread level that was asked for\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	peer = 1 - rank;
	/* The cost of Wait before contd starts: contd's presence must not make it slower. */
	bench_pairs_init(&before, before_pairs);
	for (unsigned i = 0; i < 2 * before_pairs; i++) {
		double a = batch(by_wait);

		if (i >= before_pairs) /* the first ones warm up */
			bench_pairs_add(&before, a, 1);
	}
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &revised);
	for (size_t v = 0; v < VARIANTS; v++)
		bench_pairs_init(&p[v], pairs);
	for (unsigned i = 0; i < pairs; i++) {
		double wait = 0;

		for (size_t v = 0; v < VARIANTS; v++) {
			double a = batch(variants[v].run);

			if (v % 2 == 0) /* between two of them */
				wait = batch(by_wait);
			bench_pairs_add(&p[v], a, wait);
		}
	}
	MPI_Request_free(&cr);
	MPI_Request_free(&revised);
	wrong += ran != 1ul * VARIANTS * pairs * ROUNDS;
	MPI_Reduce(&wrong, &wrong_all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank != 0)
		return wrong != 0;

	for (size_t v = 0; v < VARIANTS; v++) {
		char name[64];

		snprintf(name, sizeof(name), "%s, %s", multiple ? "multiple" : "single", variants[v].name);
		bench_print(&(struct bench_line){.bench = "bench_mpi_pingpong",
						 .name = name,
						 .figure = bench_pairs_ratio(&p[v]),
						 .unit = "ratio",
						 .has_target = true,
						 .target = variants[v].target,
						 .direction = "max"},
			    "\"contd_ns\":%.1f,\"wait_ns\":%.1f,\"wait_without_contd_ns\":%.1f", bench_pairs_a(&p[v]),
			    bench_pairs_b(&p[v]), bench_pairs_a(&before));
	}
	if (wrong_all) {
		fprintf(stderr, "bench_mpi_pingpong: %lu messages were wrong or without continuation\n", wrong_all);
		return 1;
	}
	return 0;
}
