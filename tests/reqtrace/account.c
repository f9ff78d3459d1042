/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of every fate, and how many there were of each kind, which the tool's summary and timeline must say too:
 * "expect <rank> <kind> <started> <completed> <cancelled> <failed> <freed> <never completed>". 2 ranks.
 */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#define MANY 700

static int rank, in[MANY], out[MANY], started, cancelled, failed, freed, never, sent, sent_freed;
static MPI_Request recvs[MANY], sends[MANY];

static void start(int count)
{
	for (int i = 0; i < count; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &recvs[i]);
	for (int i = 0; i < count; i++)
		MPI_Isend(&out[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &sends[i]);
	started += count;
	sent += count;
}

/* Each way of completing. Handles that are complete at once are shared by many in both MPIs. */
static void complete(void)
{
	int flag, index, n, indices[MANY];

	start(MANY);
	MPI_Waitall(MANY, recvs, MPI_STATUSES_IGNORE);
	MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE);
	start(40);
	for (int i = 0; i < 40; i++)
		MPI_Waitany(40, recvs, &index, MPI_STATUS_IGNORE);
	do
		MPI_Testany(40, sends, &index, &flag, MPI_STATUS_IGNORE);
	while (!flag || index != MPI_UNDEFINED);
	start(40);
	for (n = 0; n != MPI_UNDEFINED;)
		MPI_Waitsome(40, recvs, &n, indices, MPI_STATUSES_IGNORE);
	for (n = 0; n != MPI_UNDEFINED;)
		MPI_Testsome(40, sends, &n, indices, MPI_STATUSES_IGNORE);
	start(10);
	for (int i = 0; i < 10; i++)
		for (flag = 0; !flag;)
			MPI_Test(&recvs[i], &flag, MPI_STATUS_IGNORE);
	for (flag = 0; !flag;)
		MPI_Testall(10, sends, &flag, MPI_STATUSES_IGNORE);
	start(1);
	MPI_Wait(&recvs[0], MPI_STATUS_IGNORE);
	MPI_Wait(&sends[0], MPI_STATUS_IGNORE);
}

static void cancel(void)
{
	int n, indices[2];

	for (int i = 0; i < 3; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &recvs[i]);
		started++;
		cancelled++;
		MPI_Cancel(&recvs[i]);
	}
	MPI_Wait(&recvs[0], MPI_STATUS_IGNORE);
	for (n = 0; n != MPI_UNDEFINED;)
		MPI_Testsome(2, recvs + 1, &n, indices, MPI_STATUSES_IGNORE);
}

static void fail(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		MPI_Irecv(in, 1, MPI_INT, !rank, i, comm, &recvs[0]);
		MPI_Irecv(in + 1, 1, MPI_INT, !rank, 10 + i, comm, &recvs[1]);
		MPI_Barrier(MPI_COMM_WORLD);
		started += 2;
		failed++;
		MPI_Send(out, 1, MPI_INT, !rank, 10 + i, comm);
		MPI_Send(out, 2, MPI_INT, !rank, i, comm);
		if (i == 0) {
			MPI_Wait(&recvs[0], MPI_STATUS_IGNORE);
		} else if (i == 1) {
			MPI_Waitall(2, recvs, MPI_STATUSES_IGNORE);
		} else {
			int n, indices[2];

			do
				MPI_Waitsome(2, recvs, &n, indices, MPI_STATUSES_IGNORE);
			while (recvs[0] != MPI_REQUEST_NULL);
		}
		for (int k = 0; k < 2; k++)
			if (recvs[k] != MPI_REQUEST_NULL)
				MPI_Wait(&recvs[k], MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Comm_free(&comm);
}

static int query(void *state, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int release(void *state)
{
	return MPI_SUCCESS;
}

static int never_cancel(void *state, int complete)
{
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	MPI_Request two[2], other;
	int sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	complete();
	cancel();
	fail();

	/* Freed while it is active. */
	MPI_Isend(out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &other);
	MPI_Request_free(&other);
	MPI_Recv(in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	sent++;
	sent_freed++;

	/* Persistent: three rounds, and one more whose requests are freed when nothing is active. */
	MPI_Recv_init(in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &two[0]);
	MPI_Send_init(out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &two[1]);
	for (int i = 0; i < 3; i++) {
		if (i)
			MPI_Startall(2, two);
		else
			MPI_Start(&two[0]), MPI_Start(&two[1]);
		MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
		MPI_Waitall(2, two, MPI_STATUSES_IGNORE); /* inactive: nothing is to be counted */
	}
	MPI_Start(&two[0]);
	MPI_Cancel(&two[0]);
	MPI_Wait(&two[0], MPI_STATUS_IGNORE);
	MPI_Request_free(&two[0]);
	MPI_Request_free(&two[1]);

	MPI_Ibarrier(MPI_COMM_WORLD, &two[0]);
	MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &two[1]);
	MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
	MPI_Grequest_start(query, release, never_cancel, NULL, &two[0]);
	MPI_Grequest_complete(two[0]);
	MPI_Wait(&two[0], MPI_STATUS_IGNORE);

	/* Ends behind the tool's back. */
	MPI_Irecv(in, 1, MPI_INT, 0, 99, MPI_COMM_SELF, &other);
	PMPI_Cancel(&other);
	PMPI_Wait(&other, MPI_STATUS_IGNORE);
	started++;
	never++;

#define EXPECT(kind, start, cancel, fail, free, unseen) \
	printf("expect %d %s %d %d %d %d %d %d\n", rank, kind, start, (start) - (cancel) - (fail) - (free) - (unseen), \
	       cancel, fail, free, unseen)
	EXPECT("Irecv", started, cancelled, failed, freed, never);
	EXPECT("Isend", sent, 0, 0, sent_freed, 0);
	EXPECT("Recv_init", 4, 1, 0, 0, 0);
	EXPECT("Send_init", 3, 0, 0, 0, 0);
	EXPECT("Ibarrier", 1, 0, 0, 0, 0);
	EXPECT("Iallreduce", 1, 0, 0, 0, 0);
	EXPECT("Grequest_start", 1, 0, 0, 0, 0);
	MPI_Finalize();
	return 0;
}
