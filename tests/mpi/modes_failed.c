/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/* A failed operation of several requests: its status is the class of what has failed, in each mode, and whether the
 * program wants to have the requests' statuses or not. The others are over, too, when it is. One error handler is
 * called, once. */
#include <contd/modes.h>

#include "check.h"

#define MOST 40

struct task {
	struct contd_mpi_op op;
	MPI_Request requests[MOST];
	MPI_Status statuses[MOST];
	int in[MOST], done, status;
};

static int told; /* calls of error handlers */

static void on_error(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	told++;
}

/* The first message is longer than it may be. */
static int issue(struct contd_mpi_op *op)
{
	struct task *t = op->data;

	for (int i = 0; i < op->count; i++)
		MPI_Irecv(&t->in[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &op->requests[i]);
	return MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

/* Late: so that it is seen that the first has failed while the others are under way. */
static void send_all(int count, bool late)
{
	static int two[2] = {7, 7};

	CHECK_OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < count; i++) {
		if (i == 1 && late)
			usleep(20000);
		CHECK_OK(MPI_Send(two, i == 0 ? 2 : 1, MPI_INT, 0, i, MPI_COMM_WORLD));
	}
}

static void done(struct contd_mpi_op *op, int status)
{
	struct task *t = op->data;

	t->status = status;
	t->done++;
}

static void one(const char *name, int mode, int count, bool ignore)
{
	struct contd_mode_attr how = {
		.size = sizeof(how), .mode = mode, .flags = mode == CONTD_MODE_MPIX ? MPIX_CONT_INVOKE_FAILED : 0};
	struct task t;
	int rc;

	check_begin(name);
	if (check_rank == 1) {
		send_all(count, mode != CONTD_MODE_MPIX);
		CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
		return;
	}
	memset(&t, 0, sizeof(t));
	told = 0;
	t.op = (struct contd_mpi_op){.count = count,
				     .requests = t.requests,
				     .statuses = ignore ? MPI_STATUSES_IGNORE : t.statuses,
				     .issue = issue,
				     .done = done,
				     .data = &t};
	rc = contd_mpi_op_run(&t.op, &how);
	while (!t.done)
		contd_poll(0);
	CHECK_EQ(t.done, 1);
	CHECK_EQ(t.status, MPI_ERR_TRUNCATE);
	CHECK_EQ(told, 1);
	CHECK_EQ(rc, mode <= CONTD_MODE_SUSPEND ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	for (int i = 0; i < count; i++)
		CHECK(t.requests[i] == MPI_REQUEST_NULL);
	for (int i = 1; i < count && mode != CONTD_MODE_MPIX; i++)
		CHECK_EQ(t.in[i], 7);
	CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	MPI_Errhandler errhandler;

	CHECK_EQ(contd_init(NULL), 0);
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_OK(MPI_Comm_create_errhandler(on_error, &errhandler));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler));
	CHECK_OK(MPI_Errhandler_free(&errhandler));
	for (int i = 0; i < 6; i++) {
		static const int counts[] = {1, 2, MOST};
		int count = counts[i / 2];

		one("yield-while", CONTD_MODE_YIELD_WHILE, count, i % 2);
		one("suspend", CONTD_MODE_SUSPEND, count, i % 2);
		one("continuation", CONTD_MODE_CONTINUATION, count, i % 2);
		one("mpix", CONTD_MODE_MPIX, count, i % 2);
	}
	return check_fini();
}
