/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * MPI_THREAD_FUNNELED, and a second thread that polls contd all the time: continuations run there, but nothing of MPI's
 * is entered there, neither for progress nor to give requests back. The main thread is in MPI meanwhile.
 */
#include <pthread.h>

#include "check.h"
#include "base/testpoint.h"

#define ROUNDS 3000
#define PAIRS 8

static atomic_int stop, runs[ROUNDS * PAIRS], elsewhere, released, released_elsewhere;
static pthread_t main_thread;

static void count(MPI_Status *statuses, void *data)
{
	(void)statuses;
	atomic_fetch_add((atomic_int *)data, 1);
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&elsewhere, 1);
}

/* Requests are given back to MPI. */
static void at_testpoint(const char *name)
{
	if (strcmp(name, "set_release") != 0)
		return;
	atomic_fetch_add(&released, 1);
	if (!pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&released_elsewhere, 1);
}

static void *poll_all_the_time(void *arg)
{
	while (!atomic_load(&stop))
		CHECK(contd_poll(0) >= 0);
	return arg;
}

int main(int argc, char **argv)
{
	int in[PAIRS], out[PAIRS], flag;
	MPI_Request r[2], cr;
	pthread_t thread;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	check_unbind();
	check_begin("a second thread polls");
	main_thread = pthread_self();
	cr = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	contd__testpoint_hook = at_testpoint;
	if (pthread_create(&thread, NULL, poll_all_the_time, NULL))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < PAIRS; k++) {
			/* The receive is pending when its continuation is attached: it holds a request to give back. */
			out[k] = i * PAIRS + k;
			MPI_Irecv(&in[k], 1, MPI_INT, 0, k, MPI_COMM_SELF, &r[0]);
			CHECK_OK(MPI_Continue(&r[0], count, &runs[i * PAIRS + k], MPI_STATUS_IGNORE, cr));
			MPI_Isend(&out[k], 1, MPI_INT, 0, k, MPI_COMM_SELF, &r[1]);
			/*
			 * At first nothing but the other thread can run it: sending to oneself completes the receive.
			 * Only Open MPI tells of that; elsewhere a thread that may call MPI has to ask.
			 */
			while (i == 0 && check_native() && atomic_load(&runs[k]) == 0)
				sched_yield();
			MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		for (int k = 0; k < PAIRS; k++)
			CHECK_EQ(in[k], out[k]);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < ROUNDS * PAIRS; i++)
		CHECK_EQ(runs[i], 1);
	CHECK(elsewhere > 0 || !check_native()); /* it is about these */
	MPI_Test(&cr, &flag, MPI_STATUS_IGNORE); /* gives back what is left */
	CHECK_EQ(released, ROUNDS * PAIRS);
	CHECK_EQ(released_elsewhere, 0);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
