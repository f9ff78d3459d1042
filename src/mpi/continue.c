/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching a continuation, the same for both backends and both interfaces. */
#include <errno.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/chain.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/run.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/continue.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/op_set.h"
#include "mpi/settings.h"
#include "rcu/table.h"

static const char *const null_requests[] = {
	"op_request must not be NULL", "array_of_op_requests must not be NULL unless count is 0",
	"request must not be NULL", "op->requests must not be NULL unless op->count is 0"};
static const char *const null_statuses[] = {
	"status must not be NULL; MPI_STATUS_IGNORE says that none is wanted",
	"array_of_statuses must not be NULL unless count is 0; MPI_STATUSES_IGNORE says that none are wanted",
	"status must not be NULL; MPI_STATUS_IGNORE says that none is wanted",
	"op->statuses must not be NULL unless op->count is 0; MPI_STATUSES_IGNORE says that none are wanted"};

int contd__attach_wrong(const struct contd__mpi_attach *a)
{
	if (a->count < 0 || (uint32_t)a->count > SLOT_REMAINING_MAX - 8) /* holds of our own */
		return contd__fail(MPI_ERR_COUNT, a->names == NAMES_OP ? "op->count must be from 0 to 8388599"
								       : "count must be from 0 to 8388599");
	if (!a->cb)
		return contd__fail(MPI_ERR_ARG, "cb must not be NULL");
	if (a->count && !a->requests)
		return contd__fail(MPI_ERR_ARG, null_requests[a->names]);
	if (a->count && !a->statuses && !a->ignore)
		return contd__fail(MPI_ERR_ARG, null_statuses[a->names]);
	return MPI_SUCCESS;
}

/*
 * All are complete, and the continuation may run here: no slot is needed. It counts as outstanding: other threads may
 * ask whether the CR is complete, and an error handler or the callback may free it, or have another continuation wait
 * for it. It need not be counted if that can be done later (contd__cr_uncounted). False: another thread has reported a
 * revised CR complete meanwhile, so the continuation waits for the next MPI_Start.
 */
static bool count_now(struct contd__cr *cr, struct contd_group *group)
{
	if (!cr)
		return true;
	if (contd__cr_alone && !contd__load(&cr->asked_about) && LIFE_OUTSTANDING(contd__load(&group->life)) == 0) {
		if (cr->revised && __builtin_expect(contd__load(&cr->state) != CR_ACTIVE, 0))
			return false;
		contd__cr_uncounted_begin(cr);
		return true;
	}
	CONTD_TESTPOINT("now_uncounted");
	contd__add(&group->life, 1);
	/* Counted, then looked: see CR_ACTIVE. */
	if (__builtin_expect(contd__cr_holds(cr), 0)) {
		contd__group_count_down_own_sig(group, 1);
		return false;
	}
	return true;
}

struct now {
	const struct contd__mpi_attach *a;
	struct contd__cr *cr; /* or NULL */
	struct contd_group *group;
	int rc; /* of a callback of the revised interface */
};

static inline uint32_t call_now(void *what)
{
	struct now *now = what;
	const struct contd__mpi_attach *a = now->a;

	if (a->revised)
		now->rc = ((MPIX_Continue_cb_function *)a->cb)(MPI_SUCCESS, a->data);
	else
		((MPI_Continue_cb_function *)a->cb)(a->statuses, a->data);
	return 1;
}

static inline void over_now(void *what)
{
	const struct now *now = what;
	struct contd__cr *cr = now->cr;

	if (!cr)
		return;
	if (__builtin_expect(now->rc != MPI_SUCCESS, 0))
		contd__set_spare_fail(cr, now->rc, now->a->failed_data);
	if (!contd__cr_uncounted_over())
		contd__cr_count_off(cr, now->group);
}

/* After count_now(). */
static inline void run_now(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group)
{
	struct contd__at_work telling;
	struct now now = {a, cr, group, MPI_SUCCESS};

	/* Before finish(), which may call an error handler or a query_fn: these may ask about the CR. */
	if (cr)
		contd__cr_registered(cr);
	if (a->revised) {
		contd__mpi->finish(a); /* none has failed (at_once): no error handler is called */
	} else {
		contd__telling_begin(&telling, cr ? group : NULL);
		contd__mpi->finish(a);
		contd__telling_end(&telling);
	}
	if (a->taken)
		a->taken(a->data);
	CONTD_COUNT(registered, 1);
	contd__call_at_once(group, (const void *)(uintptr_t)a->cb, call_now, over_now, &now);
}

/*
 * CRs among the requests come first, since they can fail. 0: *donep goes up by those that were complete. An error: the
 * slot does not wait for the others any more, and *firedp is how many have completed, and been counted, meanwhile.
 */
static int await_crs(const struct contd__mpi_attach *a, struct contd__slot *s, uint32_t *donep, uint32_t *firedp)
{
	uint32_t waiting = 0;

	for (int i = 0; i < a->count; i++) {
		struct contd__cr *cr = contd__mpi->cr_of(a->requests[i]);
		int rc = cr ? contd__group_await(cr->group, s) : 1;

		if (rc >= 0) {
			*donep += cr ? (uint32_t)rc : 0;
			waiting += rc == 0;
			continue;
		}
		while (i-- > 0)
			if ((cr = contd__mpi->cr_of(a->requests[i])) != NULL)
				waiting -= contd__group_await_end(cr->group, s);
		*firedp = waiting;
		return rc;
	}
	return 0;
}

/* CRs that the continuation waits for count at the slot themselves. */
static uint32_t awaited_crs(const struct contd__look *look)
{
	return look->crs_pending ? (uint32_t)look->crs : 0;
}

static void set_begin(struct contd__set *set, const struct contd__mpi_attach *a, struct contd__cr *cr,
		      const struct contd__look *look, struct contd__slot *s, uint32_t generation)
{
	set->slot = s;
	set->generation = generation;
	for (int i = 0; i < look->crs; i++)
		contd__set_await(set);
	set->group = s->group;
	if (!a->revised)
		return;
	set->revised = true;
	set->cr = cr;
	set->flags = a->flags;
	set->whole = a->whole;
	set->discard = a->discard;
	set->failure = (struct contd__failure){.data = a->failed_data, .set = set};
	if (!set->results)
		return;
	/* The requests, attaching, and the continuation's reference. */
	set->life = (uint64_t)((uint32_t)a->count - awaited_crs(look) + 1) * SET_WAIT + SET_REFERENCE;
	contd__group_pin_sig(s->group);
}

/* May it run inside the call that attaches it? */
static inline bool may_run_here(const struct contd__mpi_attach *a, const struct contd__cr *cr,
				const struct contd_group *group)
{
	return contd__may_run_inline(group) && !(a->flags & MPIX_CONT_DEFER_COMPLETE) &&
	       !(cr && contd__cr_inactive(cr));
}

static int failed(const struct contd__look *look, int class)
{
	if (contd__mpi->unlook)
		contd__mpi->unlook(look);
	return class;
}

/* Something was registered with it. */
static void cr_registered(struct contd__cr *cr)
{
	contd__cr_registered(cr);
	if (contd__mpi->cr_changed)
		contd__mpi->cr_changed(cr);
}

/*
 * The operation is steady: its set carries the continuation, which becomes ready outside this call, and takes a slot
 * only if others than the wait for it look. True: *rcp is how it went. False: it needs a slot.
 */
static bool attach_carried(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group, int *rcp)
{
	uint32_t outstanding = LIFE_OUTSTANDING(contd__load(&group->life)) + 1;
	struct contd__set *set;
	int rc;

	/* What is held is linked by its slots. */
	if (!contd__may_be_unmarked_sig(group) || (cr && contd__cr_holds(cr)))
		return false;
	*rcp = MPI_SUCCESS;
	if (__builtin_expect(outstanding + TABLE_RESERVE > contd__load(&group->table.limit) || !contd__self.registered,
			     0) &&
	    (rc = contd__carried_room(group, outstanding)) != 0) {
		*rcp = contd__mpi_class(rc);
		return true;
	}
	set = contd__set_new(1, 0, false);
	if (__builtin_expect(!set, 0)) {
		*rcp = contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
		return true;
	}
	contd__add(&group->life, 1);
	/* Counted, then looked: see CR_ACTIVE. */
	if (__builtin_expect(cr && contd__cr_holds(cr), 0)) {
		contd__group_count_down_own_sig(group, 1);
		contd__set_drop(set);
		return false;
	}
	set->slot = NULL;
	set->group = group;
	set->own.slot = NULL;
	set->own.as.group = group;
	set->own.as.invoke = a->revised ? contd__invoke_revised : contd__invoke_draft;
	set->own.as.cb.any = a->cb;
	set->own.as.data = a->data;
	set->own.as.out.dest = a->statuses;
	set->own.as.source = (uintptr_t)set | KIND_SOURCE;
	contd__store(&set->own.as.link, contd__registered_now());
	if (a->revised) {
		set->revised = true;
		set->cr = cr;
		set->flags = a->flags;
		set->whole = a->whole;
		set->discard = a->discard;
		set->failure.data = a->failed_data;
		set->failure.set = set;
	}
	CONTD_COUNT(registered, 1);
	contd__mpi->hook_steady(a, set);
	if (cr)
		cr_registered(cr);
	return true;
}

static int attach(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group)
{
	uint32_t generation, events, looked, fired = 0, done = 1; /* 1: this call's own hold */
	bool startable = cr && cr->revised, by_set;
	struct contd__at_work telling;
	struct contd__look look;
	struct contd__slot *s;
	struct contd__set *set = NULL;
	int rc;

	/* Work that was put off may call functions of the program's, and these may call MPI. */
	if (!a->taken && !contd__put_off_any() && contd__mpi->steady && contd__mpi->steady(a) &&
	    attach_carried(a, cr, group, &rc))
		return rc;
	rc = contd__mpi->look(a, group, &look);
	if (rc)
		return rc;
	contd__put_off_drain();
	s = contd__slot_get_sig(group, &rc);
	if (!s)
		return failed(&look, contd__mpi_class(rc));
	by_set = a->revised && (a->count > 1 || look.crs); /* the slot waits for an event of the set */
	if (look.pending || look.crs || a->revised) {
		set = contd__set_new((uint32_t)look.pending, (uint32_t)look.crs, by_set);
		if (!set) {
			contd__slot_free_sig(&group->table, s);
			return failed(&look, contd__fail(MPI_ERR_NO_MEM, CONTD_NO_MEMORY));
		}
	}
	s->invoke = a->revised ? contd__invoke_revised : contd__invoke_draft;
	s->cb.any = a->cb;
	s->data = a->data;
	s->out.dest = a->statuses;
	contd__store(&s->source, KIND_SOURCE);
	CONTD_TESTPOINT("attach_before_publish");
	events = (by_set ? awaited_crs(&look) + 1 : (uint32_t)a->count) + 1 + startable;
	generation = contd__slot_publish_sig(s, events);
	if (look.crs)
		contd__set_rounds(set, a->count, a->requests);
	if (look.crs && look.crs_pending && (rc = await_crs(a, s, &done, &fired)) < 0) {
		contd__slot_withdraw_sig(s, generation);
		/* Withdrawing is one more. */
		contd__slot_event_done_sig(s, generation, events + 1 - fired);
		CONTD_COUNT(registered, -1);
		free(set);
		contd__fail(rc, rc == -ELOOP
					? CONTD_OF_REQUESTS(a, "a continuation request would wait for itself; register "
							       "the continuation with another one")
					: CONTD_OF_REQUESTS(a, "a continuation request has a continuation already; it "
							       "may have one at a time"));
		return failed(&look, contd__mpi_class(rc));
	}
	if (set) {
		set_begin(set, a, cr, &look, s, generation);
		/* Release: pairs with the acquire in contd__set_of. */
		contd__store_release(&s->source, (uintptr_t)set | KIND_SOURCE);
	}
	contd__telling_begin(&telling, group);
	looked = contd__mpi->hook(a, &look, set, look.crs_pending == 0);
	contd__telling_end(&telling);
	if (a->taken)
		a->taken(a->data); /* this call's own hold keeps the continuation from running */
	done += by_set ? contd__set_attached_sig(set, looked) : looked;
	if (startable && contd__cr_hold(cr, s))
		done++;
	if (cr)
		cr_registered(cr);
	contd__slot_registered(s, generation, done, may_run_here(a, cr, group));
	return MPI_SUCCESS;
}

/* Not inlined: what runs at once has a short way. */
__attribute__((noinline)) static int attach_deferring(const struct contd__mpi_attach *a, struct contd__cr *cr,
						      struct contd_group *group)
{
	uint32_t later = a->flags & MPIX_CONT_DEFER_COMPLETE ? CONTD_ENQUEUE_COMPLETE : 0;
	bool deferring = contd__defer_begin_sig(group->flags | later);
	int rc = attach(a, cr, group);

	contd__defer_end_sig(deferring);
	return rc;
}

int contd__attach(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group)
{
	contd__low_latency_here(group);
	contd__cr_uncounted_ends();
	/* A continuation that may run here is not deferred. */
	if (may_run_here(a, cr, group) && (!a->revised || !cr || contd__set_spare_ready()) && contd__mpi->at_once &&
	    contd__mpi->at_once(a) && count_now(cr, group)) {
		run_now(a, cr, group);
		return MPI_SUCCESS;
	}
	return attach_deferring(a, cr, group);
}
