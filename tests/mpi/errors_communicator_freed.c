/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * A persistent receive fails while its continuation waits, and the program frees the request and the communicator
 * before the continuation runs: the communicator's error handler is called, and none of another one.
 */
#include "check.h"

#define TAG 83
#define OTHERS 8

static int told, told_others, ran;

static void on_error(MPI_Comm *comm, int *error, ...)
{
	int class;

	(void)comm;
	MPI_Error_class(*error, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	CHECK_EQ(ran, 0);
	told++;
}

static void on_others(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	told_others++;
}

static void count(MPI_Status *status, void *data)
{
	int class;

	(void)data;
	MPI_Error_class(status->MPI_ERROR, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	ran++;
}

int main(int argc, char **argv)
{
	MPI_Request cr = MPI_REQUEST_NULL, request;
	MPI_Errhandler errhandler, others;
	MPI_Comm comm, other[OTHERS];
	static int in[4], out[4];
	MPI_Status status;
	int flag = 0;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("request and communicator are freed");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_create_errhandler(on_others, &others);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, others);
	if (check_rank == 0) {
		cr = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
		MPI_Recv_init(in, 1, MPI_INT, 1, TAG, comm, &request);
		CHECK_OK(MPI_Start(&request));
		CHECK_OK(MPI_Continue(&request, count, NULL, &status, cr));
		MPI_Barrier(MPI_COMM_WORLD);
		while (!flag)
			CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
		CHECK_EQ(ran, 0);
		CHECK_OK(MPI_Request_free(&request));
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(out, 4, MPI_INT, 0, TAG, comm);
	}
	MPI_Comm_free(&comm);
	/* One of them is where the freed one was, if that is gone. */
	for (int i = 0; i < OTHERS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &other[i]);
		MPI_Comm_set_errhandler(other[i], others);
	}
	if (check_rank == 0) {
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(ran, 1);
		CHECK_EQ(told, 1);
		CHECK_EQ(told_others, 0);
		CHECK_OK(MPI_Request_free(&cr));
	}
	for (int i = 0; i < OTHERS; i++)
		MPI_Comm_free(&other[i]);
	MPI_Errhandler_free(&errhandler);
	MPI_Errhandler_free(&others);
	return check_fini();
}
