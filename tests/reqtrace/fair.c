/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fairness: a request that is complete each time stands beside one whose message comes from the other rank, only after
 * the first rounds. The calls with "some" must complete it eventually, and so must those with "any" where it stands
 * first. Rank 1 in turn waits for an answer. Ends, or is ended by the test's time limit. 2 ranks.
 *
 * Neither Open MPI 4.1 nor MPICH 4.0 ends by itself: their calls make no progress where they find something complete at
 * once. So the program makes progress by another call, unless it is told to be "alone": with the tool it ends, too.
 */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

static int in[2], out, rank, alone;
static MPI_Request requests[2];

enum { TESTSOME, WAITSOME, TESTANY, WAITANY, CALLS };

static void round_of(int call)
{
	int always = call >= TESTANY, other = !always, n = 0, flag, index, indices[2];
	MPI_Request send;
	long rounds = 0;

	if (rank == 1) {
		MPI_Recv(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&out, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
		return;
	}
	requests[always] = MPI_REQUEST_NULL;
	MPI_Irecv(&in[other], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[other]);
	while (requests[other] != MPI_REQUEST_NULL) {
		if (requests[always] == MPI_REQUEST_NULL) {
			MPI_Irecv(&in[always], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[always]);
			MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &send);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
		}
		if (rounds++ == 100)
			MPI_Send(&out, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
		if (!alone)
			MPI_Iprobe(1, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (call == TESTSOME)
			MPI_Testsome(2, requests, &n, indices, MPI_STATUSES_IGNORE);
		else if (call == WAITSOME)
			MPI_Waitsome(2, requests, &n, indices, MPI_STATUSES_IGNORE);
		else if (call == TESTANY)
			MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
		else
			MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
	}
	if (requests[always] != MPI_REQUEST_NULL)
		MPI_Wait(&requests[always], MPI_STATUS_IGNORE);
	printf("call %d: came after more than 100 rounds: %d\n", call, rounds > 100);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	alone = argc > 1 && !strcmp(argv[1], "alone");
	for (int i = 0; i < 3 * CALLS; i++)
		round_of(i % CALLS);
	MPI_Finalize();
	return 0;
}
