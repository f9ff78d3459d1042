/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/grequest.h"
#include "mpi/op_set.h"
#include "mpi/process_model.h"
#include "mpi/state.h"
#include "mpi/templates.h"
#include "rcu/table.h"

struct __cds_lfs_stack contd__sets_put_off; /* to be released by a thread; pushed anywhere */
struct __cds_lfs_stack contd__sets_left;
uint32_t contd__sets_left_over, contd__sets_owing;

/*
 * A set with room for one operation that this thread has released, and uses again. A thread keeps one only while it has
 * a spare set: the destructor of that frees both (spare_free). Handlers outside regions, which may interrupt this,
 * neither make nor release sets.
 */
static __thread struct contd__set *kept __attribute__((tls_model("initial-exec")));

#ifdef __SANITIZE_ADDRESS__
#define KEEPS false /* it shall see the use of a set that has been released */
#else
#define KEEPS true
#endif

/* It has room for one operation, and for no CR and no results. */
static bool is_small(uint32_t operations, uint32_t crs, bool results)
{
	return operations <= 1 && crs == 0 && !results;
}

static struct contd__set *take_kept(void)
{
	struct contd__set *set = kept;

	kept = NULL;
	return set;
}

/* Its memory, which nothing refers to any more. */
static void put_away(struct contd__set *set)
{
	if (KEEPS && set->small && contd__set_spare && !kept)
		kept = set;
	else
		free(set);
}

struct contd__set *contd__set_new(uint32_t operations, uint32_t crs, bool results)
{
	bool small = is_small(operations, crs, results);
	size_t ops = sizeof(struct contd__set) + (small ? 1 : operations) * sizeof(struct contd__op);
	size_t bytes = ops + crs * sizeof(struct contd__awaited);
	size_t more = results ? (operations ? operations : 1) * sizeof(MPI_Status) : 0;
	struct contd__set *set = NULL;

	if (!contd__alloc_refused())
		set = small && kept ? take_kept() : malloc(bytes + more);
	if (!set)
		return NULL;
	set->small = small;
	set->count = 0;
	set->crs = 0;
	set->awaited = (struct contd__awaited *)(void *)((char *)set + ops);
	set->rc = MPI_SUCCESS;
	set->revised = false;
	set->instances = false;
	set->left = 0;
	set->owing = NULL;
	set->results = results ? (MPI_Status *)(void *)((char *)set + bytes) : NULL;
	return set;
}

void contd__set_drop(struct contd__set *set)
{
	put_away(set);
}

/* --------------------------------------------------------------------------------------------------- spare sets --- */

__thread struct contd__set *contd__set_spare __attribute__((tls_model("initial-exec")));
static pthread_key_t spare_key; /* frees the spare set of a thread that ends */
static bool spare_works;

/* Destructors of other keys may still call MPIX_Continue: then there is a new one, and this runs again. */
static void spare_free(void *set)
{
	contd__set_spare = NULL;
	free(set);
	free(take_kept());
}

bool contd__set_spare_make(void)
{
	struct contd__set *set = spare_works ? contd__set_new(0, 0, true) : NULL;

	if (!set || pthread_setspecific(spare_key, set)) {
		free(set);
		return false;
	}
	contd__set_spare = set;
	return true;
}

void contd__set_spare_fail(struct contd__cr *cr, int class, void *failed_data)
{
	struct contd__set *set = contd__set_spare;

	contd__set_spare = NULL;
	free(take_kept());
	pthread_setspecific(spare_key, NULL); /* takes memory only where a value is set for the first time */
	set->group = cr->group;
	set->life = SET_REFERENCE;
	set->rc = class;
	set->failure = (struct contd__failure){.data = failed_data, .set = set, .class = class};
	contd__group_pin_sig(set->group);
	contd__cr_fail_sig(cr, &set->failure, false);
}

/* ---------------------------------------------------------------------------------------------------- releasing --- */

void contd__put_off_start(void)
{
	__cds_lfs_init(&contd__sets_put_off);
	__cds_lfs_init(&contd__sets_left);
	if (!spare_works)
		spare_works = pthread_key_create(&spare_key, spare_free) == 0;
}

static void set_put_off(struct contd__set *set)
{
	cds_lfs_push((cds_lfs_stack_ptr_t){._s = &contd__sets_put_off}, &set->node);
}

/* Operations of templates, after the callback; of the revised interface those that have completed. */
static void instances_finish(struct contd__set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct contd__op *op = &set->op[i];

		/* Acquire: of a failed continuation others may just be finishing. */
		if (op->instance && (!set->results || contd__load_acquire(&op->state) == OP_DONE))
			contd__instance_finish(op->instance);
	}
}

void contd__set_rounds(struct contd__set *set, int count, const MPI_Request requests[])
{
	struct contd__awaited *a = set->awaited;

	for (int i = 0; i < count; i++) {
		struct contd__cr *cr = contd__mpi->cr_of(requests[i]);

		if (!cr)
			continue;
		a->cr = cr;
		a->ends = contd__cr_round(cr, &a->round);
		a++;
	}
}

void contd__set_await(struct contd__set *set)
{
	struct contd__cr *cr = set->awaited[set->crs++].cr;

	contd__group_pin_sig(cr->group); /* the program may free it */
	contd__store(&cr->asked_about, true);
}

/*
 * The CRs that the continuation waited for are reported, as if they were tested: inactive, unless something was
 * registered meanwhile. Not inlined, for scripts/check-call-graph.
 */
__attribute__((noinline)) static void report_crs(struct contd__set *set)
{
	while (set->crs) {
		struct contd__awaited *a = &set->awaited[--set->crs];
		struct contd_group *group = a->cr->group;

		if (a->ends)
			contd__cr_awaited(a->cr, a->round);
		contd__group_unpin_sig(group);
	}
}

__attribute__((noinline)) bool contd__mpi_is_gone(void)
{
	return contd__mpi_over() && !contd__model_is_open();
}

/* Give back to MPI, and to templates, what is theirs. Not inlined, for scripts/check-call-graph. */
__attribute__((noinline)) static void give_back(struct contd__set *set)
{
	if (contd__mpi_is_gone())
		return;
	if (__builtin_expect(set->instances, 0))
		instances_finish(set);
	contd__mpi->ops_release(set);
	for (uint32_t i = 0; set->instances && i < set->count; i++)
		if (set->op[i].instance)
			contd__instance_unref(set->op[i].instance);
	contd__store_release(&set->count, 0);
}

/*
 * Its callback has returned where MPI may not be called. If complete_fn or free_fn come after it, the CR is not
 * complete until they have been called: what they use may be gone then. The continuation itself still keeps the group.
 * One that has failed is reported without.
 */
static void owe_sig(struct contd__set *set, struct contd_group *group)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->op[i].instance || set->op[i].backend) {
			set->owing = group;
			contd__add(&group->life, 1);
			contd__add(&contd__sets_owing, 1);
			contd__pending_sig();
			return;
		}
}

static void release(struct contd__set *set)
{
	struct contd_group *owing = set->owing;

	CONTD_TESTPOINT("set_release");
	report_crs(set);
	give_back(set);
	if (owing) {
		contd__sub(&contd__sets_owing, 1);
		contd__group_count_down_own_sig(owing, 1);
	}
	put_away(set);
}

void contd__put_off_drain(void)
{
	struct cds_lfs_head *head;

	contd__general_drain();
	if (!contd__load(&contd__sets_put_off.head))
		return;
	head = __cds_lfs_pop_all((cds_lfs_stack_ptr_t){._s = &contd__sets_put_off});
	for (struct cds_lfs_node *node = head ? &head->node : NULL, *next; node; node = next) {
		next = node->next;
		release(caa_container_of(node, struct contd__set, node));
	}
}

/* May MPI be called here? Not in a handler, nor where a thread that only polls contd, or the daemon, must keep out. */
static bool may_call_mpi(void)
{
	return !contd__in_handler() && contd__mpi_thread_may_sig();
}

/*
 * References, and with them what it waited for: *beforep is what `life` was. true: these were the last references, and
 * the caller releases the set, or puts it off. false: another thread does.
 */
static bool less_sig(struct contd__set *set, uint64_t n, uint64_t *beforep)
{
	struct contd_group *group = set->group;
	bool left = contd__load(&set->left);
	uint64_t before = *beforep = contd__sub(&set->life, n);

	if ((uint32_t)before == (uint32_t)n) {
		contd__group_unpin_sig(group);
		return true;
	}
	if (__builtin_expect(left && (uint32_t)before - (uint32_t)n == 1, 0))
		contd__store_seq(&contd__sets_left_over, 1); /* only that of contd__sets_left is left, maybe */
	return false;
}

void contd__set_unref_sig(struct contd__set *set)
{
	uint64_t before;

	if (less_sig(set, SET_REFERENCE, &before))
		set_put_off(set); /* MPI may hold locks here */
}

/* --------------------------------------------------------------------------------------------------- completion --- */

void contd__set_failed_sig(struct contd__set *set, int class)
{
	int success = MPI_SUCCESS;

	contd__cas(&set->rc, &success, class);
}

/* Nothing else is waited for. true: the caller counts its event. The set waits for what the caller is at. */
static bool end_sig(struct contd__set *set)
{
	return !(contd__or(&set->life, SET_OVER) & SET_OVER);
}

/* Were these the last ones that it waited for? Not if its event had been counted. */
static bool were_last(uint64_t before, uint32_t n)
{
	return before >> 32 == n;
}

uint32_t contd__set_attached_sig(struct contd__set *set, uint32_t n)
{
	bool over = contd__load_seq(&set->rc) != MPI_SUCCESS && !set->whole && end_sig(set);

	return were_last(contd__sub(&set->life, (n + 1) * SET_WAIT), n + 1) || over;
}

/* One event more, of the continuation in the slot or (NULL) in the set. It may run, on another thread too, as soon as
 * this begins: the set may be gone afterwards. */
static inline void event_done_sig(struct contd__set *set, struct contd__slot *slot, uint32_t generation)
{
	const struct contd__call *call = contd__call;

	contd__complete_or_take_sig(slot, generation, &set->own, call ? call->taking : NULL);
}

void contd__op_done_carried_sig(struct contd__op *op, const MPI_Status *status)
{
	struct contd__set *set = op->set;

	op->error = status->MPI_ERROR;
	if (set->revised)
		set->result = *status;
	else if (op->status)
		*op->status = *status;
	if (__builtin_expect(op->error, 0))
		contd__set_failed_sig(set, set->revised ? contd__mpi_error_class(op->error) : op->error);
	event_done_sig(set, NULL, 0);
}

void contd__op_done_sig(struct contd__op *op, const MPI_Status *status)
{
	struct contd__set *set = op->set;
	struct contd__slot *slot = set->slot;
	uint32_t generation = set->generation;
	uint64_t before;
	bool over = false;

	op->error = status->MPI_ERROR;
	if (!set->results) {
		/* MPI_ERROR too: a continuation has no return code to look at */
		if (set->revised)
			set->result = *status;
		else if (op->status)
			*op->status = *status;
		if (op->error)
			contd__set_failed_sig(set, set->revised ? contd__mpi_error_class(op->error) : op->error);
		/* From here on another thread may run the continuation and free the set. It is not run here: MPI may
		 * hold locks. */
		event_done_sig(set, slot, generation);
		return;
	}
	set->results[op - set->op] = *status;
	/* Release: pairs with the acquire in contd__invoke_revised. */
	contd__store_release(&op->state, OP_DONE);
	if (op->error) {
		contd__set_failed_sig(set, contd__mpi_error_class(status->MPI_ERROR));
		over = !set->whole && end_sig(set);
	}
	CONTD_TESTPOINT("set_before_less");
	/* The slot, and its group, are there until the set's event is counted. */
	if (less_sig(set, SET_WAIT + SET_REFERENCE, &before))
		set_put_off(set); /* MPI may hold locks here */
	if (were_last(before, 1) || over)
		event_done_sig(set, slot, generation);
}

/* ------------------------------------------------------------------------------------------------------ running --- */

/* The continuation has run, and nothing refers to its set. */
static void end_short(struct contd__set *set, struct contd_group *group, bool may, bool owes)
{
	if (may) {
		release(set);
		return;
	}
	if (owes)
		owe_sig(set, group);
	set_put_off(set);
}

/* Also in a handler, where nothing of MPI's may be called. */
void contd__invoke_draft(struct contd__slot *s)
{
	struct contd__set *set = contd__set_of(s);
	MPI_Continue_cb_function *cb = (MPI_Continue_cb_function *)s->cb.any;
	bool may;

	if (contd__mpi_over())
		return;
	may = may_call_mpi();
	if (set && may && contd__load(&set->rc))
		contd__mpi->ops_tell(set);
	if (set && !contd__in_handler())
		report_crs(set);
	cb(s->out.dest, s->data);
	/* After the callback, which is not to wait for this; a generalized request's free_fn comes last anyway. */
	if (set)
		end_short(set, s->group, may, true);
}

/* Its slot is given back, and it still waits for an operation: it can no longer be found by the slot. */
static void leave_sig(struct contd__set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (contd__load(&set->op[i].state) != OP_WAITS)
			continue;
		contd__add(&set->life, SET_REFERENCE);
		contd__store_seq(&set->left, 1); /* before the caller drops its own reference: see less_sig */
		cds_lfs_push((cds_lfs_stack_ptr_t){._s = &contd__sets_left}, &set->node);
		return;
	}
}

/* The user's statuses get those of finished operations; the rest of a failed continuation is said to be pending. */
static void deliver(struct contd__set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct contd__op *op = &set->op[i];

		if (!op->status)
			continue;
		/* Acquire: pairs with the release in contd__op_done_sig. */
		if (contd__load_acquire(&op->state) == OP_DONE)
			*op->status = set->results[i];
		else
			op->status->MPI_ERROR = MPI_ERR_PENDING;
	}
}

/* The same for a short set. If nothing waited its statuses were written by the attaching call. */
static inline void deliver_short(struct contd__set *set)
{
	if (set->count && set->op[0].status)
		*set->op[0].status = set->result;
}

/* One reference, of a short set that has failed: its CR's queue has it. The slot keeps the group meanwhile. */
static void refer_sig(struct contd__set *set)
{
	set->life = SET_REFERENCE;
	contd__group_pin_sig(set->group);
}

void contd__invoke_revised(struct contd__slot *s)
{
	/* As contd__set_of(): there always is one. */
	struct contd__set *set = (struct contd__set *)(contd__load_acquire(&s->source) & ~(uintptr_t)3);
	MPIX_Continue_cb_function *cb = (MPIX_Continue_cb_function *)s->cb.any;
	int rc = contd__load_seq(&set->rc), failed = rc;
	bool is_short = !set->results, may;
	uint64_t before;

	if (contd__mpi_over())
		return;
	may = may_call_mpi();
	if (may && rc != MPI_SUCCESS)
		contd__mpi->ops_tell(set);
	if (set->crs && !contd__in_handler())
		report_crs(set);
	if (is_short) {
		deliver_short(set);
	} else {
		deliver(set);
		if (rc != MPI_SUCCESS)
			leave_sig(set);
	}
	if (rc == MPI_SUCCESS || set->flags & (MPIX_CONT_INVOKE_FAILED | MPIX_CONT_REQBUF_VOLATILE)) {
		failed = cb(rc, s->data);
		rc = MPI_SUCCESS;
	} else if (set->discard) {
		set->discard(s->data);
	}
	if (is_short && (failed == MPI_SUCCESS || !set->cr)) {
		end_short(set, s->group, may, failed == MPI_SUCCESS);
		return;
	}
	/*
	 * Of a set that has not failed only the references are used from now on. And a thread that waits for the CR
	 * must find free_fn called. So MPI gets its requests back here, and not when the last reference is dropped.
	 */
	if (may) {
		if (contd__load_seq(&set->rc) == MPI_SUCCESS)
			give_back(set);
		else if (!contd__mpi_is_gone())
			instances_finish(set);
	} else if (contd__load_seq(&set->rc) == MPI_SUCCESS && failed == MPI_SUCCESS) {
		owe_sig(set, s->group);
	}
	if (failed != MPI_SUCCESS && set->cr) {
		if (rc == MPI_SUCCESS)
			contd__store_seq(&set->rc, failed);
		set->failure.class = failed;
		if (is_short)
			refer_sig(set);
		contd__cr_fail_sig(set->cr, &set->failure, rc != MPI_SUCCESS);
	} else if (less_sig(set, SET_REFERENCE, &before)) {
		set_put_off(set);
	}
	if (may && contd__frame_is_outermost_sig())
		contd__put_off_drain();
}

/* The callback of a set that carries its continuation, and has not failed. Returns what it returns. */
static inline int call_back(const struct contd__set *set)
{
	void (*cb)(void) = set->own.as.cb.any;

	if (set->revised)
		return ((MPIX_Continue_cb_function *)cb)(MPI_SUCCESS, set->own.as.data);
	((MPI_Continue_cb_function *)cb)(set->own.as.out.dest, set->own.as.data);
	return MPI_SUCCESS;
}

/*
 * What contd__invoke_draft() and _revised() do for a set that carries its continuation, has not failed, and runs where
 * MPI may be called. The set's `own` is not read after this.
 */
static inline void invoke_carried(struct contd__slot *as)
{
	struct contd__set *set = caa_container_of(as, struct contd__set, own.as);
	int failed;

	if (set->revised)
		deliver_short(set);
	failed = call_back(set);
	if (__builtin_expect(!contd__mpi_is_gone(), 1))
		contd__mpi->ops_release(set);
	if (__builtin_expect(failed == MPI_SUCCESS, 1)) {
		put_away(set);
		return;
	}
	set->count = 0;
	contd__store_seq(&set->rc, failed);
	set->failure.class = failed;
	refer_sig(set);
	contd__cr_fail_sig(set->cr, &set->failure, false);
}

void contd__set_run(struct contd__set *set, struct contd__cr *cr, bool waited)
{
	struct contd_group *group = set->group;

	if (set->own.slot || __builtin_expect(contd__load(&set->rc) != MPI_SUCCESS || contd__mpi_over(), 0)) {
		if (!waited)
			contd__unmarked_since_now(&set->own);
		contd__unmarked_run(&set->own);
		return;
	}
	contd__unmarked_run_by(&set->own, invoke_carried, waited);
	contd__cr_count_off(cr, group);
}
