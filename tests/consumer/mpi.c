/* SPDX-License-Identifier: BSD-3-Clause */
#include <contd/mpi.h>

#include <stdio.h>

static void count(MPI_Status *statuses, void *data)
{
	(void)statuses;
	++*(int *)data;
}

int main(int argc, char **argv)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Request operations[2];
	int sent = 42;
	int received = 0;
	int ran = 0;

	MPI_Init(&argc, &argv);
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &operations[0]);
	MPI_Isend(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &operations[1]);
	MPI_Continueall(2, operations, count, &ran, MPI_STATUSES_IGNORE, cr);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	if (ran != 1 || received != sent)
		fprintf(stderr, "ran %d times, received %d\n", ran, received);
	MPI_Request_free(&cr);
	MPI_Finalize();
	return ran == 1 && received == sent ? 0 : 1;
}
