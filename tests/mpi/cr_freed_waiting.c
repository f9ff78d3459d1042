/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A callback frees its own CR while a call waits for the CR, tests it, or asks about it. The next callback makes many
 * CRs. If memory of the first one were given back too early, it would be that of a CR that is not complete. The call
 * ends as if the CR were complete, also if the callback fails: no call reports that, and errors of other CRs are
 * reported on all threads.
 */
#include "check.h"

#include <pthread.h>

#define TAG 31

#ifndef LEVEL
#define LEVEL MPI_THREAD_SINGLE
#endif

enum { FREED = 100, KEPT = 100 }; /* more than dead groups are collected before their memory is given back */
enum call { WAIT, TEST, WAITALL, TESTALL, WAITANY, WAITSOME, GET_STATUS, CALLS };
static const char *const name[CALLS] = {"Wait", "Test", "Waitall", "Testall", "Waitany", "Waitsome", "Get_status"};
static MPI_Request cr, second, later[KEPT], given;
static int runs, others, result, in, made;

static void send_to_self(int n)
{
	for (int i = 0, out = 1; i < n; i++)
		CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF));
}

static MPI_Request revised(void)
{
	MPI_Request new;

	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &new));
	CHECK_OK(MPI_Start(&new));
	return new;
}

static int count(int rc, void *data)
{
	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	others++;
	return MPI_SUCCESS;
}

static int frees(int rc, void *data)
{
	MPI_Request own = cr;

	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	CHECK_OK(MPI_Request_free(&own));
	cr = own;
	runs++;
	return result;
}

/* The memory of the dead is given back here, and used again. */
static int makes(int rc, void *data)
{
	(void)data;
	CHECK_EQ(rc, MPI_SUCCESS);
	for (int i = 0; i < FREED; i++) {
		MPI_Request dead = revised();

		CHECK_OK(MPI_Request_free(&dead));
	}
	for (made = 0; made < KEPT; made++) {
		MPI_Request r;

		later[made] = revised();
		CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &r));
		CHECK_OK(MPIX_Continue(&r, count, NULL, 0, MPI_STATUS_IGNORE, later[made]));
	}
	return MPI_SUCCESS;
}

static int make_call(enum call call)
{
	MPI_Request pair[2] = {MPI_REQUEST_NULL, cr};
	int flag = 0, at, indices[2];

	switch (call) {
	case WAIT:
		return MPI_Wait(&cr, MPI_STATUS_IGNORE);
	case TEST:
		return MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	case WAITALL:
		return MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
	case TESTALL:
		return MPI_Testall(2, pair, &flag, MPI_STATUSES_IGNORE);
	case WAITANY:
		return MPI_Waitany(2, pair, &at, MPI_STATUS_IGNORE);
	case WAITSOME:
		return MPI_Waitsome(2, pair, &flag, indices, MPI_STATUSES_IGNORE);
	default:
		return MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE);
	}
}

/* early: the continuation is ready before the call, and another one, too. Otherwise the call finds both complete. */
static void one(enum call call, bool early)
{
	MPI_Request r;
	int flag;

	check_begin(name[call]);
	runs = others = made = 0;
	cr = revised();
	second = revised();
	CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r));
	CHECK_OK(MPIX_Continue(&r, frees, NULL, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r));
	CHECK_OK(MPIX_Continue(&r, makes, NULL, 0, MPI_STATUS_IGNORE, second));
	send_to_self(2);
	if (early) {
		MPI_Request none = MPI_REQUEST_NULL;

		CHECK_OK(MPIX_Continue(&none, count, NULL, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, second));
	}
	CHECK_OK(make_call(call));
	while (!runs || made < KEPT)
		CHECK_OK(MPI_Test(&second, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK(cr == MPI_REQUEST_NULL);
	for (int i = 0, out = 1; i < KEPT; i++)
		CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF));
	for (int i = 0; i < KEPT; i++) {
		CHECK_OK(MPI_Wait(&later[i], MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&later[i]));
	}
	CHECK_EQ(others, KEPT + early);
	CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&second));
}

static int fails(int rc, void *data)
{
	(void)rc, (void)data;
	return MPI_ERR_OTHER;
}

/* Another CR fails, and the error is reported on this thread. */
static void *reports(void *unused)
{
	MPI_Request none = MPI_REQUEST_NULL;

	(void)unused;
	given = revised();
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, given));
	CHECK_EQ(MPI_Wait(&given, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
	CHECK_OK(MPI_Request_free(&given));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_init(&argc, &argv, LEVEL);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	for (result = MPI_SUCCESS; result <= 1; result++)
		for (int call = 0; call < CALLS; call++)
			for (int early = 0; early < 2; early++)
				one((enum call)call, early);
	check_begin("errors of others");
	reports(NULL);
	if (LEVEL == MPI_THREAD_MULTIPLE) {
		CHECK_EQ(pthread_create(&thread, NULL, reports, NULL), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	return check_fini();
}
