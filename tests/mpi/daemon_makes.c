/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* A continuation that runs on the daemon thread makes a CR with mpi_continue_async_signal_safe; the main thread uses
 * it. */
#include <pthread.h>

#include "check.h"

#define TAG 95

static pthread_t mains;
static atomic_int ran, later;
static int rc = -1, elsewhere;
static MPI_Info key;
static MPI_Request made;

static void make(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	elsewhere = !pthread_equal(pthread_self(), mains);
	rc = MPI_Continue_init(key, &made);
	atomic_store(&ran, 1);
}

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	atomic_fetch_add(&later, 1);
}

static void message(MPI_Continue_cb_function *cb, MPI_Request cr)
{
	static int in, out = 3;
	MPI_Request r;

	MPI_Irecv(&in, 1, MPI_INT, check_rank, TAG, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, cb, NULL, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, check_rank, TAG, MPI_COMM_WORLD));
}

static void on_daemon(MPI_Request cr)
{
	MPI_Request none = MPI_REQUEST_NULL;

	atomic_store(&ran, 0);
	CHECK_OK(MPI_Continue(&none, make, NULL, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 10000 && !atomic_load(&ran); i++)
		usleep(1000);
	CHECK(atomic_load(&ran));
}

int main(int argc, char **argv)
{
	MPI_Request cr;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	mains = pthread_self();
	MPI_Info_create(&key);
	MPI_Info_set(key, "mpi_continue_async_signal_safe", "true");
	check_begin("made on the daemon thread");
	cr = check_cr("mpi_continue_thread", "any", "mpi_continue_enqueue_complete", "true");
	CHECK_EQ(contd_daemon_start(NULL), 0);
	on_daemon(cr);
	CHECK(elsewhere);
	CHECK_OK(rc);
	if (rc == MPI_SUCCESS) {
		check_begin("used on the main thread");
		message(count, made);
		CHECK_OK(MPI_Wait(&made, MPI_STATUS_IGNORE));
		CHECK_EQ(atomic_load(&later), 1);
		CHECK_OK(MPI_Request_free(&made));
	}
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_EQ(contd_daemon_stop(), 0);
	MPI_Info_free(&key);
	return check_fini();
}
