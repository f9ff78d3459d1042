/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * omp_tasks: OpenMP tasks that communicate. A receiving task ends at once but is detached. For tasks that depend on it,
 * it is complete when the continuation of its receive fulfils its event. No thread waits for a message. A thread beside
 * OpenMP's makes progress. After the draft's example 3.23.
 *
 * Differences from the printed example, which has these errors:
 * - The progress thread ended together with the tasks, but the sends were not waited for. So their continuations were
 *   lost. And if the sender of a large message made no more MPI calls, the message never arrived, and the receiver
 *   hung. Here the main thread says that it registers no more, and the progress thread ends when the continuation
 *   request is complete after that.
 * - Two threads call MPI. MPI_Init promises that only one does; this needs MPI_THREAD_MULTIPLE.
 * - The flag that ends the thread was volatile, which orders nothing between threads. Here it is atomic.
 * - All sending tasks shared one request variable. Here each has a separate one.
 * - The receiving task allocated into its own copy of the pointer, and the processing task read another copy, which was
 *   never set. Here there is one array, allocated before there are tasks.
 * - OpenMP's type is omp_event_handle_t. It goes through the callback's pointer as an integer of a pointer's size.
 * - There was one message a rank, and no check. Here there are MESSAGES, and every value is checked.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <omp.h>
#include <pthread.h>

#include <contd/mpi.h>

#define VALUES 1024
#define MESSAGES 32 /* to each rank; the tag is the message's number */
#define NAP_NS 20000

static double value_of(int rank, int message, int i)
{
	return rank * 1e6 + message * 1e3 + i * 0.25;
}

static void *must_alloc(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		fprintf(stderr, "omp_tasks: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* ----------------------------------------------------------------------------------------------------- progress --- */

struct progress {
	MPI_Request cr;
	atomic_bool closed; /* nothing more will be registered */
};

static void *progress_main(void *arg)
{
	struct progress *p = arg;
	struct timespec nap = {0, NAP_NS};

	for (;;) {
		/* Before the test: only what is complete after the closing has everything behind it. */
		bool closed = atomic_load(&p->closed);
		int complete;

		MPI_Test(&p->cr, &complete, MPI_STATUS_IGNORE);
		if (closed && complete)
			return NULL;
		nanosleep(&nap, NULL); /* leaves the core, and MPI's locks, to the tasks */
	}
}

/* ------------------------------------------------------------------------------------------------ continuations --- */

static atomic_int sends_finished, receives_finished, values_wrong;

static void sent(MPI_Status *status, void *data)
{
	(void)status;
	free(data);
	atomic_fetch_add(&sends_finished, 1);
}

static void received(MPI_Status *status, void *data)
{
	(void)status;
	atomic_fetch_add(&receives_finished, 1);
	/* Now the tasks that depend on the receiving one may start. The thread need not be one of OpenMP's. */
	omp_fulfill_event((omp_event_handle_t)(uintptr_t)data);
}

/* -------------------------------------------------------------------------------------------------------- tasks --- */

static void send_task(int to, int message, MPI_Request cr)
{
	double *values = must_alloc(VALUES * sizeof(double));
	MPI_Request request;

	for (int i = 0; i < VALUES; i++)
		values[i] = value_of(to, message, i);
	MPI_Isend(values, VALUES, MPI_DOUBLE, to, message, MPI_COMM_WORLD, &request);
	MPI_Continue(&request, sent, values, MPI_STATUS_IGNORE, cr);
}

static void receive_task(double *values, int message, omp_event_handle_t event, MPI_Request cr)
{
	MPI_Request request;

	MPI_Irecv(values, VALUES, MPI_DOUBLE, 0, message, MPI_COMM_WORLD, &request);
	MPI_Continue(&request, received, (void *)(uintptr_t)event, MPI_STATUS_IGNORE, cr);
}

static void check_task(const double *values, int rank, int message)
{
	for (int i = 0; i < VALUES; i++)
		if (values[i] != value_of(rank, message, i))
			atomic_fetch_add(&values_wrong, 1);
}

static void sender_tasks(int ranks, MPI_Request cr)
{
	for (int message = 0; message < MESSAGES; message++) {
		for (int to = 1; to < ranks; to++) {
#pragma omp task
			send_task(to, message, cr);
		}
	}
}

static void receiver_tasks(double (*values)[VALUES], int rank, MPI_Request cr)
{
	for (int message = 0; message < MESSAGES; message++) {
		omp_event_handle_t event;

#pragma omp task depend(out : values[message]) detach(event)
		receive_task(values[message], message, event, cr);
#pragma omp task depend(in : values[message])
		check_task(values[message], rank, message);
	}
}

/* --------------------------------------------------------------------------------------------------------- main --- */

/* What this rank's tasks had to do. */
static bool check(int rank, int ranks)
{
	int sends = rank == 0 ? MESSAGES * (ranks - 1) : 0, receives = rank == 0 ? 0 : MESSAGES;

	if (sends_finished == sends && receives_finished == receives && values_wrong == 0)
		return true;
	fprintf(stderr, "omp_tasks: rank %d: %d of %d sends and %d of %d receives finished, %d values are wrong\n",
		rank, sends_finished, sends, receives_finished, receives, values_wrong);
	return false;
}

int main(int argc, char **argv)
{
	int level, rank, ranks, threads = 0, good, all_good;
	double(*values)[VALUES] = NULL;
	struct progress progress;
	pthread_t thread;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "omp_tasks: this MPI does not grant MPI_THREAD_MULTIPLE\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank != 0)
		values = must_alloc(MESSAGES * sizeof(values[0]));
	MPI_Continue_init(MPI_INFO_NULL, &progress.cr);
	atomic_init(&progress.closed, false);
	if (pthread_create(&thread, NULL, progress_main, &progress)) {
		fprintf(stderr, "omp_tasks: cannot create a thread\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}

#pragma omp parallel
#pragma omp master
	{
		threads = omp_get_num_threads();
		if (rank == 0)
			sender_tasks(ranks, progress.cr);
		else
			receiver_tasks(values, rank, progress.cr);
	}
	/* All tasks are complete, detached ones too. Their sends need not be: that is what the thread waits for. */
	atomic_store(&progress.closed, true);
	pthread_join(thread, NULL);

	MPI_Request_free(&progress.cr);
	free(values);
	good = check(rank, ranks);
	MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	if (rank == 0 && all_good)
		printf("omp_tasks: %d messages to %d ranks, in tasks of %d threads\n", sends_finished, ranks - 1,
		       threads);
	MPI_Finalize();
	return all_good ? 0 : 1;
}
