/* SPDX-License-Identifier: BSD-3-Clause */
/* A plug-in that uses contd in a program that knows nothing of it (host.c). */
#include <contd/mpi.h>

int plugin_run(int *ran, int *received);
int plugin_leave(int *ran);

static void count(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

/* The first error. */
int plugin_run(int *ran, int *received)
{
	int sent = 42, rc;
	MPI_Request cr, request;

	rc = MPI_Continue_init(MPI_INFO_NULL, &cr);
	if (rc != MPI_SUCCESS)
		return rc;
	MPI_Irecv(received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
	rc = MPI_Continue(&request, count, ran, MPI_STATUS_IGNORE, cr);
	MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&cr, MPI_STATUS_IGNORE);
	return rc == MPI_SUCCESS ? MPI_Request_free(&cr) : rc;
}

/* Leaves a continuation that is ready. */
int plugin_leave(int *ran)
{
	MPI_Request cr, none = MPI_REQUEST_NULL;
	MPI_Info info;
	int rc;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_enqueue_complete", "true");
	rc = MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	return rc == MPI_SUCCESS ? MPI_Continue(&none, count, ran, MPI_STATUS_IGNORE, cr) : rc;
}
