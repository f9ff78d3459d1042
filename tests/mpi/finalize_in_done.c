/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/* environment: CONTD_FINALIZE=alone */
/*
 * done() of contd_mpi_op_run() as an executor's task, and MPI_Finalize: on rank 0 done() itself calls it, on rank 1
 * another thread does while done() runs for two seconds. It waits for done(), and names nothing as never run.
 */
#include <pthread.h>

#include <contd/executor.h>
#include <contd/modes.h>

#include "check.h"

static struct contd_executor *executor;
static atomic_int begun, ended;
static int finalized_in_done = -1;

static void done(struct contd_mpi_op *op, int status)
{
	(void)op;
	CHECK_EQ(status, MPI_SUCCESS);
	atomic_store(&begun, 1);
	if (check_rank == 0)
		finalized_in_done = MPI_Finalize();
	else
		sleep(2);
	atomic_store(&ended, 1);
}

static void *lent(void *arg)
{
	(void)arg;
	CHECK_EQ(contd_executor_run(executor, 1, -1), 1);
	return NULL;
}

int main(int argc, char **argv)
{
	struct contd_mode_attr attr = {.size = sizeof(attr), .mode = CONTD_MODE_YIELD_WHILE};
	struct contd_mpi_op op = {.count = 1, .statuses = MPI_STATUSES_IGNORE, .done = done};
	MPI_Request send;
	char text[4096] = "";
	int provided, saved;
	FILE *captured = tmpfile();
	pthread_t thread;

	check_watchdog();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	check_begin("MPI_Finalize");
	CHECK_EQ(contd_init(NULL), 0);
	CHECK_EQ(contd_executor_create(NULL, &executor), 0);
	attr.completions = executor;
	op.requests = &send;
	MPI_Isend(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, &send);
	MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
	CHECK_OK(contd_mpi_op_run(&op, &attr));
	if (check_rank == 0) {
		CHECK_EQ(contd_executor_run(executor, 1, -1), 1);
		CHECK_EQ(finalized_in_done, MPI_SUCCESS);
	} else {
		pthread_create(&thread, NULL, lent, NULL);
		while (!atomic_load(&begun))
			usleep(1000);
		MPI_Finalize();
		CHECK_EQ(ended, 1);
		pthread_join(thread, NULL);
	}
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	rewind(captured);
	text[fread(text, 1, sizeof(text) - 1, captured)] = '\0';
	if (!CHECK(strstr(text, "never ran") == NULL))
		fputs(text, stderr);
	CHECK_EQ(contd_executor_destroy(executor), 0);
	CHECK_EQ(contd_fini(), 0);
	return atomic_load(&check_failures);
}
