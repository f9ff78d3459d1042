/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for contd dump to look at, with receives that are pending: dumped_mpi LEVEL. It never ends by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <contd/mpi.h>

static void on_message(MPI_Status *status, void *data)
{
	(void)status, (void)data;
}

static int on_both(int code, void *data)
{
	(void)data;
	return code;
}

int main(int argc, char **argv)
{
	int level, value[3];
	MPI_Request one, both[2], draft, revised;
	MPI_Status status, statuses[2];

	MPI_Init_thread(&argc, &argv, argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, &level);
	MPI_Continue_init(MPI_INFO_NULL, &draft);
	MPIX_Continue_init(0, 0, MPI_INFO_NULL, &revised);
	MPI_Irecv(&value[0], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &one);
	MPI_Continue(&one, on_message, &value[0], &status, draft);
	MPI_Irecv(&value[1], 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &both[0]);
	MPI_Recv_init(&value[2], 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &both[1]);
	MPI_Start(&both[1]);
	MPIX_Continueall(2, both, on_both, NULL, 0, statuses, revised); /* which is not started */
	puts("there");
	fflush(stdout);
	for (;;)
		pause();
}
