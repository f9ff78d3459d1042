/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A generalized request that writes down when its functions were called, and a continuation's callback for it. MPI's
 * own calls only: for tests/mpi and tests/conformance, each of which has its own checks.
 */
#ifndef CONTD_TESTS_GENERAL_H
#define CONTD_TESTS_GENERAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <mpi.h>

struct general {
	MPI_Request handle;   /* for MPI_Grequest_complete: the program's own is null after attaching */
	MPI_Status status;    /* for the thread that attaches */
	int number;           /* in the status: which one it is */
	atomic_int completed; /* set by the thread that is about to complete it */
	atomic_int queries, frees, cancels, runs;
	atomic_int complete_when_cancelled;
	atomic_int queries_before, frees_before; /* when the callback ran */
	atomic_int misplaced; /* query_fn before it was complete or after free_fn; free_fn before query_fn */
};

#define GENERAL_SOURCE 5

static inline int general_query(void *extra, MPI_Status *status)
{
	struct general *g = extra;

	if (!g->completed || g->frees)
		g->misplaced++;
	g->queries++;
	MPI_Status_set_elements(status, MPI_BYTE, 11 + g->number);
	MPI_Status_set_cancelled(status, g->cancels != 0);
	status->MPI_SOURCE = GENERAL_SOURCE;
	status->MPI_TAG = 6 + g->number;
	return MPI_SUCCESS;
}

static inline int general_free(void *extra)
{
	struct general *g = extra;

	if (!g->queries)
		g->misplaced++;
	g->frees++;
	return MPI_SUCCESS;
}

static inline int general_cancel(void *extra, int complete)
{
	struct general *g = extra;

	g->complete_when_cancelled = complete != 0;
	g->cancels++;
	return MPI_SUCCESS;
}

/* Its continuation's callback. */
static inline void general_ran(MPI_Status *status, void *data)
{
	struct general *g = data;

	(void)status;
	g->queries_before = (int)g->queries;
	g->frees_before = (int)g->frees;
	g->runs++;
}

/* MPI error code. */
static inline int general_start(struct general *g, int number)
{
	memset(g, 0, sizeof(*g));
	memset(&g->status, 0x5a, sizeof(g->status));
	g->number = number;
	return MPI_Grequest_start(general_query, general_free, general_cancel, g, &g->handle);
}

static inline int general_complete(struct general *g)
{
	g->completed = 1;
	return MPI_Grequest_complete(g->handle);
}

/* That is what query_fn has put there. */
static inline bool general_told(struct general *g, MPI_Status *status)
{
	int count = -1, cancelled = -1;

	MPI_Get_count(status, MPI_BYTE, &count);
	MPI_Test_cancelled(status, &cancelled);
	return count == 11 + g->number && status->MPI_SOURCE == GENERAL_SOURCE && status->MPI_TAG == 6 + g->number &&
	       (cancelled != 0) == (g->cancels != 0);
}

/* query_fn, the callback, free_fn, in this order; both of the last once. */
static inline bool general_in_order(const struct general *g)
{
	return g->runs == 1 && g->queries_before >= 1 && g->frees_before == 0 && g->frees == 1 && g->misplaced == 0;
}

#endif
