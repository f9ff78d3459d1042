/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that knows nothing of contd. Rank 0 begins something that needs its progress, and then computes without a
 * call of MPI. Rank 1 waits for it, and prints how long.
 *
 *     overlap KIND MS [multiple]    KIND: isend, persistent, ibcast, iallreduce, get; idle: nothing is outstanding
 *                                   multiple: MPI_THREAD_MULTIPLE
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES (1 << 20)

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static volatile double sink;

static void compute(double ms)
{
	double end = now() + ms, x = 1;

	while (now() < end) {
		for (int i = 0; i < 2000000; i++)
			x = x * 1.0000001 + 1e-9;
		sink = x;
	}
}

int main(int argc, char **argv)
{
	static char buffer[BYTES], other[BYTES];
	const char *kind = argc > 1 ? argv[1] : "isend";
	double ms = argc > 2 ? atof(argv[2]) : 1000, begin, took = 0;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Win win = MPI_WIN_NULL;
	int rank, level, ok = 1;

	if (argc > 3 && !strcmp(argv[3], "multiple"))
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	else
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!strcmp(kind, "get"))
		MPI_Win_create(buffer, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rank == 0)
		memset(buffer, 7, BYTES);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now();
	if (!strcmp(kind, "isend") || !strcmp(kind, "persistent")) {
		if (rank == 0 && kind[0] == 'i')
			MPI_Isend(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
		if (rank == 0 && kind[0] == 'p') {
			MPI_Send_init(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
			MPI_Start(&request);
		}
		if (rank == 0)
			compute(ms);
		if (rank == 0)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (rank == 0 && kind[0] == 'p')
			MPI_Request_free(&request);
		if (rank == 1)
			MPI_Recv(buffer, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (!strcmp(kind, "ibcast")) {
		MPI_Ibcast(buffer, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
		if (rank == 0)
			compute(ms);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (!strcmp(kind, "iallreduce")) {
		memset(other, 0, BYTES);
		memset(buffer, rank ? 3 : 4, BYTES);
		MPI_Iallreduce(buffer, other, BYTES, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD, &request);
		if (rank == 0)
			compute(ms);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		memcpy(buffer, other, BYTES);
	} else if (!strcmp(kind, "get")) {
		if (rank == 0)
			compute(ms);
		if (rank == 1) {
			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
			MPI_Get(other, BYTES, MPI_CHAR, 0, 0, BYTES, MPI_CHAR, win);
			MPI_Win_unlock(0, win);
			memcpy(buffer, other, BYTES);
		}
	} else {
		compute(ms);
		memset(buffer, 7, BYTES);
	}
	took = now() - begin;
	for (int i = 0; i < BYTES; i++)
		ok &= buffer[i] == 7;
	if (rank == 1)
		printf("waited %.1f ms%s\n", took, ok ? "" : ", and got something else");
	if (win != MPI_WIN_NULL)
		MPI_Win_free(&win);
	MPI_Finalize();
	return !ok;
}
