/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
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
#include "mpi/native.h"
#include "mpi/ompi.h"
#include "mpi/op_set.h"
#include "mpi/process_model.h"
#include "mpi/state.h"
#include "mpi/templates.h"
#include "rcu/table.h"

#define O contd__ompi

static uint32_t ops_hooked;        /* operations that wait for their callback */
static uint32_t persistent_hooked; /* those of them that are persistent */
static uint32_t silent_hooked;     /* those of them whose callback will not come */
static uint32_t stopped;
static bool alone;                   /* threads do not meet in MPI: while one looks at a request, no other changes it */
static struct __cds_lfs_stack stale; /* CRs that may be complete without saying so; pushed anywhere */

static int cr_free(MPI_Request *request);
static int hooked_free(MPI_Request *request);
static int freed_free(MPI_Request *request);

static inline struct contd__ompi_request *inside(MPI_Request request)
{
	return (struct contd__ompi_request *)(void *)request;
}

static inline struct contd__native_cr *native_cr(MPI_Request request)
{
	return inside(request)->free == cr_free ? (struct contd__native_cr *)inside(request) : NULL;
}

static inline struct contd__native_cr *native_of(struct contd__cr *cr)
{
	return caa_container_of(cr, struct contd__native_cr, cr);
}

/* --------------------------------------------------------------------------------------------------- operations --- */

/*
 * An operation that was not complete when its continuation was attached: its request carries our callback, op_hook.
 *
 * With several threads, storing the callback races with completion: Open MPI's completer may have read "no callback"
 * just before, and will mark the request complete after we looked. So a hooked request that is complete although its
 * callback has not come was missed. A thread that sees that takes the callback's part; the operation's state decides
 * which thread does. (The callback itself returns 1, after which Open MPI does not touch the request, and marks it
 * complete itself.)
 *
 * The callback of a partitioned request never comes: Open MPI (5.0 to 6.1, part_persist.h) takes it away just before
 * the request completes. Such a request is silent, and is looked at much more often.
 */

static bool silent(const struct contd__ompi_request *request)
{
	return request->type == OMPI_TYPE_PART;
}

/* Open MPI's own error codes, which file operations may leave in a status, are negative: they become a class of
 * MPI's. */
static void status_mend(struct contd__ompi_request *request)
{
	if (__builtin_expect(request->status.MPI_ERROR < 0, 0))
		request->status.MPI_ERROR = request->type == OMPI_TYPE_IO ? MPI_ERR_IO : MPI_ERR_OTHER;
}

/*
 * A persistent request stays the program's while its continuation is outstanding, and MPI_Request_free may come before
 * its completion: MPI would give the request back without calling us, and to another operation. So while it is hooked
 * its free function is hooked_free; the first to exchange that decides. The completer puts Open MPI's own back, and
 * from then on the request is the program's; or MPI_Request_free puts freed_free, and the request is given back with
 * the set.
 */
static int hooked_free(MPI_Request *request)
{
	struct contd__ompi_request *r = inside(*request);
	contd__ompi_free *expected = hooked_free;

	CONTD_TESTPOINT("hooked_free");
	if (!contd__cas(&r->free, &expected, freed_free))
		return expected(request); /* it has completed meanwhile */
	*request = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

/* Freed, and not complete: the program has no handle any more that could be freed. */
static int freed_free(MPI_Request *request)
{
	(void)request;
	return MPI_ERR_REQUEST;
}

/*
 * The operation is complete, and this is the only one who deals with it. Any context of MPI's, locks held maybe.
 * Returns what the callback returns.
 */
static int op_complete(struct contd__op *op)
{
	struct contd__ompi_request *request = inside(op->request);
	bool persistent = op->persistent;
	contd__ompi_free *own = op->free; /* which op->object takes the place of */
	MPI_Status status;
	int mine = 1;

	if (request->type == OMPI_TYPE_GEN)
		O.grequest_query(request, &request->status);
	status_mend(request);
	status = request->status;
	request->complete_cb = NULL;
	op->type = (int8_t)request->type;
	op->object = request->object;
	/* Its error handler is called later, and the program may free request and communicator before. */
	if (__builtin_expect(status.MPI_ERROR != MPI_SUCCESS, 0) && persistent && op->object)
		contd__add(&((struct contd__ompi_object *)op->object)->references, 1);
	/*
	 * Mark it complete, if Open MPI has not (the callback was missed). No thread sleeps on it: its handle is gone,
	 * or it is persistent, and then threads wait for it by looking again and again (mpi/calls.c). One exception is
	 * a thread that waited for it before the continuation was attached, which MPI does not allow (MPI 4.1, 11.6.2):
	 * Open MPI wakes that one itself.
	 */
	if (contd__load(&request->complete) == OMPI_PENDING)
		contd__store_release(&request->complete, OMPI_COMPLETED);
	else if (contd__load(&request->complete) != OMPI_COMPLETED)
		mine = 0;
	if (persistent) {
		request->status.MPI_ERROR = MPI_SUCCESS; /* or a failure beside it would be taken for this one's */
		request->state = OMPI_INACTIVE;          /* the draft, 3.11.2: inactive when the continuation runs */
		/*
		 * Release, after all that is done to the request: a thread that finds the request's own function finds
		 * it inactive (hooked), and may start it again or free it at once.
		 */
		op->freed = contd__xchg(&request->free, own) == freed_free;
		CONTD_TESTPOINT("op_given_back");
	}
	if (alone)
		contd__add_by_turns(&ops_hooked, (uint32_t)-1);
	else
		contd__sub(&ops_hooked, 1);
	if (persistent)
		contd__sub(&persistent_hooked, 1);
	if (op->type == OMPI_TYPE_PART)
		contd__sub(&silent_hooked, 1);
	contd__op_done_sig(op, &status);
	return mine;
}

static int op_hook(struct contd__ompi_request *request)
{
	uint32_t waits = OP_WAITS;
	struct contd__op *op;

	if (contd__load(&stopped))
		return 0;
	/*
	 * Acquire: Open MPI has read the callback, by a plain load, and its data is read after that. Pairs with the
	 * store of the callback in hook_one, which comes after that of the data and of all of *op.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	op = contd__load(&request->complete_cb_data);
	if (alone) {
		waits = contd__load(&op->state);
		contd__store(&op->state, OP_TAKEN);
		return waits == OP_WAITS ? op_complete(op) : 1;
	}
	return contd__cas(&op->state, &waits, OP_TAKEN) ? op_complete(op) : 1;
}

/* Sets that carry their continuation, and wait. MPI's calls come by turns. */
static CDS_LIST_HEAD(carried_sets);

/* Of such a set: op_hook and op_complete for a plain operation, while threads do not meet in MPI. */
static int carried_hook(struct contd__ompi_request *request)
{
	struct contd__op *op = request->complete_cb_data;

	if (contd__load(&stopped))
		return 0;
	status_mend(request);
	request->complete_cb = NULL;
	request->complete = OMPI_COMPLETED;
	op->type = (int8_t)request->type;
	op->object = request->object;
	cds_list_del(&op->set->carrying);
	contd__add_by_turns(&ops_hooked, (uint32_t)-1);
	contd__op_done_carried_sig(op, &request->status);
	return 1;
}

static struct contd__set *carrying(struct contd__set *set)
{
	struct cds_list_head *at = set ? set->carrying.next : carried_sets.next;

	return at == &carried_sets ? NULL : caa_container_of(at, struct contd__set, carrying);
}

/* Was the callback of a hooked operation missed? Then take its part. */
static void op_recheck(struct contd__op *op)
{
	uint32_t waits = OP_WAITS;

	if (contd__load(&op->state) == OP_WAITS && contd__load_seq(&inside(op->request)->complete) == OMPI_COMPLETED &&
	    contd__cas(&op->state, &waits, OP_TAKEN))
		op_complete(op);
}

/* Is it persistent, and waits for its callback? */
static bool hooked(MPI_Request request)
{
	const struct contd__ompi_request *r = inside(request);

	/* Not by the callback, which Open MPI takes away before it calls it. Acquire: pairs with the exchange in
	 * op_complete. */
	return contd__load_acquire(&r->free) == hooked_free;
}

/*
 * Generalized requests count as pending, complete or not: what is complete is finished, and that calls free_fn, before
 * the continuation; what has been hooked is given back after it.
 */
static bool complete_already(const struct contd__ompi_request *request)
{
	if (request->type == OMPI_TYPE_GEN || request->free == hooked_free)
		return false;
	/* Acquire: the status was written before. */
	return request->state == OMPI_INACTIVE || contd__load_acquire(&request->complete) == OMPI_COMPLETED;
}

/* The error handler that Open MPI itself would use. It frees the requests it is shown: so it is shown a likeness. */
static int keep_it(MPI_Request *request)
{
	(void)request;
	return MPI_SUCCESS;
}

/* A complete request that has failed. It frees nothing but what `release` does. */
static struct contd__ompi_request likeness_of(int type, void *object, int error, int (*release)(MPI_Request *))
{
	struct contd__ompi_request likeness = {.references = 1,
					       .type = type,
					       .status = contd__status_empty,
					       .complete = OMPI_COMPLETED,
					       .state = OMPI_ACTIVE,
					       .f_to_c_index = MPI_UNDEFINED,
					       .free = release,
					       .object = object};

	likeness.status.MPI_ERROR = error;
	return likeness;
}

/* The same for an operation that has failed so. */
static struct contd__ompi_request likeness_failed(int type, void *object, int error, int (*release)(MPI_Request *))
{
	/* Open MPI's own file operations (4.1) do not say which file they are of, and MPI_Wait falls over that. */
	if (!object && type == OMPI_TYPE_IO) {
		object = (void *)MPI_FILE_NULL;
	} else if (!object || (type == OMPI_TYPE_GEN && contd__model.sessions)) {
		/* MPI_COMM_WORLD's handler; with a session of contd's that of its communicator */
		type = contd__model.sessions ? OMPI_TYPE_PML : OMPI_TYPE_GEN;
		if (contd__model.sessions)
			object = (void *)contd__model.self;
	}
	return likeness_of(type, object, error, release);
}

static void tell(int type, void *object, int error)
{
	struct contd__ompi_request likeness = likeness_failed(type, object, error, keep_it);
	MPI_Request handle = (MPI_Request)(void *)&likeness;

	O.errhandler_request_invoke(1, &handle, "MPI_Continue");
}

/*
 * Finish an operation that is complete as Test would; the handle is null afterwards unless it is persistent. Returns
 * the status's error code.
 */
static int finish_complete(MPI_Request *handle, MPI_Status *to)
{
	struct contd__ompi_request *request = inside(*handle);
	MPI_Request own = *handle;
	int code;

	if (request->state == OMPI_INACTIVE) {
		if (to)
			*to = contd__status_empty;
		return MPI_SUCCESS;
	}
	status_mend(request);
	code = request->status.MPI_ERROR;
	if (to)
		*to = request->status;
	/* The handler may start a persistent request again, or free it: it is the program's before that. */
	if (request->persistent) {
		request->status.MPI_ERROR = MPI_SUCCESS;
		request->state = OMPI_INACTIVE;
		if (__builtin_expect(code != MPI_SUCCESS, 0))
			tell(request->type, request->object, code);
		return code;
	}
	*handle = MPI_REQUEST_NULL;
	if (__builtin_expect(code != MPI_SUCCESS, 0))
		tell(request->type, request->object, code);
	request->free(&own);
	return code;
}

/* Not the last reference: MPI alone can end the object. Then it stays. */
static void object_let_go(struct contd__ompi_object *object)
{
	int32_t references = contd__load(&object->references);

	while (references > 1 && !contd__cas(&object->references, &references, references - 1))
		;
}

static void ops_tell(struct contd__set *set)
{
	struct contd__at_work telling;

	contd__telling_begin(&telling, set->group);
	for (uint32_t i = 0; i < set->count; i++) {
		struct contd__op *op = &set->op[i];

		/* Acquire: of a failed continuation others may just be finishing. */
		if (set->results && contd__load_acquire(&op->state) != OP_DONE)
			continue;
		if (op->error == MPI_SUCCESS)
			continue;
		/* Of a persistent request nothing is left but what was put down: the program may have started or freed
		 * it. */
		tell(op->type, op->object, op->error);
		op->error = MPI_SUCCESS;
		if (op->persistent && op->object)
			object_let_go(op->object);
	}
	contd__telling_end(&telling);
}

static void ops_release(struct contd__set *set)
{
	struct contd__op *first = &set->op[0];

	if (__builtin_expect(set->count == 1 && !first->error && !first->persistent && !first->backend, 1)) {
		inside(first->request)->free(&first->request);
		return;
	}
	for (uint32_t i = 0; i < set->count; i++) {
		struct contd__op *op = &set->op[i];

		if (op->error)
			ops_tell(set);
		if (!op->persistent || op->freed)
			inside(op->request)->free(&op->request);
		if (op->backend)
			contd__general_release(op->backend); /* Open MPI does not notice errors of a free_fn either */
	}
}

/* --------------------------------------------------------------------------------------------------- rechecking --- */

/*
 * Look at slots in turn, during a share of the time that passes, however often the program calls MPI. So each of n
 * pending operations is looked at again within RECHECK_SHARE times what n looks take: with 100 000 of them in less than
 * a second. While there are silent ones, within RECHECK_SILENT times.
 */
#define RECHECK_SLOTS 16u /* of one CR at a time */
#define RECHECK_EVERY 16u /* calls of opal_progress */
#define RECHECK_SHARE 64u
#define RECHECK_SILENT 2u
#define RECHECK_LEAST 500u    /* nanoseconds that a look is worth, at so many slots; before that time goes on passing */
#define RECHECK_MOST 1000000u /* nanoseconds that one look may take: the rest comes with the next ones */

/*
 * The slot's continuation cannot become ready meanwhile, which keeps its set: this counts as one more event of it.
 * Returns how many operations were looked at.
 */
static uint32_t recheck_slot(struct contd__slot *s)
{
	uint64_t w = contd__load_acquire(&s->state);
	uint32_t looked = 0;

	while (SLOT_STATE(w) == SLOT_PENDING && !(SLOT_REMAINING(w) & SLOT_LOOKED_AT)) {
		struct contd__set *set;

		if (!contd__cas(&s->state, &w,
				SLOT_WORD(SLOT_GENERATION(w), SLOT_REMAINING(w) + SLOT_LOOKED_AT, SLOT_PENDING)))
			continue;
		set = contd__set_of(s);
		CONTD_TESTPOINT("recheck_looking");
		for (; set && looked < contd__load_acquire(&set->count); looked++)
			op_recheck(&set->op[looked]);
		contd__slot_event_done_sig(s, SLOT_GENERATION(w), SLOT_LOOKED_AT);
		return looked;
	}
	return 0;
}

static uint32_t recheck_cr(struct contd__native_cr *cr)
{
	struct contd_group *g = cr->cr.group;
	uint32_t used = contd__load_acquire(&g->table.used), looked = 0;

	for (uint32_t n = 0; n < RECHECK_SLOTS && n < used; n++)
		looked += recheck_slot(contd__table_slot(&g->table, contd__table_index(cr->recheck++ % used)));
	return looked;
}

/* The next CR in turn, with its group pinned; NULL: nothing is outstanding there. False: another thread has the
 * lock. */
static bool recheck_take(struct contd__native_cr **crp)
{
	struct contd__cr *cr;

	if (pthread_mutex_trylock(&contd__crs_lock))
		return false;
	cr = contd__crs_turn_locked();
	/* If it is only waiting to be freed, the lock keeps that from happening (contd__cr_fini). */
	if (cr && (contd__group_outstanding_sig(cr->group) == 0 || !contd__group_try_pin_sig(cr->group)))
		cr = NULL;
	pthread_mutex_unlock(&contd__crs_lock);
	*crp = cr ? native_of(cr) : NULL;
	return true;
}

/*
 * Returns how many operations were looked at, or -1: not now. No lock is held meanwhile, because a generalized
 * request's query_fn may be called.
 */
static int64_t recheck_next(void)
{
	struct contd__native_cr *cr;
	uint32_t looked;

	if (!recheck_take(&cr))
		return -1;
	if (!cr)
		return 0;
	looked = recheck_cr(cr);
	contd__group_unpin_sig(cr->cr.group);
	return looked;
}

/* Does it wait for an operation? */
static bool recheck_set(struct contd__set *set)
{
	bool waits = false;

	for (uint32_t i = 0; i < set->count; i++) {
		op_recheck(&set->op[i]);
		waits |= contd__load(&set->op[i].state) == OP_WAITS;
	}
	return waits;
}

/*
 * Sets whose continuations have failed. Those that are not looked at before the time is over are pushed last, so they
 * come first next time.
 */
static void recheck_left(uint64_t begin, uint64_t share)
{
	struct cds_lfs_head *head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &contd__sets_left});

	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		struct contd__set *set = caa_container_of(node, struct contd__set, node);

		next = node->next;
		if (contd__ticks() - begin >= share || recheck_set(set))
			cds_lfs_push((cds_lfs_stack_ptr_t){._s = &contd__sets_left}, &set->node);
		else
			contd__set_unref_sig(set);
	}
}

static void recheck(void)
{
	static uint64_t before;  /* when the last look began */
	static uint32_t looking; /* one at a time; a query_fn may call MPI */
	uint64_t least = (uint64_t)(RECHECK_LEAST * contd__clock.ticks_per_ns),
		 most = least * (RECHECK_MOST / RECHECK_LEAST);
	uint64_t begin = contd__ticks(), share = begin - contd__load(&before);
	int64_t left = contd__load(&ops_hooked), looked = 0;

	share /= contd__load(&silent_hooked) ? RECHECK_SILENT : RECHECK_SHARE;
	if (left == 0 || share < least || contd__xchg(&looking, 1))
		return;
	contd__store(&before, begin);
	share = share < most ? share : most; /* a clock that jumps back, too */
	if (contd__load(&contd__sets_left.head))
		recheck_left(begin, share);
	/* Once a round is enough. */
	while (left > 0 && looked >= 0 && contd__ticks() - begin < share) {
		looked = recheck_next();
		left -= looked;
	}
	contd__store_release(&looking, 0); /* release: the next thread that exchanges it sees where its look begins */
}

/* ---------------------------------------------------------------------------------------- continuation requests --- */

static void cr_state_locked(struct contd__native_cr *cr)
{
	bool outstanding;

	do {
		outstanding = contd__group_outstanding_sig(cr->cr.group) != 0;
		CONTD_TESTPOINT("cr_state_read");
		contd__store_seq(&cr->super.complete, outstanding ? OMPI_PENDING : OMPI_COMPLETED);
		/* Dekker with cr_idle(), which leaves what it finds complete as it is. */
	} while (outstanding && contd__group_outstanding_sig(cr->cr.group) == 0);
}

static void cr_sync(struct contd__native_cr *cr)
{
	contd__xchg(&cr->again, 1);
	while (contd__load_seq(&cr->again)) {
		if (contd__xchg(&cr->lock, 1))
			return; /* the holder looks again */
		contd__xchg(&cr->again, 0);
		cr_state_locked(cr);
		CONTD_TESTPOINT("cr_state_written");
		contd__store_seq(&cr->lock, 0);
	}
}

static void stale_sync(void)
{
	struct cds_lfs_head *head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &stale});

	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		struct contd__native_cr *cr = caa_container_of(node, struct contd__native_cr, stale_node);

		next = node->next;
		contd__store_seq(&cr->stale, 0); /* before the look: what comes later comes again */
		CONTD_TESTPOINT("stale_cleared");
		cr_sync(cr);
		contd__group_unpin_sig(cr->cr.group);
	}
}

/*
 * The count has reached 0; any context. Only MPI_Request_get_status reads `complete`, and it makes progress before it
 * says no. So only in_progress writes that a CR is complete, and the calls that test and wait for CRs need not do so.
 * That it is not complete is written at once (cr_changed); but not for a continuation that runs inside the call that
 * attaches it, so there is nothing to be done afterwards.
 */
static void cr_idle(struct contd_group *group)
{
	struct contd__native_cr *cr = native_of(group->owner);

	if (contd__load_seq(&cr->super.complete) != OMPI_PENDING || contd__load(&cr->stale) ||
	    contd__xchg(&cr->stale, 1))
		return;
	contd__group_pin_sig(group); /* until it is taken off the list */
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &stale}, &cr->stale_node);
	/* Dekker with cr_free(): of the push and `closed`. The call after which it would be done may never come. */
	if (contd__load_seq(&cr->cr.closed))
		stale_sync();
}

static void cr_changed(struct contd__cr *cr)
{
	struct contd__native_cr *n = native_of(cr);

	/* Mostly it is as it should be: pending, with something outstanding. */
	if (contd__load_seq(&n->super.complete) != OMPI_PENDING || contd__group_outstanding_sig(cr->group) == 0)
		cr_sync(n);
}

/* MPI_Start refuses a request whose state is not inactive. `complete` of an inactive request is not read. */
static void cr_active(struct contd__cr *cr, bool active)
{
	contd__store_release(&native_of(cr)->super.state, active ? OMPI_ACTIVE : OMPI_INACTIVE);
}

/*
 * Several threads may raise the error of a CR at a time, and each its own. So the thread that does so has this lock
 * from cr_raise() on until Open MPI has looked (cr_free). It runs none of the program's functions in between.
 */
static pthread_mutex_t raise_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct contd__native_cr *raised_here __attribute__((tls_model("initial-exec")));

static void cr_raised(void)
{
	struct contd__native_cr *cr = raised_here;

	raised_here = NULL;
	contd__store(&cr->super.status.MPI_ERROR, MPI_SUCCESS);
	cr->super.persistent = cr->cr.revised;
	pthread_mutex_unlock(&raise_lock);
}

/* Open MPI's req_free: in MPI_Request_free, and when an error of it has been told. */
static int cr_free(MPI_Request *request)
{
	struct contd__native_cr *cr = native_cr(*request);

	/* The error handler is about to be called for it (errhandler_invoke.c), and drops failed requests: not CRs. */
	if (raised_here == cr) {
		cr_raised();
		return MPI_SUCCESS;
	}
	if (contd__load(&cr->super.status.MPI_ERROR) != MPI_SUCCESS)
		return MPI_SUCCESS; /* in an array beside one that failed; another thread raises its error */
	*request = MPI_REQUEST_NULL;
	if (contd__load(&stopped))
		return MPI_SUCCESS; /* its group went with the dispatcher */
	cr->super.state = OMPI_INVALID;
	if (cr->super.f_to_c_index != MPI_UNDEFINED) {
		O.pointer_array_set(O.f_to_c_table, cr->super.f_to_c_index, NULL);
		cr->super.f_to_c_index = MPI_UNDEFINED;
	}
	contd__cr_keep_freed(&cr->cr);
	contd__cr_close(&cr->cr);
	/* Its group is held by the list: an executor of it could not be destroyed. Partner: cr_idle(). */
	if (contd__load_seq(&stale.head))
		stale_sync();
	contd_group_destroy(cr->cr.group);
	return MPI_SUCCESS;
}

static void cr_freed(void *owner)
{
	struct contd__native_cr *cr = native_of(owner);

	if (contd__load(&stopped) && !contd__load(&cr->cr.closed))
		return; /* the program may still hold the handle: the few bytes stay */
	contd__cr_fini(&cr->cr);
	free(cr);
}

static int cr_cancel(struct contd__ompi_request *request, int flag)
{
	(void)request, (void)flag;
	contd__fail(0, CONTD_CANCELS_CR);
	return contd__fail_in("MPI_Cancel", MPI_ERR_REQUEST);
}

/* MPI_Start and MPI_Startall; they call no error handler for what this returns. */
static int start_one(MPI_Request *request)
{
	struct contd__native_cr *cr = native_cr(*request);
	int rc;

	if (!cr)
		return inside(*request)->start(1, request);
	if (contd__cr_starts_empty(&cr->cr)) {
		cr_active(&cr->cr, true);
		contd__cr_start_empty(&cr->cr);
		return MPI_SUCCESS;
	}
	rc = contd__cr_start(&cr->cr);
	return __builtin_expect(rc, 0) ? contd__mpi_refused("MPI_Start", rc) : MPI_SUCCESS;
}

static int cr_start(size_t count, MPI_Request *requests)
{
	int rc = MPI_SUCCESS;

	if (count == 1)
		return start_one(requests);
	for (size_t i = 0; i < count && !rc; i++)
		rc = start_one(&requests[i]);
	return rc;
}

static int cr_create(struct contd_group *group, bool revised, struct contd__cr **crp)
{
	struct contd__native_cr *cr = contd__zalloc(sizeof(*cr));

	if (!cr)
		return contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	if (contd__cr_init(&cr->cr, group, revised)) {
		free(cr);
		return contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	}
	cr->super.references = 1;
	cr->super.type = OMPI_TYPE_PML; /* errors go to the error handler of the communicator in `object` */
	cr->super.object = (void *)contd__model.self;
	cr->super.status = contd__status_empty;
	cr->super.f_to_c_index = MPI_UNDEFINED;
	cr->super.persistent = revised; /* or MPI_Start would refuse it */
	cr->super.free = cr_free;
	cr->super.cancel = cr_cancel;
	cr->super.start = cr_start;
	cr->super.state = revised ? OMPI_INACTIVE : OMPI_ACTIVE; /* of a draft CR `complete` says all */
	cr->super.complete = OMPI_COMPLETED;
	cr->cr.handle = (MPI_Request)(void *)&cr->super;
	group->freed = cr_freed;
	group->idle = cr_idle;
	*crp = &cr->cr;
	return MPI_SUCCESS;
}

static struct contd__cr *cr_of(MPI_Request handle)
{
	struct contd__native_cr *cr = handle ? native_cr(handle) : NULL;

	return cr ? &cr->cr : NULL;
}

/* Does Open MPI free persistent requests, too, before it calls their error handler? From 5.0.10 on it does not. */
static bool frees_persistent;

static int note_freed(MPI_Request *request)
{
	(void)request;
	frees_persistent = true;
	return MPI_SUCCESS;
}

static void ask_frees_persistent(void)
{
	struct contd__ompi_request likeness = likeness_of(OMPI_TYPE_PML, (void *)O.quiet, MPI_ERR_OTHER, note_freed);
	MPI_Request handle = (MPI_Request)(void *)&likeness;

	likeness.persistent = true;
	frees_persistent = false;
	O.errhandler_request_invoke(1, &handle, "MPI_Continue_init");
}

/*
 * Open MPI itself calls the error handler for the error in the request's status. Before that it frees the request,
 * which is how cr_free() knows of it.
 */
static int cr_raise(struct contd__cr *cr, int class, bool told)
{
	struct contd__native_cr *n = native_of(cr);

	if (raised_here)
		cr_raised(); /* Open MPI has not looked after all */
	CONTD_TESTPOINT("cr_raise");
	pthread_mutex_lock(&raise_lock);
	raised_here = n;
	n->super.object = told ? (void *)O.quiet : (void *)contd__model.self;
	contd__store(&n->super.status.MPI_ERROR, class);
	if (!frees_persistent)
		n->super.persistent = false; /* until cr_free(): MPI_Start on another thread is refused meanwhile */
	CONTD_TESTPOINT("cr_error_set");
	return class;
}

/* An array of which Open MPI sees only that it has failed: see raising(). */
struct hidden {
	struct contd__ompi_request failed; /* stands in the last place */
	MPI_Request *requests;
	size_t count;
	MPI_Request request[]; /* what is there else */
};

static int show_hidden(MPI_Request *place)
{
	struct hidden *h = caa_container_of(inside(*place), struct hidden, failed);

	memcpy(h->requests, h->request, h->count * sizeof(h->request[0]));
	free(h);
	return MPI_SUCCESS;
}

/*
 * Those that have failed and are reported: as Open MPI, of which this takes the place. Writes into *failed what the
 * first one is like; false if there is none.
 */
static bool drop_beside(size_t count, MPI_Request *requests, const struct contd__raised *raised,
			struct contd__ompi_request *failed)
{
	bool any = false;

	for (size_t i = 0; i < raised->beside_count; i++) {
		size_t place = raised->beside ? (size_t)raised->beside[i] : i;
		struct contd__ompi_request *r = place < count ? inside(requests[place]) : NULL;

		if (!r || r->free == cr_free || (!raised->beside && r->state != OMPI_ACTIVE) ||
		    contd__load_acquire(&r->complete) != OMPI_COMPLETED || r->status.MPI_ERROR == MPI_SUCCESS)
			continue;
		if (!any)
			*failed = likeness_failed(r->type, r->object, r->status.MPI_ERROR, show_hidden);
		any = true;
		if (r->persistent)
			r->state = OMPI_INACTIVE;
		if (!r->persistent || frees_persistent)
			r->free(&requests[place]);
	}
	return any;
}

static bool stands_in(MPI_Request request, size_t count, const MPI_Request *requests)
{
	for (size_t i = 0; i < count; i++)
		if (requests[i] == request)
			return true;
	return false;
}

/*
 * Open MPI looks for the request that has failed by the errors in the statuses: in all requests of the array, and drops
 * each that has one. In a pending send, and in a persistent request that was not started, MPI has not written the
 * status yet. In a receive another thread may just be writing it, and of a receive that has failed the call may have
 * nothing to say yet. Other threads may raise and tell the errors of CRs at the same time. So while Open MPI looks,
 * nothing is in the array but a likeness of what has failed: of the first request that has, or of the CR. It comes
 * last, and when Open MPI drops it, the others come back. Failed requests are dropped here, before that: a free_fn may
 * look at the array. No function of the program's is called while the others are hidden.
 */
static void raising(size_t count, MPI_Request *requests, const struct contd__raised *raised)
{
	bool by_cr = raised->cr != MPI_REQUEST_NULL;
	struct hidden *h;

	if (by_cr && !stands_in(raised->cr, count, requests))
		return;
	/* The variable with the only one stays as it is: other threads may read the CR's handle there. */
	h = count == 1 ? NULL : contd__zalloc(sizeof(*h) + count * sizeof(h->request[0]));
	if (!h) { /* all stay, and without memory Open MPI may take another one for failed */
		if (by_cr)
			cr_raise(&native_cr(raised->cr)->cr, raised->class, raised->told);
		return;
	}
	if (!drop_beside(count, requests, raised, &h->failed)) {
		if (!by_cr) { /* Open MPI finds no error, and returns MPI_SUCCESS */
			free(h);
			return;
		}
		h->failed = likeness_of(OMPI_TYPE_PML, raised->told ? (void *)O.quiet : (void *)contd__model.self,
					raised->class, show_hidden);
	}
	h->requests = requests;
	h->count = count;
	memcpy(h->request, requests, count * sizeof(h->request[0]));
	for (size_t i = 0; i < count; i++)
		requests[i] = MPI_REQUEST_NULL;
	requests[count - 1] = (MPI_Request)(void *)&h->failed;
}

/* Open MPI's own, but with the failures of persistent requests. */
static int test_any(size_t count, MPI_Request *requests, int *index, int *completed, MPI_Status *status)
{
	int rc = contd__original.test_any(count, requests, index, completed, status);
	const struct contd__ompi_request *r;

	if (rc || !*completed || *index == MPI_UNDEFINED)
		return rc;
	r = inside(requests[*index]);
	return r->persistent ? r->status.MPI_ERROR : MPI_SUCCESS;
}

/* All are complete. Those that have failed stay active until raising(), which knows them by that. */
static void finish_all(size_t count, MPI_Request *requests, MPI_Status *statuses)
{
	for (size_t i = 0; i < count; i++) {
		struct contd__ompi_request *r = inside(requests[i]);
		bool active = r->state != OMPI_INACTIVE;

		if (active && r->type == OMPI_TYPE_GEN)
			O.grequest_query(r, &r->status);
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[i] = active ? r->status : contd__status_empty;
		if (!active || r->status.MPI_ERROR != MPI_SUCCESS)
			continue;
		if (r->persistent)
			r->state = OMPI_INACTIVE;
		else
			r->free(&requests[i]);
	}
}

/* Requests that complete after this look are left to the next one, so that no failure is overlooked. */
static int test_all(size_t count, MPI_Request *requests, int *completed, MPI_Status *statuses)
{
	bool failed = false;

	*completed = false;
	for (size_t i = 0; i < count; i++) {
		const struct contd__ompi_request *r = inside(requests[i]);

		/* Acquire: the status was written before. */
		if (r->state == OMPI_INACTIVE)
			continue;
		if (contd__load_acquire(&r->complete) != OMPI_COMPLETED) {
			O.progress();
			return MPI_SUCCESS;
		}
		failed |= r->persistent && r->status.MPI_ERROR != MPI_SUCCESS;
	}
	if (!failed)
		return contd__original.test_all(count, requests, completed, statuses);
	finish_all(count, requests, statuses);
	*completed = true;
	return MPI_ERR_IN_STATUS;
}

static void cr_end(struct contd__cr *cr)
{
	contd__store_seq(&native_of(cr)->super.complete, OMPI_COMPLETED);
}

static size_t specials(size_t count, const MPI_Request *requests)
{
	bool look = contd__load(&persistent_hooked) != 0;
	size_t n = 0;

	if (!look && contd__load(&contd__cr_live) == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		n += native_cr(requests[i]) || (look && hooked(requests[i]));
	return n;
}

static enum contd__seen peek(MPI_Request request, MPI_Status *status)
{
	struct contd__ompi_request *r = inside(request);

	if (r->free == cr_free)
		return contd__peek_cr(&native_cr(request)->cr, status);
	if (r->state == OMPI_INACTIVE) /* MPI_REQUEST_NULL too; what is complete from the start is active */
		return SEEN_NOTHING;
	/* A hooked one becomes inactive when its continuation runs. Acquire: the status was written before. */
	if (contd__load_acquire(&r->complete) != OMPI_COMPLETED || hooked(request))
		return SEEN_PENDING;
	if (r->type == OMPI_TYPE_GEN)
		O.grequest_query(r, &r->status);
	status_mend(r);
	if (!status)
		return SEEN_COMPLETE;
	*status = r->status;
	if (r->type == OMPI_TYPE_GEN && status->MPI_ERROR == MPI_SUCCESS)
		status->MPI_ERROR = contd__instance_error_of(request); /* complete_fn, which reports it, has not run */
	return SEEN_COMPLETE;
}

static int peek_next(const MPI_Request *requests, int from, int count, bool *active, MPI_Status *status)
{
	bool passed = false;
	int i;

	for (i = from; i < count; i++) {
		struct contd__ompi_request *r = inside(requests[i]);
		enum contd__seen seen;

		if (!r)
			return -1;
		if (r->state == OMPI_INACTIVE)
			continue;
		/* Mostly they wait. */
		if (contd__load(&r->complete) != OMPI_COMPLETED && r->free != cr_free) {
			passed = true;
			continue;
		}
		seen = peek(requests[i], status);
		passed |= seen != SEEN_NOTHING;
		if (seen == SEEN_COMPLETE)
			break;
	}
	*active |= passed;
	return i;
}

/* ---------------------------------------------------------------------------------------------------- attaching --- */

/* An operation that is given back, or becomes inactive, when it is finished: it must not stand in the array twice. */
static bool finishes_once(MPI_Request request)
{
	return inside(request)->state == OMPI_ACTIVE && inside(request)->type != OMPI_TYPE_NULL && !native_cr(request);
}

/* Does one stand in the array twice? Each is tagged with its place: until the callback is stored, no other thread looks
 * at the tag. */
static bool named_twice(const struct contd__mpi_attach *a)
{
	if (a->count < 2)
		return false;
	for (int i = 0; i < a->count; i++)
		if (finishes_once(a->requests[i]))
			inside(a->requests[i])->complete_cb_data = &a->requests[i];
	for (int i = 0; i < a->count; i++)
		if (finishes_once(a->requests[i]) && inside(a->requests[i])->complete_cb_data != &a->requests[i])
			return true;
	return false;
}

static int look(const struct contd__mpi_attach *a, const struct contd_group *group, struct contd__look *look)
{
	*look = (struct contd__look){0};
	for (int i = 0; i < a->count; i++) {
		struct contd__ompi_request *r = inside(a->requests[i]);
		struct contd__native_cr *cr;

		if (!r)
			return contd__fail(MPI_ERR_REQUEST, CONTD_OF_REQUESTS(a, CONTD_ZERO_HANDLE));
		cr = native_cr(a->requests[i]);
		if (cr) {
			if (cr->cr.group == group)
				return contd__fail(MPI_ERR_REQUEST,
						   CONTD_OF_REQUESTS(a, CONTD_OWN_CR)); /* complete or not */
			look->crs++;
			look->crs_pending += contd__group_outstanding_sig(cr->cr.group) != 0;
		} else if (!complete_already(r)) {
			const void *complete = contd__load(&r->complete);

			if (r->complete_cb || hooked(a->requests[i]))
				return contd__fail(MPI_ERR_REQUEST, /* ours or Open MPI's own */
						   CONTD_OF_REQUESTS(a, CONTD_TAKEN));
			if (complete != OMPI_PENDING && complete != OMPI_COMPLETED)
				return contd__fail(MPI_ERR_REQUEST, /* MPI 4.1, 11.6.2 */
						   CONTD_OF_REQUESTS(a, "another thread waits for an operation; attach "
									"the continuation before that"));
			look->pending++;
		}
	}
	return named_twice(a) ? contd__fail(MPI_ERR_REQUEST, CONTD_OF_REQUESTS(a, CONTD_TWICE)) : MPI_SUCCESS;
}

static void cr_seen(const struct contd__mpi_attach *a, int i)
{
	MPI_Status *status = contd__status_at(a, i);

	if (status)
		*status = contd__status_empty;
}

/* A complete one that has not failed, as Test would. */
static inline void finish_well(MPI_Request *handle, MPI_Status *to)
{
	struct contd__ompi_request *r = inside(*handle);
	MPI_Request own = *handle;

	if (to)
		*to = r->state == OMPI_INACTIVE ? contd__status_empty : r->status;
	if (r->persistent || r->state == OMPI_INACTIVE) {
		r->state = OMPI_INACTIVE;
		return;
	}
	*handle = MPI_REQUEST_NULL;
	r->free(&own);
}

/*
 * A complete one. If it has failed its status is written, and the rest is left to finish_failed(): its error handler
 * may start, test or free the other requests of the array, which then must be as they stay. Returns the error code.
 */
static int finish_one(const struct contd__mpi_attach *a, int i, bool *failedp)
{
	struct contd__ompi_request *r = inside(a->requests[i]);
	MPI_Status *status = contd__status_at(a, i);

	if (__builtin_expect(r->state == OMPI_INACTIVE || r->status.MPI_ERROR == MPI_SUCCESS, 1)) {
		finish_well(&a->requests[i], status);
		return MPI_SUCCESS;
	}
	status_mend(r);
	if (status)
		*status = r->status;
	r->complete_cb_data = (void *)(uintptr_t)a; /* this mark is no other request's */
	*failedp = true;
	return r->status.MPI_ERROR;
}

static void finish_failed(const struct contd__mpi_attach *a)
{
	for (int i = 0; i < a->count; i++) {
		const struct contd__ompi_request *r = inside(a->requests[i]);

		/* If it is not, a handler has dealt with it. */
		if (r->complete_cb_data == a && r->state == OMPI_ACTIVE &&
		    contd__load_acquire(&r->complete) == OMPI_COMPLETED)
			finish_complete(&a->requests[i], NULL);
	}
}

static void finish(const struct contd__mpi_attach *a)
{
	bool failed = false;

	if (a->revised) { /* none has failed: at_once() */
		for (int i = 0; i < a->count; i++)
			finish_well(&a->requests[i], contd__status_at(a, i));
		return;
	}
	for (int i = 0; i < a->count; i++)
		finish_one(a, i, &failed);
	if (__builtin_expect(failed, 0))
		finish_failed(a);
}

/* Is it complete, no CR, and, if `well`, has it not failed? */
static inline bool ends_now(const struct contd__ompi_request *r, bool well)
{
	/* Acquire: pairs with the exchange in op_complete; it is inactive if that has put its own function back. */
	contd__ompi_free *its = contd__load_acquire(&r->free);

	if (r->type == OMPI_TYPE_GEN || its == cr_free || its == hooked_free)
		return false;
	if (r->state == OMPI_INACTIVE)
		return true;
	/* Acquire: the status was written before. */
	return contd__load_acquire(&r->complete) == OMPI_COMPLETED && !(well && r->status.MPI_ERROR != MPI_SUCCESS);
}

static bool at_once(const struct contd__mpi_attach *a)
{
	const MPI_Request *requests = a->requests;
	bool well = a->revised;
	int count = a->count;

	for (int i = 0; i < count; i++)
		if (!requests[i] || !ends_now(inside(requests[i]), well))
			return false;
	return count <= 1 || (count == 2 && requests[0] != requests[1]) || !named_twice(a);
}

static void hook_one(struct contd__set *set, MPI_Request request, MPI_Status *status)
{
	struct contd__op *op = &set->op[set->count];
	struct contd__ompi_request *r = inside(request);

	*op = (struct contd__op){.request = request, .set = set, .status = status, .persistent = r->persistent};
	if (r->type == OMPI_TYPE_GEN) {
		op->instance = contd__instance_hook(request);
		set->instances |= op->instance != NULL;
		/* A thread that completes it may let go of it later than this one, and would call free_fn then. */
		op->backend = op->instance ? NULL : contd__general_find(request);
		if (op->backend)
			contd__general_hold(op->backend);
	}
	if (set->results)
		contd__add(&set->life, SET_REFERENCE);
	if (op->persistent) {
		contd__add(&persistent_hooked, 1);
		op->free = r->free;
		contd__store_release(&r->free,
				     hooked_free); /* pairs with the exchanges in op_complete and hooked_free */
	}
	if (silent(r))
		contd__add(&silent_hooked, 1);
	/* Release: pairs with the acquire in recheck_slot. */
	contd__store_release(&set->count, set->count + 1);
	contd__store(&r->complete_cb_data, op);
	/*
	 * Sequentially consistent: before the look at `complete` (see the comment on operations), and after what
	 * op_hook reads.
	 */
	if (alone)
		contd__store_release(&r->complete_cb, op_hook);
	else
		contd__store_seq(&r->complete_cb, op_hook);
	CONTD_TESTPOINT("op_hooked");
	op_recheck(op);
}

/* Below MPI_THREAD_MULTIPLE, and not one that other threads or handlers complete, as generalized requests. */
static bool steady(const struct contd__mpi_attach *a)
{
	const struct contd__ompi_request *r = alone && a->count == 1 ? inside(a->requests[0]) : NULL;

	return r && r->state == OMPI_ACTIVE && r->complete == OMPI_PENDING && !r->complete_cb && !r->persistent &&
	       r->type != OMPI_TYPE_GEN && r->free != cr_free;
}

/* One operation more waits, while threads do not meet in MPI. */
static void hooked_one_more(void)
{
	if (contd__add_by_turns(&ops_hooked, 1) != 0)
		return;
	/* A thread that is about to sleep sees this count, or this thread sees which one to wake. Partner: doze(), and
	 * the daemon's. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	contd__pending_sig();
}

static void hook_steady(const struct contd__mpi_attach *a, struct contd__set *set)
{
	struct contd__ompi_request *r = inside(a->requests[0]);

	set->op[0] = (struct contd__op){
		.request = a->requests[0], .set = set, .status = contd__status_at(a, 0), .state = OP_WAITS};
	set->count = 1;
	cds_list_add_tail(&set->carrying, &carried_sets);
	hooked_one_more();
	a->requests[0] = MPI_REQUEST_NULL;
	r->complete_cb_data = &set->op[0];
	r->complete_cb = carried_hook;
	CONTD_TESTPOINT("op_hooked");
}

static uint32_t hook(const struct contd__mpi_attach *a, const struct contd__look *look, struct contd__set *set,
		     bool count_crs)
{
	int pending = look->pending;
	bool failed = false;
	uint32_t done = 0;

	/* Counted first, so that what completes in between finds it counted. */
	if (pending && contd__add(&ops_hooked, (uint32_t)pending) == 0)
		contd__pending_sig();
	for (int i = 0; i < a->count; i++) {
		struct contd__ompi_request *r = inside(a->requests[i]);
		int code;

		if (native_cr(a->requests[i])) {
			cr_seen(a, i);
			done += count_crs; /* complete when look() looked, and nothing waits for it */
		} else if (pending && !complete_already(r)) {
			MPI_Request request = a->requests[i];

			if (!r->persistent)
				a->requests[i] = MPI_REQUEST_NULL;
			pending--;
			hook_one(set, request, contd__status_at(a, i));
		} else {
			code = finish_one(a, i, &failed);
			if (code != MPI_SUCCESS && a->revised)
				contd__set_failed_sig(set, contd__mpi_error_class(code));
			done++;
		}
	}
	if (pending)
		contd__sub(&ops_hooked, (uint32_t)pending);
	if (__builtin_expect(failed, 0))
		finish_failed(a);
	return done;
}

/* ------------------------------------------------------------------------------------------------ the short way --- */

/*
 * Single requests, if threads do not meet in MPI (`alone`). No callback is missed, so no set is needed for a later
 * look. The thread that has run the operation's end gives the request back. If it must not call MPI, requests are
 * linked by complete_cb_data, and the next progress gives them back.
 */
static struct contd__ompi_request *given_back;

static enum contd__seen quick_look(MPI_Request request)
{
	struct contd__ompi_request *r = inside(request);

	if (!alone || !r || r->free == cr_free || r->persistent || r->type == OMPI_TYPE_GEN ||
	    r->state != OMPI_ACTIVE || r->complete_cb)
		return SEEN_NOTHING;
	if (r->complete == OMPI_COMPLETED)
		return SEEN_COMPLETE;
	return r->complete == OMPI_PENDING ? SEEN_PENDING : SEEN_NOTHING;
}

/* Given by the first operation that took the short way. */
static contd__quick_done *quick_done;

static int on_quick(struct contd__ompi_request *request)
{
	if (contd__load(&stopped))
		return 0;
	status_mend(request);
	request->complete_cb = NULL;
	request->complete = OMPI_COMPLETED;
	contd__add_by_turns(&ops_hooked, (uint32_t)-1);
	quick_done(&request->status, request->complete_cb_data);
	return 1;
}

static void quick_hook(MPI_Request *request, contd__quick_done *done, void *data)
{
	struct contd__ompi_request *r = inside(*request);

	contd__store(&quick_done, done); /* always the same */
	hooked_one_more();
	*request = MPI_REQUEST_NULL;
	r->complete_cb_data = data;
	r->complete_cb = on_quick;
}

static void quick_release(MPI_Request request, int code)
{
	struct contd__ompi_request *r = inside(request);

	if (contd__mpi_thread_may_sig()) {
		if (code != MPI_SUCCESS)
			tell(r->type, r->object, r->status.MPI_ERROR);
		r->free(&request);
		return;
	}
	r->complete_cb_data = contd__load(&given_back);
	while (!contd__cas(&given_back, (struct contd__ompi_request **)&r->complete_cb_data, r))
		;
}

static void quick_drain(void)
{
	struct contd__ompi_request *r = contd__xchg(&given_back, NULL), *next;

	for (; r; r = next) {
		MPI_Request request = (MPI_Request)(void *)r;

		next = r->complete_cb_data;
		if (r->status.MPI_ERROR != MPI_SUCCESS)
			tell(r->type, r->object, r->status.MPI_ERROR);
		r->free(&request);
	}
}

/* --------------------------------------------------------------------------------------------------------- life --- */

/* Called by opal_progress, that is, in every MPI call that makes progress. */
static int in_progress(void)
{
	const struct contd__call *call = contd__call;
	static uint32_t calls;
	unsigned ran;
	bool outer;

	if (contd__sets_left_over_taken())
		recheck_left(contd__ticks(), UINT64_MAX);
	/* Now and then is enough for what hardly ever happens; it touches memory that is cold. */
	if (__builtin_expect(contd__load(&silent_hooked) != 0, 0)) {
		recheck();
	} else if (*O.uses_threads) {
		contd__store(&calls, contd__load(&calls) + 1);
		if (contd__load(&calls) % RECHECK_EVERY == 0)
			recheck();
	}
	if (!call && contd__load(&stale.head))
		stale_sync();
	if (__builtin_expect(contd__load(&given_back) != NULL, 0))
		quick_drain();
	if (!(call && call->runs_itself))
		contd__instances_look();
	if (contd__general_any() && !contd__in_handler())
		contd__general_drain();
	if ((call && call->runs_itself) || !contd__may_run())
		return 0;
	outer = contd__inside_progress_begin();
	ran = contd__run_ready();
	contd__inside_progress_end(outer);
	return (int)ran;
}

static void progress(enum contd__progress how)
{
	(void)how; /* opal_progress gives way by itself, where it was told to */
	O.progress();
}

static uint32_t pending(void)
{
	return contd__load_seq(&ops_hooked);
}

static const char *refuses(void)
{
	return contd__ompi_find();
}

static int start(int thread_level)
{
	alone = thread_level < MPI_THREAD_MULTIPLE && !contd__ompi_progress_thread();
	contd__intercept_native();
	contd__handles_clear();
	stopped = 0;
	__cds_lfs_init(&stale);
	contd__original_are(O.functions);
	if (O.progress_register(in_progress))
		return MPI_ERR_OTHER;
	*O.functions = contd__calls;
	ask_frees_persistent();
	return MPI_SUCCESS;
}

/* Not if another library has wrapped our calls after us: it would go on to ours, and ours to it. */
static bool rest(void)
{
	if (O.functions->test != contd__calls.test)
		return false;
	O.progress_unregister(in_progress);
	*O.functions = contd__original;
	contd__ompi_forget();
	return true;
}

static int wake(void)
{
	if (contd__ompi_find())
		return MPI_ERR_OTHER;
	contd__original_are(O.functions);
	if (O.progress_register(in_progress)) {
		contd__ompi_forget();
		return MPI_ERR_OTHER;
	}
	*O.functions = contd__calls;
	return MPI_SUCCESS;
}

static void stop(void)
{
	contd__store_seq(&stopped, 1);
	O.progress_unregister(in_progress);
	/* Another library may have wrapped ours after us. Then ours goes on to work, because CRs alone find nothing to
	 * run. */
	if (O.functions->test == contd__calls.test)
		*O.functions = contd__original;
	contd__store_seq(&ops_hooked, 0);
	contd__ompi_forget();
}

static const char *op_kind(const struct contd__op *op)
{
	switch (inside(op->request)->type) {
	case OMPI_TYPE_PML:
		return op->persistent ? "a persistent point-to-point operation" : "a point-to-point operation";
	case OMPI_TYPE_IO:
		return "a file operation";
	case OMPI_TYPE_GEN:
		return op->instance ? "a request of a template" : "a generalized request";
	case OMPI_TYPE_WIN:
		return "an RMA operation";
	case OMPI_TYPE_COLL:
		return op->persistent ? "a persistent collective operation" : "a collective operation";
	default:
		return "an operation";
	}
}

static const struct contd__dump_name kinds[] = {{OMPI_TYPE_PML, "point-to-point"}, {OMPI_TYPE_IO, "file"},
						{OMPI_TYPE_GEN, "generalized"},    {OMPI_TYPE_WIN, "one-sided"},
						{OMPI_TYPE_COLL, "collective"},    {OMPI_TYPE_PART, "partitioned"}};
static const struct contd__dump_field dump_request[] = {
	{.key = "kind",
	 .offset = offsetof(struct contd__ompi_request, type),
	 .size = sizeof(int32_t),
	 .how = DUMP_NAMED,
	 .names = sizeof(kinds) / sizeof(kinds[0]),
	 .name = kinds},
	DUMP_FIELD(struct contd__ompi_request, complete, "complete_in_mpi", DUMP_BOOL),
};

static const struct contd__dump_part dump = {
	DUMP_MPI("MPI (native backend)", cr_freed),
	.more_at = offsetof(struct contd__op, request),
	.more = {dump_request, 2, sizeof(struct contd__ompi_request)},
	.carrying = &carried_sets,
	.node_at = offsetof(struct contd__set, carrying),
	.as_at = offsetof(struct contd__set, own) + offsetof(struct contd__unmarked, as),
	.counted = {{"operations_pending", &ops_hooked}, {"persistent_pending", &persistent_hooked}},
};

const struct contd__mpi_backend contd__mpi_native = {
	.name = "native",
	.dump = &dump,
	.refuses = refuses,
	.start = start,
	.rest = rest,
	.wake = wake,
	.stop = stop,
	.op_kind = op_kind,
	.progress = progress,
	.pending = pending,
	.cr_create = cr_create,
	.cr_of = cr_of,
	.cr_active = cr_active,
	.cr_changed = cr_changed,
	.cr_raise = cr_raise,
	.raising = raising,
	.cr_end = cr_end,
	.peek = peek,
	.peek_next = peek_next,
	.test_any = test_any,
	.test_all = test_all,
	.specials = specials,
	.hooked = hooked,
	.look = look,
	.finish = finish,
	.at_once = at_once,
	.steady = steady,
	.hook_steady = hook_steady,
	.carrying = carrying,
	.hook = hook,
	.quick_look = quick_look,
	.quick_finish = finish_complete,
	.quick_hook = quick_hook,
	.quick_release = quick_release,
	.ops_tell = ops_tell,
	.ops_release = ops_release,
};
