/* SPDX-License-Identifier: BSD-3-Clause */
#include "inbox.h"

#include <contd/mpi.h>

#define TAG 22

static void received(MPI_Status *status, void *data);

static void await_next(struct inbox *in)
{
	MPI_Start(&in->recv);
	MPI_Continue(&in->recv, received, in, &in->status, in->cr);
}

static void received(MPI_Status *status, void *data)
{
	struct inbox *in = data;
	int cancelled, bytes;

	MPI_Test_cancelled(status, &cancelled);
	in->cancelled = cancelled;
	if (cancelled)
		return;
	MPI_Get_count(status, MPI_BYTE, &bytes);
	in->fn(in->buffer, bytes, status->MPI_SOURCE, in->data);
	/* Where a message was faster than the cancellation, another receive would wait for ever. */
	if (!in->ending)
		await_next(in);
}

void inbox_begin(struct inbox *in, MPI_Comm comm, void *buffer, int bytes, inbox_message *fn, void *data)
{
	MPI_Info info;

	*in = (struct inbox){.buffer = buffer, .fn = fn, .data = data};
	MPI_Comm_dup(comm, &in->comm);
	/* The user's function must not run in whatever MPI call the user happens to make. */
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_poll_only", "true");
	MPI_Continue_init(info, &in->cr);
	MPI_Info_free(&info);
	MPI_Recv_init(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, in->comm, &in->recv);
	await_next(in);
}

void inbox_progress(struct inbox *in)
{
	int idle;

	MPI_Test(&in->cr, &idle, MPI_STATUS_IGNORE);
}

void inbox_isend(struct inbox *in, const void *message, int bytes, int to, MPI_Request *request)
{
	MPI_Issend(message, bytes, MPI_BYTE, to, TAG, in->comm, request);
}

void inbox_end(struct inbox *in)
{
	int complete;

	in->ending = true;
	/*
	 * Only what still waits may be cancelled: a receive that has completed is inactive, even if its continuation
	 * has yet to run, and MPI knows no cancelling of inactive requests; Open MPI 4.1 can crash on it. No message
	 * can come between these two calls: MPI makes progress in calls only, and this thread is the one that calls.
	 */
	MPI_Request_get_status(in->recv, &complete, MPI_STATUS_IGNORE);
	if (!complete)
		MPI_Cancel(&in->recv);
	MPI_Wait(&in->cr, MPI_STATUS_IGNORE);
	MPI_Request_free(&in->recv); /* here, where both outcomes meet; it is inactive */
	MPI_Request_free(&in->cr);
	MPI_Comm_free(&in->comm);
}
