/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A persistent request that is complete is reported to every query, until a completion call reports it once. Run with
 * the MPI there is and, with the argument "forgets", with forgets.c behind contd.
 */
#include "../mpi/check.h"

#include <dlfcn.h>

enum { TAG = 11, OTHER = 12 };

static int value, sent = 4711;
static MPI_Request receive, send;

/* Is it the status of the message? */
static bool whole(const MPI_Status *status)
{
	int n = -1, cancelled = -1;

	MPI_Get_count(status, MPI_INT, &n);
	MPI_Test_cancelled(status, &cancelled);
	return status->MPI_SOURCE == 0 && status->MPI_TAG == TAG && n == 1 && !cancelled;
}

static bool empty(const MPI_Status *status)
{
	int n = -1;

	MPI_Get_count(status, MPI_INT, &n);
	return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && n == 0;
}

/* Every way of asking, twice; `active`: it is, and complete. */
static void ask(bool active)
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, receive, MPI_REQUEST_NULL};

	for (int i = 0; i < 2; i++) {
		MPI_Status status, statuses[3];
		int flag = 0, index = -1, n = -1, indices[3];

		CHECK_OK(MPI_Request_get_status(receive, &flag, &status));
		CHECK(flag && (active ? whole : empty)(&status));
		flag = 0;
		CHECK_OK(MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_OK(MPIX_Request_get_status_any(3, r, &index, &flag, &status));
		CHECK(flag && index == (active ? 1 : MPI_UNDEFINED) && (active ? whole : empty)(&status));
		CHECK_OK(MPIX_Request_get_status_all(3, r, &flag, statuses));
		CHECK(flag && empty(&statuses[0]) && (active ? whole : empty)(&statuses[1]) && empty(&statuses[2]));
		CHECK_OK(MPIX_Request_get_status_some(3, r, &n, indices, statuses));
		CHECK_EQ(n, active ? 1 : MPI_UNDEFINED);
		CHECK(!active || (indices[0] == 1 && whole(&statuses[0])));
	}
}

/* A message to oneself. The persistent receive has been reported complete. */
static void told(void)
{
	int flag = 0;

	value = 0;
	CHECK_OK(MPI_Start(&receive));
	CHECK_OK(MPI_Send(&sent, 1, MPI_INT, 0, TAG, MPI_COMM_SELF));
	while (!flag)
		CHECK_OK(MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(value, sent);
	ask(true);
}

static void over(const MPI_Status *status)
{
	CHECK(receive != MPI_REQUEST_NULL);
	CHECK(!status || whole(status));
	ask(false);
}

static void completion_calls(void)
{
	MPI_Status status, statuses[2];
	int flag = 0, index = -1, n = -1, indices[2];
	MPI_Request r[2] = {MPI_REQUEST_NULL, receive};

	check_section = "test and wait";
	told();
	CHECK_OK(MPI_Test(&receive, &flag, &status));
	CHECK(flag);
	over(&status);
	told();
	CHECK_OK(MPI_Wait(&receive, &status));
	over(&status);
	told();
	CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
	over(NULL);

	check_section = "any";
	told();
	CHECK_OK(MPI_Testany(2, r, &index, &flag, &status));
	CHECK(flag && index == 1);
	over(&status);
	told();
	CHECK_OK(MPI_Waitany(2, r, &index, &status));
	CHECK_EQ(index, 1);
	over(&status);

	check_section = "all";
	told();
	CHECK_OK(MPI_Testall(2, r, &flag, statuses));
	CHECK(flag && empty(&statuses[0]));
	over(&statuses[1]);
	told();
	CHECK_OK(MPI_Waitall(2, r, statuses));
	CHECK(empty(&statuses[0]));
	over(&statuses[1]);
	told();
	CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	over(NULL);

	check_section = "some";
	told();
	CHECK_OK(MPI_Testsome(2, r, &n, indices, statuses));
	CHECK(n == 1 && indices[0] == 1);
	over(&statuses[0]);
	told();
	CHECK_OK(MPI_Waitsome(2, r, &n, indices, statuses));
	CHECK(n == 1 && indices[0] == 1);
	over(&statuses[0]);
	CHECK_OK(MPI_Testsome(2, r, &n, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(n, MPI_UNDEFINED);
}

static void set_flag(MPI_Status *statuses, void *data)
{
	CHECK(whole(statuses));
	*(int *)data = 1;
}

/* Requests that wait and such that do not, around it. */
static void among_others(void)
{
	MPI_Status status, statuses[3];
	int flag = 1, index = -1, n = -1, indices[3], other = 0;
	MPI_Request r[3];

	check_section = "beside one that waits";
	CHECK_OK(MPI_Irecv(&other, 1, MPI_INT, 0, OTHER, MPI_COMM_SELF, &r[0]));
	r[1] = receive;
	told();
	CHECK_OK(MPI_Testall(2, r, &flag, statuses));
	CHECK(!flag);
	ask(true);
	CHECK_OK(MPI_Waitany(2, r, &index, &status));
	CHECK_EQ(index, 1);
	over(&status);
	told();
	CHECK_OK(MPI_Testany(2, r, &index, &flag, &status));
	CHECK(flag && index == 1);
	over(&status);
	told();
	CHECK_OK(MPI_Waitsome(2, r, &n, indices, statuses));
	CHECK(n == 1 && indices[0] == 1);
	over(&statuses[0]);

	check_section = "beside one that is complete, and a CR";
	told();
	r[2] = check_plain_cr();
	CHECK_OK(MPI_Send(&sent, 1, MPI_INT, 0, OTHER, MPI_COMM_SELF));
	CHECK_OK(MPI_Waitall(3, r, statuses));
	CHECK(r[0] == MPI_REQUEST_NULL && statuses[0].MPI_TAG == OTHER && other == sent);
	over(&statuses[1]);
	CHECK_OK(MPI_Request_free(&r[2]));

	check_section = "beside one that is complete";
	told();
	CHECK_OK(MPI_Irecv(&other, 1, MPI_INT, 0, OTHER, MPI_COMM_SELF, &r[0]));
	CHECK_OK(MPI_Send(&sent, 1, MPI_INT, 0, OTHER, MPI_COMM_SELF));
	for (flag = 0; !flag;)
		CHECK_OK(MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Testsome(2, r, &n, indices, statuses));
	CHECK_EQ(n, 2);
	over(&statuses[indices[1] == 1]);
}

static void other_ends(void)
{
	MPI_Request cr, first;
	MPI_Status status;
	int ran = 0, flag = 0;

	check_section = "a continuation";
	cr = check_plain_cr();
	told();
	CHECK_OK(MPI_Continue(&receive, set_flag, &ran, &status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(ran && whole(&status));
	over(NULL);
	CHECK_OK(MPI_Request_free(&cr));

	check_section = "cancelled too late";
	told();
	CHECK_OK(MPI_Cancel(&receive));
	CHECK_OK(MPI_Wait(&receive, &status));
	over(&status);

	check_section = "freed";
	told();
	first = receive;
	CHECK_OK(MPI_Request_free(&receive));
	CHECK_OK(MPI_Recv_init(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receive));
	CHECK(first != MPI_REQUEST_NULL);
	ask(false);

	check_section = "a persistent send";
	CHECK_OK(MPI_Start(&receive));
	CHECK_OK(MPI_Start(&send));
	while (!flag)
		CHECK_OK(MPI_Request_get_status(send, &flag, MPI_STATUS_IGNORE));
	for (int i = 0; i < 3; i++) {
		MPI_Request r[1] = {send};
		int index = -1;

		CHECK_OK(MPIX_Request_get_status_any(1, r, &index, &flag, MPI_STATUS_IGNORE));
		CHECK(flag && index == 0);
	}
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&receive, &status));
	over(&status);
}

int main(int argc, char **argv)
{
	const int *times = dlsym(RTLD_DEFAULT, "forgets_told");
	int flag;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_EQ(times != NULL, argc > 1 && !strcmp(argv[1], "forgets"));
	CHECK_OK(MPI_Recv_init(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receive));
	CHECK_OK(MPI_Send_init(&sent, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &send));
	/* From contd's first call on; before it MPI answers alone. */
	CHECK_OK(MPIX_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE));
	completion_calls();
	among_others();
	other_ends();
	CHECK(!times || *times > 10);
	CHECK_OK(MPI_Request_free(&receive));
	CHECK_OK(MPI_Request_free(&send));
	return check_fini();
}
