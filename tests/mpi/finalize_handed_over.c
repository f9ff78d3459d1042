/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd_mpi_op_run() has given tasks to an executor that never runs them: a done(), and an issue(). MPI_Finalize ends,
 * and says so; the tasks do nothing when the executor runs them after it, where issue() must not call MPI.
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

static void finished(struct contd_mpi_op *op, int status)
{
	(void)op, (void)status;
	atomic_fetch_add(&done, 1);
}

int main(int argc, char **argv)
{
	struct contd_executor *executor;
	struct contd_mode_attr waits = {.size = sizeof(waits), .mode = CONTD_MODE_YIELD_WHILE},
			       issues = {.size = sizeof(issues), .mode = CONTD_MODE_CONTINUATION};
	MPI_Request request[2];
	struct contd_mpi_op op[2] = {
		{.count = 1, .requests = &request[0], .statuses = MPI_STATUSES_IGNORE, .done = finished},
		{.count = 1,
		 .requests = &request[1],
		 .statuses = MPI_STATUSES_IGNORE,
		 .done = finished,
		 .issue = issue}};
	char text[4096] = "";
	int provided, saved;
	FILE *captured;

	check_watchdog();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	check_begin("before");
	CHECK_EQ(contd_init(NULL), 0);
	CHECK_EQ(contd_executor_create(NULL, &executor), 0);
	waits.completions = executor;
	issues.requests = executor;
	MPI_Isend(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[0]);
	MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	CHECK_OK(contd_mpi_op_run(&op[0], &waits));
	CHECK_OK(contd_mpi_op_run(&op[1], &issues));
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
	if (!CHECK(strstr(text, "2 continuations never ran") != NULL))
		fputs(text, stderr);
	CHECK(strstr(text, "2 with the callback of contd_mpi_op_run(): ") != NULL);
	CHECK(strstr(text, "an executor has not run its task") != NULL);

	check_begin("after MPI_Finalize");
	CHECK_EQ(contd_executor_run(executor, 10, 0), 2);
	CHECK_EQ(issued, 0);
	CHECK_EQ(done, 0);
	CHECK_EQ(contd_executor_destroy(executor), 0);
	CHECK_EQ(contd_fini(), 0);
	return atomic_load(&check_failures);
}
