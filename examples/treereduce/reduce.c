/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include <contd/mpi.h>

#include "reduce.h"

/* Of one reduction; free_fn frees it, and that is after the request is complete and waited for. */
struct reduction {
	MPI_Comm comm;
	int tag;
	int left, right, parent; /* ranks, or MPI_PROC_NULL */
	int from_left, from_right, value;
	int *valout;
	MPI_Request cr, request;
};

/* ----------------------------------------------------------------------------------- of the generalized request --- */

static int query_fn(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_INT, 0); /* there is no status to tell */
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int free_fn(void *extra)
{
	free(extra);
	return MPI_SUCCESS;
}

/* It cannot be cancelled, and goes on. */
static int cancel_fn(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

/* The last access: a thread that waits for the request may free it at once. */
static void finish(struct reduction *r)
{
	if (r->parent == MPI_PROC_NULL)
		*r->valout = r->value;
	MPI_Grequest_complete(r->request);
}

/* ---------------------------------------------------------------------------------------------- with its thread --- */

static void *reduce_thread(void *data)
{
	struct reduction *r = data;
	MPI_Request children[2];

	MPI_Irecv(&r->from_left, 1, MPI_INT, r->left, r->tag, r->comm, &children[0]);
	MPI_Irecv(&r->from_right, 1, MPI_INT, r->right, r->tag, r->comm, &children[1]);
	MPI_Waitall(2, children, MPI_STATUSES_IGNORE);
	r->value += r->from_left + r->from_right;
	MPI_Send(&r->value, 1, MPI_INT, r->parent, r->tag, r->comm);
	finish(r);
	return NULL;
}

static int begin_thread(struct reduction *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, reduce_thread, r);
	pthread_attr_destroy(&attr);
	return rc ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* ---------------------------------------------------------------------------- with continuations, and no thread --- */

static void on_sent(MPI_Status *status, void *data)
{
	(void)status;
	finish(data);
}

static void on_children(MPI_Status *statuses, void *data)
{
	struct reduction *r = data;
	MPI_Request up;

	(void)statuses;
	r->value += r->from_left + r->from_right;
	MPI_Isend(&r->value, 1, MPI_INT, r->parent, r->tag, r->comm, &up);
	MPI_Continue(&up, on_sent, r, MPI_STATUS_IGNORE, r->cr);
}

static int begin_continuations(struct reduction *r)
{
	MPI_Request children[2];

	MPI_Irecv(&r->from_left, 1, MPI_INT, r->left, r->tag, r->comm, &children[0]);
	MPI_Irecv(&r->from_right, 1, MPI_INT, r->right, r->tag, r->comm, &children[1]);
	return MPI_Continueall(2, children, on_children, r, MPI_STATUSES_IGNORE, r->cr);
}

/* --------------------------------------------------------------------------------------------------------- both --- */

/* Of the tree's node with this number, counted from the root; the tree is turned so that the root is rank `root`. */
static int rank_of(int node, int root, int size)
{
	return node < size ? (node + root) % size : MPI_PROC_NULL;
}

int tree_reduce(enum tree_form form, MPI_Comm comm, int tag, int root, int valin, int *valout, MPI_Request cr,
		MPI_Request *request)
{
	struct reduction *r = calloc(1, sizeof(*r)); /* values without a sender count as 0 */
	int rank, size, node, rc;

	if (!r)
		return MPI_ERR_NO_MEM;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	node = (rank - root + size) % size;
	r->comm = comm;
	r->tag = tag;
	r->left = rank_of(2 * node + 1, root, size);
	r->right = rank_of(2 * node + 2, root, size);
	r->parent = node ? rank_of((node - 1) / 2, root, size) : MPI_PROC_NULL;
	r->value = valin;
	r->valout = valout;
	r->cr = cr;
	rc = MPI_Grequest_start(query_fn, free_fn, cancel_fn, r, &r->request);
	if (rc) {
		free(r);
		return rc;
	}
	*request = r->request; /* before: it may be complete when begin returns */
	rc = form == TREE_THREAD ? begin_thread(r) : begin_continuations(r);
	if (rc) {
		MPI_Grequest_complete(*request);
		MPI_Request_free(request);
	}
	return rc;
}
