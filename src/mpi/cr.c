/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/process_model.h"
#include "mpi/state.h"
#include "rcu/table.h"

pthread_mutex_t contd__crs_lock = PTHREAD_MUTEX_INITIALIZER;
CDS_LIST_HEAD(contd__crs);
bool contd__cr_by_turns, contd__cr_one_thread, contd__cr_alone;
uint32_t contd__cr_live, contd__cr_limited, contd__cr_shared;
__thread struct contd__cr *contd__cr_uncounted __attribute__((tls_model("initial-exec")));

uint32_t contd__crs_outstanding(void)
{
	struct contd__cr *cr;
	uint32_t n = 0;

	pthread_mutex_lock(&contd__crs_lock);
	cds_list_for_each_entry (cr, &contd__crs, node)
		n += contd__group_outstanding_sig(cr->group);
	pthread_mutex_unlock(&contd__crs_lock);
	return n;
}

void contd__crs_start(void)
{
	contd__cr_by_turns = !contd__model.sessions && contd__model.level < MPI_THREAD_MULTIPLE;
	contd__cr_one_thread = contd__cr_by_turns && contd__model.level < MPI_THREAD_SERIALIZED;
	contd__cr_alone = contd__cr_by_turns && contd__model.level == MPI_THREAD_SINGLE;
}

int contd__cr_init(struct contd__cr *cr, struct contd_group *group, bool revised)
{
	*cr = (struct contd__cr){.group = group, .handle = MPI_REQUEST_NULL, .revised = revised, .awaited = UINT32_MAX};
	if (pthread_mutex_init(&cr->lock, NULL))
		return MPI_ERR_NO_MEM;
	__cds_lfs_init(&cr->failed);
	group->owner = cr;
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_add(&cr->node, &contd__crs);
	pthread_mutex_unlock(&contd__crs_lock);
	return MPI_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- freed in a query --- */

__thread struct contd__cr_queries contd__cr_queries __attribute__((tls_model("initial-exec")));

void contd__cr_give_freed_back(void)
{
	struct contd__cr *cr = contd__cr_queries.freed, *next;

	contd__cr_queries.freed = NULL;
	for (; cr; cr = next) {
		next = cr->freed;
		if (contd__mpi->cr_give_back && !contd__mpi_over())
			contd__mpi->cr_give_back(cr);
		contd__group_unpin_sig(cr->group);
	}
}

bool contd__cr_keep_freed(struct contd__cr *cr)
{
	if (contd__cr_queries.depth == 0)
		return false;
	contd__group_pin_sig(cr->group);
	cr->freed = contd__cr_queries.freed;
	contd__cr_queries.freed = cr;
	return true;
}

bool contd__cr_freed_here(MPI_Request request)
{
	for (const struct contd__cr *cr = contd__cr_queries.freed; cr; cr = cr->freed)
		if (cr->handle == request)
			return true;
	return false;
}

/* ------------------------------------------------------------------------------------------- start and inactive --- */

int contd__cr_hold(struct contd__cr *cr, struct contd__slot *slot)
{
	/* The count went up before this look. A thread that makes the CR inactive afterwards sees that count. */
	uint32_t state = contd__load_seq(&cr->state);

	while (!(state & CR_ACTIVE)) {
		/* This list uses `link` of a slot that waits for events: its age is lost. */
		contd__store(&slot->link, state & ~(CR_TAKEN | CR_AWAITED));
		CONTD_TESTPOINT("hold_inactive");
		if (contd__cas(&cr->state, &state, (slot->index + 1) | (state & (CR_TAKEN | CR_AWAITED))))
			return 0;
	}
	return 1;
}

static struct contd__slot *held_slot(struct contd__cr *cr, uint32_t held)
{
	return contd__table_slot(&cr->group->table, held - 1);
}

/*
 * In the order in which they were registered: the list has the newest first. It is the caller's, and none of its slots
 * can become ready before it is released here.
 */
static void release_held(struct contd__cr *cr, uint32_t held)
{
	uint32_t oldest = 0;

	while (held) {
		struct contd__slot *s = held_slot(cr, held);
		uint32_t next = contd__load(&s->link);

		contd__store(&s->link, oldest);
		oldest = held;
		held = next;
	}
	contd__group_pin_sig(cr->group); /* the callbacks of what is released may free it */
	for (held = oldest; held;) {
		struct contd__slot *s = held_slot(cr, held);
		uint32_t generation = SLOT_GENERATION(contd__load(&s->state));

		/* Do not touch its set: until the start is counted an operation may fail, and afterwards the set may be
		 * gone. */
		held = contd__load(&s->link);
		contd__store(&s->link, contd__registered_now()); /* from now on it waits for nothing else */
		CONTD_TESTPOINT("start_releases");
		contd__slot_event_done_sig(s, generation, 1);
	}
	contd__group_unpin_sig(cr->group);
}

/*
 * Tells the backend what the state is about to become. Only the thread whose turn it is does so: the one that starts an
 * inactive CR, or the one that has taken an active one. Its exchange follows, and the next such thread has seen that
 * exchange: so these calls are in the order of the changes, and none comes late.
 */
static void say_active(struct contd__cr *cr, bool active)
{
	if (contd__mpi->cr_active)
		contd__mpi->cr_active(cr, active);
}

#define ACTIVE "the continuation request is active; test or wait until it is complete, and start it then"

/* Two threads start the CR, and this one is second. It may have told the backend a wrong state. */
static int started_twice(struct contd__cr *cr)
{
	bool active;

	do
		say_active(cr, active = !contd__cr_inactive(cr));
	while (active == contd__cr_inactive(cr));
	return contd__fail(MPI_ERR_REQUEST, ACTIVE);
}

int contd__cr_start(struct contd__cr *cr)
{
	uint32_t held = contd__load_seq(&cr->state);

	if (!cr->revised)
		return contd__fail(MPI_ERR_REQUEST,
				   "a continuation request of MPI_Continue_init is not started; only those of "
				   "MPIX_Continue_init are");
	if (held & (CR_ACTIVE | CR_TAKEN))
		return contd__fail(MPI_ERR_REQUEST, ACTIVE);
	say_active(cr, true);
	CONTD_TESTPOINT("cr_start_said");
	if (contd__cr_starts_empty(cr)) {
		contd__cr_start_empty(cr);
		return MPI_SUCCESS;
	}
	do {
		if (held & (CR_ACTIVE | CR_TAKEN))
			return started_twice(cr);
		/* Acquire, by the exchange: the links of what is held. */
	} while (!contd__cas(&cr->state, &held, CR_ACTIVE));
	contd__store(&cr->started, true);
	CONTD_TESTPOINT("cr_started");
	if (held)
		release_held(cr, held);
	return MPI_SUCCESS;
}

/* False: another thread was faster. */
static bool draft_reported(struct contd__cr *cr, uint32_t unreported)
{
	return unreported & CR_UNREPORTED && contd__cas(&cr->unreported, &unreported, CR_REPORTED(unreported));
}

static inline bool take(struct contd__cr *cr, bool *toldp)
{
	uint32_t state;

	*toldp = false;
	if (!cr->revised) {
		/* A continuation that is registered meanwhile is outstanding, or has run. The next report may tell of
		 * it or not. */
		if (contd__load(&cr->unreported) & CR_UNREPORTED) {
			CONTD_TESTPOINT("report_draft");
			*toldp = draft_reported(cr, contd__load(&cr->unreported));
		}
		return true;
	}
	state = contd__load_seq(&cr->state);
	if (state == CR_ACTIVE)
		CONTD_TESTPOINT("report_before_inactive");
	if (state != CR_ACTIVE || !contd__cas(&cr->state, &state, CR_TAKEN))
		return !(state & CR_TAKEN); /* inactive, or another call is at it */
	CONTD_TESTPOINT("report_taken");
	*toldp = contd__group_outstanding_sig(cr->group) == 0;
	if (!*toldp)
		contd__cr_give_back(cr); /* something was registered before it was taken */
	return *toldp;
}

bool contd__cr_take(struct contd__cr *cr, bool *toldp)
{
	return take(cr, toldp);
}

static inline void taken(struct contd__cr *cr)
{
	if (!cr->revised)
		return;
	say_active(cr, false);
	/* Only the thread that has taken it writes this. Release: pairs with the acquire in contd__cr_round. */
	contd__store_release(&cr->round, contd__load(&cr->round) + 1);
	contd__and(&cr->state, ~(CR_TAKEN | CR_AWAITED));
}

void contd__cr_taken(struct contd__cr *cr)
{
	taken(cr);
}

/* Taken, and not reported: active again. Returns whether a continuation has waited for it meanwhile. */
static bool active_again(struct contd__cr *cr)
{
	uint32_t state = contd__xchg(&cr->state, CR_ACTIVE), held = state & ~(CR_TAKEN | CR_AWAITED);

	if (held)
		release_held(cr, held);
	return state & CR_AWAITED;
}

bool contd__cr_round(const struct contd__cr *cr, uint32_t *roundp)
{
	uint32_t unreported = contd__load(&cr->unreported);

	if (!cr->revised) {
		*roundp = CR_ROUND(unreported);
		return unreported & CR_UNREPORTED || contd__group_outstanding_sig(cr->group);
	}
	/* Acquire: before the state. If another thread begins the next round in between, that is left alone. */
	*roundp = contd__load_acquire(&cr->round);
	return contd__load_seq(&cr->state) != 0;
}

static void draft_awaited(struct contd__cr *cr, uint32_t round)
{
	uint32_t unreported = contd__load(&cr->unreported);

	if (CR_ROUND(unreported) == round && contd__group_outstanding_sig(cr->group) == 0)
		draft_reported(cr, unreported);
}

/* It is active, or taken. Taken by this thread it becomes inactive, or active again. */
static void end_round(struct contd__cr *cr)
{
	uint32_t state = contd__load_seq(&cr->state);
	bool again = true;

	while (again && state & (CR_ACTIVE | CR_TAKEN)) {
		if (state & CR_TAKEN) {
			again = !contd__cas(&cr->state, &state, state | CR_AWAITED);
		} else if (contd__cas(&cr->state, &state, CR_TAKEN)) {
			again = contd__group_outstanding_sig(cr->group) != 0 ||
				contd__load(&cr->awaited) != contd__load(&cr->round);
			if (!again)
				contd__cr_taken(cr);
			else if ((again = active_again(cr)))
				state = contd__load_seq(&cr->state);
		}
	}
}

void contd__cr_awaited(struct contd__cr *cr, uint32_t round)
{
	struct contd_group *group = cr->group;
	uint32_t newest = contd__load(&cr->awaited);

	if (!cr->revised) {
		draft_awaited(cr, round);
		return;
	}
	/* Acquire: pairs with the release in taken(). */
	if (contd__load_acquire(&cr->round) != round)
		return;
	while ((int32_t)(round - newest) > 0 && !contd__cas(&cr->awaited, &newest, round))
		;
	contd__group_pin_sig(group); /* the callbacks of what was held may free it */
	end_round(cr);
	contd__group_unpin_sig(group);
}

/* It was taken, and is unreported again, in the same round. */
static void draft_give_back(struct contd__cr *cr)
{
	uint32_t now = contd__load(&cr->unreported);

	while (!contd__cas(&cr->unreported, &now, (now & ~CR_UNREPORTED) - CR_UNREPORTED))
		;
}

void contd__cr_give_back(struct contd__cr *cr)
{
	struct contd_group *group = cr->group;

	if (!cr->revised) {
		draft_give_back(cr);
		return;
	}
	contd__group_pin_sig(group); /* as above */
	if (active_again(cr))
		end_round(cr);
	contd__group_unpin_sig(group);
}

bool contd__cr_report(struct contd__cr *cr, bool *toldp)
{
	if (contd__cr_report_in_turn(cr, toldp))
		return true;
	if (!take(cr, toldp))
		return false;
	if (*toldp)
		taken(cr);
	return true;
}

enum contd__seen contd__peek_cr(struct contd__cr *cr, MPI_Status *status)
{
	if (!contd__cr_active(cr))
		return SEEN_NOTHING;
	if (!contd__cr_complete(cr))
		return SEEN_PENDING;
	if (status) {
		*status = contd__status_empty;
		status->MPI_ERROR = contd__load(&cr->error);
	}
	return SEEN_COMPLETE;
}

void contd__cr_fini(struct contd__cr *cr)
{
	pthread_mutex_lock(&contd__crs_lock);
	cds_list_del(&cr->node);
	pthread_mutex_unlock(&contd__crs_lock);
	pthread_mutex_destroy(&cr->lock);
}
