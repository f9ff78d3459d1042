/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/group.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"
#include "mpi/dump.h"
#include "mpi/error.h"
#include "mpi/grequest.h"
#include "mpi/handles.h"
#include "mpi/intercept.h"
#include "mpi/mpich_forgets.h"
#include "mpi/op_set.h"
#include "mpi/portable.h"
#include "mpi/quirks.h"
#include "mpi/process_model.h"
#include "mpi/state.h"
#include "mpi/templates.h"

#define NEXT contd__next_pmpi

/* ------------------------------------------------------------------------------------------- pending operations --- */

/*
 * Pending operations stand densely in windows of arrays that PMPI_Testsome takes; one that completes is replaced by the
 * last one. Each poll looks at the next window, so every operation is looked at once a round.
 *
 *     incoming     operations that were attached and are not in a window; pushed by any thread, taken by the poller
 *     spare        windows that are not in use; there is always room for every pending operation (attach ensures that)
 *
 * One thread polls at a time. Others find the mutex locked and go on, because the poller is finding out what they want
 * to know. The poller may be in a handler inside MPI's Testsome (for example, the query function of a generalized
 * request attaches): that needs the two stacks only.
 */
#define WINDOW 256u
#define WINDOWS_MAX 65536u

struct window {
	struct cds_lfs_node spare;
	MPI_Request request[WINDOW];
	struct contd__op *op[WINDOW];
};

/*
 * Persistent requests have a separate lane, in which they are tested one by one: Open MPI's (4.1) Testsome frees a
 * request that failed, and MPICH's (4.0) Testsome hardly makes progress on persistent collectives.
 */
struct lane {
	struct __cds_lfs_stack incoming; /* of struct contd__op */
	struct window **window;          /* WINDOWS_MAX of them */
	uint32_t count;                  /* operations in windows */
	uint32_t cursor;                 /* the window that is looked at next */
	bool singly;
};

static struct {
	pthread_mutex_t lock;
	struct lane lane[2];
	struct __cds_lfs_stack spare;
	uint32_t capacity; /* operations that all windows have room for */
	int indices[WINDOW];
	MPI_Status statuses[WINDOW]; /* empty between polls: MPICH writes but parts of a send's */
} P = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t ops_pending; /* of both lanes, incoming ones too; and those that are being attached */

/* Room for n more pending operations, which count as pending from now on. */
static int reserve(uint32_t n)
{
	uint32_t needed = contd__add(&ops_pending, n) + n;

	/* Two lanes may each have a window that is not full. */
	while (contd__load_seq(&P.capacity) < needed + 2 * WINDOW) {
		struct window *w =
			contd__load_seq(&P.capacity) / WINDOW < WINDOWS_MAX ? contd__zalloc(sizeof(*w)) : NULL;

		if (!w) {
			contd__sub(&ops_pending, n);
			return contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
		}
		cds_lfs_push((cds_lfs_stack_ptr_t){._s = &P.spare}, &w->spare);
		contd__add(&P.capacity, WINDOW);
	}
	return MPI_SUCCESS;
}

/* Only who polls takes windows, so the plain pop is safe. */
static struct window *spare_take(void)
{
	struct cds_lfs_node *node = __cds_lfs_pop((cds_lfs_stack_ptr_t){._s = &P.spare});

	return node ? caa_container_of(node, struct window, spare) : NULL;
}

static void lane_add(struct lane *l, struct contd__op *op)
{
	uint32_t at = l->count % WINDOW;
	struct window **w = &l->window[l->count / WINDOW];

	if (at == 0)
		*w = spare_take();
	(*w)->request[at] = op->request;
	(*w)->op[at] = op;
	l->count++;
}

/* The last one takes its place. */
static void lane_remove(struct lane *l, struct window *w, uint32_t at)
{
	uint32_t last = --l->count;
	struct window *end = l->window[last / WINDOW];

	w->request[at] = end->request[last % WINDOW];
	w->op[at] = end->op[last % WINDOW];
	if (last % WINDOW == 0)
		cds_lfs_push((cds_lfs_stack_ptr_t){._s = &P.spare}, &end->spare);
}

static void lane_take_incoming(struct lane *l)
{
	struct cds_lfs_head *head;

	if (!contd__load(&l->incoming.head))
		return;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &l->incoming});
	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		next = node->next;
		lane_add(l, caa_container_of(node, struct contd__op, incoming));
	}
}

/* A persistent request that was freed while its continuation was outstanding: MPI gets it back when it is inactive. */
static void free_now(struct contd__handle *h)
{
	MPI_Request request = h->request;

	contd__handle_remove(h); /* before MPI gives the handle to another request */
	NEXT.Request_free(&request);
}

/* The persistent request's entry is idle again before the continuation can run and start the request again. */
static void op_complete(struct contd__op *op, const MPI_Status *status)
{
	struct contd__handle *h = op->persistent ? op->backend : NULL;

	/* Pairs with the exchange in contd__portable_free_later; a release, too, for threads that find it 0. */
	if (h && contd__xchg(&h->hooked, HANDLE_IDLE) == HANDLE_FREED)
		free_now(h);
	contd__sub(&ops_pending, 1);
	contd__op_done_sig(op, status);
}

/*
 * If one of its requests has failed, Open MPI's (4.1) Testsome frees pending sends without reporting them: those whose
 * status, which it has never written, does not happen to be MPI_SUCCESS. No call will tell how they end.
 */
static uint32_t take_dropped(struct lane *l, struct window *w, uint32_t at)
{
	uint32_t count = l->count > at * WINDOW ? l->count - at * WINDOW : 0, dropped = 0;

	for (uint32_t i = count < WINDOW ? count : WINDOW; i-- > 0;) {
		struct contd__op *op = w->op[i];
		MPI_Status status = contd__status_empty;

		if (w->request[i] != MPI_REQUEST_NULL)
			continue;
		status.MPI_ERROR = MPI_ERR_INTERN;
		lane_remove(l, w, i);
		op_complete(op, &status);
		dropped++;
	}
	return dropped;
}

/* As MPI_Test, but a persistent request whose operation failed is left alone. MPI_ERROR of the status holds. */
static int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
	int rc;

	*status = contd__status_empty;
	if (!contd__quirk_test_frees_failed()) {
		rc = NEXT.Test(request, flag, status);
		status->MPI_ERROR = rc;
		*flag = *flag || rc;
		return rc;
	}
	rc = NEXT.Testall(1, request, flag, status);
	*flag = *flag || rc == MPI_ERR_IN_STATUS;
	return rc;
}

/* After test_one(): a failure that MPI_Testall has told nobody. Of collectives Open MPI's MPI_Wait tells the world. */
static void tell_singly(const struct contd__handle *h, const MPI_Status *status)
{
	if (!contd__quirk_test_frees_failed() || status->MPI_ERROR == MPI_SUCCESS)
		return;
	PMPI_Comm_call_errhandler(h->comm != MPI_COMM_NULL ? h->comm : contd__model.world, status->MPI_ERROR);
}

/* MPICH (4.0) makes MPI_ERR_OTHER of what a query_fn has returned. */
static void error_known(const struct contd__op *op, MPI_Status *status)
{
	if (op->instance)
		status->MPI_ERROR = contd__instance_error(op->instance);
	else if (op->backend && !op->persistent)
		status->MPI_ERROR = contd__general_error(op->backend);
}

static uint32_t poll_singly(struct lane *l, struct window *w, uint32_t at, uint32_t count)
{
	uint32_t found = 0;

	(void)at;
	for (uint32_t i = count; i-- > 0;) {
		struct contd__op *op = w->op[i];
		MPI_Status status;
		int flag = 0;

		test_one(&w->request[i], &flag, &status);
		if (!flag)
			continue;
		tell_singly(op->backend, &status);
		error_known(op, &status);
		lane_remove(l, w, i);
		op_complete(op, &status);
		found++;
	}
	return found;
}

/* One window, at its place; how many were found complete. */
static uint32_t poll_together(struct lane *l, struct window *w, uint32_t at, uint32_t count)
{
	uint32_t dropped = 0;
	int found = 0, rc = NEXT.Testsome((int)count, w->request, &found, P.indices, P.statuses);

	/* None of them is active: persistent requests that were given to contd before their first start, and taken for
	 * what had had their handles before (contd__recently_started). */
	if (found == MPI_UNDEFINED)
		return poll_singly(l, w, at, count);
	if (found <= 0)
		return 0;
	/* From the end, for whatever takes the place of one that is removed stood behind it. MPI gives them in
	 * ascending order in both implementations, but need not. */
	for (int i = 1; i < found; i++)
		for (int k = i; k > 0 && P.indices[k] < P.indices[k - 1]; k--) {
			int index = P.indices[k];
			MPI_Status status = P.statuses[k];

			P.indices[k] = P.indices[k - 1];
			P.statuses[k] = P.statuses[k - 1];
			P.indices[k - 1] = index;
			P.statuses[k - 1] = status;
		}
	for (int i = found; i-- > 0;) {
		struct contd__op *op = w->op[P.indices[i]];

		contd__quirk_testsome_error(rc, &P.statuses[i]);
		error_known(op, &P.statuses[i]);
		lane_remove(l, w, (uint32_t)P.indices[i]);
		op_complete(op, &P.statuses[i]);
		P.statuses[i] = contd__status_empty;
	}
	if (rc != MPI_SUCCESS)
		dropped = take_dropped(l, w, at);
	return (uint32_t)found + dropped;
}

static uint32_t lane_poll(struct lane *l, uint32_t *leastp)
{
	/* Of what failed Testsome of such an MPICH tells MPI_COMM_SELF's error handler, and Test the operation's. */
	bool singly = l->singly || contd__mpich_forgets();
	uint32_t windows, found = 0;

	lane_take_incoming(l);
	windows = (l->count + WINDOW - 1) / WINDOW;
	for (uint32_t n = 0; n<windows && * leastp> 0; n++) {
		uint32_t at = l->cursor < windows ? l->cursor : 0, count;

		if (at * WINDOW >= l->count)
			at = 0;
		if (l->count == 0)
			break;
		count = l->count - at * WINDOW < WINDOW ? l->count - at * WINDOW : WINDOW;
		l->cursor = at + 1;
		*leastp -= count < *leastp ? count : *leastp;
		found += (singly ? poll_singly : poll_together)(l, l->window[at], at, count);
	}
	return found;
}

static __thread bool looking __attribute__((tls_model("initial-exec")));

static bool looks_here(void)
{
	return looking;
}

uint32_t contd__portable_poll(uint32_t least)
{
	static uint32_t first; /* lanes take turns */
	uint32_t found = 0, left = least;

	/* A function of the program's that MPI calls in a look may come here. */
	if (contd__load_seq(&ops_pending) == 0 || looking || contd__mpi_is_gone() || pthread_mutex_trylock(&P.lock))
		return 0;
	looking = true;
	contd__thread_ensure();
	first ^= 1;
	for (uint32_t i = 0; i < 2; i++) {
		left = least;
		found += lane_poll(&P.lane[first ^ i], &left);
	}
	looking = false;
	pthread_mutex_unlock(&P.lock);
	return found;
}

bool contd__portable_busy(void)
{
	/* A generalized request may be completed by a handler on the very thread that waits, which has to see to it
	 * then. */
	return contd__load_seq(&ops_pending) || contd__waits_sig(CLASSES_ALL) || contd__put_off_any() ||
	       contd__load(&contd__generals) || contd__load(&contd__instances_waiting);
}

/* ---------------------------------------------------------------------------------------- continuation requests --- */

static int cr_query(void *extra, MPI_Status *status)
{
	(void)extra;
	*status = contd__status_empty;
	return MPI_SUCCESS;
}

static int cr_free_function(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cr_cancel_function(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

struct portable_cr {
	struct contd__cr cr;
	struct contd__handle *handle;
};

static void cr_freed(void *owner)
{
	struct portable_cr *p = caa_container_of(owner, struct portable_cr, cr);

	contd__cr_fini(&p->cr);
	free(p);
}

static int cr_create(struct contd_group *group, bool revised, struct contd__cr **crp)
{
	struct portable_cr *p = contd__zalloc(sizeof(*p));
	int rc;

	if (!p)
		return contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	rc = contd__cr_init(&p->cr, group, revised);
	if (rc) {
		free(p);
		return contd__fail(rc, CONTD_NO_MEMORY);
	}
	rc = NEXT.Grequest_start(cr_query, cr_free_function, cr_cancel_function, p, &p->cr.handle);
	if (rc == MPI_SUCCESS) {
		p->handle = contd__handle_add(p->cr.handle, &p->cr);
		rc = p->handle ? MPI_SUCCESS : MPI_ERR_NO_MEM;
		if (rc) {
			NEXT.Grequest_complete(p->cr.handle);
			NEXT.Request_free(&p->cr.handle);
		}
	}
	if (rc) {
		contd__cr_fini(&p->cr);
		free(p);
		return contd__fail(contd__mpi_error_class(rc),
				   "MPI refuses a generalized request, or there is no memory");
	}
	group->freed = cr_freed;
	*crp = &p->cr;
	return MPI_SUCCESS;
}

/* From here on MPI may give its handle to something else. */
static void cr_give_back(struct contd__cr *cr)
{
	NEXT.Request_free(&cr->handle);
}

/* MPI_Request_free of a CR. */
void contd__portable_cr_free(struct contd__cr *cr)
{
	struct portable_cr *p = caa_container_of(cr, struct portable_cr, cr);

	contd__handle_remove(p->handle);
	NEXT.Grequest_complete(cr->handle);
	if (!contd__cr_keep_freed(cr))
		cr_give_back(cr);
	contd__cr_close(cr);
	contd_group_destroy(cr->group);
}

/* Once more: it must not wait for the CR, which no thread completes. */
static void cr_end(struct contd__cr *cr)
{
	if (!contd__load_seq(&cr->closed))
		NEXT.Grequest_complete(cr->handle);
}

static struct contd__cr *cr_of(MPI_Request request)
{
	struct contd__handle *h = contd__handle_find(request);

	return h ? h->cr : NULL;
}

static int cr_raise(struct contd__cr *cr, int class, bool told)
{
	(void)cr;
	return told ? class : contd__mpi_error(class);
}

static bool hooked(MPI_Request request)
{
	struct contd__handle *h = contd__handle_find(request);

	return h && contd__load_acquire(&h->hooked);
}

/* Active ones whose status is empty too: Open MPI's cancelled receives, and what query functions leave as it was. */
static bool may_be_empty(MPI_Request request, const MPI_Status *status)
{
	int cancelled = 0;

	return (PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled) ||
	       (contd__load(&contd__general_known) && contd__general_find(request)) || contd__instance_is(request);
}

bool contd__portable_free_later(struct contd__handle *h)
{
	uint32_t waits = HANDLE_HOOKED;

	return contd__cas(&h->hooked, &waits, HANDLE_FREED);
}

/* Of a generalized request that MPI has just been asked about: how it has failed. Else MPI_SUCCESS. */
static int error_kept(MPI_Request request)
{
	struct contd__general *g = contd__load(&contd__general_known) ? contd__general_find(request) : NULL;

	return g ? contd__general_error(g) : contd__instance_error_of(request);
}

/* Ask MPI about a request. If it is complete *status is whole, MPI_ERROR too. */
static enum contd__seen seen_by_mpi(MPI_Request request, struct contd__handle *h, MPI_Status *status)
{
	const int nobody = -4711; /* neither a rank nor a constant of MPI's */
	int flag = 0, rc;

	/* MPICH (4.0) says of a collective that was never started that it is not complete. */
	if (h && contd__load(&h->unstarted))
		return SEEN_NOTHING;
	/* Acquire: pairs with the release in contd__told_keep. */
	if (h && contd__load_acquire(&h->told)) {
		*status = h->status;
		return SEEN_COMPLETE;
	}
	/* Only of an inactive one are source and tag empty: of a send they are not written, or are its own. */
	*status = contd__status_empty;
	status->MPI_SOURCE = status->MPI_TAG = nobody;
	rc = NEXT.Request_get_status(request, &flag, status);
	if (rc == MPI_SUCCESS && !flag)
		return SEEN_PENDING;
	if (rc == MPI_SUCCESS && status->MPI_SOURCE == contd__status_empty.MPI_SOURCE &&
	    status->MPI_TAG == contd__status_empty.MPI_TAG && !may_be_empty(request, status))
		return SEEN_NOTHING;
	if (status->MPI_SOURCE == nobody)
		status->MPI_SOURCE = contd__status_empty.MPI_SOURCE;
	if (status->MPI_TAG == nobody)
		status->MPI_TAG = contd__status_empty.MPI_TAG;
	status->MPI_ERROR = contd__quirk_get_status_error(rc, rc ? MPI_SUCCESS : error_kept(request));
	if (h && contd__mpich_forgets())
		contd__told_keep(h, status);
	return SEEN_COMPLETE;
}

static enum contd__seen peek(MPI_Request request, MPI_Status *status)
{
	struct contd__handle *h;
	enum contd__seen seen;
	MPI_Status its;

	if (request == MPI_REQUEST_NULL)
		return SEEN_NOTHING;
	h = contd__load(&contd__handles) ? contd__handle_find(request) : NULL;
	if (h && h->cr)
		return contd__peek_cr(h->cr, status);
	if (h && contd__load_acquire(&h->hooked))
		return SEEN_PENDING;
	seen = seen_by_mpi(request, h, &its);
	if (seen == SEEN_COMPLETE && status)
		*status = its;
	return seen;
}

static int peek_next(const MPI_Request *requests, int from, int count, bool *active, MPI_Status *status)
{
	for (int i = from; i < count; i++) {
		enum contd__seen seen;

		if (!requests[i]) /* zero is no handle in either of the great implementations */
			return -1;
		seen = peek(requests[i], status);
		*active |= seen != SEEN_NOTHING;
		if (seen == SEEN_COMPLETE)
			return i;
	}
	return count;
}

/* Is one of them persistent, and the MPI such that Testany and Testall do not say that it has failed? */
static bool keep_silent(size_t count, const MPI_Request *requests)
{
	bool some = false;

	for (size_t i = 0; i < count && !some && contd__quirk_failure_unsaid() && contd__load(&contd__handles); i++)
		some = requests[i] != MPI_REQUEST_NULL && contd__handle_find(requests[i]);
	return some;
}

/* Is it complete, and finished? *seen says what it was before. */
static int finish_singly(MPI_Request *request, enum contd__seen *seen, MPI_Status *status)
{
	struct contd__handle *h = *request == MPI_REQUEST_NULL ? NULL : contd__handle_find(*request);
	MPI_Status its = contd__status_empty;
	int index = 0, flag = 0, rc;

	if (!h) {
		rc = NEXT.Testany(1, request, &index, &flag, status);
		*seen = !flag && !rc ? SEEN_PENDING : index == MPI_UNDEFINED ? SEEN_NOTHING : SEEN_COMPLETE;
		return rc;
	}
	*seen = seen_by_mpi(*request, h, &its);
	if (*seen != SEEN_COMPLETE)
		return MPI_SUCCESS;
	test_one(request, &flag, &its);
	rc = its.MPI_ERROR;
	if (status != MPI_STATUS_IGNORE) {
		its.MPI_ERROR = status->MPI_ERROR;
		*status = its;
		its.MPI_ERROR = rc;
	}
	tell_singly(h, &its);
	return rc;
}

int contd__portable_test_any(size_t count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
	bool active = false;

	if (!keep_silent(count, requests))
		return contd__portable_plain.test_any(count, requests, index, flag, status);
	*index = MPI_UNDEFINED;
	for (size_t i = 0; i < count; i++) {
		enum contd__seen seen;
		int rc = finish_singly(&requests[i], &seen, status);

		active |= seen != SEEN_NOTHING;
		if (seen != SEEN_COMPLETE)
			continue;
		*index = (int)i;
		*flag = true;
		return rc;
	}
	*flag = !active;
	if (!active && status != MPI_STATUS_IGNORE) {
		int error = status->MPI_ERROR;

		*status = contd__status_empty;
		status->MPI_ERROR = error;
	}
	return MPI_SUCCESS;
}

/* Open MPI's Testall writes MPI_ERROR of all statuses. Without memory for them a failure is overlooked. */
int contd__portable_test_all(size_t count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	MPI_Status few[16], *its = statuses, *memory = NULL;
	size_t i = 0;
	int rc;

	if (!keep_silent(count, requests))
		return contd__portable_plain.test_all(count, requests, flag, statuses);
	if (its == MPI_STATUSES_IGNORE)
		its = count <= 16 ? few : (memory = contd__zalloc(count * sizeof(*memory)));
	rc = contd__portable_plain.test_all(count, requests, flag, its ? its : MPI_STATUSES_IGNORE);
	while (its && i < count && its[i].MPI_ERROR == MPI_SUCCESS && rc == MPI_SUCCESS && *flag)
		i++;
	if (its && i < count && rc == MPI_SUCCESS && *flag) {
		tell_singly(contd__handle_find(requests[i]), &its[i]);
		rc = MPI_ERR_IN_STATUS;
	}
	free(memory);
	return rc;
}

static size_t specials(size_t count, const MPI_Request *requests)
{
	size_t n = 0;

	if (contd__load(&contd__handles) == 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct contd__handle *h = requests[i] == MPI_REQUEST_NULL ? NULL : contd__handle_find(requests[i]);

		n += h && (h->cr || contd__load_acquire(&h->hooked));
	}
	return n;
}

/* ---------------------------------------------------------------------------------------------------- attaching --- */

static int compare_requests(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(MPI_Request));
}

/* Is it persistent and inactive? Nothing changes by the question. */
static bool is_inactive(MPI_Request request)
{
	MPI_Status status;

	return seen_by_mpi(request, contd__handle_find(request), &status) == SEEN_NOTHING;
}

/*
 * Handles that both implementations give for operations which are complete from the start: one and the same for many,
 * so that an array may name it several times. Found by trying.
 */
static MPI_Request shared[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static bool is_shared(MPI_Request request)
{
	if (contd__quirk_built_in(request))
		return true;
	return request == shared[0] || request == shared[1] || request == shared[2];
}

static void shared_find(MPI_Comm comm)
{
	MPI_Request again;

	for (int i = 0; i < 3; i++) {
		int peer = i == 2 ? 0 : MPI_PROC_NULL;

		shared[i] = again = MPI_REQUEST_NULL;
		if (i == 0) {
			NEXT.Irecv(NULL, 0, MPI_BYTE, peer, 0, comm, &shared[i]);
			NEXT.Irecv(NULL, 0, MPI_BYTE, peer, 0, comm, &again);
		} else {
			NEXT.Isend(NULL, 0, MPI_BYTE, peer, 0, comm, &shared[i]);
			NEXT.Isend(NULL, 0, MPI_BYTE, peer, 0, comm, &again);
		}
		for (int k = 0; k < 2 && i == 2; k++)
			NEXT.Recv(NULL, 0, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
		/* Two operations, one handle: then it is shared. */
		if (again != shared[i]) {
			NEXT.Wait(&shared[i], MPI_STATUS_IGNORE);
			shared[i] = MPI_REQUEST_NULL;
		}
		if (again != MPI_REQUEST_NULL)
			NEXT.Wait(&again, MPI_STATUS_IGNORE);
	}
}

/* Does an operation stand in the array twice? Null handles may, and CRs, and persistent requests that are not
 * active. */
static int named_twice(const struct contd__mpi_attach *a)
{
	MPI_Request few[16], *sorted = few;
	int rc = MPI_SUCCESS, same = 0;

	if (a->count <= 4) {
		for (int i = 1; i < a->count; i++)
			for (int k = 0; k < i; k++)
				same |= a->requests[i] == a->requests[k] && a->requests[i] != MPI_REQUEST_NULL;
		if (!same)
			return MPI_SUCCESS;
	}

	if (a->count > 16) {
		sorted = contd__zalloc((size_t)a->count * sizeof(*sorted));
		if (!sorted)
			return contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	}
	memcpy(sorted, a->requests, (size_t)a->count * sizeof(*sorted));
	qsort(sorted, (size_t)a->count, sizeof(*sorted), compare_requests);
	for (int i = 1; i < a->count && !rc; i++) {
		if (sorted[i] == sorted[i - 1] && sorted[i] != MPI_REQUEST_NULL && !is_shared(sorted[i]) &&
		    !cr_of(sorted[i]) && !is_inactive(sorted[i]))
			rc = contd__fail(MPI_ERR_REQUEST, CONTD_OF_REQUESTS(a, CONTD_TWICE));
	}
	if (sorted != few)
		free(sorted);
	return rc;
}

static int look(const struct contd__mpi_attach *a, const struct contd_group *group, struct contd__look *look)
{
	*look = (struct contd__look){0};
	for (int i = 0; i < a->count; i++) {
		struct contd__handle *h;

		if (a->requests[i] == MPI_REQUEST_NULL)
			continue;
		if (!a->requests[i])
			/* It is no handle in either of the great implementations. */
			return contd__fail(MPI_ERR_REQUEST, CONTD_OF_REQUESTS(a, CONTD_ZERO_HANDLE));
		h = contd__handle_find(a->requests[i]);
		if (h && h->cr) {
			if (h->cr->group == group)
				return contd__fail(MPI_ERR_REQUEST,
						   CONTD_OF_REQUESTS(a, CONTD_OWN_CR)); /* complete or not */
			look->crs++;
			look->crs_pending += contd__group_outstanding_sig(h->cr->group) != 0;
		} else if (h && contd__load_acquire(&h->hooked)) {
			return contd__fail(MPI_ERR_REQUEST, CONTD_OF_REQUESTS(a, CONTD_TAKEN));
		} else {
			look->pending++; /* if it is not complete: that cannot be found out without completing it */
		}
	}
	if (a->count > 1) {
		int rc = named_twice(a);

		if (rc)
			return rc;
	}
	return look->pending ? reserve((uint32_t)look->pending) : MPI_SUCCESS;
}

static void seen(const struct contd__mpi_attach *a, int i)
{
	MPI_Status *status = contd__status_at(a, i);

	if (status)
		*status = contd__status_empty;
}

static void push(struct contd__set *set, MPI_Request request, MPI_Status *status, struct contd__handle *h,
		 struct contd__general *g, struct contd__instance *instance)
{
	struct contd__op *op = &set->op[set->count++];

	*op = (struct contd__op){.request = request,
				 .set = set,
				 .status = status,
				 .persistent = h != NULL,
				 .backend = h ? (void *)h : (void *)g,
				 .instance = instance,
				 .state = OP_TAKEN};
	set->instances |= instance != NULL;
	if (set->results)
		contd__add(&set->life, SET_REFERENCE);
	if (h)
		contd__store_release(&h->hooked, HANDLE_HOOKED);
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &P.lane[h != NULL].incoming}, &op->incoming);
	CONTD_TESTPOINT("op_hooked");
}

/* A generalized request that is complete, status and all; its free_fn is called when the set is released. */
static void keep(struct contd__set *set, struct contd__general *g)
{
	set->op[set->count++] =
		(struct contd__op){.request = MPI_REQUEST_NULL, .set = set, .backend = g, .state = OP_DONE};
}

/*
 * What is pending, as look() has found it, in places of the set that are not in use yet: MPI calls error handlers while
 * these are looked at, and they may test, free or begin requests in the array.
 */
static void remember(const struct contd__mpi_attach *a, struct contd__set *set, uint32_t room)
{
	uint32_t n = 0;

	for (int i = 0; i < a->count && n < room; i++) {
		if (a->requests[i] == MPI_REQUEST_NULL || cr_of(a->requests[i]))
			continue;
		set->op[n].request = a->requests[i];
		set->op[n++].backend = (void *)(intptr_t)i;
	}
}

static uint32_t hook(const struct contd__mpi_attach *a, const struct contd__look *look, struct contd__set *set,
		     bool count_crs)
{
	uint32_t room = (uint32_t)look->pending, pushed = 0, next = 0;

	remember(a, set, room);
	for (int i = 0; i < a->count; i++) {
		MPI_Request *request = &a->requests[i];
		MPI_Status status = contd__status_empty, *to = contd__status_at(a, i);
		struct contd__instance *instance;
		struct contd__general *g;
		struct contd__handle *h;
		bool known = next < room && (intptr_t)set->op[next].backend == i;
		int flag = 0;

		if (!known || set->op[next++].request != *request) {
			/* A null handle, or a CR. Or the error handler of another one has dealt with it. */
			seen(a, i);
			continue;
		}
		h = contd__handle_find(*request);
		/*
		 * Only a test tells whether an unknown request is persistent and inactive. It costs, because it makes
		 * progress (and gives way, if MPI was told to).
		 */
		instance = h ? NULL : contd__instance_hook(*request);
		g = h || instance || contd__load(&contd__general_known) == 0 ? NULL : contd__general_find(*request);
		if (g)
			contd__general_hold(g);
		/* (A handle of MPICH's that was another request's not long ago may be a generalized one's now.) */
		if ((h && contd__load(&h->unstarted)) || contd__told_take(h, &status))
			flag = 1;
		else if (h || g || is_shared(*request) || !(instance || contd__recently_started(*request)))
			test_one(request, &flag, &status);
		if (!flag) {
			push(set, *request, to, h, g, instance);
			pushed++;
			if (!h)
				*request = MPI_REQUEST_NULL;
			continue;
		}
		if (h)
			tell_singly(h, &status);
		if (g)
			keep(set, g);
		if (to)
			*to = status;
		if (status.MPI_ERROR != MPI_SUCCESS && a->revised)
			contd__set_failed_sig(set, contd__mpi_error_class(status.MPI_ERROR));
	}
	if (pushed < room)
		contd__sub(&ops_pending, room - pushed);
	if (contd__load(&ops_pending))
		contd__pending_sig();
	return (uint32_t)(a->count - (count_crs ? 0 : look->crs)) - pushed;
}

/* The room that look() reserved, where nothing is attached after all. */
static void unlook(const struct contd__look *look)
{
	if (look->pending)
		contd__sub(&ops_pending, (uint32_t)look->pending);
}

/* MPI has told the error handlers itself, and freed what was to be freed. */
static void ops_nothing(struct contd__set *set)
{
	(void)set;
}

/* Nothing is left to release except generalized requests: their free_fn comes after the continuation. */
static void ops_release(struct contd__set *set)
{
	if (contd__load(&contd__general_holds) == 0)
		return;
	for (uint32_t i = 0; i < set->count; i++) {
		struct contd__op *op = &set->op[i];
		int rc = op->backend && !op->persistent ? contd__general_release(op->backend) : MPI_SUCCESS;

		if (rc != MPI_SUCCESS && !contd__quirk_free_fn_unheard())
			PMPI_Comm_call_errhandler(contd__model.world, rc);
	}
}

/* --------------------------------------------------------------------------------------------------------- life --- */

#define POLL_LEAST WINDOW

static void progress(enum contd__progress how)
{
	uint32_t least = how == PROGRESS_ALL ? UINT32_MAX : POLL_LEAST;
	int flag;

	if (contd__portable_poll(least) != 0 || contd__waits_sig(CLASSES_ALL))
		return;
	if (contd__quirk_test_looks_first() && contd__portable_poll(least) != 0)
		return;
	/* Nothing of ours is pending, but others may wait for this one's progress. */
	if (contd__load_seq(&ops_pending) == 0 && !contd__mpi_is_gone())
		NEXT.Iprobe(MPI_ANY_SOURCE, 0, contd__model.self, &flag, MPI_STATUS_IGNORE);
	if (how == PROGRESS_WAITING)
		contd__rest(); /* MPI's own waiting yields, where it was told to */
}

static uint32_t pending(void)
{
	return contd__load_seq(&ops_pending);
}

static const char *refuses(void)
{
	return contd__intercept_refuses();
}

bool contd__portable_asks(void)
{
	MPI_Comm comm;

	if (!contd__intercept_knows_mpi() || PMPI_Comm_dup(contd__model.self, &comm))
		return false;
	contd__forgets_start(comm);
	PMPI_Comm_free(&comm);
	return !contd__mpich_forgets();
}

static int start(int thread_level)
{
	MPI_Comm comm;

	(void)thread_level;
	contd__quirks_find();
	__cds_lfs_init(&P.spare);
	for (int i = 0; i < 2; i++) {
		struct lane *l = &P.lane[i];

		__cds_lfs_init(&l->incoming);
		l->singly = i == 1;
		l->count = l->cursor = 0;
		if (!l->window)
			l->window = contd__zalloc(WINDOWS_MAX * sizeof(struct window *));
		if (!l->window)
			return MPI_ERR_NO_MEM;
	}
	for (uint32_t i = 0; i < WINDOW; i++)
		P.statuses[i] = contd__status_empty;
	if (PMPI_Comm_dup(contd__model.self, &comm))
		return MPI_ERR_NO_MEM;
	shared_find(comm);
	contd__forgets_start(comm);
	PMPI_Comm_free(&comm);
	contd__original_are(&contd__portable_plain);
	contd__intercept_start();
	return MPI_SUCCESS;
}

/* Operations that were pending go with MPI. */
static void stop(void)
{
	contd__intercept_off();
	contd__handles_clear();
}

static const char *op_kind(const struct contd__op *op)
{
	if (op->instance)
		return "a request of a template";
	if (op->persistent)
		return "a persistent operation";
	return op->backend ? "a generalized request" : "an operation";
}

static const struct contd__dump_part dump = {
	DUMP_MPI("MPI (portable backend)", cr_freed),
	.counted = {{"operations_pending", &ops_pending}},
};

const struct contd__mpi_backend contd__mpi_portable = {
	.name = "portable",
	.dump = &dump,
	.asks = true,
	.refuses = refuses,
	.start = start,
	.stop = stop,
	.op_kind = op_kind,
	.progress = progress,
	.pending = pending,
	.cr_create = cr_create,
	.cr_of = cr_of,
	.cr_raise = cr_raise,
	.cr_end = cr_end,
	.cr_give_back = cr_give_back,
	.looks_here = looks_here,
	.peek = peek,
	.peek_next = peek_next,
	.test_any = contd__portable_test_any,
	.test_all = contd__portable_test_all,
	.specials = specials,
	.hooked = hooked,
	.look = look,
	.unlook = unlook,
	.hook = hook,
	.ops_tell = ops_nothing,
	.ops_release = ops_release,
};
