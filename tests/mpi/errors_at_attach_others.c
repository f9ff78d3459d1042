/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * An operation has failed before a continuation is attached to it and others. Its error handler starts or frees a
 * persistent request that stands in the same array and is inactive. A receive behind that is pending: the continuation
 * waits for it, and the request that was started goes on.
 */
#include "errors.h"

enum tag { TAG_LONG = 1, TAG_PERSISTENT, TAG_PENDING };
enum { FAILED, PERSISTENT, PENDING, REQUESTS };

static MPI_Comm comm;
static MPI_Request requests[REQUESTS];
static MPI_Status statuses[REQUESTS];
static int told, ran, in[REQUESTS];
static bool starts;

static void on_error(MPI_Comm *which, int *error, ...)
{
	(void)which, (void)error;
	if (told++)
		return;
	if (starts)
		CHECK_OK(MPI_Start(&requests[PERSISTENT]));
	else
		CHECK_OK(MPI_Request_free(&requests[PERSISTENT]));
}

static void count(MPI_Status *unused, void *data)
{
	(void)unused, (void)data;
	ran++;
}

static int count_revised(int error, void *data)
{
	CHECK_EQ(error, MPI_ERR_TRUNCATE);
	(void)data;
	ran++;
	return MPI_SUCCESS;
}

static void handler_uses_another(bool start, bool revised)
{
	const int out[4] = {1, 2, 3, 4};
	MPI_Request cr = check_plain_cr(), send;

	starts = start;
	told = ran = 0;
	memset(in, 0, sizeof(in));
	MPI_Isend(out, 4, MPI_INT, 0, TAG_LONG, comm, &send);
	MPI_Irecv(&in[FAILED], 1, MPI_INT, 0, TAG_LONG, comm, &requests[FAILED]);
	MPI_Recv_init(&in[PERSISTENT], 1, MPI_INT, 0, TAG_PERSISTENT, comm, &requests[PERSISTENT]);
	MPI_Irecv(&in[PENDING], 1, MPI_INT, 0, TAG_PENDING, comm, &requests[PENDING]);
	make_progress(comm);
	if (revised)
		CHECK_OK(MPIX_Continueall(REQUESTS, requests, count_revised, NULL, MPIX_CONT_INVOKE_FAILED, statuses,
					  cr));
	else
		CHECK_OK(MPI_Continueall(REQUESTS, requests, count, NULL, statuses, cr));
	make_progress(comm);
	CHECK_EQ(ran, revised);
	MPI_Send(&out[2], 1, MPI_INT, 0, TAG_PENDING, comm);
	while (!ran)
		make_progress(comm);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	make_progress(comm);
	CHECK_EQ(told, 1);
	CHECK_EQ(ran, 1);
	CHECK_EQ(in[PENDING], 3);
	CHECK_EQ(class_of(statuses[FAILED].MPI_ERROR), MPI_ERR_TRUNCATE);
	CHECK_EQ(statuses[PERSISTENT].MPI_SOURCE, MPI_ANY_SOURCE);
	CHECK_EQ(class_of(statuses[PENDING].MPI_ERROR), revised ? MPI_ERR_PENDING : MPI_SUCCESS);
	if (start) {
		MPI_Send(&out[3], 1, MPI_INT, 0, TAG_PERSISTENT, comm);
		CHECK_OK(MPI_Wait(&requests[PERSISTENT], MPI_STATUS_IGNORE));
		CHECK_EQ(in[PERSISTENT], 4);
		CHECK_OK(MPI_Request_free(&requests[PERSISTENT]));
	}
	CHECK(requests[PERSISTENT] == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler); /* where MPICH tells errors of an array */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
	check_begin("the handler starts another one");
	handler_uses_another(true, false);
	check_begin("the handler frees another one");
	handler_uses_another(false, false);
	check_begin("the handler starts another one, revised");
	handler_uses_another(true, true);
	check_begin("the handler frees another one, revised");
	handler_uses_another(false, true);
	MPI_Errhandler_free(&errhandler);
	MPI_Comm_free(&comm);
	return check_fini();
}
