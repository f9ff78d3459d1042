/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dies kill|abort|exit: rank 1 ends before its time, while a receive of each rank is open. Before it is killed, each
 * rank has written a timeline (REQTRACE tells its name): messages go to and fro until both are there. 2 ranks.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, in = 0, out = 1, here = 0, both = 0, never;
	const char *how = argc > 1 ? argv[1] : "", *prefix = getenv("REQTRACE");
	MPI_Request open, two[2];
	char part[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Irecv(&never, 1, MPI_INT, !rank, 99, MPI_COMM_WORLD, &open);
	snprintf(part, sizeof(part), "%s.%d.part.json", prefix ? prefix : "", rank);
	for (int i = 0; i < 50 || (!both && !strcmp(how, "kill")); i++) {
		MPI_Irecv(&in, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &two[0]);
		MPI_Isend(&out, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &two[1]);
		MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
		here = !access(part, R_OK);
		MPI_Allreduce(&here, &both, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	}
	if (rank == 1) {
		if (!strcmp(how, "kill"))
			raise(SIGKILL);
		if (!strcmp(how, "abort"))
			MPI_Abort(MPI_COMM_WORLD, 3);
		exit(3);
	}
	for (;;) /* until the launcher ends it */
		MPI_Wait(&open, MPI_STATUS_IGNORE);
}
