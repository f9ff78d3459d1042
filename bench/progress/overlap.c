/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that knows nothing of contd, for bench/progress/ways. Rank 0 begins something, and computes a fixed amount
 * without a call of MPI. The others wait for it.
 *
 *     overlap KIND MS TURNS [multiple | spin]
 *
 * KIND      isend       1 MiB from rank 0 to rank 1
 *           get         rank 1 reads 1 MiB from a window of rank 0's
 *           iallreduce  8 KiB, all ranks
 *           idle        nothing is outstanding
 *           alternate   rank 0 computes and sends by turns, and never both: short messages, blocking calls
 * MS        how long rank 0 computes, about
 * multiple  MPI_THREAD_MULTIPLE
 * spin      the same, and a thread of each rank that makes progress in a loop
 *
 * Rank 0 prints a line: milliseconds that a rank waited beyond what the transfer takes by itself (median, largest), and
 * the time of computing beside it against computing alone (median of the ratios).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES (1 << 20)
#define MOST 1000

static char buffer[BYTES], other[BYTES];
static int small[2048], sum[2048];
static int stop;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static volatile double sink;

static void compute(long rounds)
{
	double x = 1;

	for (long i = 0; i < rounds; i++)
		x = x * 1.0000001 + 1e-9;
	sink = x;
}

static void *spins(void *data)
{
	int flag;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		MPI_Iprobe(MPI_ANY_SOURCE, 999, *(MPI_Comm *)data, &flag, MPI_STATUS_IGNORE);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return v[n / 2];
}

int main(int argc, char **argv)
{
	static double waited[MOST], ratio[MOST];
	const char *kind = argc > 1 ? argv[1] : "isend";
	double ms = argc > 2 ? atof(argv[2]) : 100, begin, alone, beside, mine, most = 0;
	int turns = argc > 3 ? atoi(argv[3]) : 10, rank, ranks, level, spinning = argc > 4 && !strcmp(argv[4], "spin");
	long rounds = 1000;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Win win = MPI_WIN_NULL;
	MPI_Comm quiet;
	pthread_t thread;

	if (argc > 4)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	else
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
	if (turns > MOST || turns < 1)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (!strcmp(kind, "get"))
		MPI_Win_create(buffer, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rank == 0) {
		for (begin = now(); now() - begin < 1; rounds *= 2) { /* the last one took about half a millisecond */
			begin = now();
			compute(rounds);
		}
		rounds = (long)((double)rounds / 2 * ms / (now() - begin));
	}
	if (spinning && pthread_create(&thread, NULL, spins, &quiet))
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int turn = 0; turn < turns; turn++) {
		alone = beside = 0;
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			begin = now();
			compute(rounds);
			alone = now() - begin;
		}
		MPI_Barrier(MPI_COMM_WORLD);
		begin = now();
		if (!strcmp(kind, "isend")) {
			if (rank == 0)
				MPI_Isend(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
			if (rank == 1)
				MPI_Irecv(buffer, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
		} else if (!strcmp(kind, "iallreduce")) {
			MPI_Iallreduce(small, sum, 2048, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
		}
		if (rank == 0 && strcmp(kind, "alternate") != 0) {
			double from = now();

			compute(rounds);
			beside = now() - from;
		}
		if (!strcmp(kind, "alternate")) {
			for (int i = 0; i < 20 && rank < 2; i++) {
				double from = now();

				if (rank == 0)
					compute(rounds / 20);
				beside += now() - from;
				if (rank == 0)
					MPI_Send(buffer, 100, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
				else
					MPI_Recv(buffer, 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			}
		}
		if (!strcmp(kind, "get") && rank == 1) {
			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
			MPI_Get(other, BYTES, MPI_CHAR, 0, 0, BYTES, MPI_CHAR, win);
			MPI_Win_unlock(0, win);
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		mine = rank == 0 ? 0 : now() - begin;
		MPI_Reduce(&mine, &waited[turn], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
		if (rank == 0) {
			ratio[turn] = beside / alone;
			most = waited[turn] > most ? waited[turn] : most;
		}
	}
	if (spinning) {
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
	}
	if (rank == 0)
		printf("waited %.3f most %.3f ratio %.4f\n", median(waited, turns), most, median(ratio, turns));
	if (win != MPI_WIN_NULL)
		MPI_Win_free(&win);
	MPI_Comm_free(&quiet);
	MPI_Finalize();
	return 0;
}
