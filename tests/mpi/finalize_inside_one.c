/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/* One process calls MPI_Finalize in a callback, and the others do not: all of them come back from it. */
#include "check.h"

#define TAG 79

static void finalizes(MPI_Status *status, void *data)
{
	(void)status;
	*(int *)data = check_finalize_inside();
}

int main(int argc, char **argv)
{
	int in, out = 1, failed = -1, flag, rank;
	MPI_Request cr, r, s;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("MPI_Finalize in a callback of one process");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	cr = check_plain_cr();
	if (rank == 0) {
		MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r);
		CHECK_OK(MPI_Continue(&r, finalizes, &failed, MPI_STATUS_IGNORE, cr));
		MPI_Isend(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &s);
		MPI_Request_free(&s);
		while (failed < 0)
			MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
		return failed || check_failures;
	}
	return check_fini();
}
