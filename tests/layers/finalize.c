/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Finalize in a job in which rank 0 is with contd and rank 1 is not (this program without it): rank 0 starts no
 * collective operation that rank 1 does not know of, and does not wait for it, but runs what completes. In a job of
 * programs with contd the processes wait for each other.
 *
 *   finalize idle | outstanding | together
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>
#ifdef WITH_CONTD
#include <contd/mpi.h>
#endif

#define TAG 5
#define LATER 300000       /* microseconds */
#define MUCH_LATER 2500000 /* longer than a process waits by itself */
#define MOST 15            /* seconds */

static int rounds, runs;

/* These are called by contd. */
int PMPI_Iallreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
		    MPI_Request *request)
{
	int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);

	*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Iallreduce");
	rounds++;
	return next(send, receive, count, type, op, comm, request);
}

#ifdef WITH_CONTD
static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

static void leave(int *in)
{
	MPI_Request cr, r;

	MPI_Continue_init(MPI_INFO_NULL, &cr);
	MPI_Irecv(in, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r);
	MPI_Continue(&r, count, NULL, MPI_STATUS_IGNORE, cr);
	MPI_Request_free(&cr);
}
#else
static void leave(int *in)
{
	(void)in;
}
#endif

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	bool together = argc > 1 && strcmp(argv[1], "together") == 0, idle = argc > 1 && strcmp(argv[1], "idle") == 0;
	int rank, in = 0, out = 9, good;
	double begin;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0 && !idle)
		leave(&in);
	if (rank == 1 && !idle) {
		usleep(together ? MUCH_LATER : LATER);
		MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
	}
	begin = now();
	MPI_Finalize();
	good = (rounds > 0) == together && runs == (rank == 0 && !idle) && now() - begin < MOST;
	if (!good)
		fprintf(stderr, "finalize %s: rank %d: %d rounds, %d runs, %.1f s\n", argc > 1 ? argv[1] : "", rank,
			rounds, runs, now() - begin);
	return !good;
}
