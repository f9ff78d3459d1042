/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reduction of examples/treereduce in its two forms, each against MPI_Ireduce: with 1 and with many under way at a
 * time, in turns in one run, with MPI_THREAD_MULTIPLE for all three. A figure is the time of a reduction over that of
 * MPI_Ireduce; beside it, of the rank that has most, the threads right after the start and the memory that a batch
 * peaks at (VmHWM, reset before it; -1: it cannot be). Start it with 2 to 16 ranks.
 */
#include <stdio.h>
#include <stdlib.h>

#include <contd/mpi.h>

#include "../examples/treereduce/reduce.c"
#include "../examples/treereduce/self.h"
#include "bench.h"

#define MANY 64

enum way { WAY_THREAD, WAY_CONTINUATIONS, WAY_IREDUCE, WAYS };
static const char *const way_name[] = {"thread", "continuations", "ireduce"};

static int rank, size;
static MPI_Request cr, requests[MANY];
static int in[MANY], out[MANY];

/* proc(5): 5 resets the peak. */
static int peak_reset(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");
	int rc = f && fputs("5", f) >= 0 ? 0 : -1;

	return f && fclose(f) == 0 ? rc : -1;
}

static long most(long mine)
{
	long all = 0;

	MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static void start(enum way way, int i)
{
	int rc;

	in[i] = rank + i;
	out[i] = -1;
	if (way == WAY_IREDUCE)
		rc = MPI_Ireduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &requests[i]);
	else
		rc = tree_reduce(way == WAY_THREAD ? TREE_THREAD : TREE_CONTINUATIONS, MPI_COMM_WORLD, i, 0, in[i],
				 &out[i], cr, &requests[i]);
	if (rc)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Nanoseconds a reduction. threadsp may be NULL. */
static double batch(enum way way, int count, int rounds, long *threadsp)
{
	uint64_t begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = bench_now();
	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < count; i++)
			start(way, i);
		if (threadsp)
			*threadsp = proc_self("Threads:");
		MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
		for (int i = 0; i < count && rank == 0; i++)
			if (out[i] != size * (size - 1) / 2 + size * i)
				MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return (double)(bench_now() - begin) / rounds / count;
}

static void measure(enum way way, int count, unsigned pairs)
{
	int rounds = count == 1 ? 20 : 2;
	char name[64];
	struct bench_line line = {.bench = "bench_mpi_treereduce", .name = name, .unit = "ratio", .direction = "max"};
	struct bench_pairs p;
	long threads = 0, memory[2] = {-1, -1};

	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs + pairs / 4; i++) {
		double a = batch(way, count, rounds, NULL), b = batch(WAY_IREDUCE, count, rounds, NULL);

		if (i >= pairs / 4) /* the first ones warm up processor and caches */
			bench_pairs_add(&p, a, b);
	}
	for (int i = 0; i < 2; i++) {
		int reset = peak_reset();

		batch(i ? WAY_IREDUCE : way, count, rounds, i ? NULL : &threads);
		memory[i] = most(reset ? -1 : proc_self("VmHWM:"));
	}
	threads = most(threads);
	snprintf(name, sizeof(name), "%s, %d under way", way_name[way], count);
	line.figure = bench_pairs_ratio(&p);
	if (rank == 0)
		bench_print(&line,
			    "\"ranks\":%d,\"count\":%d,\"form_ns\":%.0f,\"ireduce_ns\":%.0f,\"threads\":%ld,"
			    "\"memory_kib\":%ld,\"ireduce_memory_kib\":%ld",
			    size, count, bench_pairs_a(&p), bench_pairs_b(&p), threads, memory[0], memory[1]);
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "bench_mpi_treereduce: MPI_THREAD_MULTIPLE is needed\n");
		MPI_Finalize();
		return 77;
	}
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	/* Memory that threads have touched is not given back at once: they come last. */
	for (int way = WAY_CONTINUATIONS; way >= WAY_THREAD; way--)
		for (int many = 0; many < 2; many++)
			measure((enum way)way, many ? MANY : 1, o.quick ? 10 : 200);
	MPI_Request_free(&cr);
	MPI_Finalize();
	return 0;
}
