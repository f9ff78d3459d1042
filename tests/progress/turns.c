/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_SERIALIZED. Progress is made on the thread that has called MPI last, never while another thread is in MPI,
 * and on another one when that thread has ended. It needs CONTD_PROGRESS_ALLOW=user-code, for an error handler.
 *
 *     turns [multiple]    at MPI_THREAD_MULTIPLE: on any thread, never while another thread is in MPI. With
 *                         CONTD_PROGRESS_BY=thread it is made on none of the program's threads
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);

static __thread int self; /* a number of the thread */
static bool multiple, by_thread;
static uint64_t ran_on[4], overlaps, together;
static uint32_t inside_mpi, inside_progress;
static int failures;

/* In the place of MPI's progress. */
void contd_test_progress(void)
{
	void *block;

	__atomic_store_n(&inside_progress, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&ran_on[self], 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&inside_mpi, __ATOMIC_SEQ_CST))
		overlaps++;
	flockfile(stdout); /* as MPI might */
	block = malloc(100);
	spin(20000);
	if (__atomic_load_n(&inside_mpi, __ATOMIC_SEQ_CST))
		overlaps++;
	free(block);
	funlockfile(stdout);
	__atomic_store_n(&inside_progress, 0, __ATOMIC_SEQ_CST);
}

static uint64_t on(int thread)
{
	return __atomic_load_n(&ran_on[thread], __ATOMIC_RELAXED);
}

static void fail(const char *what)
{
	printf("%s\n", what);
	failures++;
}

/* ------------------------------------------------------------------------------------------------ one at a time --- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static double end;

static void in_mpi(void)
{
	__atomic_fetch_add(&inside_mpi, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&together, 1, __ATOMIC_RELAXED);
	spin(2000);
	if (__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&together, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&inside_mpi, 1, __ATOMIC_SEQ_CST);
}

static bool cancelled; /* thread 3 waits for that in an error handler */

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where, (void)code;
	if (cancelled && self == 3)
		for (;;)
			usleep(1000);
	in_mpi();
}

static bool forks; /* in the next call */
static pid_t child = -1;

static int copies(MPI_Comm comm, int key, void *extra, void *in, void *value, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)in, (void)value;
	in_mpi();
	if (forks) {
		forks = false;
		child = fork();
	}
	*flag = 0;
	return MPI_SUCCESS;
}

static int key = MPI_KEYVAL_INVALID;
static MPI_Comm comm, comms[3]; /* one of each thread: collective calls */

static void call_mpi(void)
{
	static __thread unsigned times;
	MPI_Comm copy;

	if (++times % 2) {
		MPI_Comm_dup(self < 3 ? comms[self] : comm, &copy);
		MPI_Comm_free(&copy);
	} else {
		MPI_Comm_split(comm, 0, 0, NULL); /* an error */
	}
}

/* Now and then it computes for long, so that it is the last one. */
static void *calls(void *number)
{
	unsigned times = 0;

	self = *(int *)number;
	while (now_s() < end) {
		if (!multiple)
			pthread_mutex_lock(&turn);
		if (++times % 3 == 0) { /* what progress needs, too */
			flockfile(stdout);
			spin(20000);
		}
		call_mpi();
		if (times % 3 == 0)
			funlockfile(stdout);
		if (!multiple)
			pthread_mutex_unlock(&turn);
		spin(times % 2 ? 300000 : 2000);
	}
	return NULL;
}

static void one_at_a_time(void)
{
	static const int numbers[] = {1, 2};
	pthread_t thread[2];

	end = now_s() + 3;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, calls, (void *)&numbers[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("progress on two threads: %lu and %lu times; on others %lu times\n", (unsigned long)on(1),
	       (unsigned long)on(2), (unsigned long)on(0));
	if (overlaps || together)
		fail("progress beside a call of MPI");
	if (by_thread) {
		if (on(1) || on(2))
			fail("progress on a thread of the program's");
		if (on(0) < 10)
			fail("no progress on contd's thread");
	} else if (on(1) < 10 || on(2) < 10) {
		fail("a thread made no progress");
	}
}

/* ---------------------------------------------------------------------------------------------- the last caller --- */

static uint32_t step;

static void await_step(uint32_t which)
{
	while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < which)
		spin(1000);
}

static void next_step(void)
{
	__atomic_fetch_add(&step, 1, __ATOMIC_SEQ_CST);
}

/* Progress comes on this thread. */
static bool comes(int thread)
{
	uint64_t before = on(thread);
	double give_up = now_s() + 30;

	while (on(thread) < before + 20 && now_s() < give_up)
		spin(20000);
	return on(thread) >= before + 20;
}

static int over; /* how the thread ends */

static void *second(void *unused)
{
	uint64_t first;

	(void)unused;
	self = 3;
	call_mpi(); /* now it is the last one; the first one computes */
	next_step();
	if (!comes(3))
		fail("no progress on the thread that has called last");
	first = on(0);
	if (!comes(3) || on(0) != first)
		fail("progress on another thread than the last");
	next_step();
	await_step(3); /* the first thread has called */
	first = on(3);
	for (double until = now_s() + 0.2; now_s() < until;)
		spin(20000);
	if (on(3) != first)
		fail("progress on a thread that is not the last any more");
	next_step();
	await_step(5);
	call_mpi();
	if (!comes(3))
		fail("no progress on the thread that has called last, once more");
	if (over == 1)
		pthread_exit(NULL);
	if (over == 2)
		thrd_exit(0);
	return NULL;
}

static void the_last_caller(void)
{
	pthread_t thread;

	step = 0;
	call_mpi();
	if (!comes(0))
		fail("no progress on the first thread");
	pthread_create(&thread, NULL, second, NULL);
	await_step(2);
	call_mpi();
	if (!comes(0))
		fail("no progress on the first thread when it has called again");
	next_step();
	await_step(4);
	next_step();
	pthread_join(thread, NULL);
	/* Without a call of MPI. */
	if (!comes(0))
		fail("no progress when the last caller has ended");
}

/* --------------------------------------------------------------------------------------------------------- ends --- */

static void *is_cancelled(void *unused)
{
	self = 3;
	MPI_Comm_split(comm, 0, 0, NULL);
	return unused;
}

/* The thread ends in a call of MPI: in an error handler, where Open MPI holds no lock. */
static void ends_in_a_call(void)
{
	pthread_t thread;

	cancelled = true;
	pthread_create(&thread, NULL, is_cancelled, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	cancelled = false;
	if (!comes(0))
		fail("no progress when a thread has been cancelled in a call");
}

/* A child of fork(2) that was made in a call of MPI goes on: nobody else is in it there. */
static void forks_in_a_call(void)
{
	MPI_Comm copy;
	int status;

	forks = true;
	MPI_Comm_dup(comm, &copy);
	if (child == 0) {
		alarm(20);
		flockfile(stdout);
		funlockfile(stdout);
		_exit(7);
	}
	MPI_Comm_free(&copy);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		fail("a child of fork() that was made in a call of MPI hangs");
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler;
	int level;

	multiple = argc > 1 && !strcmp(argv[1], "multiple");
	by_thread = getenv("CONTD_PROGRESS_BY") && !strcmp(getenv("CONTD_PROGRESS_BY"), "thread");
	MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &level);
	if ((level > MPI_THREAD_SERIALIZED) != multiple) {
		printf("this MPI has no such level\n");
		MPI_Finalize();
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_attr(comm, key, &key);
	for (int i = 0; i < 3; i++)
		MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
	for (int i = 0; i < 3; i++)
		MPI_Comm_set_attr(comms[i], key, &key);
	MPI_Comm_create_errhandler(on_error, &errhandler);
	MPI_Comm_set_errhandler(comm, errhandler);
	MPI_Errhandler_free(&errhandler);
	one_at_a_time();
	for (over = 0; over < 3 && !multiple && !by_thread; over++)
		the_last_caller();
	if (multiple || by_thread) {
		call_mpi();
		if (!comes(0))
			fail("no progress when the other callers have ended");
	}
	forks_in_a_call();
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&comms[i]);
#ifndef OMPI_MAJOR_VERSION
	if (!multiple) /* its lock would be held for ever */
#endif
		ends_in_a_call();
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return failures != 0;
}
