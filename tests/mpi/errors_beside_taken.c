/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on mpich: it loses error codes (4.0) where several threads have errors */
/*
 * A thread tests a CR that has failed, while others complete it beside a receive that fails, in arrays. Each call
 * returns the error that its status says.
 */
#include "errors.h"

#include <pthread.h>
#include <time.h>

#define SECONDS 3
#define DRAIN 1024 /* turns after which a thread takes what has failed */

static MPI_Request cr;
static MPI_Comm comm[2];

static void take_failed(void)
{
	void *data[64];
	int n = 64;

	while (n == 64)
		CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void *tests_alone(void *unused)
{
	time_t end = now() + SECONDS;
	MPI_Status status;
	bool good = true;
	int flag;

	(void)unused;
	for (int i = 0; now() < end && good; i++) {
		MPI_Request none = MPI_REQUEST_NULL;
		int rc;

		good = CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
		status.MPI_ERROR = MPI_SUCCESS;
		rc = MPI_Test(&cr, &flag, &status);
		good &= !flag || CHECK_EQ(rc, status.MPI_ERROR);
		if (i % DRAIN == 0)
			take_failed();
	}
	return NULL;
}

/* The CR comes first. */
static void *fails_beside(void *arg)
{
	MPI_Comm own = comm[(intptr_t)arg];
	time_t end = now() + SECONDS;
	bool good = true;

	while (now() < end && good) {
		MPI_Request requests[2] = {cr}, send;
		int in, index = -1, out[4] = {0};
		MPI_Status status;

		MPI_Isend(out, 4, MPI_INT, 0, 0, own, &send);
		MPI_Irecv(&in, 1, MPI_INT, 0, 0, own, &requests[1]);
		while (requests[1] != MPI_REQUEST_NULL && good) {
			int rc;

			status.MPI_ERROR = MPI_SUCCESS;
			rc = MPI_Waitany(2, requests, &index, &status);
			if (index == 1) /* MPI may leave the status's MPI_ERROR alone */
				good = CHECK_EQ(class_of(rc), MPI_ERR_TRUNCATE) &&
				       CHECK(requests[1] == MPI_REQUEST_NULL);
			else
				good = CHECK_EQ(rc, status.MPI_ERROR);
		}
		good &= CHECK(requests[0] == cr);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[3];

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("a CR alone, and beside what fails");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_SELF, &comm[i]);
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
	}
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_EQ(pthread_create(&threads[0], NULL, tests_alone, NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i + 1], NULL, fails_beside, (void *)(intptr_t)i), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	take_failed();
	CHECK_OK(MPI_Request_free(&cr));
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comm[i]);
	return check_fini();
}
