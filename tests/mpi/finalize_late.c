/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * MPI_Finalize drives what is outstanding as long as another process may still make progress with it: here the other
 * one has called MPI_Finalize, too, and runs a callback that takes three seconds. Started by a script on several hosts,
 * contd does not know that it is part of every process, hence CONTD_FINALIZE.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

#define TAG 78
#define COUNT (1 << 21)

static int runs, rank;

static void ran(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

static void sleeps(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	sleep(3);
	runs++;
}

int main(int argc, char **argv)
{
	static int buffer[COUNT];
	int in, out = 1;
	MPI_Request cr, r, s;

	setenv("CONTD_FINALIZE", "together", 1);
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("a callback that takes three seconds in MPI_Finalize");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	cr = check_plain_cr();
	if (rank == 1) {
		MPI_Irecv(&in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r);
		CHECK_OK(MPI_Continue(&r, sleeps, NULL, MPI_STATUS_IGNORE, cr));
		MPI_Isend(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &s);
		MPI_Request_free(&s);
		MPI_Irecv(buffer, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r);
	} else {
		usleep(500000);
		MPI_Isend(buffer, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r);
	}
	CHECK_OK(MPI_Continue(&r, ran, NULL, MPI_STATUS_IGNORE, cr));
	MPI_Request_free(&cr);
	CHECK_OK(MPI_Finalize());
	CHECK_EQ(runs, rank == 1 ? 2 : 1);
	return check_failures != 0;
}
