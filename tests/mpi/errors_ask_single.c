/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on mpich: it calls the handler of MPI_COMM_WORLD (docs/requests.md, "Failures") */
/*
 * An error handler that the attaching call runs asks about the continuation request, at MPI_THREAD_SINGLE: no call says
 * that it is complete, because its continuation has not run.
 */
#include "check.h"

static MPI_Request cr;
static int asked;

static void draft_done(MPI_Status *statuses, void *data)
{
	(void)statuses;
	++*(int *)data;
}

/* The continuation has not run, so no call says that the request is complete. */
static void handler(MPI_Comm *comm, int *error, ...)
{
	MPI_Request both[2] = {cr, MPI_REQUEST_NULL};
	int flag = -1, index = -1, count = -1, indices[2];

	(void)comm;
	(void)error;
	asked++;
	CHECK_OK(MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	flag = -1;
	CHECK_OK(MPI_Testany(2, both, &index, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	CHECK_OK(MPI_Testsome(2, both, &count, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(count, 0);
	flag = -1;
	CHECK_OK(MPI_Request_get_status(both[0], &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	flag = -1;
	CHECK_OK(MPIX_Request_get_status_all(2, both, &flag, MPI_STATUSES_IGNORE));
	CHECK_EQ(flag, 0);
	flag = -1;
	CHECK_OK(MPIX_Request_get_status_any(2, both, &index, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	CHECK_OK(MPIX_Request_get_status_some(2, both, &count, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(count, 0);
}

static void asks_in_handler(void)
{
	MPI_Errhandler asks;
	MPI_Request request, send;
	MPI_Status status;
	MPI_Comm self;
	int two[2] = {1, 2}, one = 0, ran = 0;

	check_begin("an error handler asks");
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	MPI_Comm_create_errhandler(handler, &asks);
	MPI_Comm_set_errhandler(self, asks);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Isend(two, 2, MPI_INT, 0, 0, self, &send));
	MPI_Irecv(&one, 1, MPI_INT, 0, 0, self, &request);
	CHECK_OK(MPI_Continue(&request, draft_done, &ran, &status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	CHECK(status.MPI_ERROR != MPI_SUCCESS);
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Errhandler_free(&asks);
	MPI_Comm_free(&self);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	asks_in_handler();
	CHECK_EQ(asked, 1);
	return check_fini();
}
