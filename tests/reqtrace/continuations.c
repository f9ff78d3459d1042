/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are given to continuations, and continuation requests beside others in completion calls, also such that
 * run in Test and Wait on them only. Every callback gets its own data and status. Prints what account.c prints.
 */
#include <stdio.h>
#include <stdlib.h>

#include <contd/mpi.h>

static int rank, ran, failures;

#define CHECK(cond) \
	((cond) ? (void)0 \
		: (failures++, (void)fprintf(stderr, "continuations.c:%d: CHECK(%s) failed\n", __LINE__, #cond)))

static void on_one(MPI_Status *status, void *data)
{
	CHECK(status == MPI_STATUS_IGNORE || status->MPI_TAG == *(int *)data);
	ran++;
}

static int on_two(int rc, void *data)
{
	CHECK(rc == MPI_SUCCESS);
	ran++;
	return *(int *)data == 5 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static MPI_Request make(int poll_only)
{
	MPI_Request cr;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_poll_only", poll_only ? "true" : "false");
	MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	return cr;
}

/* Four receives, two of them for a continuation each, and two for one of both; and one that is waited for with the
 * CR. */
static void draft(int poll_only, int way)
{
	int in[5], tags[5] = {0, 1, 2, 3, 4}, out = 1, n = 0, indices[2], flag = 0, index;
	MPI_Request requests[5], cr = make(poll_only), both[2];
	MPI_Status statuses[5];

	ran = 0;
	for (int i = 0; i < 5; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
	MPI_Continue(&requests[0], on_one, &tags[0], &statuses[0], cr);
	MPI_Continue(&requests[1], on_one, &tags[1], MPI_STATUS_IGNORE, cr);
	MPI_Continueall(2, requests + 2, on_one, &tags[2], statuses + 2, cr);
	for (int i = 0; i < 5; i++)
		MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
	both[0] = cr;
	both[1] = requests[4];
	if (way == 0)
		MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	else if (way == 1)
		while (!flag)
			MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE);
	else if (way == 2)
		while (ran < 3 || both[1] != MPI_REQUEST_NULL)
			MPI_Testsome(2, both, &n, indices, MPI_STATUSES_IGNORE);
	else if (way == 3)
		MPI_Wait(&both[1], MPI_STATUS_IGNORE), MPI_Wait(&both[0], MPI_STATUS_IGNORE);
	else {
		MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
		MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	}
	CHECK(ran == 3 && both[0] == cr && both[1] == MPI_REQUEST_NULL);
	MPI_Request_free(&both[0]);
}

/* The revised interface: one callback fails; a call that is refused leaves the request as it is. */
static void revised(void)
{
	int in[6], ids[6] = {0, 1, 2, 3, 4, 5}, out = 1, flag = 0;
	MPI_Request requests[6], cr;

	ran = 0;
	MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr);
	MPI_Start(&cr);
	for (int i = 0; i < 6; i++) {
		MPI_Recv_init(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
		MPI_Start(&requests[i]);
	}
	CHECK(MPIX_Continue(&requests[0], on_two, &ids[0], 0, MPI_STATUS_IGNORE, requests[1]) != MPI_SUCCESS);
	MPIX_Continue(&requests[0], on_two, &ids[0], 0, MPI_STATUS_IGNORE, cr);
	for (int i = 1; i < 5; i++)
		MPIX_Continue(&requests[i], on_two, &ids[i], 0, MPI_STATUS_IGNORE, cr);
	for (int i = 0; i < 5; i++)
		MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
	while (!flag)
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	CHECK(ran == 5);
	MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
	MPI_Wait(&requests[5], MPI_STATUS_IGNORE);
	for (int i = 0; i < 6; i++)
		MPI_Request_free(&requests[i]);
	MPI_Request_free(&cr);
}

static int counts_runs(int rc, void *data)
{
	ran++;
	return rc;
}

/*
 * What MPIX_Continue_get_failed gives is the program's own data: of a callback that returned an error, and of one that
 * did not run, as its operation had failed; of the latter the status cannot be had by a query, or says so.
 */
static void failed(void)
{
	int in[3], ids[3] = {5, 6, 7}, out[2] = {1, 2}, n = 3, flag = 0, rc;
	void *data[3] = {NULL};
	MPI_Request requests[3], cr;

	ran = 0;
	MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr);
	MPI_Start(&cr);
	MPI_Irecv(&in[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
	MPI_Send(out, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
	MPIX_Continue(&requests[0], on_two, &ids[0], 0, MPI_STATUS_IGNORE, cr);
	if (rank == 0) {
		/* Too long for its receive. From another rank: Open MPI does not tell of one to oneself. */
		MPI_Recv(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Irecv(&in[1], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[1]);
		MPIX_Continue(&requests[1], counts_runs, &ids[1], 0, MPI_STATUS_IGNORE, cr);
	} else {
		MPI_Request r;

		MPI_Isend(out, 2, MPI_INT, 0, 7, MPI_COMM_WORLD, &r);
		MPI_Send(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	do
		rc = MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	while (!flag && rc == MPI_SUCCESS);
	CHECK(rc != MPI_SUCCESS && ran == 1);
	/* Some operations may have to be waited for. */
	for (int got = 0; got < (rank ? 1 : 2); got += n) {
		n = 3 - got;
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
		CHECK(MPIX_Continue_get_failed(cr, &n, data + got) == MPI_SUCCESS);
	}
	CHECK(data[0] == &ids[0] || data[1] == &ids[0]);
	CHECK(rank || data[0] == &ids[1] || data[1] == &ids[1]);
	while (!flag)
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	MPI_Request_free(&cr);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int way = 0; way < 5; way++) {
		draft(0, way);
		draft(1, way);
	}
	revised();
	failed();
	printf("expect %d Irecv %d 51 0 %d 0 0\n", rank, rank ? 51 : 52, !rank);
	if (rank)
		printf("expect %d Isend 1 1 0 0 0 0\n", rank);
	printf("expect %d Recv_init 6 6 0 0 0 0\n", rank);
	MPI_Finalize();
	return failures != 0;
}
