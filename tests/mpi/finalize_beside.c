/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 2 */
/*
 * What MPI_Finalize does beside waiting, while continuations are outstanding: it calls the push functions of requests
 * of templates, whose continuations run, however long the pushes are without a processor; and errors of what a
 * continuation calls go to the program's error handler.
 */
#include "check.h"

#define TAG 75
#define PUSHES 100
#define LATER 300000 /* microseconds */
#define AWAY 12000   /* microseconds that each push leaves the processor, as on a machine with other things to do */

static int pushes, completes, runs, fails, handled;
static MPI_Request request;
static MPIX_Gr gr;

static int start(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int push(void *extra)
{
	usleep(AWAY);
	if (++pushes == PUSHES)
		MPIX_Mark_request_complete(*(MPI_Request *)extra);
	return MPI_SUCCESS;
}

static int complete(void *extra, MPI_Status *status)
{
	(void)extra, (void)status;
	completes++;
	return MPI_SUCCESS;
}

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled++;
}

static void send_wrongly(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
	fails += MPI_Send(data, 1, MPI_INT, check_size + 7, TAG, MPI_COMM_WORLD) != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	static int in;
	MPI_Errhandler handler;
	MPI_Request cr, r, copy;
	int expected = 1;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("before MPI_Finalize");
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
	cr = check_plain_cr();
	if (check_rank == 0 && check_size > 1) {
		MPI_Irecv(&in, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, send_wrongly, &in, MPI_STATUS_IGNORE, cr));
		expected++;
	}
	CHECK_OK(MPIX_Gr_init(start, push, complete, NULL, &gr));
	CHECK_OK(MPIX_Gr_begin(gr, &request, &copy));
	request = copy;
	CHECK_OK(MPI_Continue(&copy, count, NULL, MPI_STATUS_IGNORE, cr));
	if (check_rank == 1) {
		usleep(LATER);
		MPI_Send(&expected, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
	}
	check_begin("MPI_Finalize");
	MPI_Finalize();
	check_begin("after MPI_Finalize");
	CHECK_EQ(pushes, PUSHES);
	CHECK_EQ(completes, 1);
	CHECK_EQ(runs, expected);
	CHECK_EQ(fails, expected - 1);
	CHECK_EQ(handled, expected - 1);
	return atomic_load(&check_failures) != 0;
}
