/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of asking for the statuses of many requests: contd's queries (MPIX_Request_get_status_some, _all, _any)
 * against a loop of MPI_Request_get_status over the same array, and against MPI's own Testsome, where nothing is
 * complete; and, in the same array with its last entry complete, against the loop. One rank, receives from itself.
 */
#include <stdio.h>
#include <string.h>

#include <contd/mpi.h>

#include "bench.h"

#define COUNT 1024
#define TAG 7

static MPI_Request requests[COUNT];
static MPI_Status statuses[COUNT];
static int values[COUNT], indices[COUNT];
static unsigned wrong;
static int complete; /* entries, in this turn */

static void by_some(void)
{
	int n;

	MPIX_Request_get_status_some(COUNT, requests, &n, indices, statuses);
	wrong += n != complete;
}

static void by_all(void)
{
	int flag;

	MPIX_Request_get_status_all(COUNT, requests, &flag, statuses);
	wrong += flag != 0;
}

static void by_any(void)
{
	int flag, index;

	MPIX_Request_get_status_any(COUNT, requests, &index, &flag, statuses);
	wrong += flag != (complete != 0);
}

static void by_loop(void)
{
	int n = 0;

	for (int i = 0; i < COUNT; i++) {
		int flag;

		PMPI_Request_get_status(requests[i], &flag, &statuses[n]);
		if (flag)
			indices[n++] = i;
	}
	wrong += n != complete;
}

static void by_testsome(void)
{
	int n;

	PMPI_Testsome(COUNT, requests, &n, indices, statuses);
	wrong += n != 0;
}

static double time_of(void (*way)(void), unsigned times)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < times; i++)
		way();
	return (double)(bench_now() - begin) / times;
}

static void measure(const char *name, void (*ours)(void), void (*theirs)(void), double target, unsigned turns)
{
	struct bench_pairs p;

	bench_pairs_init(&p, turns);
	for (unsigned i = 0; i < turns + 5; i++) {
		double a = time_of(ours, 20), b = time_of(theirs, 20);

		if (i >= 5) /* the first ones warm up */
			bench_pairs_add(&p, a, b);
	}
	bench_print(&(struct bench_line){.bench = "bench_mpi_self_status",
					 .name = name,
					 .figure = bench_pairs_ratio(&p),
					 .unit = "ratio",
					 .has_target = target > 0,
					 .target = target,
					 .direction = "max"},
		    "\"requests\":%d,\"query_ns\":%.0f,\"beside_ns\":%.0f", COUNT, bench_pairs_a(&p),
		    bench_pairs_b(&p));
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple]");
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level, value = 1, flag = 0;
	unsigned turns = o.quick ? 50 : 1000;

	MPI_Init_thread(&argc, &argv, want, &level);
	if (level < want) {
		fprintf(stderr, "bench_mpi_self_status: needs the thread level that was asked for\n");
		return 1;
	}
	for (int i = 0; i < COUNT; i++)
		MPI_Irecv(&values[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &requests[i]);
	measure("some, a loop of get_status", by_some, by_loop, 0.5, turns);
	measure("some, Testsome", by_some, by_testsome, 1.1, turns);
	measure("all, a loop of get_status", by_all, by_loop, 0.5, turns);
	measure("any, a loop of get_status", by_any, by_loop, 0.5, turns);
	MPI_Send(&value, 1, MPI_INT, 0, TAG + COUNT - 1, MPI_COMM_SELF);
	while (!flag)
		MPI_Request_get_status(requests[COUNT - 1], &flag, MPI_STATUS_IGNORE);
	complete = 1;
	measure("some with the last one complete, a loop of get_status", by_some, by_loop, 0.5, turns);
	for (int i = 0; i < COUNT - 1; i++)
		MPI_Send(&value, 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF);
	MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
	MPI_Finalize();
	if (wrong) {
		fprintf(stderr, "bench_mpi_self_status: %u answers were wrong\n", wrong);
		return 1;
	}
	return 0;
}
