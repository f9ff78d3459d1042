/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank waits for what the other one sends only when it has got something itself, in all blocking calls, with
 * messages that go at once and such that need both sides; and prints what it has got. 2 or more ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define ROUNDS 20
#define BIG 100000

static char buffers[4][BIG];

int main(int argc, char **argv)
{
	int rank, ranks, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < ROUNDS; i++) {
		int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, bytes = i % 2 ? BIG : 8, n = 0, index;
		int left = 4, indices[4];
		MPI_Request r[4];

		for (int k = 0; k < 2; k++) {
			MPI_Irecv(buffers[k], bytes, MPI_CHAR, from, k, MPI_COMM_WORLD, &r[k]);
			memset(buffers[2 + k], i + k + rank, (size_t)bytes);
			MPI_Issend(buffers[2 + k], bytes, MPI_CHAR, to, k, MPI_COMM_WORLD, &r[2 + k]);
		}
		switch (i / 2 % 4) {
		case 0:
			for (int k = 0; k < 4; k++)
				MPI_Wait(&r[k], MPI_STATUS_IGNORE);
			break;
		case 1:
			for (; left; left--)
				MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
			break;
		case 2:
			for (; left; left -= n)
				MPI_Waitsome(4, r, &n, indices, MPI_STATUSES_IGNORE);
			break;
		default:
			MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		}
		sum += buffers[0][bytes - 1] + 3 * buffers[1][0];
	}
	MPI_Reduce(rank ? &sum : MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("sum %d\n", sum);
	MPI_Finalize();
	return 0;
}
