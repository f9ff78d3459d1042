/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Several threads at a time complete one CR that has failed, each in an array of its own. The other requests of the
 * arrays stay there. They also stay if another thread takes what has failed meanwhile. And what the status says, the
 * call returns.
 */
#include "errors.h"

#include <pthread.h>
#include <time.h>

#define THREADS 3
#define SECONDS 2  /* each section */
#define DRAIN 1024 /* turns after which a thread takes what has failed */

static MPI_Request cr, made; /* the same */
static atomic_int reported, over;

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

/* The second request is pending. Each takes its turn in another order. */
static void turn(int i, MPI_Request *requests)
{
	int index = -1, flag = 0, count = 0, indices[3];
	MPI_Status statuses[3];

	if (i & 1) {
		if (MPI_Testany(3, requests, &index, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			atomic_fetch_add(&reported, 1);
	} else if (MPI_Testsome(3, requests, &count, indices, statuses) != MPI_SUCCESS) {
		atomic_fetch_add(&reported, 1);
	}
}

static void *thread(void *arg)
{
	MPI_Request none, requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, cr}, receive;
	int in, tag = (int)(intptr_t)arg;
	time_t end = now() + SECONDS;
	bool good = true;

	MPI_Irecv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &receive);
	requests[1] = receive;
	for (int i = 0; now() < end && good; i++) {
		none = MPI_REQUEST_NULL;
		good = CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
		turn(i, requests);
		good &= CHECK(requests[1] == receive) && CHECK(requests[2] == cr);
		if (i % DRAIN == 0)
			take_failed();
	}
	MPI_Cancel(&receive);
	CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
	return NULL;
}

static void *taker(void *unused)
{
	(void)unused;
	while (!atomic_load(&over))
		take_failed();
	return NULL;
}

static void taken_meanwhile(void)
{
	MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, cr}, none, receive;
	time_t end = now() + SECONDS;
	pthread_t other;
	bool good = true;
	int in;

	check_begin("another thread takes what has failed");
	MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &receive);
	requests[1] = receive;
	CHECK_EQ(pthread_create(&other, NULL, taker, NULL), 0);
	while (now() < end && good) {
		none = MPI_REQUEST_NULL;
		good = CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
		turn(0, requests);
		good &= CHECK(requests[1] == receive) && CHECK(requests[2] == cr);
	}
	atomic_store(&over, 1);
	pthread_join(other, NULL);
	MPI_Cancel(&receive);
	CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
}

/* All by one variable. */
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
		good &= CHECK(cr == made) && (!flag || CHECK_EQ(rc, status.MPI_ERROR));
		if (i % DRAIN == 0)
			take_failed();
	}
	return NULL;
}

static void together(const char *name, void *(*start)(void *))
{
	pthread_t threads[THREADS];

	check_begin(name);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, start, (void *)(intptr_t)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	take_failed();
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	made = cr;
	together("one CR in three arrays", thread);
	CHECK(atomic_load(&reported) > 0);
	taken_meanwhile();
	together("one CR alone", tests_alone);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
