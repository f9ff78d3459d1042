/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank sends to itself: Irecv + Isend + MPI_Continueall + MPI_Wait on the continuation request, against
 * Irecv + Isend + MPI_Waitall. --mode count,CASE,ROUNDS is for counting instructions (bench.h). CASE is pair or
 * waitall.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/mpi.h>

#include "bench.h"

#define ROUNDS 256u /* a batch: some 100 µs */

static uint64_t ran;
static MPI_Request cr = MPI_REQUEST_NULL;

static void callback(MPI_Status *statuses, void *data)
{
	(void)statuses;
	(void)data;
	ran++;
}

static void post(int in[1], int out[1], MPI_Request requests[2])
{
	MPI_Irecv(in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[0]);
	MPI_Isend(out, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[1]);
}

static double batch_contd(unsigned n)
{
	uint64_t begin = bench_now();
	MPI_Request requests[2];
	int in, out = 1;

	for (unsigned r = 0; r < n; r++) {
		post(&in, &out, requests);
		MPI_Continueall(2, requests, callback, NULL, MPI_STATUSES_IGNORE, cr);
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

static double batch_waitall(unsigned n)
{
	uint64_t begin = bench_now();
	MPI_Request requests[2];
	int in, out = 1;

	for (unsigned r = 0; r < n; r++) {
		post(&in, &out, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	return (double)(bench_now() - begin) / n;
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple] [--mode count,CASE,ROUNDS]");
	unsigned pairs = o.quick ? 500 : 10000;
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level;
	struct bench_line line = {.bench = "bench_mpi_self_pair",
				  .name = multiple ? "multiple" : "single",
				  .unit = "ratio",
				  .has_target = true,
				  .target = multiple ? 1.0 : 1.15,
				  .direction = "max"};
	struct bench_pairs before, p;

	MPI_Init_thread(&argc, &argv, want, &level);
	if (level < want) {
		fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
		return 1;
	}
	/* The cost of Waitall before contd starts: contd's presence must not make it slower. */
	bench_pairs_init(&before, 2000);
	for (unsigned i = 0; i < 4000 && !o.mode; i++) {
		double a = batch_waitall(ROUNDS);

		if (i >= 2000) /* the first ones warm up processor and caches */
			bench_pairs_add(&before, a, 1);
	}
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	if (o.mode) {
		const struct bench_counted counted[] = {{"pair", batch_contd}, {"waitall", batch_waitall}};
		int rc = bench_count(o.mode, counted, 2);

		MPI_Request_free(&cr);
		MPI_Finalize();
		return rc;
	}
	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs; i++) {
		double a = batch_contd(ROUNDS);

		bench_pairs_add(&p, a, batch_waitall(ROUNDS));
	}
	line.figure = bench_pairs_ratio(&p);
	bench_print(&line, "\"contd_ns\":%.1f,\"waitall_ns\":%.1f,\"waitall_without_contd_ns\":%.1f", bench_pairs_a(&p),
		    bench_pairs_b(&p), bench_pairs_a(&before));
	MPI_Request_free(&cr);
	MPI_Finalize();
	if (ran != (uint64_t)pairs * ROUNDS) {
		fprintf(stderr, "%llu continuations ran, not %llu\n", (unsigned long long)ran,
			(unsigned long long)pairs * ROUNDS);
		return 1;
	}
	return 0;
}
