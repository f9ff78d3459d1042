/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* needs: sessions */
/*
 * contd has begun between MPI_Init and MPI_Finalize without a session: MPI_Finalize ends it for good, and says so to a
 * program that goes on with a session. MPI itself works there, persistent requests too.
 */
#include "sessions.h"

#define TAG 33

static void works(MPI_Comm comm)
{
	struct seen seen = {0};
	int in = -1, out = check_rank;
	MPI_Request cr, r;

	cr = check_plain_cr();
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in, check_previous());
	CHECK_OK(MPI_Request_free(&cr));
}

static int no_copy(MPI_Comm comm, int keyval, void *extra, void *from, void *to, int *flag)
{
	(void)comm, (void)keyval, (void)extra, (void)from, (void)to;
	*flag = 0;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int in = -1, out, keyval[4], failed;
	MPI_Request cr = MPI_REQUEST_NULL, r;
	MPI_Session session;
	MPI_Comm comm;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	out = check_rank;
	check_begin("in the World Model");
	works(MPI_COMM_WORLD);
	CHECK(contd_mpi_ring(check_next(), MPI_COMM_WORLD) >= 0);
	session = sessions_begin("MPI_THREAD_SINGLE");
	comm = sessions_comm(session);
	works(comm);
	check_begin("MPI_Finalize");
	MPI_Finalize();

	check_begin("after it");
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &cr), MPI_ERR_OTHER);
	CHECK(cr == MPI_REQUEST_NULL);
	CHECK_EQ(sessions_errors, 1);
	/* The keyval that contd had for ranks may be the program's now. */
	for (int i = 0; i < 4; i++) {
		CHECK_OK(MPI_Comm_create_keyval(no_copy, MPI_COMM_NULL_DELETE_FN, &keyval[i], NULL));
		CHECK_OK(MPI_Comm_set_attr(comm, keyval[i], &in));
	}
	CHECK_EQ(contd_mpi_ring(check_next(), comm), 0);
	MPI_Recv_init(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(MPI_Start(&r));
		MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK_EQ(in, check_previous());
	}
	CHECK_OK(MPI_Request_free(&r));
	failed = sessions_sum(comm);
	MPI_Comm_free(&comm);
	CHECK_OK(MPI_Session_finalize(&session));
	return failed || check_failures;
}
