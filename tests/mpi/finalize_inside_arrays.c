/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * As finalize_inside.c, with calls about arrays of requests: each is made in a callback that the one before runs, and
 * the last callback calls MPI_Finalize. All of them return, and ask MPI for nothing more.
 */
#include "check.h"

#ifndef QUERY
#define QUERY(two) MPIX_Request_get_status_all(2, two, &flag, statuses)
#define QUERIED (flag == 1)
#endif

enum call { QUERIES, TESTALL, TESTANY, TESTSOME, WAITALL, WAITANY, WAITSOME, CALLS };

static MPI_Request cr[CALLS];
static int called[CALLS], runs, returned, failed = -1;
static bool frees; /* the callbacks free their continuation requests before */

static int callback(int error, void *data);

/* The call runs the continuation of its CR, which makes the next one. */
static void make(enum call call)
{
	MPI_Request two[2] = {MPI_REQUEST_NULL, cr[call]}, none = MPI_REQUEST_NULL;
	MPI_Status statuses[2];
	int n = -1, flag = -1, rc = -1, indices[2];

	called[call] = call;
	CHECK_OK(MPI_Start(&cr[call]));
	CHECK_OK(MPIX_Continue(&none, callback, &called[call], MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cr[call]));
	switch (call) {
	case QUERIES:
		rc = QUERY(two);
		CHECK(QUERIED);
		break;
	case TESTALL:
		rc = MPI_Testall(2, two, &flag, statuses);
		CHECK_EQ(flag, 1);
		break;
	case TESTANY:
		rc = MPI_Testany(2, two, &n, &flag, statuses);
		CHECK_EQ(flag, 1);
		CHECK_EQ(n, 1);
		break;
	case TESTSOME:
		rc = MPI_Testsome(2, two, &n, indices, statuses);
		CHECK_EQ(n, 1);
		CHECK_EQ(indices[0], 1);
		break;
	case WAITALL:
		rc = MPI_Waitall(2, two, statuses);
		break;
	case WAITANY:
		rc = MPI_Waitany(2, two, &n, statuses);
		CHECK_EQ(n, 1);
		break;
	default:
		rc = MPI_Waitsome(2, two, &n, indices, MPI_STATUSES_IGNORE);
		CHECK_EQ(n, 1);
		CHECK_EQ(indices[0], 1);
		break;
	}
	CHECK_EQ(rc, MPI_SUCCESS);
	returned++;
}

static int callback(int error, void *data)
{
	enum call call = *(enum call *)data;

	CHECK_EQ(error, MPI_SUCCESS);
	runs++;
	if (frees)
		CHECK_OK(MPI_Request_free(&cr[call]));
	if (call + 1 < CALLS)
		make(call + 1);
	else
		failed = check_finalize_inside();
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
#ifdef FREES
	frees = true;
#endif
	check_begin("calls in callbacks");
	for (int i = 0; i < CALLS; i++)
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr[i]));
	make(QUERIES);
	CHECK_EQ(runs, CALLS);
	CHECK_EQ(returned, CALLS);
	return failed || check_failures;
}
