/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * persistent_receive: rank 0 takes one message from every other rank with one persistent receive, which its own
 * continuation starts again. Waiting for the continuation request is waiting for all of them: a continuation that
 * registers another one with its continuation request is not finished before the new one counts. After the draft's
 * example 3.21.
 *
 * Differences from the printed example, which has these errors:
 * - The receive is started once too often, after the last message, and MPI_Wait hangs. With a single rank it is started
 *   although no rank sends.
 * - The continuation names a buffer that is local to main, and the work on it is declared nowhere.
 * - Buffer, requests and counts were global or volatile. Here they are one struct, which the continuation gets.
 * - Nothing was checked. Here every value is checked, and that each rank's message came once.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <contd/mpi.h>

#define VALUES 1024
#define TAG 21

struct inbox {
	MPI_Request recv, cr;
	MPI_Status status; /* must stay until the continuation has run */
	int expected, received, wrong;
	bool *from; /* [rank]: its message has come */
	double values[VALUES];
};

static double value_of(int rank, int i)
{
	return rank + i / 1024.;
}

static void take(struct inbox *in, int source)
{
	if (in->from[source])
		in->wrong++;
	in->from[source] = true;
	for (int i = 0; i < VALUES; i++)
		if (in->values[i] != value_of(source, i))
			in->wrong++;
	in->received++;
}

static void received(MPI_Status *status, void *data);

static void await_next(struct inbox *in)
{
	MPI_Start(&in->recv);
	/* The handle stays, since the request is persistent. */
	MPI_Continue(&in->recv, received, in, &in->status, in->cr);
}

static void received(MPI_Status *status, void *data)
{
	struct inbox *in = data;

	take(in, status->MPI_SOURCE);
	/* Now that the values have been used the receive may overwrite them; it is inactive here and may be started. */
	if (in->received < in->expected)
		await_next(in);
}

static bool receive_all(int ranks)
{
	struct inbox in = {.expected = ranks - 1, .from = calloc((size_t)ranks, sizeof(bool))};
	bool good;

	if (!in.from) {
		fprintf(stderr, "persistent_receive: out of memory\n");
		return false;
	}
	MPI_Continue_init(MPI_INFO_NULL, &in.cr);
	MPI_Recv_init(in.values, VALUES, MPI_DOUBLE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &in.recv);
	if (in.expected > 0)
		await_next(&in);
	MPI_Wait(&in.cr, MPI_STATUS_IGNORE);
	MPI_Request_free(&in.recv);
	MPI_Request_free(&in.cr);

	printf("persistent_receive: %d of %d messages\n", in.received, in.expected);
	good = in.received == in.expected && in.wrong == 0;
	if (!good)
		fprintf(stderr, "persistent_receive: %d of %d messages came, %d values or sources are wrong\n",
			in.received, in.expected, in.wrong);
	free(in.from);
	return good;
}

static void send_own(int rank)
{
	double values[VALUES];

	for (int i = 0; i < VALUES; i++)
		values[i] = value_of(rank, i);
	MPI_Send(values, VALUES, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, ranks, good = true;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		good = receive_all(ranks);
	else
		send_own(rank);
	MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return good ? 0 : 1;
}
