/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations, from start to end, by handle. A handle that is not persistent may stand for several at a time: both MPIs
 * give all sends that were complete at once the same one. Then the oldest ends first.
 *
 * All functions: any thread; not in signal handlers, but for attached_done.
 */
#ifndef REQTRACE_OPS_H
#define REQTRACE_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "calls.h"

enum kind {
#define KIND(name, ...) KIND_##name,
	SENDS(KIND) KIND_Irecv,
	KIND_Imrecv,
	SEND_INITS(KIND) KIND_Recv_init,
	STARTED(KIND) STARTED_COUNTED(KIND) MADE(KIND) MADE_COUNTED(KIND)
#undef KIND
		KINDS
};

enum outcome { ACTIVE, COMPLETED, CANCELLED, FAILED, FREED, OUTCOMES };

struct op {
	struct op *next, *behind; /* in the timeline; of the same handle */
	uint64_t start, end;      /* ns */
	const char *by;           /* the call that told of its end */
	long long bytes;          /* -1: not known */
	int peer, tag;            /* MPI_UNDEFINED: it has none */
	unsigned char kind, outcome;
	bool kept; /* for the timeline */
};

uint64_t now_ns(void);

/*
 * A call that the calling thread is in, of those that the tool stands before: they nest, as continuations make calls.
 * Such that wait, or have told of an end, or have run a continuation, are in the timeline.
 */
struct call {
	const char *name;
	struct call *outer;
	uint64_t start;
	bool tells;
};

void call_begin(struct call *c, const char *name);
/* noted: the tool follows. Returns the time, or one not long ago. */
uint64_t call_end(struct call *c, bool waits, bool noted);

void op_started(enum kind kind, MPI_Request handle, int peer, int tag, long long bytes, uint64_t start);
void op_made(enum kind kind, MPI_Request handle, int peer, int tag, long long bytes);
void op_restarted(MPI_Request handle, uint64_t start); /* MPI_Start */
void op_cancel(MPI_Request handle);
void op_free(MPI_Request handle); /* about to be freed */

/* Its active operation, which the handle stands for no more; NULL if it has none, or none that is known. */
struct op *op_take(MPI_Request handle);

/* It is complete. status: as the query gave it, MPI_ERROR too. op may be NULL. */
void op_done(struct op *op, const MPI_Status *status, const char *by);
/* ... and the call that completed it has returned. Then op is gone. */
void op_close(struct op *op, int rc);
/* ... or has not completed it: the handle stands for it again. */
void op_back(struct op *op, MPI_Request handle);

void cr_made(MPI_Request cr);
bool cr_is(MPI_Request handle);
/* Is there a request that the tool does not query? These are CRs, and on MPICH operations on files, because its query
 * never says that they are complete. */
bool unseen_among(int count, const MPI_Request *requests);

/* Operations that are given to a continuation, n of them. */
struct attached {
	struct attached *next, *next_finished;
	MPI_Continue_cb_function *draft;
	MPIX_Continue_cb_function *revised;
	void *data;
	MPI_Status *given, *own; /* the program's statuses, and those that MPI writes */
	int count;
	MPI_Request *handles;
	struct op **ops;
	uint64_t ran, returned; /* ns; the callback */
	const char *in;         /* the call that it ran in; NULL: none of those that the tool stands before */
	int thread;
	bool owed; /* MPIX_Continue_get_failed will give *a, in place of data */
};

/* Takes them; NULL without memory. */
struct attached *attached_make(int count, const MPI_Request *handles, MPI_Status *statuses);
void attached_undo(struct attached *a);
/* Its callback runs, and has returned; any context, nothing that a signal handler may not do. Then *a is gone. */
void attached_runs(struct attached *a);
void attached_done(struct attached *a, int rc);
/* The program's own data, where it is one of ours, which has failed and will not run. */
void *attached_failed(void *data);

/* The end: nothing is followed from here on. */
void ops_end(void);
void ops_summary(FILE *out, int rank);
/* Members of a JSON array, without the brackets. At any time: what is not complete lasts until now. */
void ops_timeline(FILE *out, int rank, uint64_t zero, const char *host);

#endif
