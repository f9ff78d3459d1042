/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of errors: classes, error handlers that count, callbacks and receives that fail. */
#ifndef CONTD_TESTS_MPI_ERRORS_H
#define CONTD_TESTS_MPI_ERRORS_H

#include "check.h"

CHECK_HELPER int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

/* ----------------------------------------------------------------------------------------- handlers that count --- */

static int on_self_count, on_self_class, on_world_count;

CHECK_HELPER void on_self(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	on_self_count++;
	on_self_class = class_of(*error);
}

CHECK_HELPER void on_world(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	on_world_count++;
}

/* Of MPI_COMM_SELF and MPI_COMM_WORLD, to the end. */
CHECK_HELPER void count_errors(void)
{
	MPI_Errhandler self, world;

	MPI_Comm_create_errhandler(on_self, &self);
	MPI_Comm_create_errhandler(on_world, &world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
	MPI_Errhandler_free(&self);
	MPI_Errhandler_free(&world);
}

/*
 * Does MPI_Wait itself call MPI_COMM_SELF's handler if a receive on another communicator of this process alone fails,
 * the message of which had been sent before? It does in MPICH 4.2, whose request has no communicator then.
 */
CHECK_HELPER bool mpi_tells_self(void)
{
	static const int out[2];
	MPI_Comm of[3] = {MPI_COMM_SELF, MPI_COMM_WORLD, MPI_COMM_NULL};
	MPI_Errhandler before[2], self;
	int in, calls = on_self_count;
	MPI_Request send, receive;

	MPI_Comm_dup(MPI_COMM_SELF, &of[2]);
	MPI_Comm_create_errhandler(on_self, &self);
	for (int i = 0; i < 2; i++)
		MPI_Comm_get_errhandler(of[i], &before[i]);
	for (int i = 0; i < 3; i++)
		MPI_Comm_set_errhandler(of[i], i ? MPI_ERRORS_RETURN : self);
	PMPI_Isend(out, 2, MPI_INT, 0, 0, of[2], &send);
	PMPI_Irecv(&in, 1, MPI_INT, 0, 0, of[2], &receive);
	CHECK_EQ(class_of(PMPI_Wait(&receive, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
	PMPI_Wait(&send, MPI_STATUS_IGNORE);
	for (int i = 0; i < 2; i++) {
		MPI_Comm_set_errhandler(of[i], before[i]);
		MPI_Errhandler_free(&before[i]);
	}
	MPI_Errhandler_free(&self);
	MPI_Comm_free(&of[2]);
	calls = on_self_count - calls;
	on_self_count -= calls;
	CHECK(calls <= 1);
	return calls != 0;
}

/*
 * Does MPI_Waitany itself call MPI_COMM_SELF's handler if a receive on another communicator fails? It does in MPICH
 * 4.2; in MPICH 4.0 it calls MPI_COMM_WORLD's, and in Open MPI the communicator's.
 */
CHECK_HELPER bool mpi_tells_self_in_arrays(void)
{
	static const int out[2];
	int in, index, self = on_self_count, world = on_world_count, rc;
	MPI_Request send, receive;

	PMPI_Isend(out, 2, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &send);
	PMPI_Irecv(&in, 1, MPI_INT, check_rank, 0, MPI_COMM_WORLD, &receive);
	rc = PMPI_Waitany(1, &receive, &index, MPI_STATUS_IGNORE);
	CHECK_EQ(class_of(rc), MPI_ERR_TRUNCATE);
	PMPI_Wait(&send, MPI_STATUS_IGNORE);
	self = on_self_count - self;
	world = on_world_count - world;
	CHECK_EQ(self + world, 1);
	return self == 1;
}

/* One handler of the program's for this communicator, and for those that MPICH may tell instead. */
CHECK_HELPER void tell_all(MPI_Comm comm, MPI_Comm_errhandler_function *function)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(function, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
}

/* -------------------------------------------------------------------------------------------------- what fails --- */

CHECK_HELPER int fails(int error, void *data)
{
	(void)error, (void)data;
	return MPI_ERR_OTHER;
}

CHECK_HELPER MPI_Request failed_cr(void)
{
	MPI_Request cr, none = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
	return cr;
}

CHECK_HELPER void free_failed(MPI_Request cr)
{
	int failed = 2;
	void *data[2];

	CHECK_OK(MPIX_Continue_get_failed(cr, &failed, data));
	CHECK_EQ(failed, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

/* A message of four numbers to this process; the receive has room for one. */
CHECK_HELPER MPI_Request send_too_much(int tag, MPI_Comm comm)
{
	static const int out[4] = {1, 2, 3, 4};
	MPI_Request send;
	int rank;

	MPI_Comm_rank(comm, &rank);
	MPI_Isend(out, 4, MPI_INT, rank, tag, comm, &send);
	return send;
}

/* MPI takes messages that have arrived. */
CHECK_HELPER void make_progress(MPI_Comm comm)
{
	int flag;

	for (int i = 0; i < 50; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, 999, comm, &flag, MPI_STATUS_IGNORE);
}

#endif
