/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Several threads at a time complete one CR that has failed, each in an array of its own. The other requests of the
 * arrays stay there.
 */
#include "check.h"

#include <pthread.h>

#define THREADS 3
#define TURNS 100000
#define DRAIN 1024 /* turns after which a thread takes what has failed */

static MPI_Request cr;
static atomic_int reported;

static int fails(int error, void *data)
{
	(void)error, (void)data;
	return MPI_ERR_OTHER;
}

static void take_failed(void)
{
	void *data[64];
	int n = 64;

	while (n == 64)
		CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
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
	bool good = true;

	MPI_Irecv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &receive);
	requests[1] = receive;
	for (int i = 0; i < TURNS && good; i++) {
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

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("one CR in three arrays");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&reported) > 0);
	take_failed();
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
