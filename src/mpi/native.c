/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/native.h"
#include "ompi/communicator/communicator.h"
#include "ompi/request/grequest.h"
#include "ompi/version.h"
#include "opal/runtime/opal_progress.h"
#include "rcu/memory.h"

static pthread_mutex_t cr_lock = PTHREAD_MUTEX_INITIALIZER;
static CDS_LIST_HEAD(crs);

uint32_t contd__cr_live;
uint32_t contd__ops_hooked;
uint32_t contd__native_stopped;

/* ---------------------------------------------------------------------------------------------- operations --- */

/*
 * An operation that was not complete when its continuation was attached. Its request carries our callback, op_hook.
 *
 * With several threads, storing the callback races with completion: Open MPI's completer may have read "no callback"
 * just before, and will mark the request complete after we looked. So a hooked request that is seen to be complete
 * without its callback having come was missed, and whoever sees that takes the callback's part; `state` decides who.
 * (The callback itself returns 1, after which Open MPI does not touch the request, and marks it complete itself.)
 */
enum op_state { OP_HOOKED, OP_TAKEN };

struct op {
	ompi_request_t *request;
	struct op_set *set;
	MPI_Status *status; /* or NULL */
	uint32_t state;
	bool persistent;
};

/* The operations of one continuation. Freed by who runs it. */
struct op_set {
	struct cds_lfs_node put_off;
	struct contd__slot *slot;
	uint32_t generation;
	uint32_t count;
	struct op op[];
};

static struct __cds_lfs_stack put_off; /* sets that continuations in a handler left; pushed anywhere, emptied by threads */

static const MPI_Status *empty_status(void)
{
	return &ompi_status_empty;
}

static void status_write(MPI_Status *to, const MPI_Status *from)
{
	if (to)
		*to = *from; /* MPI_ERROR too: a continuation has no return code to look at */
}

/*
 * The operation is complete, and this is the only one who deals with it. Any context of MPI's, locks held maybe. Where the
 * callback was missed Open MPI has marked the request already, and woken who waits; to do that twice is not allowed.
 */
static void op_complete(struct op *op, bool missed)
{
	ompi_request_t *request = op->request;
	struct contd__slot *slot = op->set->slot;
	uint32_t generation = op->set->generation;

	if (request->req_type == OMPI_REQUEST_GEN)
		ompi_grequest_invoke_query(request, &request->req_status);
	status_write(op->status, &request->req_status);
	if (op->persistent)
		request->req_state = OMPI_REQUEST_INACTIVE; /* the draft, 3.11.2: inactive when the continuation runs */
	/* Mark it complete and wake who waits for it (a persistent one may be waited for as well). */
	request->req_complete_cb = NULL;
	if (!missed)
		ompi_request_complete(request, true);
	contd__sub(&contd__ops_hooked, 1);
	/* From here on somebody may run the continuation and free the set. It is not run here: MPI may hold locks. */
	contd__slot_event_done_sig(slot, generation, 1);
}

static int op_hook(ompi_request_t *request)
{
	struct op *op = request->req_complete_cb_data;
	uint32_t hooked = OP_HOOKED;

	if (contd__load(&contd__native_stopped))
		return 0;
	if (contd__cas(&op->state, &hooked, OP_TAKEN))
		op_complete(op, false);
	return 1;
}

/* Was the callback of a hooked operation missed? Then take its part. */
static void op_recheck(struct op *op)
{
	uint32_t hooked = OP_HOOKED;

	if (contd__load(&op->state) == OP_HOOKED && contd__load_seq(&op->request->req_complete) == REQUEST_COMPLETED &&
	    contd__cas(&op->state, &hooked, OP_TAKEN))
		op_complete(op, true);
}

static bool complete_already(const ompi_request_t *request)
{
	/* Acquire: the status was written before. */
	return request->req_state == OMPI_REQUEST_INACTIVE || contd__load_acquire(&request->req_complete) == REQUEST_COMPLETED;
}

/* Finish an operation that is complete as Test would; the handle is null afterwards unless it is persistent. */
static void finish_complete(MPI_Request *handle, MPI_Status *status)
{
	ompi_request_t *request = *handle;
	struct contd__cr *cr = contd__cr_of(request);

	if (request->req_state == OMPI_REQUEST_INACTIVE || cr) {
		status_write(status, empty_status());
		if (cr)
			contd__cr_reported(cr);
		return;
	}
	if (request->req_type == OMPI_REQUEST_GEN)
		ompi_grequest_invoke_query(request, &request->req_status);
	status_write(status, &request->req_status);
	if (request->req_persistent) {
		request->req_state = OMPI_REQUEST_INACTIVE;
		return;
	}
	ompi_request_free(handle);
	*handle = MPI_REQUEST_NULL;
}

/* Give requests back that are not the program's any more. */
static void set_release(struct op_set *set)
{
	CONTD_TESTPOINT("set_release");
	for (uint32_t i = 0; i < set->count; i++)
		if (!set->op[i].persistent)
			ompi_request_free(&set->op[i].request);
	free(set);
}

static void set_put_off(struct op_set *set)
{
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &put_off}, &set->put_off);
}

bool contd__put_off_any(void)
{
	return contd__load(&put_off.head) != NULL;
}

void contd__put_off_drain(void)
{
	struct cds_lfs_head *head;
	struct cds_lfs_node *node, *next;

	if (!contd__put_off_any())
		return;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &put_off});
	for (node = head ? &head->node : NULL; node; node = next) {
		next = node->next;
		set_release(caa_container_of(node, struct op_set, put_off));
	}
}

/* Runs the continuation of a slot: also in a handler, where nothing of MPI's may be called. */
static void invoke(struct contd__slot *s)
{
	struct op_set *set = (struct op_set *)(s->source & ~(uintptr_t)3);
	MPI_Continue_cb_function *cb = (MPI_Continue_cb_function *)s->cb.any;

	/* Nor on a thread that only polls contd, or contd's daemon, where the thread level keeps those out of MPI. */
	if (set && (contd__in_handler() || !contd__mpi_thread_may()))
		set_put_off(set);
	else if (set)
		set_release(set);
	cb(s->out.dest, s->data);
}

/* ------------------------------------------------------------------------------------------------- rechecking --- */

#define RECHECK_SLOTS 4u

/* The slot's continuation cannot become ready meanwhile: this counts as one more event of it. */
static void recheck_slot(struct contd__slot *s)
{
	uint64_t w = contd__load_acquire(&s->state);

	while (SLOT_STATE(w) == SLOT_PENDING && SLOT_REMAINING(w) < SLOT_REMAINING_MAX) {
		struct op_set *set;

		if (!contd__cas(&s->state, &w, SLOT_WORD(SLOT_GENERATION(w), SLOT_REMAINING(w) + 1, SLOT_PENDING)))
			continue;
		set = (struct op_set *)(contd__load_acquire(&s->source) & ~(uintptr_t)3);
		for (uint32_t i = 0; set && i < contd__load_acquire(&set->count); i++)
			op_recheck(&set->op[i]);
		contd__slot_event_done_sig(s, SLOT_GENERATION(w), 1);
		return;
	}
}

/* A few slots of one CR a call: every hooked operation is looked at again and again, whatever their number. */
void contd__recheck(void)
{
	struct contd__cr *cr;
	uint32_t used;
	bool pinned;

	if (contd__load(&contd__ops_hooked) == 0 || pthread_mutex_trylock(&cr_lock))
		return;
	if (!cds_list_empty(&crs)) {
		cr = cds_list_first_entry(&crs, struct contd__cr, node);
		/* Where it is only waiting to be freed, cr_lock keeps that from happening (cr_freed). */
		pinned = contd__group_try_pin_sig(cr->group);
		used = pinned ? contd__load_acquire(&cr->group->table.used) : 0;
		for (uint32_t n = 0; n < RECHECK_SLOTS && n < used; n++) {
			uint32_t at = cr->recheck++ % used;

			recheck_slot(contd__table_slot(&cr->group->table, contd__table_index(at)));
		}
		/* The next call looks at another CR. */
		cds_list_del(&cr->node);
		cds_list_add_tail(&cr->node, &crs);
		if (pinned)
			contd__group_unpin_sig(cr->group);
	}
	pthread_mutex_unlock(&cr_lock);
}

/* ------------------------------------------------------------------------------------------ continuation requests --- */

typedef struct contd__cr contd__cr_t;
static OBJ_CLASS_INSTANCE(contd__cr_t, ompi_request_t, NULL, NULL);

static void cr_state_locked(struct contd__cr *cr)
{
	ompi_request_t *r = &cr->super;

	if (contd__group_outstanding_sig(cr->group)) {
		void *complete = REQUEST_COMPLETED;

		contd__store(&r->req_state, OMPI_REQUEST_ACTIVE);
		OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR(&r->req_complete, &complete, REQUEST_PENDING);
	} else if (contd__load_seq(&r->req_complete) != REQUEST_COMPLETED) {
		void *pending = REQUEST_PENDING;

		/* Nobody of Open MPI's waits for a CR by its own means (native_calls.c), so an exchange is all. */
		OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR(&r->req_complete, &pending, REQUEST_COMPLETED);
	}
}

static void cr_unlock(struct contd__cr *cr)
{
	for (;;) {
		contd__store_seq(&cr->lock, 0);
		/* Who found it locked has said so before, and left the rest to us. */
		if (!contd__load_seq(&cr->again) || contd__xchg(&cr->lock, 1))
			return;
		contd__xchg(&cr->again, 0);
		cr_state_locked(cr);
	}
}

static void cr_lock_wait(struct contd__cr *cr)
{
	while (contd__xchg(&cr->lock, 1))
		sched_yield();
}

void contd__cr_sync(struct contd__cr *cr)
{
	contd__xchg(&cr->again, 1);
	if (contd__xchg(&cr->lock, 1))
		return;
	contd__xchg(&cr->again, 0);
	cr_state_locked(cr);
	cr_unlock(cr);
}

/* The count has reached 0; any context. */
static void cr_idle(struct contd_group *group)
{
	contd__cr_sync(group->owner);
}

void contd__cr_reported(struct contd__cr *cr)
{
	if (contd__load(&cr->super.req_state) == OMPI_REQUEST_INACTIVE)
		return;
	cr_lock_wait(cr);
	if (contd__group_outstanding_sig(cr->group) == 0)
		contd__store(&cr->super.req_state, OMPI_REQUEST_INACTIVE);
	cr_unlock(cr);
}

/* Something has been registered. */
static void cr_activate(struct contd__cr *cr)
{
	ompi_request_t *r = &cr->super;

	if (contd__load(&r->req_state) == OMPI_REQUEST_ACTIVE &&
	    (contd__load_seq(&r->req_complete) == REQUEST_PENDING || !contd__group_outstanding_sig(cr->group)))
		return;
	cr_lock_wait(cr);
	contd__store(&r->req_state, OMPI_REQUEST_ACTIVE);
	cr_state_locked(cr);
	cr_unlock(cr);
}

/* Open MPI's req_free: after a completion call has reported the request, and in MPI_Request_free. */
int contd__cr_free(ompi_request_t **request)
{
	struct contd__cr *cr = (struct contd__cr *)*request;

	if (contd__call && contd__call->completing) {
		contd__cr_reported(cr);
		return OMPI_SUCCESS;
	}
	if (cr->super.req_status.MPI_ERROR != MPI_SUCCESS) {
		/* The error handler is about to be called for it (errhandler_invoke.c), and drops failed requests: not CRs. */
		cr->super.req_status.MPI_ERROR = MPI_SUCCESS;
		return OMPI_SUCCESS;
	}
	*request = MPI_REQUEST_NULL;
	if (contd__load(&contd__native_stopped))
		return OMPI_SUCCESS; /* its group went with the dispatcher */
	OMPI_REQUEST_FINI(&cr->super);
	contd__sub(&contd__cr_live, 1);
	contd_group_destroy(cr->group);
	return OMPI_SUCCESS;
}

static void cr_freed(void *owner)
{
	struct contd__cr *cr = owner;

	if (contd__load(&contd__native_stopped))
		return; /* the program may still hold the handle: the few bytes stay */
	/* Not before: what was outstanding when it was freed is looked after as well. */
	pthread_mutex_lock(&cr_lock);
	cds_list_del(&cr->node);
	pthread_mutex_unlock(&cr_lock);
	OBJ_RELEASE(cr);
}

static int cr_cancel(ompi_request_t *request, int flag)
{
	(void)request, (void)flag;
	return MPI_ERR_REQUEST; /* a CR is no operation */
}

static int cr_start(size_t count, ompi_request_t **requests)
{
	(void)count, (void)requests;
	return MPI_ERR_REQUEST; /* the draft's CRs have no start */
}

static int native_cr_create(struct contd_group *group, MPI_Request *handle)
{
	struct contd__cr *cr = (struct contd__cr *)OBJ_NEW(contd__cr_t);

	if (!cr)
		return MPI_ERR_NO_MEM;
	OMPI_REQUEST_INIT(&cr->super, false);
	cr->super.req_type = OMPI_REQUEST_PML; /* errors go to the error handler of req_mpi_object.comm */
	cr->super.req_mpi_object.comm = MPI_COMM_SELF;
	cr->super.req_status = ompi_status_empty;
	cr->super.req_free = contd__cr_free;
	cr->super.req_cancel = cr_cancel;
	cr->super.req_start = cr_start;
	cr->super.req_state = OMPI_REQUEST_INACTIVE;
	cr->super.req_complete = REQUEST_COMPLETED;
	cr->group = group;
	cr->lock = cr->again = cr->recheck = 0;
	group->owner = cr;
	group->freed = cr_freed;
	group->idle = cr_idle;
	pthread_mutex_lock(&cr_lock);
	cds_list_add(&cr->node, &crs);
	pthread_mutex_unlock(&cr_lock);
	contd__add(&contd__cr_live, 1);
	*handle = &cr->super;
	return MPI_SUCCESS;
}

static struct contd_group *native_cr_group(MPI_Request handle)
{
	struct contd__cr *cr = handle ? contd__cr_of(handle) : NULL;

	return cr ? cr->group : NULL;
}

/* ------------------------------------------------------------------------------------------------------ attaching --- */

static MPI_Status *status_at(const struct contd__mpi_attach *a, int i)
{
	return a->ignore ? NULL : &a->statuses[i];
}

/* An operation that is given back, or becomes inactive, when it is finished: it must not stand in the array twice. */
static bool finishes_once(ompi_request_t *r)
{
	return r->req_state == OMPI_REQUEST_ACTIVE && r->req_type != OMPI_REQUEST_NULL && !contd__cr_of(r);
}

/*
 * Does one stand in the array twice? A few are compared with each other; many are tagged each with its place, and until
 * the callback is stored nobody looks at the tag.
 */
static bool named_twice(const struct contd__mpi_attach *a)
{
	if (a->count <= 4) {
		for (int i = 1; i < a->count; i++)
			for (int k = 0; k < i; k++)
				if (a->requests[i] == a->requests[k] && finishes_once(a->requests[i]))
					return true;
		return false;
	}
	for (int i = 0; i < a->count; i++)
		if (finishes_once(a->requests[i]))
			a->requests[i]->req_complete_cb_data = &a->requests[i];
	for (int i = 0; i < a->count; i++)
		if (finishes_once(a->requests[i]) && a->requests[i]->req_complete_cb_data != &a->requests[i])
			return true;
	return false;
}

/* May continuations be attached to all of them? *pendingp: how many are not complete. */
static int check(const struct contd__mpi_attach *a, const struct contd_group *group, int *pendingp)
{
	int pending = 0;

	for (int i = 0; i < a->count; i++) {
		ompi_request_t *r = a->requests[i];
		struct contd__cr *cr;

		if (!r)
			return MPI_ERR_REQUEST;
		cr = contd__cr_of(r);
		if (cr) {
			if (cr->group == group)
				return MPI_ERR_REQUEST; /* it would wait for itself, complete or not */
			pending += contd__group_outstanding_sig(cr->group) != 0;
		} else if (!complete_already(r)) {
			if (r->req_complete_cb)
				return MPI_ERR_REQUEST; /* one continuation an operation, ours or Open MPI's own */
			pending++;
		}
	}
	*pendingp = pending;
	return named_twice(a) ? MPI_ERR_REQUEST : MPI_SUCCESS;
}

/* All complete, and the continuation may run here: no slot is needed. */
static int run_now(const struct contd__mpi_attach *a, struct contd__cr *cr)
{
	struct contd__frame frame;

	for (int i = 0; i < a->count; i++)
		finish_complete(&a->requests[i], status_at(a, i));
	/* Complete and not reported yet; right whatever another thread does to the state meanwhile. */
	if (contd__load(&cr->super.req_state) != OMPI_REQUEST_ACTIVE)
		contd__store(&cr->super.req_state, OMPI_REQUEST_ACTIVE);
	CONTD_COUNT(registered, 1);
	CONTD_COUNT(run_inline, 1);
	contd__frame_enter_sig(&frame, cr->group); /* not touched any more: the callback may free its CR */
	a->cb(a->statuses, a->data);
	contd__frame_leave_sig(&frame);
	if (contd__load(&contd__tls.flags) & CONTD__TLS_MISSED)
		contd__guard_pickup();
	return MPI_SUCCESS;
}

/*
 * CRs among the requests come first, since they can fail. 0: *donep goes up by those that were complete. An error: nobody
 * waits for the others any more, and *firedp is how many have completed, and been counted, meanwhile.
 */
static int await_crs(const struct contd__mpi_attach *a, struct contd__slot *s, uint32_t *donep, uint32_t *firedp)
{
	uint32_t waiting = 0;

	for (int i = 0; i < a->count; i++) {
		struct contd__cr *cr = contd__cr_of(a->requests[i]);
		int rc = cr ? contd__group_await(cr->group, s) : 1;

		if (rc >= 0) {
			*donep += cr ? (uint32_t)rc : 0;
			waiting += rc == 0;
			continue;
		}
		while (i-- > 0)
			if ((cr = contd__cr_of(a->requests[i])) != NULL)
				waiting -= contd__group_await_end(cr->group, s);
		*firedp = waiting;
		return rc;
	}
	return 0;
}

static void hook(struct op_set *set, ompi_request_t *request, MPI_Status *status)
{
	struct op *op = &set->op[set->count];

	*op = (struct op){request, set, status, OP_HOOKED, request->req_persistent};
	/* Release: pairs with the acquire in recheck_slot. */
	contd__store_release(&set->count, set->count + 1);
	request->req_complete_cb_data = op;
	/* Sequentially consistent, before the look at req_complete: see struct op. */
	contd__store_seq(&request->req_complete_cb, op_hook);
	CONTD_TESTPOINT("op_hooked");
	op_recheck(op);
}

static int native_attach(const struct contd__mpi_attach *a, MPI_Request handle, struct contd_group *group)
{
	struct contd__cr *cr = (struct contd__cr *)handle;
	struct contd__slot *s;
	struct op_set *set = NULL;
	uint32_t generation, fired = 0, done = 1; /* 1: this call's own hold */
	int pending, rc;

	rc = check(a, group, &pending);
	if (rc)
		return rc;
	if (pending == 0 && contd__may_run_inline(group))
		return run_now(a, cr);
	contd__put_off_drain();
	s = contd__slot_get(group, &rc);
	if (!s)
		return contd__mpi_class(rc);
	if (pending) {
		set = contd__alloc_refused() ? NULL : malloc(sizeof(*set) + (size_t)pending * sizeof(set->op[0]));
		if (!set) {
			contd__slot_free_sig(&group->table, s);
			return MPI_ERR_NO_MEM;
		}
	}
	s->invoke = invoke;
	s->cb.any = (void (*)(void))a->cb;
	s->data = a->data;
	s->out.dest = a->statuses;
	contd__store(&s->source, KIND_SOURCE);
	generation = contd__slot_publish_sig(s, (uint32_t)a->count + 1);
	if (set) {
		set->slot = s;
		set->generation = generation;
		set->count = 0;
		contd__store_release(&s->source, (uintptr_t)set | KIND_SOURCE);
		rc = contd__load(&contd__cr_live) > 1 || contd__cr_of(a->requests[0]) ? await_crs(a, s, &done, &fired) : 0;
		if (rc < 0) {
			pthread_mutex_lock(&cr_lock); /* whoever rechecks may be looking at the set */
			contd__store(&s->source, KIND_SOURCE);
			pthread_mutex_unlock(&cr_lock);
			contd__slot_withdraw_sig(s, generation);
			/* Withdrawing is one more. */
			contd__slot_event_done_sig(s, generation, (uint32_t)a->count + 2 - fired);
			CONTD_COUNT(registered, -1);
			free(set);
			return contd__mpi_class(rc);
		}
	}
	/* Counted first, so that what completes in between finds it counted. */
	if (pending && contd__add(&contd__ops_hooked, (uint32_t)pending) == 0)
		contd__pending_sig();
	for (int i = 0; i < a->count; i++) {
		ompi_request_t *r = a->requests[i];

		if (contd__cr_of(r)) {
			status_write(status_at(a, i), empty_status());
			if (!set)
				done++; /* complete when check looked, and nothing waits for it */
		} else if (pending && !complete_already(r)) {
			if (!r->req_persistent)
				a->requests[i] = MPI_REQUEST_NULL;
			pending--;
			hook(set, r, status_at(a, i));
		} else {
			finish_complete(&a->requests[i], status_at(a, i));
			done++;
		}
	}
	if (pending)
		contd__sub(&contd__ops_hooked, (uint32_t)pending);
	cr_activate(cr);
	if (contd__may_run_inline(group))
		contd__slot_run_inline(s, generation, done);
	else
		contd__slot_event_done_sig(s, generation, done);
	return MPI_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------------- life --- */

static uint32_t hooked_count(void)
{
	return contd__load_seq(&contd__ops_hooked);
}

static uint32_t driving; /* calls of drive that are under way */

static void drive(enum contd__where where)
{
	if (!contd__mpi_thread_may())
		return;
	contd__add(&driving, 1);
	if (!contd__load_seq(&contd__native_stopped))
		opal_progress();
	contd__sub(&driving, 1);
	if (where == WHERE_REGION || where == WHERE_THREAD)
		contd__put_off_drain();
}

static struct contd__source source = {.name = "Open MPI", .progress = drive, .pending = hooked_count};

/* The library that runs must have the layout of the headers: the same major and minor version. */
static const char *native_refuses(void)
{
	static char why[160 + MPI_MAX_LIBRARY_VERSION_STRING];
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length, major = -1, minor = -1;
	const char *at;

	PMPI_Get_library_version(version, &length);
	at = strstr(version, "Open MPI v");
	if (at)
		sscanf(at, "Open MPI v%d.%d", &major, &minor);
	if (major == OMPI_MAJOR_VERSION && minor == OMPI_MINOR_VERSION)
		return NULL;
	snprintf(why, sizeof(why), "contd-mpi was built for Open MPI %d.%d and the program runs with \"%.60s\"; build it anew",
		 OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, version);
	return why;
}

static int native_start(int thread_level)
{
	__cds_lfs_init(&put_off);
	contd__native_stopped = 0;
	source.where = WHERE_THREAD | WHERE_REGION | (thread_level == MPI_THREAD_MULTIPLE ? WHERE_DAEMON : 0u);
	if (contd__source_register(&source))
		return MPI_ERR_OTHER;
	return contd__calls_start();
}

static uint32_t native_stop(void)
{
	struct contd__cr *cr;
	uint32_t left = 0;

	contd__put_off_drain();
	contd__store_seq(&contd__native_stopped, 1);
	while (contd__load_seq(&driving))
		sched_yield();
	contd__calls_stop();
	pthread_mutex_lock(&cr_lock);
	cds_list_for_each_entry(cr, &crs, node)
		left += contd__group_outstanding_sig(cr->group);
	pthread_mutex_unlock(&cr_lock);
	contd__store_seq(&contd__ops_hooked, 0);
	return left;
}

const struct contd__mpi_backend contd__mpi_native = {
	.name = "native",
	.refuses = native_refuses,
	.start = native_start,
	.cr_create = native_cr_create,
	.cr_group = native_cr_group,
	.attach = native_attach,
	.stop = native_stop,
};
