/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * MPI_Request_free of a persistent request whose continuation is outstanding: the operation goes on, the continuation
 * runs once with the operation's own status, whatever MPI does with other requests meanwhile, and then the request is
 * freed.
 */
#include "check.h"

#include "base/testpoint.h"

#ifndef LEVEL
#define LEVEL MPI_THREAD_MULTIPLE
#endif

#define TAG 61
#define OTHERS 20
#define LARGE (1 << 20)

static int told;

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	told++;
}

static MPI_Request receive(int *value, int tag, MPI_Comm comm)
{
	MPI_Request r;

	*value = -1;
	CHECK_OK(MPI_Recv_init(value, 1, MPI_INT, check_previous(), tag, comm, &r));
	CHECK_OK(MPI_Start(&r));
	return r;
}

static void deliver(int value, int tag)
{
	MPI_Request r;

	CHECK_OK(MPI_Isend(&value, 1, MPI_INT, check_next(), tag, MPI_COMM_WORLD, &r));
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void free_it(MPI_Request *r)
{
	CHECK_OK(MPI_Request_free(r));
	CHECK(*r == MPI_REQUEST_NULL);
}

/* Requests of all kinds come and go: one that was freed too early would be used again. */
static void others(void)
{
	MPI_Request r[3 * OTHERS];
	int in[2 * OTHERS], out[OTHERS];

	for (int i = 0; i < OTHERS; i++) {
		r[i] = receive(&in[i], TAG + 2 + i, MPI_COMM_WORLD);
		out[i] = i;
	}
	for (int i = 0; i < OTHERS; i++)
		MPI_Isend(&out[i], 1, MPI_INT, check_next(), TAG + 2 + i, MPI_COMM_WORLD, &r[OTHERS + i]);
	CHECK_OK(MPI_Waitall(2 * OTHERS, r, MPI_STATUSES_IGNORE));
	for (int i = 0; i < OTHERS; i++) {
		CHECK_EQ(in[i], i);
		free_it(&r[i]);
	}
}

static void test_pending(MPI_Request cr)
{
	int flag = -1;

	for (int i = 0; i < 20; i++) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
	}
}

static void check_receive(MPI_Request cr, bool ignore)
{
	struct seen seen = {0};
	MPI_Status status;
	MPI_Request r;
	int value;

	check_begin("a receive");
	status_poison(&status);
	r = receive(&value, TAG, MPI_COMM_WORLD);
	CHECK_OK(MPI_Continue(&r, see, &seen, ignore ? MPI_STATUS_IGNORE : &status, cr));
	free_it(&r);
	others();
	MPI_Barrier(MPI_COMM_WORLD);
	test_pending(cr);
	CHECK_EQ(seen.runs, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	deliver(4711, TAG);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(value, 4711);
	if (!ignore)
		status_is_of(&status, check_previous(), TAG, sizeof(int));
	others();
	CHECK_EQ(seen.runs, 1);
}

/* By rendezvous, so that it waits for its receive. */
static void check_send(MPI_Request cr)
{
	char *out = malloc(LARGE), *in = malloc(LARGE);
	struct seen seen = {0};
	MPI_Request r, plain;
	MPI_Status status;

	check_begin("a send");
	memset(out, 3, LARGE);
	memset(in, 0, LARGE);
	CHECK_OK(MPI_Ssend_init(out, LARGE, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD, &r));
	CHECK_OK(MPI_Start(&r));
	CHECK_OK(MPI_Continue(&r, see, &seen, &status, cr));
	free_it(&r);
	others();
	test_pending(cr);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Irecv(in, LARGE, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &plain));
	CHECK_OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
	CHECK(memcmp(in, out, LARGE) == 0);
	free(in);
	free(out);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Not started, or complete before it is attached: the request is inactive, and freed at once. `late` keeps callbacks
 * back. */
static void check_inactive(MPI_Request cr, MPI_Request late)
{
	struct seen seen = {0};
	MPI_Status status[2];
	MPI_Request r[2];
	int value[2];

	check_begin("inactive, and complete already");
	CHECK_OK(MPI_Recv_init(&value[0], 1, MPI_INT, check_previous(), TAG, MPI_COMM_WORLD, &r[0]));
	CHECK_OK(MPI_Continue(&r[0], see, &seen, &status[0], cr));
	free_it(&r[0]);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK(status_is_empty(&status[0]));
	for (int round = 0; round < 2; round++) {
		int flag = 0;

		seen.runs = 0;
		r[0] = receive(&value[0], TAG, MPI_COMM_WORLD);
		deliver(12, TAG);
		while (!flag)
			CHECK_OK(MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Continue(&r[0], see, &seen, &status[0], round ? late : cr));
		free_it(&r[0]);
		others();
		CHECK_OK(MPI_Wait(round ? &late : &cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_EQ(value[0], 12);
		status_is_of(&status[0], check_previous(), TAG, sizeof(int));
	}
	check_begin("complete, and the continuation not run");
	seen.runs = 0;
	for (int i = 0; i < 2; i++)
		r[i] = receive(&value[i], TAG + i, MPI_COMM_WORLD);
	CHECK_OK(MPI_Continueall(2, r, see, &seen, status, cr));
	deliver(13, TAG);
	test_pending(cr);
	MPI_Barrier(MPI_COMM_WORLD);
	test_pending(cr);
	free_it(&r[0]); /* its operation is through */
	free_it(&r[1]); /* and this one's is not */
	others();
	MPI_Barrier(MPI_COMM_WORLD);
	deliver(14, TAG + 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(value[i], 13 + i);
		status_is_of(&status[i], check_previous(), TAG + i, sizeof(int));
	}
}

static int ran, rc_seen;

static int revised(int rc, void *data)
{
	(void)data;
	ran++;
	rc_seen = rc;
	return MPI_SUCCESS;
}

/* The first one fails: its continuation runs at once, the second one's request is given back when it completes. */
static void check_failed(void)
{
	int in[2], out[2] = {1, 2};
	MPI_Errhandler handler;
	MPI_Status status[2];
	MPI_Request r[2], cr;
	MPI_Comm comm;

	check_begin("one that fails");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	ran = told = 0;
	for (int i = 0; i < 2; i++)
		r[i] = receive(&in[i], TAG + i, comm);
	CHECK_OK(MPIX_Continueall(2, r, revised, NULL, MPIX_CONT_INVOKE_FAILED, status, cr));
	free_it(&r[0]);
	free_it(&r[1]);
	CHECK_EQ(told, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out, 2, MPI_INT, check_next(), TAG, comm);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	CHECK_EQ(ran, 1);
	CHECK_EQ(rc_seen, MPI_ERR_TRUNCATE);
	CHECK_EQ(told, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out, 1, MPI_INT, check_next(), TAG + 1, comm);
	MPI_Barrier(MPI_COMM_WORLD);
	others();
	CHECK_EQ(ran, 1);
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&handler);
	MPI_Comm_free(&comm);
}

/* They are given back: the same few handles come again and again. */
static void check_given_back(MPI_Request cr)
{
	enum { ROUNDS = 1000 };
	static MPI_Request handles[ROUNDS];
	struct seen seen = {0};
	int value, distinct = 0;

	check_begin("given back");
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request r = receive(&value, TAG, MPI_COMM_WORLD);
		bool known = false;

		for (int k = 0; k < distinct; k++)
			known |= handles[k] == r;
		if (!known)
			handles[distinct++] = r;
		CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
		free_it(&r);
		deliver(i, TAG);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(value, i);
		CHECK_EQ(seen.runs, i + 1);
	}
	CHECK(distinct < ROUNDS / 2);
}

static MPI_Request racing;

/* The request is being freed, and has completed before that takes hold. */
static void complete_it(const char *name)
{
	int flag = 0;

	if (strcmp(name, "hooked_free") != 0)
		return;
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	deliver(15, TAG);
	while (!flag) {
		MPI_Status status = {.MPI_TAG = 0};

		/* The continuation's request is inactive. */
		CHECK_OK(MPI_Test(&racing, &flag, &status));
	}
}

static void check_race(MPI_Request cr)
{
	struct seen seen = {0};
	MPI_Status status;
	MPI_Request r;
	int value;

	if (!check_native() || check_size > 1) /* the message is to come from this very call */
		return;
	check_begin("completed while it is being freed");
	r = racing = receive(&value, TAG, MPI_COMM_WORLD);
	CHECK_OK(MPI_Continue(&r, see, &seen, &status, cr));
	__atomic_store_n(&contd__testpoint_hook, complete_it, __ATOMIC_RELEASE);
	free_it(&r);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(value, 15);
	status_is_of(&status, check_previous(), TAG, sizeof(int));
	others();
}

int main(int argc, char **argv)
{
	MPI_Request cr[3];

	check_init(&argc, &argv, LEVEL);
	cr[0] = check_plain_cr();
	cr[1] = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	cr[2] = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	for (int i = 0; i < 3; i++) {
		check_receive(cr[i], false);
		check_receive(cr[i], true);
		check_send(cr[i]);
		check_inactive(cr[i], cr[2]);
		check_given_back(cr[i]);
		check_race(cr[i]);
	}
	if (check_size > 1) /* of a message to itself that is too long Open MPI (4.1) does not tell */
		check_failed();
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Request_free(&cr[i]));
	return check_fini();
}
