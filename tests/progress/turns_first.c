/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that has called MPI_Init_thread() is not the program's first, and ends: by a return, or cancelled in a
 * call of MPI. Then there is progress for the other threads.
 *
 *     turns_first LEVEL returns|cancelled    LEVEL: serialized, multiple
 *
 * It needs CONTD_PROGRESS_ALLOW=user-code, for an error handler.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);

static uint64_t times;
static uint32_t step;
static bool cancelled;
static int wanted, level;

/* In the place of MPI's progress. */
void contd_test_progress(void)
{
	__atomic_fetch_add(&times, 1, __ATOMIC_SEQ_CST);
}

static void await_step(uint32_t which)
{
	while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < which)
		usleep(1000);
}

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where, (void)code;
	__atomic_store_n(&step, 3, __ATOMIC_SEQ_CST);
	for (;;)
		usleep(1000);
}

static void *first(void *unused)
{
	MPI_Errhandler errhandler;

	MPI_Init_thread(NULL, NULL, wanted, &level);
	__atomic_store_n(&step, 1, __ATOMIC_SEQ_CST);
	await_step(2);
	if (cancelled) {
		MPI_Comm_create_errhandler(on_error, &errhandler);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
		MPI_Comm_split(MPI_COMM_SELF, 0, 0, NULL); /* an error */
	}
	MPI_Barrier(MPI_COMM_SELF); /* it is the last one that calls */
	__atomic_store_n(&step, 3, __ATOMIC_SEQ_CST);
	return unused;
}

int main(int argc, char **argv)
{
	double give_up;
	uint64_t before;
	pthread_t thread;

	wanted = argc > 1 && !strcmp(argv[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
	cancelled = argc > 2 && !strcmp(argv[2], "cancelled");
	pthread_create(&thread, NULL, first, NULL);
	await_step(1);
	if (level != wanted) {
		printf("this MPI has no such level\n");
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Barrier(MPI_COMM_SELF);
	__atomic_store_n(&step, 2, __ATOMIC_SEQ_CST);
	await_step(3);
	if (cancelled)
		pthread_cancel(thread);
	pthread_join(thread, NULL);
	before = __atomic_load_n(&times, __ATOMIC_SEQ_CST);
	for (give_up = now_s() + 30; now_s() < give_up && __atomic_load_n(&times, __ATOMIC_SEQ_CST) < before + 10;)
		spin(20000);
	if (__atomic_load_n(&times, __ATOMIC_SEQ_CST) < before + 10) {
		printf("no progress when the first thread has ended\n");
		fflush(stdout);
		_exit(1);
	}
	_exit(0); /* the thread that may call MPI_Finalize() has gone */
}
