/* SPDX-License-Identifier: BSD-3-Clause */
/* Three threads start and complete at the same time, so that handles go from one to another. Prints what account.c
 * prints. */
#include <pthread.h>
#include <stdio.h>

#include <mpi.h>

#define THREADS 3
#define ROUNDS 1000
#define N 8

static int numbers[THREADS];

static void *work(void *data)
{
	int thread = *(int *)data, in[N], out = thread, n, index, flag, indices[N];
	MPI_Request recvs[N], sends[N];

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < N; k++) {
			MPI_Irecv(&in[k], 1, MPI_INT, 0, thread * N + k, MPI_COMM_SELF, &recvs[k]);
			MPI_Isend(&out, 1, MPI_INT, 0, thread * N + k, MPI_COMM_SELF, &sends[k]);
		}
		if (i % 3 == 0)
			for (int left = N; left; left -= n)
				MPI_Waitsome(N, recvs, &n, indices, MPI_STATUSES_IGNORE);
		else if (i % 3 == 1)
			MPI_Waitall(N, recvs, MPI_STATUSES_IGNORE);
		else
			do
				MPI_Testany(N, recvs, &index, &flag, MPI_STATUS_IGNORE);
			while (!flag || index != MPI_UNDEFINED);
		MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "threads: skipped, no MPI_THREAD_MULTIPLE\n");
		MPI_Finalize();
		return 77;
	}
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, work, &numbers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		printf("expect 0 %s %d %d 0 0 0 0\n", i ? "Isend" : "Irecv", THREADS * ROUNDS * N,
		       THREADS * ROUNDS * N);
	MPI_Finalize();
	return 0;
}
