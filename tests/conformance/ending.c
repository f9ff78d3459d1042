/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 6, ending: MPI_Finalize, fork, exec, exit and the end of a thread with continuations outstanding. */
#include <sched.h>
#include <sys/wait.h>

#include "conformance.h"

#define TAG 61

static atomic_int too_late;

static void run_too_late(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	atomic_fetch_add(&too_late, 1);
}

static void register_some(MPI_Request cr, int n)
{
	for (int i = 0; i < n; i++) {
		MPI_Request op = pending(TAG + i);

		CHECK_OK(attach(&op, run_too_late, NULL, MPI_STATUS_IGNORE, cr));
	}
}

/* ------------------------------------------------------------------------------------------------- MPI_Finalize --- */

static void nothing_ran(void)
{
	compute_ms(20);
	CHECK_EQ(too_late, 0);
}

CONFORMANCE_BOTH(s6_finalize_with_outstanding, 2, single,
		 "MPI_Finalize with continuations outstanding ends in order; none runs later")
{
	MPI_Request cr[4], none = MPI_REQUEST_NULL, ready;

	cr[0] = new_cr(NULL);
	cr[1] = new_cr(POLL_ONLY, "true", NULL);
	cr[2] = new_cr(ENQUEUE_COMPLETE, "true", NULL);
	cr[3] = new_cr(NULL);
	for (int i = 0; i < 4; i++)
		register_some(cr[i], 3);
	register_some(new_cr(NULL), 0);
	/* Ready, but only a test of its CR would run it. */
	ready = pending(TAG + 10);
	CHECK_OK(attach(&ready, run_too_late, NULL, MPI_STATUS_IGNORE, cr[1]));
	CHECK_OK(attach(&none, run_too_late, NULL, MPI_STATUS_IGNORE, cr[1]));
	complete_pending(TAG + 10);
	/* A CR that waits for another one, and one that is given back before. */
	CHECK_OK(attach(&cr[0], run_too_late, NULL, MPI_STATUS_IGNORE, cr[2]));
	free_cr(&cr[3]);
	CHECK_EQ(too_late, 0);
	after_finalize = nothing_ran;
}

static atomic_int threads_stop;
static pthread_t threads[2];
static int threads_started;
static atomic_int threads_ready;

/* Making an async-signal-safe CR is what lets a thread be interrupted. */
static void *interruptible(void *arg)
{
	MPI_Request cr = new_cr(SIGNAL_SAFE, "true", NULL);

	(void)arg;
	register_some(cr, 2);
	atomic_fetch_add(&threads_ready, 1);
	while (!atomic_load(&threads_stop))
		compute_ms(1);
	return NULL;
}

static void nothing_ran_in_threads(void)
{
	compute_ms(50);
	atomic_store(&threads_stop, 1);
	for (int i = 0; i < threads_started; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(too_late, 0);
}

CONFORMANCE_BOTH(s6_finalize_in_low_latency_mode, 2, multiple,
		 "So it does with timers armed, other threads interruptible and the daemon running")
{
	register_some(new_cr(SIGNAL_SAFE, "true", NULL), 3);
	register_some(new_cr(THREAD, "any", NULL), 2);
	CHECK_EQ(pthread_create(&threads[threads_started++], NULL, interruptible, NULL), 0);
	while (atomic_load(&threads_ready) < threads_started)
		sched_yield();
	compute_ms(20);
	after_finalize = nothing_ran_in_threads;
}

/* ------------------------------------------------------------------------------------------------------ threads --- */

static struct {
	MPI_Request cr;
	struct seen seen;
} left_behind;

static void *leave_behind(void *arg)
{
	MPI_Request op = pending(TAG);

	left_behind.cr = new_cr(SIGNAL_SAFE, "true", NULL);
	CHECK_OK(attach(&op, see, &left_behind.seen, MPI_STATUS_IGNORE, left_behind.cr));
	compute_ms(5);
	return arg;
}

CONFORMANCE_BOTH(s6_thread_exit, 1, multiple, "A thread that exits leaves its CRs and continuations to the others")
{
	for (int i = 0; i < 5; i++) {
		pthread_t thread;

		memset(&left_behind.seen, 0, sizeof(left_behind.seen));
		CHECK_EQ(pthread_create(&thread, NULL, leave_behind, NULL), 0);
		pthread_join(thread, NULL);
		CHECK_EQ(left_behind.seen.runs, 0);
		compute_ms(5);
		complete_pending(TAG);
		wait_cr(&left_behind.cr);
		CHECK_EQ(left_behind.seen.runs, 1);
		free_cr(&left_behind.cr);
	}
}

/* --------------------------------------------------------------------------------------------- fork, exec, exit --- */

CONFORMANCE_BOTH(s6_fork, 1, multiple, "In the child of a fork nothing ticks and nothing runs; the parent goes on")
{
	MPI_Request cr[2], op, none = MPI_REQUEST_NULL;
	struct seen seen = {0}, ready = {0};
	int status = -1;
	pid_t child;

	cr[0] = new_cr(SIGNAL_SAFE, "true", NULL);
	cr[1] = new_cr(THREAD, "any", NULL);
	for (int i = 0; i < 2; i++) {
		op = pending(TAG + i);
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr[i]));
	}
	fflush(NULL);
	child = fork();
	if (child == 0) {
		alarm(20);
		compute_ms(150); /* meanwhile the messages arrive, in memory that may be shared with it */
		_exit(atomic_load(&seen.runs) ? 1 : 0);
	}
	compute_ms(20);
	for (int i = 0; i < 2; i++)
		complete_pending(TAG + i);
	CHECK_OK(attach(&none, see, &ready, MPI_STATUS_IGNORE, cr[0]));
	for (int i = 0; i < 2; i++)
		wait_cr(&cr[i]);
	CHECK_EQ(seen.runs, 2);
	CHECK_EQ(ready.runs, 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < 2; i++)
		free_cr(&cr[i]);
}

/* MPI with everything under way. */
static void start_everything(void)
{
	int provided;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	for (int f = face_draft; f <= face_revised; f++) {
		if ((f == face_draft && !CONFORMANCE_DRAFT) || (f == face_revised && !CONFORMANCE_REVISED))
			continue;
		face = (enum face)f;
		if (provided == MPI_THREAD_MULTIPLE)
			register_some(new_cr(SIGNAL_SAFE, "true", NULL), 3);
		register_some(new_cr(NULL), 3);
	}
	compute_ms(20);
}

CONFORMANCE_ENDS(s6_exec, 1, none, survives,
		 "Timers and signals of the old program do not end the one that exec starts")
{
	start_everything();
	fflush(NULL);
	execl("/proc/self/exe", "conformance", "--after-exec", (char *)NULL);
	perror("exec");
}

/*
 * exit without MPI_Finalize ends the job, so it is done by a child that started MPI itself; the exit status is what it
 * gave, and no signal.
 */
CONFORMANCE_ENDS(s6_exit, 1, none, survives, "exit without MPI_Finalize neither crashes nor hangs")
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		alarm(20);
		start_everything();
		exit(3);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (CHECK(WIFEXITED(status)) && CHECK_EQ(WEXITSTATUS(status), 3))
		say("survived");
}
