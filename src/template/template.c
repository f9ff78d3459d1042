/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "mpi/error.h"
#include "mpi/intercept.h"
#include "mpi/life.h"
#include "mpi/source.h"
#include "mpi/state.h"
#include "mpi/templates.h"
#include "template/template.h"

#define PLACE_BITS 20u /* of a template's handle: its place in the table, from 1; the rest counts up */
#define BUCKETS_FIRST 256u
#define PUSH_FEW 64u /* that one look pushes, unless it is the last before a sleep */
/* A push that takes longer does more than look whether there is something to do: a few MPI_Test take less. */
#define PUSH_LOOK_NS 2000

/* ---------------------------------------------------------------------------------------------------- templates --- */

/* A handle is no address: one that was freed, or never was one, is found out. */
struct template
{
	uintptr_t handle;    /* 0: freed by the program */
	uint32_t references; /* the handle, and each instance */
	struct contd__gr_functions functions;
	const struct contd__gr_calls *calls;
};

static int c_start(const struct contd__gr_functions *functions, void *extra_state)
{
	return ((MPIX_Gr_start_function *)functions->start)(extra_state);
}

static int c_push(const struct contd__gr_functions *functions, void *extra_state)
{
	return ((MPIX_Gr_push_function *)functions->push)(extra_state);
}

static int c_complete(const struct contd__gr_functions *functions, void *extra_state, MPI_Status *status)
{
	return ((MPIX_Gr_complete_function *)functions->complete)(extra_state, status);
}

static int c_cancel(const struct contd__gr_functions *functions, void *extra_state, int complete)
{
	return ((MPIX_Gr_cancel_function *)functions->cancel)(extra_state, complete);
}

static const struct contd__gr_calls c_calls = {c_start, c_push, c_complete, c_cancel};

/* Of everything in this file but what callbacks do. Held for moments, and never when anything else is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct template **place;
static uint32_t places, places_used; /* beyond places_used none was ever used */
static uintptr_t made;

/* A place for one more, or false. */
static bool place_locked(uint32_t *atp)
{
	struct template **more;
	uint32_t n = places ? 2 * places : 16;

	for (uint32_t i = 0; i < places_used; i++) {
		*atp = i;
		if (!place[i])
			return true;
	}
	if (places_used == places) {
		more = n > 1u << PLACE_BITS || contd__alloc_refused() ? NULL : realloc(place, n * sizeof(*more));
		if (!more)
			return false;
		place = more;
		places = n;
	}
	*atp = places_used;
	if (*atp + 1 >= 1u << PLACE_BITS)
		return false;
	place[places_used++] = NULL;
	return true;
}

static struct template *template_locked(MPIX_Gr gr)
{
	uintptr_t handle = (uintptr_t)gr, at = (handle & ((1u << PLACE_BITS) - 1)) - 1;

	return at < places_used && place[at] && place[at]->handle == handle ? place[at] : NULL;
}

static void template_unref_locked(struct template *t)
{
	if (--t->references == 0)
		free(t);
}

/* ---------------------------------------------------------------------------------------------------- instances --- */

enum state {
	ACTIVE,
	LATE,    /* marked while start_fn or push_fn runs: to be completed when that has returned */
	MARKING, /* MPI is being told */
	MARKED
};

struct contd__instance {
	MPI_Request request; /* MPI's generalized request */
	struct template *template;
	void *extra_state;
	uint32_t references; /* MPI, and every user: begin, push, mark, a continuation */
	/* Under lock. */
	struct contd__instance *next; /* in its bucket */
	struct cds_list_head node;    /* of those that are pushed */
	enum state state;
	bool busy;      /* start_fn or push_fn runs */
	bool listed;    /* it is in that list */
	bool freed;     /* MPI_Request_free before it was marked; with the portable backend MPI has not seen that */
	bool forgotten; /* MPI has let go of it */
	/* Not under lock. */
	bool silent;       /* free_fn does not call complete_fn: there was no operation, or another call does it */
	uint32_t hooked;   /* it has a continuation: complete_fn after that */
	uint32_t finished; /* complete_fn was called */
	int error;         /* of push_fn */
	int rc;            /* of the operation: what Test and Wait report */
	MPI_Status status; /* before, and from then on after, complete_fn */
};

static CDS_LIST_HEAD(pushed);
static struct contd__instance **bucket;
static uint32_t buckets;

static uint32_t hash(MPI_Request request)
{
	uint64_t x = (uint64_t)(uintptr_t)request;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	return (uint32_t)(x ^ x >> 29) & (buckets - 1);
}

static struct contd__instance *find_locked(MPI_Request request)
{
	struct contd__instance *i = buckets ? bucket[hash(request)] : NULL;

	while (i && i->request != request)
		i = i->next;
	return i;
}

/* Twice as many buckets; without memory it goes on with those there are. */
static bool grow_locked(void)
{
	uint32_t before = buckets, n = before ? 2 * before : BUCKETS_FIRST;
	struct contd__instance **old = bucket, **more = contd__zalloc(n * sizeof(struct contd__instance *));

	if (!more)
		return before != 0;
	bucket = more;
	buckets = n;
	for (uint32_t b = 0; b < before; b++) {
		for (struct contd__instance *i = old[b], *next; i; i = next) {
			uint32_t at = hash(i->request);

			next = i->next;
			i->next = bucket[at];
			bucket[at] = i;
		}
	}
	free(old);
	return true;
}

static void enter_locked(struct contd__instance *i)
{
	uint32_t at = hash(i->request);

	i->next = bucket[at];
	bucket[at] = i;
	contd__instance_made();
}

/* False: it was not in the table. */
static bool leave_locked(struct contd__instance *i)
{
	struct contd__instance **at = buckets ? &bucket[hash(i->request)] : NULL;

	if (!at)
		return false;
	while (*at && *at != i)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = i->next;
	contd__instance_gone();
	return true;
}

static bool instances_is_one(MPI_Request request)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = find_locked(request) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

static int instances_error(MPI_Request request)
{
	struct contd__instance *i;
	int error;

	pthread_mutex_lock(&lock);
	i = find_locked(request);
	error = i ? i->error : MPI_SUCCESS;
	pthread_mutex_unlock(&lock);
	return error;
}

static void instance_unref(struct contd__instance *i)
{
	if (contd__sub(&i->references, 1) != 1)
		return;
	pthread_mutex_lock(&lock);
	template_unref_locked(i->template);
	pthread_mutex_unlock(&lock);
	free(i);
}

static struct contd__instance *instances_hook(MPI_Request request)
{
	struct contd__instance *i;

	pthread_mutex_lock(&lock);
	i = find_locked(request);
	if (i) {
		contd__add(&i->references, 1);
		contd__store_seq(&i->hooked, 1);
	}
	pthread_mutex_unlock(&lock);
	return i;
}

/* ----------------------------------------------------------------------------------------------------- its end --- */

/* complete_fn, once. Its error, or MPI_SUCCESS. */
static int finish(struct contd__instance *i, MPI_Status *status)
{
	struct contd__call *call;
	int rc;

	if (contd__xchg(&i->finished, 1))
		return MPI_SUCCESS;
	call = contd__call_outside();
	rc = i->template->calls->complete(&i->template->functions, i->extra_state, status);
	contd__call_back(call);
	return rc;
}

/* No call tests or waits for it: its errors are for MPI_COMM_SELF. */
static void finish_freed(struct contd__instance *i)
{
	int rc = finish(i, NULL);

	rc = i->error ? i->error : rc;
	if (rc && contd__load_seq(&contd__mpi_open))
		contd__mpi_error(rc);
}

static void instance_finish(struct contd__instance *i)
{
	MPI_Status status = i->status;
	int rc = finish(i, &status);

	if (rc)
		contd__mpi_error(rc);
}

static int instance_error(const struct contd__instance *i)
{
	return i->error;
}

/*
 * MPI's query function: in Test and Wait, which complete; in MPI_Request_get_status, which does not; and where a
 * continuation's operation completes. All that completes one without continuation is in contd__calls.
 */
static int on_query(void *extra, MPI_Status *status)
{
	struct contd__instance *i = extra;

	if (contd__load_acquire(&i->hooked)) {
		i->rc = i->error;
	} else if (contd__call && !contd__load(&i->finished)) {
		int rc = finish(i, &i->status);

		i->rc = i->error ? i->error : rc;
		i->status.MPI_ERROR = MPI_SUCCESS;
	}
	*status = i->status;
	status->MPI_ERROR = i->rc;
	return i->rc; /* of which MPICH (4.0) makes MPI_ERR_OTHER in calls for arrays; it does not look at MPI_ERROR */
}

/* MPI's free function: the handle is no more. */
static int on_free(void *extra)
{
	struct contd__instance *i = extra;

	pthread_mutex_lock(&lock);
	leave_locked(i);
	i->forgotten = true;
	pthread_mutex_unlock(&lock);
	if (!i->silent && !contd__load_acquire(&i->hooked) && !contd__load(&i->finished))
		finish_freed(i);
	instance_unref(i);
	return MPI_SUCCESS;
}

static int on_cancel(void *extra, int complete)
{
	struct contd__instance *i = extra;
	struct contd__call *call;
	int rc;

	(void)complete;
	if (!i->template->functions.cancel)
		return MPI_SUCCESS;
	pthread_mutex_lock(&lock);
	complete = i->state != ACTIVE;
	pthread_mutex_unlock(&lock);
	call = contd__call_outside();
	rc = i->template->calls->cancel(&i->template->functions, i->extra_state, complete);
	contd__call_back(call);
	return rc;
}

/* Freed by the program, and marked: now MPI hears of it. */
static int free_marked(struct contd__instance *i)
{
	MPI_Request handle = i->request;
	int rc;

	i->silent = true; /* MPICH (4.0) calls free_fn with its locks held */
	contd__add(&i->references, 1);
	rc = contd__next_pmpi.Request_free(&handle);
	finish_freed(i);
	instance_unref(i);
	return rc;
}

static bool instance_free(MPI_Request *request, int *rcp)
{
	struct contd__instance *i;
	bool marked;

	pthread_mutex_lock(&lock);
	i = find_locked(*request);
	marked = i && i->state == MARKED;
	if (i && !marked)
		i->freed = true; /* MPICH (4.0) calls free_fn at once: the thread that marks it frees it */
	pthread_mutex_unlock(&lock);
	if (!i)
		return false;
	*request = MPI_REQUEST_NULL;
	*rcp = marked ? free_marked(i) : MPI_SUCCESS;
	return true;
}

/* ----------------------------------------------------------------------------------------- marking, and pushing --- */

/* It is over. True: the caller tells MPI, without the lock. */
static bool mark_locked(struct contd__instance *i)
{
	if (i->state == ACTIVE)
		contd__instance_waits_no_more();
	if (i->listed) {
		cds_list_del(&i->node);
		i->listed = false;
		contd__instance_not_to_push();
	}
	i->state = i->busy ? LATE : MARKING;
	return !i->busy;
}

static int tell_mpi(struct contd__instance *i)
{
	bool freed;
	int rc = contd__next_pmpi.Grequest_complete(i->request);

	pthread_mutex_lock(&lock);
	i->state = MARKED;
	freed = i->freed;
	pthread_mutex_unlock(&lock);
	if (freed)
		free_marked(i);
	return rc;
}

/* start_fn or push_fn has returned. True: the caller tells MPI, without the lock. */
static bool idle_locked(struct contd__instance *i, int rc)
{
	i->busy = false;
	if (rc && (i->state == ACTIVE || i->state == LATE))
		i->error = rc;
	return (rc || i->state == LATE) && i->state <= LATE && mark_locked(i);
}

/* The one that has waited longest, of those that are not being pushed; NULL: looked at `left` of them. */
static struct contd__instance *next_locked(uint32_t *left)
{
	while (*left && !cds_list_empty(&pushed)) {
		struct contd__instance *i = cds_list_first_entry(&pushed, struct contd__instance, node);

		--*left;
		cds_list_del(&i->node);
		cds_list_add_tail(&i->node, &pushed);
		if (!i->busy)
			return i;
	}
	return NULL;
}

/* push_fn took so long, in clock ticks. */
static void worked(uint64_t ticks)
{
	uint64_t look = (uint64_t)(PUSH_LOOK_NS * contd__clock.ticks_per_ns);

	contd__worked_sig(ticks > look ? ticks - look : 0);
}

static void instances_push(bool all)
{
	struct contd__instance *i;
	struct contd__call *call;
	uint32_t left;

	if (contd__pushing || !contd__load_seq(&contd__mpi_open))
		return;
	contd__pushing_begin();
	call = contd__call_outside();
	pthread_mutex_lock(&lock);
	left = contd__load(&contd__instances_pushed);
	left = all || left < PUSH_FEW ? left : PUSH_FEW;
	while ((i = next_locked(&left)) != NULL) {
		uint64_t ticks;
		bool tell;
		int rc;

		i->busy = true;
		contd__add(&i->references, 1);
		pthread_mutex_unlock(&lock);
		ticks = contd__ticks();
		rc = i->template->calls->push(&i->template->functions, i->extra_state);
		worked(contd__ticks() - ticks);
		CONTD_TESTPOINT("push_returned");
		pthread_mutex_lock(&lock);
		tell = idle_locked(i, rc);
		pthread_mutex_unlock(&lock);
		if (tell)
			tell_mpi(i);
		instance_unref(i);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	contd__call_back(call);
	contd__pushing_end();
}

static void drive(bool last)
{
	if (!contd__mpi_thread_may_sig() || !contd__mpi_enter())
		return;
	instances_push(last);
	contd__mpi_leave();
}

static uint32_t pending(void)
{
	return contd__load_seq(&contd__mpi_open) ? contd__load_seq(&contd__instances_pushed) : 0;
}

static struct contd__source source = {.name = "MPI generalized requests",
				      .progress = drive,
				      .pending = pending,
				      .here = contd__mpi_thread_may_sig,
				      .steady = true};

static const struct contd__instance_ops ops = {
	.push = instances_push,
	.is_one = instances_is_one,
	.error_of = instances_error,
	.hook = instances_hook,
	.finish = instance_finish,
	.error = instance_error,
	.unref = instance_unref,
	.free = instance_free,
};

static int source_register(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t registered;
	int rc = MPI_SUCCESS;

	/* Acquire: pairs with the release below. */
	if (contd__load_acquire(&registered))
		return MPI_SUCCESS;
	pthread_mutex_lock(&once);
	if (!registered) {
		contd__instances_start(&ops);
		source.where = contd__mpi_source.where;
		rc = contd__source_register(&source) ? MPI_ERR_OTHER : MPI_SUCCESS;
		contd__store_release(&registered, !rc);
	}
	pthread_mutex_unlock(&once);
	return rc;
}

/* -------------------------------------------------------------------------------------------------------- calls --- */

#define NO_TEMPLATE(gr) gr " is no template; make it with MPIX_Gr_init"

/* contd is there; or else the error, which has been told. */
static inline int begun(const char *call)
{
	int rc = MPI_SUCCESS;

	if (__builtin_expect(!contd__load_acquire(&contd__mpi_open), 0))
		contd__mpi_start(call, &rc);
	return rc;
}

static int init(const struct contd__gr_functions *functions, const struct contd__gr_calls *calls, MPIX_Gr *gr)
{
	struct template *t = contd__zalloc(sizeof(*t));
	uint32_t at;
	int rc = t ? source_register() : contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);

	if (rc) {
		free(t);
		return rc;
	}
	*t = (struct template){.functions = *functions, .calls = calls, .references = 1};
	pthread_mutex_lock(&lock);
	if (place_locked(&at)) {
		t->handle = ++made << PLACE_BITS | (at + 1);
		place[at] = t;
		*gr = (MPIX_Gr)t->handle;
	} else {
		rc = contd__fail(MPI_ERR_NO_MEM,
				 "out of memory, or too many templates exist; free some with MPIX_Gr_free");
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		free(t);
	return rc;
}

int contd__binding_gr_init(const struct contd__gr_functions *functions, const struct contd__gr_calls *calls,
			   MPIX_Gr *gr)
{
	static const char call[] = "MPIX_Gr_init";
	int rc = begun(call);

	if (rc)
		return rc;
	if (!functions->start || !functions->complete || !gr)
		return contd__mpi_refuse(call, MPI_ERR_ARG,
					 !functions->start      ? "start_fn must not be NULL"
					 : !functions->complete ? "complete_fn must not be NULL"
								: "gr must not be NULL");
	rc = init(functions, calls, gr);
	return rc ? contd__mpi_refused(call, rc) : MPI_SUCCESS;
}

CONTD_API int PMPIX_Gr_init(MPIX_Gr_start_function *start_fn, MPIX_Gr_push_function *push_fn,
			    MPIX_Gr_complete_function *complete_fn, MPIX_Gr_cancel_function *cancel_fn, MPIX_Gr *gr)
{
	const struct contd__gr_functions functions = {(void (*)(void))start_fn, (void (*)(void))push_fn,
						      (void (*)(void))complete_fn, (void (*)(void))cancel_fn};

	return contd__binding_gr_init(&functions, &c_calls, gr);
}

int MPIX_Gr_init(MPIX_Gr_start_function *start_fn, MPIX_Gr_push_function *push_fn,
		 MPIX_Gr_complete_function *complete_fn, MPIX_Gr_cancel_function *cancel_fn, MPIX_Gr *gr)
	CONTD_WEAK_FOR(PMPIX_Gr_init);

/* An instance that MPI and the table know, busy. MPI error class or code, which has been told, by MPI or here. */
static int make(struct template *t, void *extra_state, struct contd__instance **ip)
{
	struct contd__instance *i = contd__zalloc(sizeof(*i));
	int rc;
	bool room;

	if (!i)
		return contd__mpi_refuse("MPIX_Gr_begin", MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	i->template = t;
	i->extra_state = extra_state;
	i->references = 2; /* MPI, and the caller */
	i->busy = true;
	i->status = contd__status_empty;
	i->status.MPI_SOURCE = MPI_UNDEFINED; /* with the empty status it would look inactive (portable.c) */
	i->status.MPI_TAG = MPI_UNDEFINED;
	rc = contd__next_pmpi.Grequest_start(on_query, on_free, on_cancel, i, &i->request);
	if (rc) {
		free(i);
		return rc;
	}
	pthread_mutex_lock(&lock);
	t->references++;
	room = contd__load(&contd__instances) < buckets || grow_locked();
	if (room)
		enter_locked(i);
	pthread_mutex_unlock(&lock);
	*ip = i;
	return room ? MPI_SUCCESS : contd__mpi_refuse("MPIX_Gr_begin", MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
}

/*
 * There is no operation after all, and no complete_fn. A continuation that start_fn has attached runs now, with that
 * error, and frees the request; or start_fn has freed it, and then MPI forgets it when it is complete.
 */
static void unmake(struct contd__instance *i, int error)
{
	MPI_Request handle = i->request;

	i->silent = true;
	i->error = error;
	contd__store(&i->finished, 1);
	contd__next_pmpi.Grequest_complete(handle);
	if (!contd__load(&i->hooked) && !i->forgotten)
		contd__next_pmpi.Request_free(&handle);
}

static int begin(struct template *t, void *extra_state, MPI_Request *req, void (*there)(MPI_Request request, void *arg),
		 void *arg)
{
	struct contd__instance *i = NULL;
	MPI_Request before = *req;
	bool tell;
	int rc = make(t, extra_state, &i);

	if (rc == MPI_SUCCESS) {
		*req = i->request;
		if (there)
			there(i->request, arg);
		rc = t->calls->start(&t->functions, extra_state);
		rc = rc ? contd__mpi_refuse("MPIX_Gr_begin", rc, "start_fn of gr has returned this error")
			: MPI_SUCCESS;
	}
	if (rc && !i)
		return rc;
	pthread_mutex_lock(&lock);
	if (rc) {
		if (leave_locked(i) && i->state == ACTIVE)
			contd__instance_waits_no_more();
		pthread_mutex_unlock(&lock);
		unmake(i, rc);
		*req = before;
		instance_unref(i);
		return rc;
	}
	tell = idle_locked(i, MPI_SUCCESS);
	if (i->state == ACTIVE && t->functions.push) {
		cds_list_add_tail(&i->node, &pushed);
		i->listed = true;
		contd__instance_to_push();
	}
	pthread_mutex_unlock(&lock);
	if (tell)
		tell_mpi(i);
	else if (t->functions.push)
		contd__pending_sig();
	instance_unref(i);
	return MPI_SUCCESS;
}

int contd__binding_gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req,
			    void (*there)(MPI_Request request, void *arg), void *arg)
{
	static const char call[] = "MPIX_Gr_begin";
	struct template *t;
	int rc = begun(call);

	if (rc)
		return rc;
	if (!req)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "req must not be NULL");
	pthread_mutex_lock(&lock);
	t = template_locked(gr);
	if (t)
		t->references++; /* this call's */
	pthread_mutex_unlock(&lock);
	if (!t)
		return contd__mpi_refuse(call, MPI_ERR_ARG, NO_TEMPLATE("gr"));
	rc = begin(t, extra_state, req, there, arg);
	pthread_mutex_lock(&lock);
	template_unref_locked(t);
	pthread_mutex_unlock(&lock);
	return rc;
}

CONTD_API int PMPIX_Gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req)
{
	return contd__binding_gr_begin(gr, extra_state, req, NULL, NULL);
}

int MPIX_Gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req) CONTD_WEAK_FOR(PMPIX_Gr_begin);

CONTD_API int PMPIX_Mark_request_complete(MPI_Request req)
{
	static const char call[] = "MPIX_Mark_request_complete";
	struct contd__instance *i;
	bool tell = false;
	int rc = begun(call);

	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	i = find_locked(req);
	if (i && i->state == ACTIVE) {
		contd__add(&i->references, 1);
		tell = mark_locked(i);
	} else {
		i = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!i)
		return contd__mpi_refuse(call, MPI_ERR_REQUEST,
					 "req is no request of MPIX_Gr_begin, or is complete already");
	rc = tell ? tell_mpi(i) : MPI_SUCCESS;
	instance_unref(i);
	return rc;
}

int MPIX_Mark_request_complete(MPI_Request req) CONTD_WEAK_FOR(PMPIX_Mark_request_complete);

CONTD_API int PMPIX_Gr_free(MPIX_Gr *gr)
{
	static const char call[] = "MPIX_Gr_free";
	struct template *t = NULL;
	int rc = begun(call);

	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	if (gr && (t = template_locked(*gr)) != NULL) {
		place[(t->handle & ((1u << PLACE_BITS) - 1)) - 1] = NULL;
		t->handle = 0;
		template_unref_locked(t);
		*gr = MPIX_GR_NULL;
	}
	pthread_mutex_unlock(&lock);
	return t ? MPI_SUCCESS : contd__mpi_refuse(call, MPI_ERR_ARG, gr ? NO_TEMPLATE("*gr") : "gr must not be NULL");
}

int MPIX_Gr_free(MPIX_Gr *gr) CONTD_WEAK_FOR(PMPIX_Gr_free);

CONTD_API int PMPIX_Cancel(MPI_Request *request)
{
	static const char call[] = "MPIX_Cancel";
	int rc = begun(call);

	if (rc)
		return rc;
	if (!request)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "request must not be NULL");
	return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Cancel(request);
}

int MPIX_Cancel(MPI_Request *request) CONTD_WEAK_FOR(PMPIX_Cancel);
