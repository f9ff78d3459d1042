/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 1 */
/*
 * A program that has called contd_init() itself goes on after MPI_Finalize. Continuations that have not run by then
 * never run: those that are ready, those that wait for an operation, an event or MPI_Start, and one that an executor
 * has taken. The report says why for each. The program's own events and groups still work.
 */
#include <pthread.h>

#include <contd/executor.h>

#include "check.h"

#define TAG 73

static int runs, own_runs, ready_runs;
static struct contd_work *kept;

static void touch_mpi(void)
{
	int flag;

	runs++;
	MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void draft(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	touch_mpi();
}

static void ready(MPI_Status *status, void *data)
{
	int flag;

	(void)status, (void)data;
	ready_runs++;
	MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static int revised(int rc, void *data)
{
	(void)rc, (void)data;
	touch_mpi();
	return MPI_SUCCESS;
}

static void on_event(int status, void *data)
{
	(void)status, (void)data;
	touch_mpi();
}

static void own(int status, void *data)
{
	(void)status, (void)data;
	own_runs++;
}

static int submit(void *pool, struct contd_work *work, int priority)
{
	(void)pool, (void)priority;
	kept = work;
	return 0;
}

static FILE *captured;
static int saved = -1;

static void capture(void)
{
	captured = tmpfile();
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
}

static int said(const char *text)
{
	char line[1024];
	int n = 0;

	if (saved >= 0) {
		fflush(stderr);
		dup2(saved, STDERR_FILENO);
		close(saved);
		saved = -1;
	}
	rewind(captured);
	while (fgets(line, sizeof(line), captured))
		n += strstr(line, text) != NULL;
	return n;
}

static void *polls(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++)
		CHECK(contd_poll(0) >= 0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .submit = submit};
	const struct contd_executor_attr attr = {.size = sizeof(attr), .ops = &ops};
	struct contd_event mine, theirs;
	struct contd_executor *executor;
	struct contd_group *group;
	MPI_Request r, none = MPI_REQUEST_NULL, later, poll_only, start, started, handed, mixed, enqueue;
	pthread_t thread;
	char in[4];

	CHECK_EQ(contd_init(NULL), 0);
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("before MPI_Finalize");
	later = check_plain_cr();
	poll_only = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	handed = check_plain_cr();
	mixed = check_plain_cr();
	/* For ever pending. */
	MPI_Irecv(&in[0], 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, draft, NULL, MPI_STATUS_IGNORE, later));
	/* Ready. */
	CHECK_OK(MPI_Continue(&none, draft, NULL, MPI_STATUS_IGNORE, poll_only));
	/* Never started, nothing else missing; and started, and not again; and never, and pending. */
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &start));
	CHECK_OK(MPIX_Continue(&none, revised, NULL, 0, MPI_STATUS_IGNORE, start));
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &started));
	CHECK_OK(MPI_Start(&started));
	CHECK_OK(MPI_Wait(&started, MPI_STATUS_IGNORE));
	CHECK_OK(MPIX_Continue(&none, revised, NULL, 0, MPI_STATUS_IGNORE, started));
	MPI_Irecv(&in[1], 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
	CHECK_OK(MPIX_Continue(&r, revised, NULL, 0, MPI_STATUS_IGNORE, start));
	/* An executor has it, and does not begin. */
	CHECK_EQ(contd_executor_create(&attr, &executor), 0);
	CHECK_EQ(contd_group_set_executor(contd_mpi_group(handed), executor), 0);
	MPI_Isend(&in[2], 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, draft, NULL, MPI_STATUS_IGNORE, handed));
	MPI_Recv(&in[3], 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 1000 && !kept; i++) {
		contd_poll(0);
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &(int){0}, MPI_STATUS_IGNORE);
	}
	CHECK(kept != NULL);
	/* An event of the program's, at a CR. */
	contd_event_init(&theirs);
	CHECK_EQ(contd_event_continue(1, (struct contd_event *[]){&theirs}, on_event, NULL, contd_mpi_group(mixed),
				      NULL),
		 0);
	/* Ready, and only a scan is missing: MPI_Finalize does one. */
	enqueue = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	CHECK_OK(MPI_Continue(&none, ready, NULL, MPI_STATUS_IGNORE, enqueue));
	CHECK_EQ(ready_runs, 0);
	/* The program's own. */
	CHECK_EQ(contd_group_create(NULL, &group), 0);
	contd_event_init(&mine);
	CHECK_EQ(contd_event_continue(1, (struct contd_event *[]){&mine}, own, NULL, group, NULL), 0);

	check_begin("MPI_Finalize");
	capture();
	MPI_Finalize();
	CHECK_EQ(said(" rank 0] MPI_Finalize: 7 continuations never ran:"), 1);
	CHECK_EQ(said("contd: ["), 8);
	CHECK_EQ(said("  1 with the callback "), 7);
	CHECK_EQ(said(": MPI_Start was never called for its continuation request"), 1);
	CHECK_EQ(said(": MPI_Start was not called again for its continuation request"), 1);
	CHECK_EQ(said("did not complete, nor was its continuation request started"), 1);
	CHECK_EQ(said("its continuation request is poll-only and was not tested"), 1);
	CHECK_EQ(said(": it was handed to an executor, or still runs"), 1);
	CHECK_EQ(said(": an event did not complete"), 1);
	CHECK_EQ(said(check_native() ? ": a point-to-point operation did not complete"
				     : ": an operation did not complete"),
		 2);

	check_begin("after MPI_Finalize");
	CHECK_EQ(ready_runs, 1);
	polls(NULL);
	pthread_create(&thread, NULL, polls, NULL);
	pthread_join(thread, NULL);
	contd_event_complete(&theirs, 0);
	contd_compute_begin();
	usleep(2000);
	contd_compute_end();
	polls(NULL);
	if (kept)
		contd_work_run(kept);
	CHECK_EQ(runs, 0);
	contd_event_complete(&mine, 0);
	CHECK_EQ(contd_group_wait(group, 5000000000), 0);
	CHECK_EQ(own_runs, 1);
	CHECK_EQ(contd_group_destroy(group), 0);
	polls(NULL);
	CHECK(contd_fini() >= 0);
	CHECK_EQ(runs, 0);
	return atomic_load(&check_failures) != 0;
}
