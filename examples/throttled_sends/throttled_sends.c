/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttled_sends: rank 0 sends many messages to every other rank and never has more than a few under way. The
 * continuation of a send frees its buffer and makes room for the next one, so the sender keeps no list of requests or
 * buffers. After the draft's example 3.20.
 *
 * Differences from the printed example, which has these errors:
 * - MPI_Test has its arguments in the wrong order, and gets the handle instead of the handle's address.
 * - MPI_Request_free gets a name that is declared nowhere. So is the work on the values.
 * - The result of malloc is not checked.
 * - There is one message for each peer, so with two ranks the limit is never reached. Here there are MESSAGES for each.
 * - Nothing was checked. Here receivers check every value, the sender checks the limit and that every continuation has
 *   run.
 *
 * Only the main thread calls MPI, and continuations run on threads that do: the counter needs no atomics.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <contd/mpi.h>

#define VALUES 1024 /* 8 KiB: more than Open MPI and MPICH send before the receiver has asked for it */
#define MESSAGES 200
#define ACTIVE_MOST 3
#define TAG 20

/* The part of the sender that the continuations use. */
struct throttle {
	int active;
	int active_seen; /* the most at a time */
	int finished;
};

struct message {
	struct throttle *throttle;
	double values[VALUES];
};

static double value_of(int rank, int message, int i)
{
	return rank * 1e6 + message * 1e3 + i * 0.5;
}

static void sent(MPI_Status *status, void *data)
{
	struct message *m = data;

	(void)status; /* MPI_STATUS_IGNORE, as it was attached */
	m->throttle->active--;
	m->throttle->finished++;
	free(m);
}

static void send_one(struct throttle *t, int to, int message, MPI_Request cr)
{
	struct message *m = malloc(sizeof(*m));
	MPI_Request request;

	if (!m) {
		fprintf(stderr, "throttled_sends: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		return;
	}
	m->throttle = t;
	for (int i = 0; i < VALUES; i++)
		m->values[i] = value_of(to, message, i);
	/* Before it is attached: the continuation may run inside MPI_Continue already. */
	if (++t->active > t->active_seen)
		t->active_seen = t->active;
	MPI_Isend(m->values, VALUES, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, &request);
	MPI_Continue(&request, sent, m, MPI_STATUS_IGNORE, cr);
}

static bool send_all(int ranks)
{
	struct throttle t = {0};
	MPI_Request cr;

	MPI_Continue_init(MPI_INFO_NULL, &cr);
	for (int message = 0; message < MESSAGES; message++) {
		for (int to = 1; to < ranks; to++) {
			while (t.active >= ACTIVE_MOST) {
				int all_done;

				MPI_Test(&cr, &all_done, MPI_STATUS_IGNORE);
			}
			send_one(&t, to, message, cr);
		}
	}
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	MPI_Request_free(&cr); /* waiting does not free a continuation request */
	printf("throttled_sends: %d messages to %d ranks, at most %d at a time\n", t.finished, ranks - 1,
	       t.active_seen);
	if (t.finished != MESSAGES * (ranks - 1) || t.active != 0 || t.active_seen > ACTIVE_MOST) {
		fprintf(stderr, "throttled_sends: %d of %d sends finished, %d active at the end, %d at a time\n",
			t.finished, MESSAGES * (ranks - 1), t.active, t.active_seen);
		return false;
	}
	return true;
}

static bool receive_all(int rank)
{
	double values[VALUES];

	for (int message = 0; message < MESSAGES; message++) {
		MPI_Recv(values, VALUES, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < VALUES; i++) {
			if (values[i] == value_of(rank, message, i))
				continue;
			fprintf(stderr, "throttled_sends: rank %d: value %d of message %d is %g, not %g\n", rank, i,
				message, values[i], value_of(rank, message, i));
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	int rank, ranks, good, all_good;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	good = rank == 0 ? send_all(ranks) : receive_all(rank);
	if (!good)
		MPI_Abort(MPI_COMM_WORLD, 1); /* the others may be waiting for this rank */
	MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	MPI_Finalize();
	return all_good ? 0 : 1;
}
