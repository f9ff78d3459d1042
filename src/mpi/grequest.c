/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/error.h"
#include "mpi/grequest.h"
#include "mpi/intercept.h"
#include "mpi/state.h"
#include "mpi/templates.h"

uint32_t contd__general_known, contd__generals, contd__general_holds;
struct __cds_lfs_stack contd__general_deferred;

/*
 * Handles to requests. A handler that has interrupted anything may look one up. So nothing that it reads is ever freed,
 * except the request, which exists while its handle is valid. An entry stays in its bucket, and is used again. A bucket
 * has as many entries as it ever had requests at a time.
 */
#define BUCKETS 4096u

#define NOBODYS ((MPI_Request)0) /* no handle in either of the great implementations, and a constant in both */

struct entry {
	struct entry *next;
	MPI_Request request;            /* NOBODYS, or a handle */
	struct contd__general *general; /* NULL: it may be taken */
};

/* Steps that have not happened yet. */
#define COMPLETION 1u /* MPI has not been told that it is complete */
#define FREEING 2u    /* MPI has not called free_fn; MPICH (4.0) does so in MPI_Request_free, complete or not */
#define HELD 4u       /* a continuation has not run */

struct contd__general {
	struct cds_lfs_node deferred;
	struct entry *entry;
	MPI_Request request;
	uint32_t left;
	uint32_t completed; /* a call has said so, once */
	uint32_t freed;     /* the program's free_fn was called for a continuation */
	int error;          /* what query_fn has returned last: MPI keeps it nowhere, or as another class */
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *extra;
};

static struct entry *bucket[BUCKETS];
static struct entry *spare; /* one, so that there is an entry before MPI is asked for a request */

static struct entry **bucket_of(MPI_Request request)
{
	uint64_t x = (uint64_t)(uintptr_t)request;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	return &bucket[(x ^ x >> 29) % BUCKETS];
}

struct contd__general *contd__general_find(MPI_Request request)
{
	if (request == NOBODYS)
		return NULL;
	/* Acquire: pairs with the releases in entry_take. */
	for (struct entry *e = contd__load_acquire(bucket_of(request)); e; e = e->next)
		if (contd__load_acquire(&e->request) == request)
			return contd__load(&e->general);
	return NULL;
}

static struct entry *entry_get(void)
{
	struct entry *e = contd__xchg(&spare, NULL);

	return e ? e : contd__zalloc(sizeof(*e));
}

static void entry_put(struct entry *e)
{
	free(contd__xchg(&spare, e));
}

/* Take a free entry of the bucket, or else the new one. */
static void entry_take(struct contd__general *g, struct entry *new)
{
	struct entry **b = bucket_of(g->request);

	for (struct entry *e = contd__load_acquire(b); e; e = e->next) {
		struct contd__general *nobody = NULL;

		if (contd__load(&e->general) || !contd__cas(&e->general, &nobody, g))
			continue;
		entry_put(new);
		g->entry = e;
		contd__store_release(&e->request, g->request);
		return;
	}
	g->entry = new;
	new->general = g;
	new->request = g->request;
	new->next = contd__load(b);
	while (!contd__cas(b, &new->next, new))
		;
}

/* From here on MPI may give its handle to another request. */
static void entry_leave(struct entry *e)
{
	contd__store_seq(&e->request, NOBODYS);
	contd__store_seq(&e->general, NULL);
	contd__sub(&contd__general_known, 1);
}

static void happened(struct contd__general *g, uint32_t what)
{
	struct entry *e = g->entry; /* of the last two each may be the one that frees it */
	uint32_t before = contd__and(&g->left, ~what), left = before & ~what;

	if (before & (COMPLETION | FREEING) && !(left & (COMPLETION | FREEING)))
		entry_leave(e);
	if (!left)
		free(g);
}

/* ----------------------------------------------------------------------------------- what MPI calls, of contd's --- */

static int query(void *extra, MPI_Status *status)
{
	struct contd__general *g = extra;
	int rc = g->query(g->extra, status);

	contd__store(&g->error, rc);
	return rc;
}

int contd__general_error(const struct contd__general *g)
{
	return contd__load(&g->error);
}

/*
 * This may also come after a continuation has run: in Open MPI, a thread that has completed the request may be the last
 * to let go of it. So a request that is no longer held may have been freed.
 */
static int free_or_keep(void *extra)
{
	struct contd__general *g = extra;
	bool held = contd__load_seq(&g->left) & HELD;
	int rc = held || contd__load(&g->freed) ? MPI_SUCCESS : g->free(g->extra);

	happened(g, FREEING);
	return rc;
}

static int cancel(void *extra, int complete)
{
	const struct contd__general *g = extra;

	return g->cancel(g->extra, complete);
}

void contd__general_hold(struct contd__general *g)
{
	contd__or(&g->left, HELD);
	contd__add(&contd__general_holds, 1);
}

int contd__general_release(struct contd__general *g)
{
	int rc = g->free(g->extra);

	contd__store(&g->freed, 1); /* before it is no longer held: see free_or_keep */
	contd__sub(&contd__general_holds, 1);
	happened(g, HELD);
	return rc;
}

/* ----------------------------------------------------------------------------------------------- what is called --- */

#define NEXT contd__next_pmpi

int contd__on_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
			     MPI_Grequest_cancel_function *cancel_fn, void *extra, MPI_Request *request)
{
	struct contd__general *g;
	struct entry *e;
	int rc;

	if (!query_fn || !free_fn || !cancel_fn || !request)
		return NEXT.Grequest_start(query_fn, free_fn, cancel_fn, extra, request); /* which says so */
	g = contd__zalloc(sizeof(*g));
	e = g ? entry_get() : NULL;
	if (!e) {
		free(g);
		return contd__mpi_refuse("MPI_Grequest_start", MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	}
	g->query = query_fn;
	g->free = free_fn;
	g->cancel = cancel_fn;
	g->extra = extra;
	g->left = COMPLETION | FREEING;
	rc = NEXT.Grequest_start(query, free_or_keep, cancel, g, &g->request);
	if (rc) {
		entry_put(e);
		free(g);
		return rc;
	}
	contd__add(&contd__general_known, 1);
	contd__add(&contd__generals, 1);
	entry_take(g, e);
	*request = g->request;
	return MPI_SUCCESS;
}

#define NOT_OURS \
	"request is a continuation request, or one of a template (MPIX_Mark_request_complete()); give one of " \
	"MPI_Grequest_start"
#define COMPLETE "request was completed before; complete it once"

/*
 * For a request that is not known. The program must not complete CRs and requests of templates, which contd has started
 * itself, by this call. MPI cannot tell them apart.
 */
static int complete_other(MPI_Request request, const char *call)
{
	bool own = contd__load_acquire(&contd__mpi_open) && request != MPI_REQUEST_NULL &&
		   (contd__instance_is(request) || contd__mpi->cr_of(request));

	return own ? contd__mpi_refuse(call, MPI_ERR_REQUEST, NOT_OURS) : NEXT.Grequest_complete(request);
}

/* The caller is the one who completes it. */
static int complete(struct contd__general *g)
{
	MPI_Request request = g->request;

	contd__sub(&contd__generals, 1);
	happened(g, COMPLETION); /* before it is so: MPI may free it at once, and give its handle to another one */
	return NEXT.Grequest_complete(request);
}

int contd__on_Grequest_complete(MPI_Request request)
{
	struct contd__general *g = contd__general_find(request);

	if (!g)
		return complete_other(request, "MPI_Grequest_complete");
	return contd__xchg(&g->completed, 1) ? contd__mpi_refuse("MPI_Grequest_complete", MPI_ERR_REQUEST, COMPLETE)
					     : complete(g);
}

void contd__general_drain(void)
{
	struct cds_lfs_head *head;

	if (!contd__general_any())
		return;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &contd__general_deferred});
	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		next = node->next;
		CONTD_TESTPOINT("general_drain");
		complete(caa_container_of(node, struct contd__general, deferred));
	}
}

/*
 * No handler comes here that has interrupted anything but computation: MPI may be called, also to tell of an error. It
 * must not be inlined, or scripts/check-call-graph could not tell it from its caller.
 */
__attribute__((noinline)) static int complete_here(struct contd__general *g, MPI_Request request)
{
	static const char call[] = "contd_mpi_grequest_complete";

	if (request == MPI_REQUEST_NULL)
		return contd__mpi_refuse(call, MPI_ERR_REQUEST,
					 "request must not be MPI_REQUEST_NULL; copy the handle before a "
					 "continuation is attached");
	if (!g)
		return complete_other(request, call);
	return contd__xchg(&g->completed, 1) ? contd__mpi_refuse(call, MPI_ERR_REQUEST, COMPLETE) : complete(g);
}

/* Everything else is there since the request was started; so this needs no memory, waits for nothing, and cannot
 * fail. */
int contd_mpi_grequest_complete(MPI_Request request)
{
	bool open = contd__load_acquire(&contd__mpi_open) != 0;
	struct contd__general *g;

	if (contd__load(&contd__live.forked))
		return contd__fail(MPI_ERR_OTHER,
				   "contd_mpi_grequest_complete: this is the child of a fork: call it in the process "
				   "that called MPI_Init");
	g = contd__general_find(request);
	/* Before contd's first start nothing but the program itself can have called it. */
	if (!contd__in_handler() && (!open || contd__mpi_thread_may_sig()))
		return complete_here(g, request);
	if (!open)
		return contd__fail(
			MPI_ERR_OTHER,
			"contd_mpi_grequest_complete: MPI must not be called here, and contd has not begun, or "
			"MPI_Finalize was called");
	if (!g)
		return contd__fail(
			MPI_ERR_REQUEST,
			"contd_mpi_grequest_complete: request is none of MPI_Grequest_start, or is not known "
			"to contd, and MPI must not be called here");
	if (contd__xchg(&g->completed, 1))
		return contd__fail(MPI_ERR_REQUEST, "contd_mpi_grequest_complete: " COMPLETE);
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &contd__general_deferred}, &g->deferred);
	CONTD_TESTPOINT("general_deferred");
	contd__pending_sig();
	return MPI_SUCCESS;
}
