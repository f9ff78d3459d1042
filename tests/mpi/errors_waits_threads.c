/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* both processors: two threads race */
/*
 * Two threads wait for one revised CR that has failed. One of them is told; the other one starts the CR again at once,
 * which is never refused. For two seconds.
 */
#include <pthread.h>
#include <time.h>

#include "errors.h"

#define SECONDS 2

static MPI_Request cr;
static atomic_int go, done, started, told, refused;
static atomic_bool over;

static void wait_and_start(void)
{
	MPI_Request mine = cr;
	int rc = MPI_Wait(&mine, MPI_STATUS_IGNORE);

	if (rc != MPI_SUCCESS) {
		CHECK_EQ(class_of(rc), MPI_ERR_OTHER);
		atomic_fetch_add(&told, 1);
	} else if (!atomic_exchange(&started, 1) && MPI_Start(&cr) != MPI_SUCCESS) {
		atomic_fetch_add(&refused, 1);
		atomic_store(&started, 0);
	}
	CHECK(mine == cr);
}

static void *thread(void *unused)
{
	for (int round = 1;; round++) {
		while (atomic_load(&go) < round)
			if (atomic_load(&over))
				return unused;
		wait_and_start();
		atomic_store(&done, round);
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double end;
	pthread_t other;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	check_begin("two threads wait for a CR that has failed");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* it must not be told, but if it is, go on */
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	pthread_create(&other, NULL, thread, NULL);
	end = now() + SECONDS;
	for (int round = 1; now() < end && !atomic_load(&check_failures); round++) {
		MPI_Request none = MPI_REQUEST_NULL;
		int failed = 2;
		void *data[2];

		CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
		atomic_store(&started, 0);
		atomic_store(&told, 0);
		atomic_store(&go, round);
		wait_and_start();
		while (atomic_load(&done) < round)
			;
		CHECK_EQ(told, 1);
		CHECK_EQ(refused, 0);
		CHECK_OK(MPIX_Continue_get_failed(cr, &failed, data));
		CHECK_EQ(failed, 1);
		if (!started) {
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Start(&cr));
		}
	}
	atomic_store(&over, true);
	pthread_join(other, NULL);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
