/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that fail, for two ranks. MPI has few ways in which one does so for certain, without harm: a message that
 * is longer than its receive. Not short ones to oneself: Open MPI 4.1 does not report these.
 */
#ifndef CONFORMANCE_FAILING_H
#define CONFORMANCE_FAILING_H

#include "conformance.h"

/* Eager and rendezvous; the message comes before the receive or after it. */
enum { truncations = 4 };

struct truncated {
	MPI_Request receive, send;
	int how, tag;
};

/* The receive; it fails after truncated_send, or is about to (where the message comes first). */
void truncated_begin(struct truncated *t, int how, int tag);
void truncated_send(struct truncated *t);
/* Ends the send. */
void truncated_end(struct truncated *t);

#endif
