/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * An error handler uses the array of the call that has failed, with a CR among its requests: complete requests are null
 * there, as without a CR, wherever the CR stands. The CR can be tested. A request that the handler begins in the place
 * of a complete one stays. Nor do functions of generalized requests find anything else. The same for a call that
 * attaches: the handler completes another request of the array, or begins some.
 */
#include "errors.h"

enum call { TESTANY, WAITANY, TESTALL, WAITALL, TESTSOME, WAITSOME, CALLS };
enum { FIRST, FAILS, LAST, OTHERS, REQUESTS = OTHERS + 1 };

static const char *const name[CALLS] = {"MPI_Testany", "MPI_Waitany",  "MPI_Testall",
					"MPI_Waitall", "MPI_Testsome", "MPI_Waitsome"};
static MPI_Comm comm;
static MPI_Request requests[REQUESTS], cr;
static int told, in[REQUESTS], cr_at, ran;
static void (*in_handler)(void);

static void on_error(MPI_Comm *which, int *error, ...)
{
	(void)which, (void)error;
	if (told++ == 0)
		in_handler();
}

static int complete(enum call call)
{
	int rc = MPI_SUCCESS, flag, index, indices[REQUESTS];
	MPI_Status statuses[REQUESTS];

	for (int i = 0; i < 1000 && rc == MPI_SUCCESS; i++) {
		if (call == TESTANY)
			rc = MPI_Testany(REQUESTS, requests, &index, &flag, statuses);
		else if (call == WAITANY)
			rc = MPI_Waitany(REQUESTS, requests, &index, statuses);
		else if (call == TESTALL)
			rc = MPI_Testall(REQUESTS, requests, &flag, statuses);
		else if (call == WAITALL)
			rc = MPI_Waitall(REQUESTS, requests, statuses);
		else if (call == TESTSOME)
			rc = MPI_Testsome(REQUESTS, requests, &flag, indices, statuses);
		else
			rc = MPI_Waitsome(REQUESTS, requests, &flag, indices, statuses);
	}
	return rc;
}

/* Another operation takes the place of a request that is gone; then each of the array is tested. */
static void tests_all(void)
{
	MPI_Request begun;
	int unused, flag;

	MPI_Irecv(&unused, 1, MPI_INT, 0, 50, comm, &begun);
	for (int i = 0; i < REQUESTS; i++) {
		flag = 0;
		CHECK_OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
	}
	CHECK(begun != MPI_REQUEST_NULL);
	CHECK_OK(MPI_Test(&begun, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Cancel(&begun));
	CHECK_OK(MPI_Wait(&begun, MPI_STATUS_IGNORE));
}

/* In the place of the first one that is complete. */
static void begins(void)
{
	int at = cr_at == 0 ? 1 : 0;

	if (requests[at] == MPI_REQUEST_NULL)
		MPI_Irecv(&in[at], 1, MPI_INT, 0, 40, comm, &requests[at]);
}

static void array(enum call call, int place, void (*handler)(void))
{
	int tag = 0, out = 7, first = place == 0 ? 1 : 0;
	MPI_Request sends[OTHERS];

	check_begin(name[call]);
	told = 0;
	in_handler = handler;
	cr_at = place;
	cr = check_plain_cr();
	for (int i = 0; i < REQUESTS; i++) {
		if (i == place) {
			requests[i] = cr;
			continue;
		}
		if (tag == FAILS)
			sends[tag] = send_too_much(tag, comm);
		else
			MPI_Isend(&out, 1, MPI_INT, 0, tag, comm, &sends[tag]);
		MPI_Irecv(&in[i], 1, MPI_INT, 0, tag++, comm, &requests[i]);
	}
	make_progress(comm);
	CHECK_EQ(class_of(complete(call)), call <= WAITANY ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS);
	CHECK_EQ(told, 1);
	CHECK(requests[place] == cr);
	/* Some calls of MPI's leave a failed one to the next call. */
	if (handler == begins && requests[first] != MPI_REQUEST_NULL) {
		int flag = 0;

		MPI_Test(&requests[first], &flag, MPI_STATUS_IGNORE);
		if (!flag) {
			MPI_Send(&out, 1, MPI_INT, 0, 40, comm);
			CHECK_OK(MPI_Wait(&requests[first], MPI_STATUS_IGNORE));
			CHECK_EQ(in[first], 7);
		}
	}
	for (int i = 0; i < REQUESTS; i++)
		if (i != place && requests[i] != MPI_REQUEST_NULL)
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
	MPI_Waitall(OTHERS, sends, MPI_STATUSES_IGNORE);
	CHECK_OK(MPI_Request_free(&cr));
}

/* ----------------------------------------------------------------------------------------- generalized requests --- */

static int query(void *unused, MPI_Status *status)
{
	(void)unused;
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	return MPI_ERR_OTHER;
}

static int freed(void *count)
{
	++*(int *)count;
	CHECK(requests[OTHERS] == cr);
	return MPI_SUCCESS;
}

static int cancelled(void *unused, int flag)
{
	(void)unused, (void)flag;
	return MPI_SUCCESS;
}

static void nothing(void)
{
}

/* The CR has failed, and a generalized request beside it: its free_fn finds the CR in the last place. */
static void generalized(enum call call)
{
	int frees = 0;

	check_begin("a generalized request");
	told = 0;
	in_handler = nothing;
	cr = failed_cr();
	for (int i = 0; i < REQUESTS; i++)
		requests[i] = MPI_REQUEST_NULL;
	requests[OTHERS] = cr;
	MPI_Grequest_start(query, freed, cancelled, &frees, &requests[0]);
	MPI_Grequest_complete(requests[0]);
	for (int i = 0; i < 3 && !frees; i++)
		complete(call); /* of the CR or of the request, or of both */
	CHECK_EQ(frees, 1);
	CHECK(requests[0] == MPI_REQUEST_NULL);
	CHECK(requests[OTHERS] == cr);
	free_failed(cr);
}

/* ------------------------------------------------------------------------------------------------ at the attach --- */

static void completes_last(void)
{
	int flag;

	MPI_Test(&requests[LAST], &flag, MPI_STATUS_IGNORE);
}

static void begins_others(void)
{
	for (int i = 1; i < REQUESTS; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, 60 + i, comm, &requests[i]);
}

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
}

static void attach(void (*handler)(void))
{
	MPI_Request sends[2] = {send_too_much(1, comm), MPI_REQUEST_NULL};
	MPI_Status statuses[REQUESTS];
	int out = 5;

	check_begin("attaching");
	told = ran = 0;
	in_handler = handler;
	cr = check_plain_cr();
	for (int i = 0; i < REQUESTS; i++)
		requests[i] = MPI_REQUEST_NULL;
	MPI_Irecv(&in[0], 1, MPI_INT, 0, 1, comm, &requests[0]);
	if (handler == completes_last) {
		MPI_Isend(&out, 1, MPI_INT, 0, 2, comm, &sends[1]);
		MPI_Irecv(&in[LAST], 1, MPI_INT, 0, 2, comm, &requests[LAST]);
	}
	/* Portable: so that it is not known as begun just now, and is looked at. */
	for (int i = 0; i < 20; i++) {
		MPI_Request other;

		MPI_Irecv(&out, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &other);
		MPI_Wait(&other, MPI_STATUS_IGNORE);
	}
	out = 5;
	make_progress(comm);
	CHECK_OK(MPI_Continueall(REQUESTS, requests, count, NULL, statuses, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, 1);
	CHECK_EQ(told, 1);
	for (int i = 1; i < REQUESTS && handler == begins_others; i++) {
		CHECK(requests[i] != MPI_REQUEST_NULL);
		MPI_Send(&out, 1, MPI_INT, 0, 60 + i, comm);
		CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
		CHECK_EQ(in[i], 5);
	}
	MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	tell_all(comm, on_error);
	for (int call = 0; call < CALLS; call++)
		for (int place = 0; place < REQUESTS; place++) {
			array(call, place, tests_all);
			array(call, place, begins);
		}
	for (int call = 0; call < CALLS; call++)
		generalized(call);
	attach(completes_last);
	attach(begins_others);
	MPI_Comm_free(&comm);
	return check_fini();
}
