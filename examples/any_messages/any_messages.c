/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * any_messages: every rank sends messages of any size to ranks of its choice, and no rank knows how many will come to
 * it. A small library (inbox.c) receives them with one persistent receive that its continuation starts again; at the
 * end the receive is cancelled, and the continuation sees that in the status. After the draft's example 3.22.
 *
 * Differences from the printed example, which has these errors:
 * - The cancellation may be too late, because a message has matched the receive. Then the printed continuation starts
 *   another receive, which is never cancelled, and MPI_Wait hangs. Here it starts none once the end has begun. The
 *   second of the two runs below causes this case.
 * - When MPI_Cancel is called, the receive may have completed and be inactive, while its continuation has yet to run.
 *   inbox.c says what it does then.
 * - The continuation freed the receive in one of the two cases only. inbox_end frees it in both.
 * - The continuation could run in any MPI call of the library's user. Here it runs in inbox_progress and inbox_end.
 * - The second attach named another callback and a buffer, and the receive a communicator, that are declared nowhere.
 * - The sender was missing. This one also finds the end. Sends are synchronous: when a rank's sends are complete, its
 *   messages have been received or are being received. When all ranks have entered the barrier, this holds for all
 *   messages.
 * - Nothing was checked. Here the ranks tell each other afterwards how much they have sent, and to which rank.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inbox.h"

#define MESSAGES_MOST 100 /* that one rank sends */
#define BYTES_MOST 20000  /* of a message: some go at once, others wait for their receiver */

/* The messages from one rank to another. The sum weighs bytes by their place, so that mixed-up ones show. */
struct tally {
	long long messages, bytes, sum;
};

static void tally_add(struct tally *t, const unsigned char *message, int bytes)
{
	t->messages++;
	t->bytes += bytes;
	for (int i = 0; i < bytes; i++)
		t->sum += (i % 7 + 1) * message[i];
}

static void on_message(const void *message, int bytes, int source, void *data)
{
	struct tally *from = data;

	tally_add(&from[source], message, bytes);
}

static void *must_alloc(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p) {
		fprintf(stderr, "any_messages: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* Sends to ranks of its choice, receives from those who chose it, until all that was sent anywhere has been found. */
static void exchange(struct inbox *in, int rank, int ranks, struct tally *to)
{
	int count = rand() % (MESSAGES_MOST + 1), done = 0;
	MPI_Request *requests = must_alloc(MESSAGES_MOST * sizeof(MPI_Request)), barrier;
	unsigned char *messages = must_alloc((size_t)MESSAGES_MOST * BYTES_MOST);

	for (int n = 0; n < count; n++) {
		unsigned char *m = messages + (size_t)n * BYTES_MOST;
		int bytes = rand() % 2 ? rand() % 100 : rand() % (BYTES_MOST + 1), dest = rand() % ranks;

		for (int i = 0; i < bytes; i++)
			m[i] = (unsigned char)(rank * 31 + n + i);
		tally_add(&to[dest], m, bytes);
		inbox_isend(in, m, bytes, dest, &requests[n]);
	}
	while (!done) {
		inbox_progress(in);
		MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
	}
	MPI_Ibarrier(in->comm, &barrier);
	for (done = 0; !done;) {
		inbox_progress(in);
		MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
	}
	free(messages);
	free(requests);
}

/* Did all that was sent to this rank come, as it was sent? */
static bool check(int rank, int ranks, const struct tally *to, const struct tally *from)
{
	const int each = sizeof(struct tally) / sizeof(long long);
	struct tally *sent = must_alloc((size_t)ranks * sizeof(*sent));
	bool good = true;

	MPI_Alltoall(to, each, MPI_LONG_LONG, sent, each, MPI_LONG_LONG, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++) {
		if (memcmp(&sent[r], &from[r], sizeof(sent[r])) == 0)
			continue;
		fprintf(stderr,
			"any_messages: rank %d: of rank %d's %lld messages (%lld bytes, sum %lld) came %lld (%lld, "
			"%lld)\n",
			rank, r, sent[r].messages, sent[r].bytes, sent[r].sum, from[r].messages, from[r].bytes,
			from[r].sum);
		good = false;
	}
	free(sent);
	return good;
}

/* One life of the inbox. late: at its end a message has been found that it has not looked at yet. */
static bool run(int rank, int ranks, bool late)
{
	struct tally *to = must_alloc((size_t)ranks * sizeof(*to)), *from = must_alloc((size_t)ranks * sizeof(*from));
	void *buffer = must_alloc(BYTES_MOST);
	unsigned char last = 200;
	MPI_Request request;
	struct inbox in;
	bool good;

	inbox_begin(&in, MPI_COMM_WORLD, buffer, BYTES_MOST, on_message, from);
	exchange(&in, rank, ranks, to);
	if (late) {
		int busy = 1;

		/* The continuation of what came last may not have run: till then nothing would receive this one. */
		while (MPI_Request_get_status(in.recv, &busy, MPI_STATUS_IGNORE), busy)
			inbox_progress(&in);
		tally_add(&to[rank], &last, 1);
		inbox_isend(&in, &last, 1, rank, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	inbox_end(&in);

	good = check(rank, ranks, to, from);
	if (in.cancelled == late) {
		fprintf(stderr, "any_messages: rank %d: the last receive was%s cancelled\n", rank, late ? "" : " not");
		good = false;
	}
	free(buffer);
	free(from);
	free(to);
	return good;
}

int main(int argc, char **argv)
{
	int rank, ranks, good, all_good;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	srand((unsigned)rank + 1);
	good = run(rank, ranks, false);
	good = run(rank, ranks, true) && good;
	MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	if (rank == 0 && all_good)
		printf("any_messages: all messages have come\n");
	MPI_Finalize();
	return all_good ? 0 : 1;
}
