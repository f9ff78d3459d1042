/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: several threads begin and complete operations of every kind at once, and each is counted
 * exactly. At the end nothing is outstanding: there are no looks any more. What is begun after that brings them again.
 *
 *     many SECONDS
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

#define THREADS 4

static double end;
static MPI_Op op;
static int failures;

static void adds(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	printf("%s\n", what);
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

struct work {
	MPI_Comm comm;
	unsigned seed;
};

static void *works(void *data)
{
	struct work *w = data;
	int in = 3, out, back[2], flag;
	MPI_Request request[3];

	while (now_s() < end) {
		w->seed = w->seed * 1103515245u + 12345u;
		out = back[0] = back[1] = 0;
		switch ((w->seed >> 8) % 5) {
		case 0:
			MPI_Irecv(&back[0], 1, MPI_INT, 0, 1, w->comm, &request[0]);
			MPI_Irecv(&back[1], 1, MPI_INT, 0, 2, w->comm, &request[1]);
			MPI_Isend(&in, 1, MPI_INT, 0, 1, w->comm, &request[2]);
			MPI_Send(&in, 1, MPI_INT, 0, 2, w->comm);
			MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
			check(back[0] == 3 && back[1] == 3, "another message");
			break;
		case 1:
			MPI_Iallreduce(&in, &out, 1, MPI_INT, op, w->comm, &request[0]);
			MPI_Wait(&request[0], MPI_STATUS_IGNORE);
			check(out == 3, "another sum");
			break;
		case 2:
			MPI_Iallreduce(&in, &out, 1, MPI_INT, op, w->comm, &request[0]);
			MPI_Ibarrier(w->comm, &request[1]);
			for (flag = 0; !flag;)
				MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
			check(out == 3, "another sum");
			break;
		case 3:
			MPI_Recv_init(&back[0], 1, MPI_INT, 0, 3, w->comm, &request[0]);
			for (int i = 0; i < 3; i++) {
				MPI_Start(&request[0]);
				MPI_Send(&in, 1, MPI_INT, 0, 3, w->comm);
				MPI_Wait(&request[0], MPI_STATUS_IGNORE);
			}
			MPI_Request_free(&request[0]);
			check(back[0] == 3, "another message");
			break;
		default:
#ifndef OMPI_MAJOR_VERSION /* 4.1 has no windows of a program's memory at this thread level */
			if ((w->seed >> 16) % 64 == 0) {
				MPI_Win win;

				MPI_Win_create(back, sizeof(back), 1, MPI_INFO_NULL, w->comm, &win);
				MPI_Win_free(&win);
			}
#endif
			spin((w->seed >> 16) % 20000);
		}
	}
	return NULL;
}

static uint64_t looks(void)
{
	uint64_t n = 0;

	for (int why = 0; why < PASSED_COUNT; why++)
		n += passed(why);
	return n;
}

static void compute(double s)
{
	double until = now_s() + s;

	while (now_s() < until)
		spin(10000);
}

int main(int argc, char **argv)
{
	struct work w[THREADS];
	pthread_t thread[THREADS];
	MPI_Request request;
	uint64_t before;
	char byte = 1, got;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Op_create(adds, 1, &op);
	for (int i = 0; i < THREADS; i++) {
		w[i].seed = (unsigned)i;
		MPI_Comm_dup(MPI_COMM_SELF, &w[i].comm);
	}
	for (int turn = 0; turn < 5; turn++) {
		end = now_s() + (argc > 1 ? atof(argv[1]) : 5) / 5;
		for (int i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, works, &w[i]);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		compute(0.02); /* one look may be on its way */
		before = looks();
		compute(0.1);
		check(looks() == before, "something still counts as outstanding");
		MPI_Irecv(&got, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, &request);
		before = passed(PASSED_NOT);
		for (double give_up = now_s() + 30; passed(PASSED_NOT) < before + 5 && now_s() < give_up;)
			spin(20000);
		check(passed(PASSED_NOT) >= before + 5,
		      "no looks any more; does a reduction still count as under way?");
		MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&w[i].comm);
	MPI_Op_free(&op);
	printf("%lu looks, %lu with progress\n", (unsigned long)looks(), (unsigned long)passed(PASSED_NOT));
	MPI_Finalize();
	return failures != 0;
}
