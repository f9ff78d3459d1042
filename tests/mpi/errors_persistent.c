/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* not on portable: Open MPI itself takes the earlier failure of an inactive persistent request for a new one */
/*
 * A persistent receive failed, and its continuation has run. When later another operation fails beside it, the error
 * handler of that one is called, and the persistent request is still there.
 */
#include "errors.h"

#define TAG 82

static int told[2], ran;

static void on_first(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	told[0]++;
}

static void on_second(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	told[1]++;
}

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
}

static MPI_Comm comm_with(MPI_Comm_errhandler_function *function)
{
	MPI_Errhandler errhandler;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(function, &errhandler);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD,
				errhandler); /* MPICH calls this one; the second communicator's in the end */
	MPI_Errhandler_free(&errhandler);
	return comm;
}

/* At attach the receive has failed already; or it fails while its continuation waits. */
static void earlier(bool at_attach, MPI_Comm first, MPI_Comm second)
{
	MPI_Request cr, persistent, requests[2];
	MPI_Status statuses[2];
	int in[2], flag;

	told[0] = told[1] = ran = 0;
	cr = check_plain_cr();
	MPI_Recv_init(&in[0], 1, MPI_INT, 1, TAG, first, &persistent);
	if (at_attach)
		MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Start(&persistent));
	for (int i = 0; i < 10; i++)
		MPI_Iprobe(1, TAG + 1, first, &flag, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Continue(&persistent, count, NULL, &statuses[0], cr));
	if (!at_attach)
		MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	CHECK_EQ(told[0] + told[1], 1);
	CHECK(told[0] == 1 || !check_native());

	told[0] = told[1] = 0;
	MPI_Irecv(&in[1], 1, MPI_INT, 1, TAG, second, &requests[1]);
	requests[0] = persistent;
	statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = -1;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
	CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
	CHECK_EQ(told[0], 0);
	CHECK_EQ(told[1], 1);
	CHECK(requests[0] == persistent);
	CHECK(requests[1] == MPI_REQUEST_NULL);
	if (requests[0] == persistent)
		CHECK_OK(MPI_Request_free(&requests[0]));
	CHECK_OK(MPI_Request_free(&cr));
}

static void partner(bool at_attach, MPI_Comm first, MPI_Comm second)
{
	const int out[4] = {0};

	if (!at_attach)
		MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out, 4, MPI_INT, 0, TAG, first);
	if (at_attach)
		MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out, 4, MPI_INT, 0, TAG, second);
}

int main(int argc, char **argv)
{
	MPI_Comm first, second;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	first = comm_with(on_first);
	second = comm_with(on_second);
	for (int at_attach = 0; at_attach < 2; at_attach++) {
		check_begin(at_attach ? "failed at attach" : "failed after attach");
		if (check_rank == 0)
			earlier(at_attach, first, second);
		else
			partner(at_attach, first, second);
	}
	MPI_Comm_free(&first);
	MPI_Comm_free(&second);
	return check_fini();
}
