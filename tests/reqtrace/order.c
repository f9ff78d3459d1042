/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of completion calls that a program sees: which requests, in which order, and every field of the
 * statuses. When they are tested, all requests are complete, or never will be. So the output is always the same, and
 * must be the same with a tool.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define N 6
#define UNTOUCHED (-4711) /* no MPI writes that */

static MPI_Request requests[N];
static MPI_Status statuses[N];
static int in[N], indices[N];

/* Until MPI says so, by the call that no tool here stands before. */
static void await_request(MPI_Request r)
{
	int flag = 0;

	while (!flag)
		MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
}

static void clear(void)
{
	memset(statuses, 0, sizeof(statuses));
	for (int i = 0; i < N; i++) {
		statuses[i].MPI_SOURCE = statuses[i].MPI_TAG = statuses[i].MPI_ERROR = UNTOUCHED;
		MPI_Status_set_elements(&statuses[i], MPI_INT, 3);
	}
}

static void show(const MPI_Status *s)
{
	int count = 0, cancelled = 0, error = s->MPI_ERROR;

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40200000
	/* For MPI a request of which the tool was told is inactive, whose entry MPI_Testall writes. */
	error = error == UNTOUCHED ? MPI_SUCCESS : error;
#endif
	MPI_Get_count(s, MPI_INT, &count);
	MPI_Test_cancelled(s, &cancelled);
	if (cancelled) /* of those the rest is not defined */
		printf(" [cancelled]");
	else
		printf(" [%d %d %d %d]", s->MPI_SOURCE, s->MPI_TAG, error, count);
}

static void show_handles(void)
{
	printf(" handles ");
	for (int i = 0; i < N; i++)
		putchar(requests[i] == MPI_REQUEST_NULL ? '0' : '1');
	putchar('\n');
}

static void receive(int i)
{
	MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
}

/*
 * The request at that place gets its message, and is complete. The persistent one is not asked, for MPICH (4.2) would
 * make it inactive: its message came before that of the last.
 */
static void release(int i)
{
	int out = i;

	MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
	if (i != 1)
		await_request(requests[i]);
}

static void persistent(int i)
{
	MPI_Recv_init(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
}

static void cancelled(int i)
{
	receive(i);
	MPI_Cancel(&requests[i]);
	await_request(requests[i]);
}

/* Six: a receive, an active persistent one, null, an inactive one, one that is cancelled, and a receive. */
static void set(int complete)
{
	receive(0);
	persistent(1);
	MPI_Start(&requests[1]);
	requests[2] = MPI_REQUEST_NULL;
	persistent(3);
	if (complete)
		cancelled(4);
	else
		receive(4);
	receive(5);
	for (int i = 5; complete && i >= 0; i -= i == 5 ? 4 : 1) /* 5, 1, 0 */
		release(i);
	clear();
}

static void unset(void)
{
	for (int i = 0; i < N; i++) {
		int flag = 1;

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
		if (!flag)
			MPI_Cancel(&requests[i]);
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		if (requests[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&requests[i]);
	}
}

static void all(int complete, int wait, int ignore)
{
	int flag = -1;
	MPI_Status *s = ignore ? MPI_STATUSES_IGNORE : statuses;

	set(complete);
	if (wait)
		MPI_Waitall(N, requests, s);
	else
		MPI_Testall(N, requests, &flag, s);
	printf("%s:", wait ? "Waitall" : "Testall");
	if (!wait)
		printf(" flag %d", flag);
	for (int i = 0; (wait || flag) && i < N; i++)
		show(&statuses[i]);
	show_handles();
	unset();
}

static void any(int complete, int wait, int ignore)
{
	int index = 0, flag = -1, last = 0;
	MPI_Status *s = ignore ? MPI_STATUS_IGNORE : statuses;

	set(complete);
	for (int i = 0; i < N && !last; i++) {
		clear();
		if (wait)
			MPI_Waitany(N, requests, &index, s);
		else
			MPI_Testany(N, requests, &index, &flag, s);
		printf("%s:", wait ? "Waitany" : "Testany");
		if (!wait)
			printf(" flag %d", flag);
		last = index == MPI_UNDEFINED;
		printf(last ? " none" : " %d", index);
		if (wait || flag)
			show(statuses);
		show_handles();
	}
	unset();
}

static void some(int complete, int wait, int ignore)
{
	int outcount = -1;
	MPI_Status *s = ignore ? MPI_STATUSES_IGNORE : statuses;

	set(complete);
	for (int turn = 0; turn < 2; turn++) {
		clear();
		if (wait)
			MPI_Waitsome(N, requests, &outcount, indices, s);
		else
			MPI_Testsome(N, requests, &outcount, indices, s);
		printf("%s:", wait ? "Waitsome" : "Testsome");
		if (outcount == MPI_UNDEFINED)
			printf(" undefined");
		for (int i = 0; outcount != MPI_UNDEFINED && i < outcount; i++) {
			printf(" %d", indices[i]);
			show(&statuses[i]);
		}
		show_handles();
	}
	unset();
}

static void one(int complete, int wait, int ignore)
{
	MPI_Status *s = ignore ? MPI_STATUS_IGNORE : statuses;

	set(complete);
	for (int i = 0; i < N; i++) {
		int flag = -1;

		clear();
		if (wait)
			MPI_Wait(&requests[i], s);
		else
			MPI_Test(&requests[i], &flag, s);
		printf("%s:", wait ? "Wait" : "Test");
		if (!wait)
			printf(" flag %d", flag);
		if (wait || flag)
			show(statuses);
		show_handles();
	}
	unset();
}

static void nothing(int count)
{
	int flag = -1, index = 0, outcount = 0;

	for (int i = 0; i < N; i++)
		requests[i] = MPI_REQUEST_NULL;
	if (count)
		persistent(2);
	clear();
	printf("nothing of %d:", count);
	MPI_Testall(count, requests, &flag, statuses);
	printf(" %d", flag);
	MPI_Waitall(count, requests, statuses);
	MPI_Testany(count, requests, &index, &flag, statuses);
	printf(" %d%d", index == MPI_UNDEFINED, flag);
	show(statuses);
	clear();
	MPI_Waitany(count, requests, &index, statuses);
	printf(" %d", index == MPI_UNDEFINED);
	show(statuses);
	MPI_Testsome(count, requests, &outcount, indices, statuses);
	printf(" %d", outcount == MPI_UNDEFINED);
	outcount = 0;
	MPI_Waitsome(count, requests, &outcount, indices, statuses);
	printf(" %d\n", outcount == MPI_UNDEFINED);
	unset();
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	for (int ignore = 0; ignore < 2; ignore++)
		for (int wait = 0; wait < 2; wait++)
			for (int complete = wait; complete < 2; complete++) {
				one(complete, wait, ignore);
				any(complete, wait && complete, ignore);
				all(complete, wait, ignore);
				some(complete, wait, ignore);
			}
	nothing(0);
	nothing(N);
	MPI_Finalize();
	return 0;
}
