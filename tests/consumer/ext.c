/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for Open MPI's continuations branch: it knows mpi-ext.h and mpi.h, in this order. */
#include <mpi-ext.h>
#include <mpi.h>

#include <stdio.h>

#ifndef OMPI_HAVE_MPI_EXT_CONTINUE
#error "mpi-ext.h is not contd's"
#endif

static int count(int rc, void *data)
{
	++*(int *)data;
	return rc;
}

int main(int argc, char **argv)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Request operation;
	int sent = 42;
	int received = 0;
	int ran = 0;

	MPI_Init(&argc, &argv);
	MPIX_Continue_init(MPIX_CONT_POLL_ONLY, MPI_UNDEFINED, MPI_INFO_NULL, &cr);
	MPI_Start(&cr);
	MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &operation);
	MPIX_Continue(&operation, count, &ran, MPIX_CONT_INVOKE_FAILED, MPI_STATUS_IGNORE, cr);
	MPI_Send(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	if (ran != 1 || received != sent)
		fprintf(stderr, "ran %d times, received %d\n", ran, received);
	MPI_Request_free(&cr);
	MPI_Finalize();
	return ran == 1 && received == sent ? 0 : 1;
}
