/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 1 */
/*
 * contd_mpi_op_run() of a receive that has failed: its error handler frees the continuation request, or waits for it,
 * or for its group. Below MPI_THREAD_MULTIPLE, where the native backend takes its short way.
 */
#include <errno.h>

#include <contd/modes.h>

#include "errors.h"

#define TAG 82

enum how { FREES, WAITS, WAITS_FOR_GROUP, HOWS };

static const char *const name[HOWS] = {"the handler frees the request", "the handler waits for the request",
				       "the handler waits for the group"};
static MPI_Comm comm;
static MPI_Request cr;
static enum how how;
static int told, ran;
static bool self_is_told; /* of failed receives, by MPI_Wait itself too */

static void receive_failed(bool by_self)
{
	CHECK_EQ(by_self, self_is_told);
	if (told++)
		return;
	if (how == FREES) {
		CHECK_OK(MPI_Request_free(&cr));
		/* Its memory becomes others'. */
		for (int i = 0; i < 40; i++) {
			struct contd_group *group;

			CHECK_EQ(contd_group_create(NULL, &group), 0);
			CHECK_EQ(contd_group_destroy(group), 0);
		}
	} else if (how == WAITS) {
		CHECK_EQ(class_of(MPI_Wait(&cr, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
	} else if (check_native()) {
		CHECK_EQ(contd_group_wait(contd_mpi_group(cr), 1000000000), -EDEADLK);
	}
}

static void on_error(MPI_Comm *which, int *error, ...)
{
	(void)which, (void)error;
	receive_failed(false);
}

static void on_refusal(MPI_Comm *which, int *error, ...)
{
	if (class_of(*error) == MPI_ERR_REQUEST)
		on_self(which, error);
	else
		receive_failed(true);
}

static void done(struct contd_mpi_op *op, int status)
{
	(void)op;
	CHECK_EQ(status, MPI_ERR_TRUNCATE);
	ran++;
}

static void run(void)
{
	static const int out[4];
	struct contd_mode_attr attr = {.size = sizeof(attr), .mode = CONTD_MODE_CONTINUATION};
	MPI_Request send, receive;
	MPI_Status status;
	struct contd_mpi_op op = {.count = 1, .requests = &receive, .statuses = &status, .done = done};
	int in, flag;

	check_begin(name[how]);
	told = ran = on_self_count = 0;
	cr = check_plain_cr();
	attr.cont_req = cr;
	MPI_Isend(out, 4, MPI_INT, 0, TAG, comm, &send);
	MPI_Irecv(&in, 1, MPI_INT, 0, TAG, comm, &receive);
	for (int i = 0; i < 20; i++)
		MPI_Iprobe(0, TAG + 1, comm, &flag, MPI_STATUS_IGNORE);
	CHECK_OK(contd_mpi_op_run(&op, &attr));
	for (int i = 0; i < 100000 && !ran; i++)
		MPI_Iprobe(0, TAG + 1, comm, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(ran, 1);
	CHECK_EQ(told, 1);
	CHECK_EQ(on_self_count, how == WAITS);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	if (how != FREES) {
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&cr));
	}
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler, self;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	CHECK_EQ(contd_init(NULL), 0);
	self_is_told = mpi_tells_self();
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_create_errhandler(on_refusal, &self);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler); /* MPICH's, which it calls with MPI_ERR_IN_STATUS */
	for (how = 0; how < HOWS; how++)
		run();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&handler);
	MPI_Errhandler_free(&self);
	MPI_Comm_free(&comm);
	CHECK_EQ(contd_fini(), 0);
	return check_fini();
}
