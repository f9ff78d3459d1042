/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: CONTD_FINALIZE=together */
/*
 * Completion calls of continuation requests in delete callbacks of MPI_COMM_SELF, in MPI_Finalize (MPI 4.1, 11.2.4):
 * the CRs are complete, also one of whose continuations never ran. With several processes, together, MPI_Finalize gives
 * that up sooner.
 */
#include "check.h"

#define TAG 87
#define CRS 7
#define PENDING 6

static MPI_Request cr_of[CRS];
static int ran, deleted;

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
}

static int delete_tests(MPI_Comm comm, int keyval, void *cr, void *extra)
{
	int flag = 0;

	(void)comm, (void)keyval, (void)extra;
	check_begin("MPI_Test in a delete callback");
	CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	deleted++;
	return MPI_SUCCESS;
}

static int delete_waits(MPI_Comm comm, int keyval, void *cr, void *extra)
{
	(void)comm, (void)keyval, (void)extra;
	check_begin("MPI_Wait in a delete callback");
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	deleted++;
	return MPI_SUCCESS;
}

static int delete_waits_all(MPI_Comm comm, int keyval, void *cr, void *extra)
{
	MPI_Request requests[2] = {MPI_REQUEST_NULL, *(MPI_Request *)cr};

	(void)comm, (void)keyval, (void)extra;
	check_begin("MPI_Waitall in a delete callback");
	CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
	deleted++;
	return MPI_SUCCESS;
}

static void set(MPI_Request *cr, MPI_Comm_delete_attr_function *function)
{
	int key;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, cr);
}

static void leave(MPI_Request *cr, bool pending)
{
	MPI_Request receive;
	static int in[8], i;
	const int out = 1;

	*cr = check_plain_cr();
	MPI_Irecv(&in[i++], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receive);
	CHECK_OK(MPI_Continue(&receive, count, NULL, MPI_STATUS_IGNORE, *cr));
	MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF);
	CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
	if (!pending)
		return;
	MPI_Irecv(&in[i++], 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &receive);
	CHECK_OK(MPI_Continue(&receive, count, NULL, MPI_STATUS_IGNORE, *cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("delete callbacks");
	/* The last one is deleted first. Natively contd is told of the end by one of its own, which it sets later. */
	set(&cr_of[PENDING], delete_waits);
	set(&cr_of[0], delete_tests);
	set(&cr_of[1], delete_waits);
	set(&cr_of[2], delete_waits_all);
	for (int i = 0; i < CRS; i++)
		leave(&cr_of[i], i == PENDING);
	set(&cr_of[3], delete_tests);
	set(&cr_of[4], delete_waits);
	set(&cr_of[5], delete_waits_all);
	CHECK_EQ(ran, CRS);
	CHECK_EQ(deleted, 0);
	check_begin("MPI_Finalize");
	CHECK_OK(MPI_Finalize());
	CHECK_EQ(ran, CRS);
	CHECK_EQ(deleted, CRS);
	return check_failures != 0;
}
