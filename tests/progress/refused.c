/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI refuses the receive that the progress library asks for. The program runs without it, and nothing is left. */
#include <mpi.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int contd_test_irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
			      MPI_Request *request);
EXPORTED int contd_test_comm_free(MPI_Comm *comm);

static int refused, freed;

int contd_test_irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	(void)buf, (void)count, (void)type, (void)source, (void)tag, (void)comm, (void)request;
	refused++;
	return MPI_ERR_OTHER;
}

int contd_test_comm_free(MPI_Comm *comm)
{
	freed++;
	return PMPI_Comm_free(comm);
}

int main(int argc, char **argv)
{
	MPI_Request request;
	char byte = 1, got = 0;

	MPI_Init(&argc, &argv);
	if (refused != 1 || freed != 1) {
		printf("%d receives refused, %d communicators freed\n", refused, freed);
		return 1;
	}
	MPI_Irecv(&got, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, &request);
	MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return freed != 1 || got != byte;
}
