/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs that give MPI requests and what else contd waits for to one continuation, or to one group. */
#ifndef CONTD_TESTS_MPI_MIXED_H
#define CONTD_TESTS_MPI_MIXED_H

#include "check.h"

static int runs, last_status;

CHECK_HELPER void on_all(int status, void *data)
{
	(void)data;
	last_status = status;
	runs++;
}

CHECK_HELPER void on_one(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

/* Rank 0's word to rank 1 that it may send. */
CHECK_HELPER void go(int what)
{
	CHECK_OK(MPI_Send(&what, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
}

CHECK_HELPER int told(void)
{
	int what;

	CHECK_OK(MPI_Recv(&what, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	return what;
}

/* Rank 1: `value`, with this tag, when rank 0 has said `what`. */
CHECK_HELPER void send_when_told(int what, int tag, int value)
{
	CHECK_EQ(told(), what);
	CHECK_OK(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
}

CHECK_HELPER void poll_until_complete(const struct contd_event *event)
{
	while (!contd_event_is_complete(event))
		CHECK(contd_poll(0) >= 0);
}

CHECK_HELPER void test_until(MPI_Request *cr, int wanted)
{
	int flag = 1;

	while (runs < wanted)
		CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
}

#endif
