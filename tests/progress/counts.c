/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is outstanding brings ticks, and nothing else does: after each way to complete requests no tick comes any more.
 * The ticks make MPI's own progress here.
 */
#include <mpi.h>
#include <stdbool.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

static uint64_t ticks(void)
{
	uint64_t n = 0;

	for (int why = 0; why < PASSED_COUNT; why++)
		n += passed(why);
	return n;
}

static int failures;

static void compute(double s)
{
	double end = now_s() + s;

	while (now_s() < end)
		spin(10000);
}

static void expect(bool some, const char *what)
{
	double give_up = now_s() + 30;
	uint64_t before;

	compute(0.01); /* one tick may be on its way, which finds nothing */
	before = ticks();
	if (some) {
		while (ticks() < before + 3 && now_s() < give_up)
			spin(10000);
	} else {
		compute(0.05);
	}
	if ((ticks() != before) != some) {
		printf("%s: %s ticks\n", what, some ? "no" : "there are");
		failures++;
	}
}

static MPI_Request request[4];
static char bytes[4];

static void receives(int n)
{
	for (int i = 0; i < n; i++)
		MPI_Irecv(&bytes[i], 1, MPI_CHAR, 0, i, MPI_COMM_SELF, &request[i]);
}

static void sends(int n)
{
	static char byte;

	for (int i = 0; i < n; i++)
		MPI_Send(&byte, 1, MPI_CHAR, 0, i, MPI_COMM_SELF);
}

int main(int argc, char **argv)
{
	int flag = 0, index, indices[4], n = 0;
	void *base;
	MPI_Comm dup;
	MPI_Win win;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	expect(false, "nothing yet");
	receives(1);
	expect(true, "MPI_Irecv");
	sends(1);
	MPI_Wait(request, MPI_STATUS_IGNORE);
	expect(false, "MPI_Wait");

	receives(4);
	sends(4);
	MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
	expect(false, "MPI_Waitall");

	receives(2);
	sends(1);
	MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
	expect(true, "MPI_Waitany of one of two");
	MPI_Send(bytes, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF);
	while (!flag)
		MPI_Test(&request[1], &flag, MPI_STATUS_IGNORE);
	expect(false, "MPI_Test");

	receives(3);
	sends(3);
	for (int done = 0; done < 3; done += n)
		MPI_Waitsome(3, request, &n, indices, MPI_STATUSES_IGNORE);
	expect(false, "MPI_Waitsome");

	receives(3);
	expect(true, "three");
	sends(3);
	for (flag = 0; !flag;)
		MPI_Testall(3, request, &flag, MPI_STATUSES_IGNORE);
	expect(false, "MPI_Testall");

	receives(1);
	MPI_Cancel(request);
	MPI_Wait(request, MPI_STATUS_IGNORE);
	expect(false, "MPI_Cancel");

	receives(1);
	sends(1);
	MPI_Request_free(request);
	expect(false, "MPI_Request_free");

	MPI_Recv_init(bytes, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, &request[0]);
	MPI_Recv_init(bytes + 1, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request[1]);
	expect(false, "MPI_Recv_init");
	for (int turn = 0; turn < 2; turn++) {
		MPI_Startall(2, request);
		expect(true, "MPI_Startall");
		sends(2);
		if (turn)
			MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		else
			for (int i = 0; i < 2; i++)
				MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
		expect(false, "persistent requests are complete");
	}
	MPI_Start(&request[1]);
	expect(true, "MPI_Start");
	MPI_Send(bytes, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF);
	for (flag = 0; !flag;)
		MPI_Test(&request[1], &flag, MPI_STATUS_IGNORE);
	expect(false, "MPI_Test of a persistent request");
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);

	MPI_Comm_idup(MPI_COMM_SELF, &dup, request);
	MPI_Ibarrier(MPI_COMM_SELF, request + 1);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&dup);
	expect(false, "collective operations");

	MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win);
	expect(true, "a window");
	MPI_Win_free(&win);
	expect(false, "MPI_Win_free");
	MPI_Finalize();
	return failures != 0;
}
