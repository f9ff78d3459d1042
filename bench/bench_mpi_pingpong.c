/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks toss a small message to and fro: driven by continuations (the callback of a receive sends the answer, posts
 * the next receive and attaches itself to it, while the main thread waits for the continuation request), against
 * Irecv + Wait. Both send first and post afterwards, when the other rank is already at work.
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
static MPI_Request cr = MPI_REQUEST_NULL;

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

/* --------------------------------------------------------------------------------------------------------- main --- */

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple]");
	unsigned pairs = o.quick ? 500 : 10000, before_pairs = pairs / 4;
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level, size;
	unsigned long wrong_all;
	struct bench_pairs before, waiting, testing;

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
	bench_pairs_init(&waiting, pairs);
	bench_pairs_init(&testing, pairs);
	for (unsigned i = 0; i < pairs; i++) {
		double a = batch(by_continuations_wait), b = batch(by_wait);

		bench_pairs_add(&waiting, a, b);
		a = batch(by_continuations_test);
		bench_pairs_add(&testing, a, b);
	}
	MPI_Request_free(&cr);
	wrong += ran != 2ul * pairs * ROUNDS;
	MPI_Reduce(&wrong, &wrong_all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank != 0)
		return wrong != 0;

	bench_print(&(struct bench_line){.bench = "bench_mpi_pingpong",
					 .name = multiple ? "multiple, Wait" : "single, Wait",
					 .figure = bench_pairs_ratio(&waiting),
					 .unit = "ratio",
					 .has_target = true,
					 .target = 1.05,
					 .direction = "max"},
		    "\"contd_ns\":%.1f,\"wait_ns\":%.1f,\"wait_without_contd_ns\":%.1f", bench_pairs_a(&waiting),
		    bench_pairs_b(&waiting), bench_pairs_a(&before));
	bench_print(&(struct bench_line){.bench = "bench_mpi_pingpong",
					 .name = multiple ? "multiple, Test" : "single, Test",
					 .figure = bench_pairs_ratio(&testing),
					 .unit = "ratio",
					 .has_target = true,
					 .target = 1.05,
					 .direction = "max"},
		    "\"contd_ns\":%.1f,\"wait_ns\":%.1f", bench_pairs_a(&testing), bench_pairs_b(&testing));
	if (wrong_all) {
		fprintf(stderr, "bench_mpi_pingpong: %lu messages were wrong or without continuation\n", wrong_all);
		return 1;
	}
	return 0;
}
