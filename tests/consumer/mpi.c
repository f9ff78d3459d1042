/* SPDX-License-Identifier: BSD-3-Clause */
#include <contd/modes.h>
#include <contd/mpi.h>

#include <stdio.h>
#include <string.h>

static void count(MPI_Status *statuses, void *data)
{
	(void)statuses;
	++*(int *)data;
}

static int received_too;

static int exchange(struct contd_mpi_op *op)
{
	MPI_Irecv(&received_too, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &op->requests[0]);
	return MPI_Isend(op->data, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &op->requests[1]);
}

int main(int argc, char **argv)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Request operations[2];
	int sent = 42;
	int received = 0;
	int ran = 0;
	struct contd_mode_attr how;
	struct contd_mpi_op op;

	MPI_Init(&argc, &argv);
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &operations[0]);
	MPI_Isend(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &operations[1]);
	MPI_Continueall(2, operations, count, &ran, MPI_STATUSES_IGNORE, cr);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	if (ran != 1 || received != sent)
		fprintf(stderr, "ran %d times, received %d\n", ran, received);
	MPI_Request_free(&cr);
	memset(&how, 0, sizeof(how));
	how.size = sizeof(how);
	how.mode = CONTD_MODE_SUSPEND;
	op.count = 2;
	op.requests = operations;
	op.statuses = MPI_STATUSES_IGNORE;
	op.issue = exchange;
	op.done = NULL;
	op.data = &sent;
	if (contd_mpi_op_run(&op, &how) != MPI_SUCCESS || received_too != sent)
		fprintf(stderr, "received %d\n", received_too);
	MPI_Finalize();
	return ran == 1 && received == sent && received_too == sent ? 0 : 1;
}
