/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * An operation has failed before a continuation is attached to it, so that its error handler may be called by the
 * attaching call: the handler frees the continuation request; or it starts, tests or frees the persistent request.
 */
#include "check.h"

#define TAG 80
#define TAG_NEXT 81
#define LATER 4
enum how { START, TEST, FREE, HOWS };

static const char *const name[HOWS] = {"the handler starts the request", "the handler tests the request",
				       "the handler frees the request"};
static MPI_Comm comm, comm_next;
static MPI_Request cr, request, next;
static enum how how;
static int told, ran, value;
static void (*handler)(void);

static void on_error(MPI_Comm *which, int *error, ...)
{
	int class;

	(void)which;
	MPI_Error_class(*error, &class);
	CHECK(class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS);
	if (told++ == 0)
		handler();
}

static void count(MPI_Status *status, void *data)
{
	int class;

	(void)data;
	MPI_Error_class(status->MPI_ERROR, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	ran++;
}

static int count_revised(int error, void *data)
{
	CHECK_EQ(error, MPI_ERR_TRUNCATE);
	(void)data;
	ran++;
	return MPI_SUCCESS;
}

/* It is on its way before the receive begins: MPI tells of its being too long. */
static void send_too_long(MPI_Request *send)
{
	static const int out[4];

	MPI_Isend(out, 4, MPI_INT, 0, TAG, comm, send);
}

/* ------------------------------------------------------------------------------------ the handler frees the CR --- */

static void free_cr(void)
{
	CHECK_OK(MPI_Request_free(&cr));
}

static void cr_freed(bool revised)
{
	MPI_Request send, receive;
	MPI_Status status;
	int flag;

	check_begin(revised ? "the handler frees the CR, revised" : "the handler frees the CR");
	handler = free_cr;
	told = ran = 0;
	if (revised) {
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
		CHECK_OK(MPI_Start(&cr));
	} else {
		cr = check_plain_cr();
	}
	send_too_long(&send);
	MPI_Irecv(&value, 1, MPI_INT, 0, TAG, comm, &receive);
	for (int i = 0; i < 10; i++)
		MPI_Iprobe(0, TAG_NEXT, comm, &flag, MPI_STATUS_IGNORE);
	if (revised)
		CHECK_OK(MPIX_Continue(&receive, count_revised, NULL, MPIX_CONT_INVOKE_FAILED, &status, cr));
	else
		CHECK_OK(MPI_Continue(&receive, count, NULL, &status, cr));
	while (!ran)
		MPI_Iprobe(0, TAG_NEXT, comm, &flag, MPI_STATUS_IGNORE);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	CHECK_EQ(told, 1);
	CHECK_EQ(ran, 1);
	CHECK(cr == MPI_REQUEST_NULL);
}

/* ---------------------------------------------------------------------- the handler uses the persistent request --- */

static void use_request(void)
{
	int flag = 0;

	if (how == START) {
		CHECK_OK(MPI_Start(&request));
	} else if (how == TEST) {
		CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK(request != MPI_REQUEST_NULL);
	} else {
		CHECK_OK(MPI_Request_free(&request));
		MPI_Irecv(&value, 1, MPI_INT, 0, TAG_NEXT, comm_next, &next);
	}
}

/* The receive is pending, and gets this message. */
static void receives(MPI_Request *r, int tag, MPI_Comm c)
{
	const int out = 42;
	MPI_Request send;
	MPI_Status status;
	int flag = 1;

	value = 0;
	CHECK_OK(MPI_Test(r, &flag, &status));
	CHECK(!flag);
	MPI_Isend(&out, 1, MPI_INT, 0, tag, c, &send);
	CHECK_OK(MPI_Wait(r, &status));
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	CHECK_EQ(status.MPI_SOURCE, 0);
	CHECK_EQ(status.MPI_TAG, tag);
	CHECK_EQ(value, 42);
}

/* No request object is given to two receives. */
static void each_its_own(void)
{
	static int in[LATER];
	MPI_Request later[LATER];

	for (int i = 0; i < LATER; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, 0, TAG_NEXT, comm_next, &later[i]);
		for (int k = 0; k < i; k++)
			CHECK(later[k] != later[i]);
	}
	for (int i = 0; i < LATER; i++) {
		const int out = 7 + i;

		MPI_Send(&out, 1, MPI_INT, 0, TAG_NEXT, comm_next);
	}
	CHECK_OK(MPI_Waitall(LATER, later, MPI_STATUSES_IGNORE));
	for (int i = 0; i < LATER; i++)
		CHECK_EQ(in[i], 7 + i);
}

static void persistent(void)
{
	MPI_Request send, copy;
	MPI_Status status;

	check_begin(name[how]);
	handler = use_request;
	told = ran = 0;
	cr = check_plain_cr();
	MPI_Recv_init(&value, 1, MPI_INT, 0, TAG, comm, &request);
	send_too_long(&send);
	CHECK_OK(MPI_Start(&request));
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	copy = request; /* the handler does not change this one */
	CHECK_OK(MPI_Continue(&copy, count, NULL, &status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(told, 1);
	CHECK_EQ(ran, 1);
	if (how == TEST && request != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Start(&request));
	if (how == FREE) {
		check_begin("the handler has freed the request: later receives");
		receives(&next, TAG_NEXT, comm_next);
		CHECK(next == MPI_REQUEST_NULL);
		each_its_own();
	} else if (CHECK(request != MPI_REQUEST_NULL)) {
		receives(&request, TAG, comm);
		CHECK_OK(MPI_Request_free(&request));
	}
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_dup(MPI_COMM_SELF, &comm_next);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler); /* MPICH calls this one */
	MPI_Errhandler_free(&errhandler);
	cr_freed(false);
	cr_freed(true);
	for (how = START; how < HOWS; how++)
		persistent();
	MPI_Comm_free(&comm);
	MPI_Comm_free(&comm_next);
	return check_fini();
}
