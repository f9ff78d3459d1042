/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A continuation request with mpi_continue_async_signal_safe that a thread makes which ends: even so the thread that
 * uses it is interrupted, without any other call. Once it detaches itself it is left alone.
 */
#include <pthread.h>
#include <time.h>

#include "check.h"

#define LIMIT_SECONDS 20

static MPI_Request cr;
static atomic_int runs, computing;
static pthread_t ran_on;
static int message = 17, received;

static void arrived(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	ran_on = pthread_self();
	atomic_fetch_add(&runs, 1);
}

static void *make(void *data)
{
	(void)data;
	cr = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	return NULL;
}

static void *send_it(void *data)
{
	(void)data;
	while (!atomic_load(&computing))
		usleep(100);
	usleep(20000);
	CHECK_OK(MPI_Send(&message, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
	return NULL;
}

/* Nothing is called but the clock. */
static void compute(void)
{
	time_t limit = time(NULL) + LIMIT_SECONDS;

	atomic_store(&computing, 1);
	while (!atomic_load(&runs) && time(NULL) < limit)
		;
}

static void *run(void *(*f)(void *))
{
	pthread_t *thread = malloc(sizeof(*thread));

	CHECK_EQ(pthread_create(thread, NULL, f, NULL), 0);
	return thread;
}

static void join(void *thread)
{
	pthread_join(*(pthread_t *)thread, NULL);
	free(thread);
}

int main(int argc, char **argv)
{
	MPI_Status status;
	MPI_Request r;
	void *sender;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	join(run(make));
	sender = run(send_it);
	MPI_Irecv(&received, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, arrived, NULL, &status, cr));
	compute();
	CHECK_EQ(atomic_load(&runs), 1);
	CHECK(pthread_equal(ran_on, pthread_self()));
	CHECK_EQ(received, 17);
	join(sender);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	/* The program's own wish. */
	CHECK_EQ(contd_thread_detach(), 0);
	MPI_Irecv(&received, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, arrived, NULL, &status, cr));
	CHECK_OK(MPI_Send(&message, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(contd_thread_detach() != 0);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
