/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * contd_mpi_op_run() has given tasks to an executor that never runs them: a done(), an issue(), and the done() of an
 * issue() that has failed on another executor. MPI_Finalize ends, and says so; the tasks do nothing when the executor
 * runs them after it, where issue() must not call MPI.
 */
/* ranks: 1 */
#include <contd/executor.h>
#include <contd/modes.h>

#include "check.h"

static atomic_int issued, done;

static int issue(struct contd_mpi_op *op)
{
	(void)op;
	atomic_fetch_add(&issued, 1);
	return MPI_Irecv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, op->requests);
}

static int refused(struct contd_mpi_op *op)
{
	(void)op;
	return MPI_ERR_OTHER;
}

static void finished(struct contd_mpi_op *op, int status)
{
	(void)op, (void)status;
	atomic_fetch_add(&done, 1);
}

int main(int argc, char **argv)
{
	struct contd_executor *executor, *runs;
	struct contd_mode_attr waits = {.size = sizeof(waits), .mode = CONTD_MODE_YIELD_WHILE},
			       issues = {.size = sizeof(issues), .mode = CONTD_MODE_CONTINUATION},
			       fails = {.size = sizeof(fails), .mode = CONTD_MODE_CONTINUATION};
	MPI_Request request[2];
	struct contd_mpi_op op[3] = {
		{.count = 1, .requests = &request[0], .statuses = MPI_STATUSES_IGNORE, .done = finished},
		{.count = 1,
		 .requests = &request[1],
		 .statuses = MPI_STATUSES_IGNORE,
		 .done = finished,
		 .issue = issue},
		{.count = 1,
		 .requests = &request[1],
		 .statuses = MPI_STATUSES_IGNORE,
		 .done = finished,
		 .issue = refused}};
	char text[4096] = "";
	int provided, saved;
	FILE *captured;

	check_watchdog();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	check_begin("before");
	CHECK_EQ(contd_init(NULL), 0);
	CHECK_EQ(contd_executor_create(NULL, &executor), 0);
	CHECK_EQ(contd_executor_create(NULL, &runs), 0);
	waits.completions = fails.completions = executor;
	issues.requests = executor;
	fails.requests = runs;
	MPI_Isend(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[0]);
	MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	CHECK_OK(contd_mpi_op_run(&op[0], &waits));
	CHECK_OK(contd_mpi_op_run(&op[1], &issues));
	CHECK_OK(contd_mpi_op_run(&op[2], &fails));
	CHECK_EQ(contd_executor_run(runs, 10, 0), 1);
	CHECK_EQ(done, 0);

	check_begin("MPI_Finalize");
	captured = tmpfile();
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
	MPI_Finalize();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	rewind(captured);
	text[fread(text, 1, sizeof(text) - 1, captured)] = '\0';
	if (!CHECK(strstr(text, "3 continuations never ran") != NULL))
		fputs(text, stderr);
	CHECK(strstr(text, "3 with the callback of contd_mpi_op_run(): ") != NULL);
	CHECK(strstr(text, "an executor has not run its task") != NULL);

	check_begin("after MPI_Finalize");
	CHECK_EQ(contd_executor_run(executor, 10, 0), 3);
	CHECK_EQ(issued, 0);
	CHECK_EQ(done, 0);
	CHECK_EQ(contd_executor_destroy(executor), 0);
	CHECK_EQ(contd_executor_destroy(runs), 0);
	CHECK_EQ(contd_fini(), 0);
	return atomic_load(&check_failures);
}
