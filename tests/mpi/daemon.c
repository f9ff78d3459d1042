/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Low-latency mode by the one info key: the daemon makes progress, and an attached thread that computes outside of any
 * region is interrupted to run its async-signal-safe continuation.
 */
#include <pthread.h>

#include "check.h"

#define TAG 91
#define THREADS 3

struct arrival {
	_Atomic(pthread_t) thread;
	atomic_int runs, bad;
	MPI_Status status;
};

static pthread_t mains;
static atomic_int threads_ready, threads_stop;
static volatile double sink;

/* pthread_self() reads a register: it may be called in a handler. */
static void arrived(MPI_Status *status, void *data)
{
	struct arrival *a = data;

	if (status != &a->status || status->MPI_ERROR != MPI_SUCCESS || status->MPI_TAG != TAG)
		atomic_store(&a->bad, 1);
	atomic_store(&a->thread, pthread_self());
	atomic_fetch_add(&a->runs, 1);
}

static double some_work(double x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 1.000001 + 1e-9;
	return x;
}

static void compute_until(atomic_int *flag, int count)
{
	double x = 1;

	while (atomic_load(flag) < count)
		x = some_work(x);
	sink = x;
}

static void sender(int rounds, int bytes)
{
	char *out = calloc(1, (size_t)bytes + 1), go;

	for (int i = 0; i < rounds; i++) {
		MPI_Recv(&go, 1, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		usleep(1000); /* so that it most likely computes; the test is right where it does not */
		MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	}
	free(out);
}

/* The receiver's threads: `computing` of them, and the main one. */
static void receiver(MPI_Request cr, int rounds, int bytes, const pthread_t *others, int count)
{
	char *in = calloc(1, (size_t)bytes + 1), go = 1;

	for (int i = 0; i < rounds; i++) {
		struct arrival a = {0};
		MPI_Request r;
		bool known;

		MPI_Irecv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, arrived, &a, &a.status, cr));
		MPI_Send(&go, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
		compute_until(&a.runs, 1);
		known = pthread_equal(a.thread, mains);
		for (int k = 0; k < count; k++)
			known = known || pthread_equal(a.thread, others[k]);
		CHECK(known); /* thread rule `application`: not the daemon */
		CHECK(!a.bad);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(a.runs, 1);
	}
	free(in);
}

static void both(MPI_Request cr, int rounds, const pthread_t *others, int count)
{
	static const int sizes[] = {0, 8, 64 << 10, 1 << 20};
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};

	if (check_rank == 1)
		CHECK_EQ(contd_stats_get(&before), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (check_rank == 0)
			sender(rounds, sizes[i]);
		else
			receiver(cr, rounds, sizes[i], others, count);
	}
	if (check_rank == 1) {
		CHECK_EQ(contd_stats_get(&after), 0);
		CHECK(after.run_handler > before.run_handler);
		CHECK(after.notifications > before.notifications);
		CHECK_EQ(after.run_daemon, before.run_daemon);
		CHECK_EQ(after.run_region, 0);
	}
}

static void *computing(void *arg)
{
	double x = 1;

	(void)arg;
	CHECK_EQ(contd_thread_attach(NULL), 0);
	atomic_fetch_add(&threads_ready, 1);
	while (!atomic_load(&threads_stop))
		x = some_work(x);
	sink = x;
	CHECK_EQ(contd_thread_detach(), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t others[THREADS];
	MPI_Request cr;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (check_size != 2) {
		fprintf(stderr, "two ranks are needed\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	mains = pthread_self();

	check_begin("the info key alone");
	cr = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	both(cr, 20, NULL, 0);

	check_begin("several attached threads");
	if (check_rank == 1) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&others[i], NULL, computing, NULL);
		while (atomic_load(&threads_ready) < THREADS)
			usleep(100);
	}
	both(cr, 10, others, THREADS);

	/* The thread that waits is not attached and outside of MPI; only the others can be interrupted. */
	check_begin("the attached threads are others");
	if (check_rank == 1)
		CHECK_EQ(contd_thread_detach(), 0);
	both(cr, 10, others, THREADS);
	atomic_store(&threads_stop, 1);
	for (int i = 0; i < THREADS && check_rank == 1; i++)
		pthread_join(others[i], NULL);

	/* No thread is attached, so it waits for a call. */
	check_begin("nobody attached");
	{
		struct arrival a = {0};
		char in, out = 0;
		MPI_Request r;

		MPI_Irecv(&in, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD, &r);
		if (check_rank == 0)
			CHECK_EQ(contd_thread_detach(), 0);
		CHECK_OK(MPI_Continue(&r, arrived, &a, &a.status, cr));
		MPI_Send(&out, 1, MPI_BYTE, check_rank, TAG, MPI_COMM_WORLD);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(a.runs, 1);
		CHECK(pthread_equal(a.thread, mains));
	}
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
