/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library of this example: any number of messages from any sender. All calls are for one thread at a time,
 * the one that calls MPI. A struct inbox must not move between begin and end.
 */
#ifndef ANY_MESSAGES_INBOX_H
#define ANY_MESSAGES_INBOX_H

#include <stdbool.h>

#include <mpi.h>

/* A message has come. It is gone when this returns. Runs in inbox_progress and inbox_end only. */
typedef void inbox_message(const void *message, int bytes, int source, void *data);

struct inbox {
	MPI_Comm comm; /* not shared: no other receive can take its messages */
	MPI_Request recv, cr;
	MPI_Status status;
	void *buffer;
	inbox_message *fn;
	void *data;
	bool ending;
	bool cancelled; /* how the last receive ended */
};

/* Collective. Messages may have up to `bytes` bytes; the buffer is the caller's, until inbox_end. */
void inbox_begin(struct inbox *in, MPI_Comm comm, void *buffer, int bytes, inbox_message *fn, void *data);

/* To be called now and then. */
void inbox_progress(struct inbox *in);

/* To another rank's inbox; complete once that has begun to receive it. */
void inbox_isend(struct inbox *in, const void *message, int bytes, int to, MPI_Request *request);

/*
 * Collective. Cancels the receive that waits for another message. If a message has already matched it, that message is
 * still delivered. Messages that have been sent and have not matched a receive stay undelivered.
 */
void inbox_end(struct inbox *in);

#endif
