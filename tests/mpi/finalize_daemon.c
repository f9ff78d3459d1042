/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * MPI_Finalize, while contd's daemon is in a callback that takes three seconds and then sends: it waits for the end of
 * the callback, and so does the process that is to receive. Started by a script on several hosts, contd does not know
 * that it is part of every process, hence CONTD_FINALIZE.
 */
#include "race.h"

#define TAG 79

static atomic_int begun, ran;

static void slow(MPI_Status *status, void *data)
{
	int out = 1, finalized = 1;

	(void)status, (void)data;
	atomic_store(&begun, 1);
	sleep(3);
	CHECK_OK(MPI_Finalized(&finalized));
	if (CHECK(!finalized))
		CHECK_OK(MPI_Send(&out, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD));
	atomic_store(&ran, 1);
}

static void received(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_EQ(*(int *)data, 1);
	atomic_store(&ran, 1);
}

int main(int argc, char **argv)
{
	static int in;
	struct operation op;
	MPI_Request cr, r;

	setenv("CONTD_FINALIZE", "together", 1);
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("MPI_Finalize while the daemon runs a callback");
	if (check_rank == 0) {
		cr = check_cr("mpi_continue_thread", "any", NULL, NULL);
		CHECK_EQ(contd_daemon_start(NULL), 0);
		r = operation_start(&op);
		CHECK_OK(MPI_Continue(&r, slow, NULL, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Grequest_complete(op.handle));
		while (!atomic_load(&begun))
			usleep(100);
	} else {
		cr = check_plain_cr();
		MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, received, &in, MPI_STATUS_IGNORE, cr));
	}
	MPI_Request_free(&cr);
	CHECK_OK(MPI_Finalize());
	CHECK_EQ(atomic_load(&ran), 1);
	return check_failures != 0;
}
