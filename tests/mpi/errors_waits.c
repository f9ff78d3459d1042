/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Waits that would never end are refused at once, with MPI_ERR_REQUEST: for the own CR in a continuation, also among
 * other requests; for it in the error handler of an operation that its continuation waits for; and there, where the
 * handler is called while contd looks at operations (not natively), for any other CR that is not complete, and for a
 * persistent request whose continuation is outstanding.
 */
#include "errors.h"

#define TAG 84
#define TAG_OTHER 85
#define TAG_NONE 86

static MPI_Comm comm;
static MPI_Request cr, cr_other;
static int told, ran, ran_other;
static bool self_is_told; /* of failed receives, by MPI_Wait itself too */
static void (*handler)(void);

static void receive_failed(int class, bool by_self)
{
	CHECK(class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS);
	CHECK_EQ(by_self, self_is_told);
	if (told++ == 0 && handler)
		handler();
}

static void on_error(MPI_Comm *which, int *error, ...)
{
	(void)which;
	receive_failed(class_of(*error), false);
}

/* It returns, as MPI_ERRORS_RETURN does. */
static void on_refusal(MPI_Comm *which, int *error, ...)
{
	if (class_of(*error) == MPI_ERR_REQUEST)
		on_self(which, error);
	else
		receive_failed(class_of(*error), true);
}

static void count(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

static int count_revised(int error, void *data)
{
	CHECK_EQ(error, MPI_ERR_TRUNCATE);
	++*(int *)data;
	return MPI_SUCCESS;
}

static void send_too_long(MPI_Request *send)
{
	static const int out[4];

	MPI_Isend(out, 4, MPI_INT, 0, TAG, comm, send);
}

/* ------------------------------------------------------------------------------------------ in an error handler --- */

static void wait_own(void)
{
	CHECK_EQ(class_of(MPI_Wait(&cr, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
}

/* The failed receive, and maybe another one, which is pending. */
static void own_in_handler(const char *name, bool revised, int receives)
{
	MPI_Request send, receive[2];
	MPI_Status statuses[2];
	int in[2], flag;
	const int out = 1;

	check_begin(name);
	handler = wait_own;
	told = ran = on_self_count = 0;
	if (revised) {
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
		CHECK_OK(MPI_Start(&cr));
	} else {
		cr = check_plain_cr();
	}
	send_too_long(&send);
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, comm, &receive[0]);
	if (receives == 2)
		MPI_Irecv(&in[1], 1, MPI_INT, 0, TAG_OTHER, comm, &receive[1]);
	for (int i = 0; i < 10; i++)
		MPI_Iprobe(0, TAG_NONE, comm, &flag, MPI_STATUS_IGNORE);
	if (revised)
		CHECK_OK(MPIX_Continueall(receives, receive, count_revised, &ran, MPIX_CONT_INVOKE_FAILED, statuses,
					  cr));
	else
		CHECK_OK(MPI_Continueall(receives, receive, count, &ran, statuses, cr));
	if (receives == 2)
		MPI_Send(&out, 1, MPI_INT, 0, TAG_OTHER, comm);
	while (!ran)
		MPI_Iprobe(0, TAG_NONE, comm, &flag, MPI_STATUS_IGNORE);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	CHECK_EQ(told, 1);
	CHECK_EQ(on_self_count, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

static void wait_other(void)
{
	int class = class_of(MPI_Wait(&cr_other, MPI_STATUS_IGNORE));

	if (check_native()) {
		CHECK_EQ(class, MPI_SUCCESS);
		CHECK_EQ(ran_other, 1);
	} else {
		CHECK_EQ(class, MPI_ERR_REQUEST);
		CHECK_EQ(ran_other, 0);
	}
}

static void other_in_handler(void)
{
	MPI_Request send, send_other, receive, receive_other;
	const int out = 1;
	int in[2];

	check_begin("another CR in the error handler");
	handler = wait_other;
	told = ran = ran_other = on_self_count = 0;
	cr = check_plain_cr();
	cr_other = check_plain_cr();
	MPI_Irecv(&in[1], 1, MPI_INT, 0, TAG_OTHER, comm, &receive_other);
	CHECK_OK(MPI_Continue(&receive_other, count, &ran_other, MPI_STATUS_IGNORE, cr_other));
	MPI_Isend(&out, 1, MPI_INT, 0, TAG_OTHER, comm, &send_other);
	send_too_long(&send);
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, comm, &receive);
	CHECK_OK(MPI_Continue(&receive, count, &ran, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	CHECK_EQ(told, 1);
	CHECK_OK(MPI_Wait(&cr_other, MPI_STATUS_IGNORE));
	CHECK_EQ(ran_other, 1);
	CHECK_EQ(on_self_count, !check_native());
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	MPI_Wait(&send_other, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPI_Request_free(&cr_other));
}

static MPI_Request receives; /* persistent */

static void wait_persistent(void)
{
	MPI_Request requests[2] = {MPI_REQUEST_NULL, receives};
	int index = -5, outcount = -5, indices[2] = {-5, -5};
	MPI_Status statuses[2];

	if (check_native())
		return; /* it would be waited for */
	CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
	CHECK_EQ(statuses[0].MPI_ERROR, MPI_ERR_PENDING);
	CHECK_EQ(statuses[1].MPI_ERROR, MPI_ERR_REQUEST);
	CHECK_EQ(class_of(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
	CHECK_EQ(index, 1);
	CHECK_EQ(class_of(MPI_Waitsome(2, requests, &outcount, indices, statuses)), MPI_ERR_IN_STATUS);
	CHECK_EQ(outcount, 1);
	CHECK_EQ(indices[0], 1);
	CHECK_EQ(class_of(MPI_Wait(&requests[1], MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
	CHECK(requests[1] == receives);
}

static void persistent_in_handler(void)
{
	MPI_Request send, receive;
	const int out = 1;
	int in[2], flag = 0;

	check_begin("a persistent request in the error handler");
	handler = wait_persistent;
	told = ran = ran_other = 0;
	cr = check_plain_cr();
	MPI_Recv_init(&in[1], 1, MPI_INT, 0, TAG_OTHER, comm, &receives);
	MPI_Start(&receives);
	receive = receives;
	CHECK_OK(MPI_Continue(&receive, count, &ran_other, MPI_STATUS_IGNORE, cr));
	send_too_long(&send);
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, comm, &receive);
	CHECK_OK(MPI_Continue(&receive, count, &ran, MPI_STATUS_IGNORE, cr));
	while (!ran)
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(told, 1);
	CHECK_EQ(ran_other, 0);
	MPI_Send(&out, 1, MPI_INT, 0, TAG_OTHER, comm);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran_other, 1);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Request_free(&receives));
	CHECK_OK(MPI_Request_free(&cr));
}

/* -------------------------------------------------------------------------------------------- in a continuation --- */

#define REQUESTS 3
#define OWN 1

/* Null, the own CR, a receive that is pending. */
static void wait_among_others(MPI_Status *unused, void *data)
{
	int index = -5, outcount = -5, indices[REQUESTS] = {-5, -5, -5};
	MPI_Request requests[REQUESTS] = {MPI_REQUEST_NULL, cr, *(MPI_Request *)data};
	MPI_Status statuses[REQUESTS], status;

	(void)unused;
	ran++;
	for (int i = 0; i < REQUESTS; i++)
		status_poison(&statuses[i]);
	CHECK_EQ(class_of(MPI_Waitall(REQUESTS, requests, statuses)), MPI_ERR_IN_STATUS);
	for (int i = 0; i < REQUESTS; i++)
		CHECK_EQ(statuses[i].MPI_ERROR, i == OWN ? MPI_ERR_REQUEST : MPI_ERR_PENDING);
	CHECK_EQ(on_self_count, 1);
	CHECK_EQ(class_of(MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE)), MPI_ERR_IN_STATUS);
	CHECK_EQ(on_self_count, 2);

	for (int i = 0; i < REQUESTS; i++)
		status_poison(&statuses[i]);
	CHECK_EQ(class_of(MPI_Waitsome(REQUESTS, requests, &outcount, indices, statuses)), MPI_ERR_IN_STATUS);
	CHECK_EQ(outcount, 1);
	CHECK_EQ(indices[0], OWN);
	CHECK_EQ(indices[1], -5);
	CHECK_EQ(statuses[0].MPI_ERROR, MPI_ERR_REQUEST);
	CHECK(status_is_poison(&statuses[1]));
	CHECK_EQ(on_self_count, 3);

	status_poison(&status);
	CHECK_EQ(class_of(MPI_Waitany(REQUESTS, requests, &index, &status)), MPI_ERR_REQUEST);
	CHECK_EQ(index, OWN);
	CHECK_EQ(on_self_count, 4);
	CHECK(requests[0] == MPI_REQUEST_NULL);
	CHECK(requests[OWN] == cr);
	CHECK(requests[2] == *(MPI_Request *)data);
}

static void own_in_continuation(void)
{
	MPI_Request receive, pending;
	int in[2];
	const int out = 1;

	check_begin("the own CR in a continuation");
	ran = on_self_count = 0;
	cr = check_plain_cr();
	MPI_Irecv(&in[1], 1, MPI_INT, 0, TAG_OTHER, comm, &pending);
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, comm, &receive);
	CHECK_OK(MPI_Continue(&receive, wait_among_others, &pending, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, 0, TAG, comm);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	MPI_Send(&out, 1, MPI_INT, 0, TAG_OTHER, comm);
	CHECK_OK(MPI_Wait(&pending, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler, self;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	self_is_told = mpi_tells_self();
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_create_errhandler(on_refusal, &self);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler); /* MPICH calls this one */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	own_in_continuation();
	own_in_handler("the own CR in the error handler", false, 1);
	own_in_handler("the own CR in the error handler, one of two operations", false, 2);
	own_in_handler("the own revised CR in the error handler", true, 1);
	own_in_handler("the own revised CR in the error handler, one of two operations", true, 2);
	other_in_handler();
	persistent_in_handler();
	MPI_Errhandler_free(&errhandler);
	MPI_Errhandler_free(&self);
	MPI_Comm_free(&comm);
	return check_fini();
}
