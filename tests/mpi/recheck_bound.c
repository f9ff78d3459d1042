/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on portable: nothing is looked at again there */
/* not on mpich: nothing is looked at again there */
/*
 * A callback that was missed is found in time, with many operations pending and few calls of MPI: the time depends on
 * how many there are, and not on how often MPI is called.
 */
#include "race.h"

#include "mpi/ompi.h"

#define PENDING 20000
#define BOUND 5.0 /* seconds; about a tenth of one is needed */

static struct operation op[PENDING];

int main(int argc, char **argv)
{
	MPI_Request cr;
	double begin;
	int flag;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("one of many");
	cr = check_plain_cr();
	for (int i = 0; i < PENDING; i++) {
		MPI_Request r = operation_start(&op[i]);

		CHECK_OK(MPI_Continue(&r, operation_ran, &op[i], MPI_STATUS_IGNORE, cr));
	}
	/* As if the completer had looked for a callback before it was stored. */
	((struct contd__ompi_request *)(void *)op[PENDING - 1].handle)->complete_cb = NULL;
	CHECK_OK(MPI_Grequest_complete(op[PENDING - 1].handle));
	CHECK_EQ(op[PENDING - 1].runs, 0);
	begin = MPI_Wtime();
	while (!op[PENDING - 1].runs && MPI_Wtime() < begin + BOUND) {
		MPI_Iprobe(MPI_ANY_SOURCE, 9999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		usleep(200);
	}
	CHECK_EQ(op[PENDING - 1].runs, 1);
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "found after %.3f s\n", MPI_Wtime() - begin);
	for (int i = 0; i < PENDING - 1; i++)
		CHECK_OK(MPI_Grequest_complete(op[i].handle));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < PENDING; i++)
		CHECK_EQ(op[i].runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
