/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread ends the program while a tick makes progress on another one: exit(3) waits until it is done, because the
 * handlers of atexit(3) take MPI's libraries down.
 *
 *     turns_end LEVEL         funneled, serialized, multiple
 *     turns_end LEVEL abort   it calls MPI_Abort() instead, which waits, too; with tool.c behind the library
 *     turns_end LEVEL fork    it forks instead: that waits, too, because the child would have locks that nobody
 *                             releases; and the child does not wait for the tick that is none there
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
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

static bool aborts;

/* tool.c stands in the place of MPI's. */
EXPORTED int contd_test_abort(void);

int contd_test_abort(void)
{
	if (__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		printf("progress while the program aborts\n");
	fflush(stdout);
	_exit(__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST) ? 1 : 0);
}

static void *ends(void *unused)
{
	double give_up = now_s() + 30;

	while (!__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		if (now_s() > give_up)
			_exit(2);
	if (aborts)
		MPI_Abort(MPI_COMM_WORLD, 3);
	exit(0);
	return unused;
}

/* Of pthread_atfork(3), from before MPI_Init: it comes before those that are made in MPI_Init. */
static void in_child(void)
{
	alarm(20);
	flockfile(stderr);
	funlockfile(stderr);
}

static void *forks(void *unused)
{
	pid_t child;
	int status;

	while (!__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		;
	child = fork();
	if (child == 0)
		_exit(__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST) ? 8 : 7);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
		printf(WIFEXITED(status) ? "progress was under way in fork()\n" : "the child waits for a tick\n");
		fflush(stdout);
		_exit(1);
	}
	_exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "funneled";
	pthread_t thread;
	int level;

	pthread_atfork(NULL, NULL, in_child);
	MPI_Init_thread(&argc, &argv,
			!strcmp(what, "multiple")     ? MPI_THREAD_MULTIPLE
			: !strcmp(what, "serialized") ? MPI_THREAD_SERIALIZED
						      : MPI_THREAD_FUNNELED,
			&level);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	aborts = argc > 2 && !strcmp(argv[2], "abort");
	atexit(at_end);
	pthread_create(&thread, NULL, argc < 3 || aborts ? ends : forks, NULL);
	for (;;)
		spin(10000);
}
