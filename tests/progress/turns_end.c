/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread ends the program while a tick makes progress on another one: exit(3) waits until it is done, because the
 * handlers of atexit(3) take MPI's libraries down.
 *
 *     turns_end LEVEL    funneled, serialized
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);

static uint32_t inside_progress;

/* In the place of MPI's progress: it takes long. */
void contd_test_progress(void)
{
	__atomic_store_n(&inside_progress, 1, __ATOMIC_SEQ_CST);
	for (double end = now_s() + 0.1; now_s() < end;)
		spin(1000);
	__atomic_store_n(&inside_progress, 0, __ATOMIC_SEQ_CST);
}

/* Without MPI_Finalize(), as a program that has found an error; mpirun(1) would complain. */
static void at_end(void)
{
	bool together = false;

	for (double end = now_s() + 0.3; now_s() < end;)
		together |= __atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST);
	if (together)
		printf("progress while the program ends\n");
	fflush(stdout);
	_exit(together);
}

static void *ends(void *unused)
{
	double give_up = now_s() + 30;

	while (!__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		if (now_s() > give_up)
			_exit(2);
	exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int level;

	MPI_Init_thread(&argc, &argv,
			argc > 1 && !strcmp(argv[1], "serialized") ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED,
			&level);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	atexit(at_end);
	pthread_create(&thread, NULL, ends, NULL);
	for (;;)
		spin(10000);
}
