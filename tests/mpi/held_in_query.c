/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A Testall reports a revised CR beside a generalized request. MPI calls the query function of that one after contd has
 * taken the CR. A continuation that the function registers with the CR then waits for the next MPI_Start: one whose
 * operation is complete, and one whose operation completes later.
 */
#include "check.h"

#define TAG 23

static MPI_Request cr;
static int queries, runs, in;
static bool complete;

static int ran(int rc, void *data)
{
	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	runs++;
	return MPI_SUCCESS;
}

static void send_to_self(void)
{
	int out = 1;

	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF));
}

static int query(void *extra, MPI_Status *status)
{
	MPI_Request r = MPI_REQUEST_NULL;

	(void)extra;
	MPI_Status_set_elements(status, MPI_INT, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	if (queries++)
		return MPI_SUCCESS;
	if (!complete)
		CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r));
	CHECK_OK(MPIX_Continue(&r, ran, NULL, 0, MPI_STATUS_IGNORE, cr));
	return MPI_SUCCESS;
}

static int nothing(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int is_complete)
{
	(void)extra, (void)is_complete;
	return MPI_SUCCESS;
}

static void registers(void)
{
	MPI_Request both[2], none = MPI_REQUEST_NULL;
	int flag = 0;

	queries = runs = 0;
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Grequest_start(query, nothing, cancel, NULL, &both[1]));
	CHECK_OK(MPI_Grequest_complete(both[1]));
	both[0] = cr;
	CHECK_OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
	CHECK(flag);
	CHECK(queries > 0);
	if (!complete)
		send_to_self();
	for (int i = 0; i < 10; i++) {
		CHECK_OK(MPI_Test(&none, &flag, MPI_STATUS_IGNORE));
		CHECK(contd_poll(0) >= 0);
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
	}
	CHECK_EQ(runs, 0);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("completes later");
	registers();
	check_begin("is complete");
	complete = true;
	registers();
	return check_fini();
}
