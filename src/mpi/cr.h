/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuation requests, as far as they are the same in both backends.
 *
 * A CR of the draft interface follows the count of its group: complete while nothing is outstanding. A CR of the
 * revised interface is also active or inactive. Continuations that are registered with an inactive one are held: each
 * waits for one more event, which is MPI_Start. One word, `state`, says whether the CR is active, and if not, which
 * slots it holds.
 *
 *     operation              thread  handler  in a callback  progress
 *     contd__cr_hold           yes     no         yes        lock-free
 *     contd__cr_start          yes     no         yes        lock-free, and linear in the number of slots held
 *     contd__cr_report         yes     no         yes        as contd__cr_start
 *     contd__cr_awaited        yes     no         yes        as contd__cr_start
 *     contd__cr_fail_sig       yes     yes        yes        wait-free
 *     contd__cr_get_failed     yes     no         yes        blocking
 */
#ifndef CONTD_MPI_CR_H
#define CONTD_MPI_CR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/lfstack.h>
#include <urcu/list.h>

#include <mpi.h>

#include "base/atomic.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/run.h"
#include "mpi/backend.h"
#include "mpi/state.h"
#include "rcu/table.h"

struct contd__set;

/*
 * A continuation of the revised interface that failed, in its CR's queue. It is part of its set, or, if it has none, of
 * the memory that the program has given for the operation.
 */
struct __attribute__((may_alias)) contd__failure {
	struct cds_lfs_node node;
	struct contd__failure *next;
	void *data;
	struct contd__set *set; /* its reference goes with this; or NULL */
	int class;
};

struct contd__cr {
	struct contd_group *group;
	MPI_Request handle;
	bool revised;
	bool started; /* revised: MPI_Start was called once */
	/* Others than MPI's calls ask about it: the program has its group, or a continuation has waited for it. */
	bool asked_about;
	uint32_t state;      /* revised: CR_*, or the newest of the slots that wait for the start: its index + 1 */
	uint32_t round;      /* revised: how often it has become inactive since it was asked about */
	uint32_t awaited;    /* revised: the newest round that a continuation has waited for: contd__cr_awaited() */
	uint32_t unreported; /* CR_UNREPORTED, and of a draft CR how often it was reported, times 2 */
	pthread_mutex_t lock;
	int error;                     /* class of the first failure that get_failed has not cleared, or 0 */
	uint32_t closed;               /* freed by the program */
	bool error_told;               /* an error handler has been called for it */
	struct __cds_lfs_stack failed; /* failures, newest first; pushed anywhere, emptied under lock */
	struct contd__failure *failed_first, *failed_last; /* and in order; under lock */
	struct cds_list_head node;                         /* in contd__crs */
	uint32_t asked;                                    /* see contd__cr_ask() */
	struct contd__cr *freed;                           /* the one that was freed before: contd__cr_freed_here() */
};

/* All of them, freed ones with something outstanding too. */
extern struct cds_list_head contd__crs;
extern pthread_mutex_t contd__crs_lock;

/* Each of them in turn; NULL: there is none. Under contd__crs_lock. */
static inline struct contd__cr *contd__crs_turn_locked(void)
{
	struct contd__cr *cr;

	if (cds_list_empty(&contd__crs))
		return NULL;
	cr = cds_list_first_entry(&contd__crs, struct contd__cr, node);
	cds_list_del(&cr->node);
	cds_list_add_tail(&cr->node, &contd__crs);
	return cr;
}

/* How many continuations are outstanding, of all CRs. */
uint32_t contd__crs_outstanding(void);

/* 0 or MPI_ERR_NO_MEM. The group's owner is the CR from then on. */
int contd__cr_init(struct contd__cr *cr, struct contd_group *group, bool revised);

/* The group is gone. */
void contd__cr_fini(struct contd__cr *cr);

/*
 * Between MPI_Start and the report that it is complete. A thread that attaches counts its continuation and then looks
 * at the state (contd__cr_hold). A thread that makes the CR inactive changes the state and then looks at the count
 * (contd__cr_report). So at least one of the two sees what the other did.
 */
#define CR_ACTIVE 0x80000000u

/*
 * In place of CR_ACTIVE, and beside what it holds: a completion call is about to report it, which makes it inactive, or
 * finds that it does not. Until then it holds what is registered, and for all others it is active and not complete.
 */
#define CR_TAKEN 0x40000000u

/* Beside CR_TAKEN: contd__cr_awaited() was called meanwhile. `awaited` is the round. */
#define CR_AWAITED 0x20000000u

/* Draft: something was registered since it was last reported complete. */
#define CR_UNREPORTED 1u
#define CR_REPORTED(unreported) ((unreported) + 1) /* of one that has it */
#define CR_ROUND(unreported) ((unreported) >> 1)

/*
 * The program's calls of MPI come by turns: below MPI_THREAD_MULTIPLE, and without sessions. So while one starts,
 * attaches to or reports a CR, no other does. Only contd__cr_awaited(), in a continuation that another thread runs, may
 * come at the same time. It changes the state of an active CR, or of one that it has taken itself, and no other.
 */
extern bool contd__cr_by_turns;

/* The same, and they all come from one thread: below MPI_THREAD_SERIALIZED. */
extern bool contd__cr_one_thread;

/* The same, and the program has no other thread: MPI_THREAD_SINGLE. */
extern bool contd__cr_alone;

/* contd begins in MPI: sets these three. There are no CRs yet. */
void contd__crs_start(void);

/* The class of its error, for a call that reports it. Of one that has been freed no call reports errors: MPI has no
 * handle of it. */
static inline int contd__cr_error(const struct contd__cr *cr)
{
	int class = contd__load_seq(&cr->error);

	return __builtin_expect(class, 0) && !contd__load_seq(&cr->closed) ? class : MPI_SUCCESS;
}

/*
 * The CR of a continuation that runs inside the call that attaches it, on this thread, and is not counted as
 * outstanding; or NULL. The program has one thread (with others, contd_mpi_group() could come meanwhile), contd's calls
 * do not ask about the CR, and nothing else of it is outstanding. So only a call in the callback could find out. Four
 * of them count it first, by contd__cr_uncounted_ends(): attaching, freeing the CR, taking its group, and the end of
 * MPI. For all others the CR is not complete, because this thread is inside its continuation.
 */
extern __thread struct contd__cr *contd__cr_uncounted __attribute__((tls_model("initial-exec")));
static inline void contd__cr_uncounted_ends(void)
{
	if (__builtin_expect(contd__cr_uncounted != NULL, 0)) {
		contd__add(&contd__cr_uncounted->group->life, 1);
		contd__cr_uncounted = NULL;
	}
}

static inline void contd__cr_uncounted_begin(struct contd__cr *cr)
{
	contd__cr_uncounted = cr;
}

/* After the callback. False: the continuation has been counted. */
static inline bool contd__cr_uncounted_over(void)
{
	if (!contd__cr_uncounted)
		return false;
	contd__cr_uncounted = NULL;
	return true;
}

/* Revised, and not between MPI_Start and the report that it is complete. */
static inline bool contd__cr_inactive(const struct contd__cr *cr)
{
	return cr->revised && !(contd__load_seq(&cr->state) & (CR_ACTIVE | CR_TAKEN));
}

/* Does it hold what is registered now? Until it is started, or until the call that has taken it gives it back. */
static inline bool contd__cr_holds(const struct contd__cr *cr)
{
	return cr->revised && !(contd__load_seq(&cr->state) & CR_ACTIVE);
}

/* Nothing outstanding, or inactive; never inside one of the CR's own continuations. */
static inline bool contd__cr_complete(const struct contd__cr *cr)
{
	uint32_t state = cr->revised ? contd__load_seq(&cr->state) : CR_ACTIVE;

	if (!(state & CR_ACTIVE))
		return !(state & CR_TAKEN);
	return contd__group_outstanding_sig(cr->group) == 0 && !contd__inside_sig(cr->group);
}

/* Has it something to report? As with an inactive request, Testany and its kin pass over one that has not. */
static inline bool contd__cr_active(const struct contd__cr *cr)
{
	return cr->revised ? contd__load_seq(&cr->state) & (CR_ACTIVE | CR_TAKEN)
			   : contd__load(&cr->unreported) & CR_UNREPORTED || contd__group_outstanding_sig(cr->group);
}

/* Something was registered with it. */
static inline void contd__cr_registered(struct contd__cr *cr)
{
	uint32_t now = contd__load(&cr->unreported);

	if (now & CR_UNREPORTED)
		return;
	/* With several threads not a store, which could set the round back: a continuation that has its number would
	 * then end a later one. */
	if (contd__cr_by_turns)
		contd__store(&cr->unreported, now | CR_UNREPORTED);
	else
		contd__or(&cr->unreported, CR_UNREPORTED);
}

/*
 * For a slot that was just published with one event more than it has: returns 1 if the CR is active, and the caller
 * counts that event; 0 if the start will.
 */
int contd__cr_hold(struct contd__cr *cr, struct contd__slot *slot);

/* MPI_Start. MPI_SUCCESS or MPI_ERR_REQUEST. */
int contd__cr_start(struct contd__cr *cr);

/*
 * Calls come by turns, and it is inactive and holds nothing. Then no other thread changes its state, and MPI_Start has
 * only to tell the backend and to call the second function.
 */
static inline bool contd__cr_starts_empty(const struct contd__cr *cr)
{
	return contd__cr_by_turns && cr->revised && contd__load(&cr->state) == 0;
}
static inline void contd__cr_start_empty(struct contd__cr *cr)
{
	/* Release: pairs with the acquire in contd__cr_awaited; what was registered before is what it finds. */
	contd__store_release(&cr->state, CR_ACTIVE);
	contd__store(&cr->started, true);
}

/*
 * A completion call is about to report that it is complete. False if it can't: something was registered meanwhile,
 * or another call is at it. *toldp: it was active (a draft CR: something was registered with it), and it is this
 * call that tells; of several one. After a successful take, call one of the next two: the CR is reported and becomes
 * inactive, or it stays active.
 */
bool contd__cr_take(struct contd__cr *cr, bool *toldp);
void contd__cr_taken(struct contd__cr *cr);
void contd__cr_give_back(struct contd__cr *cr);

/* The first two of them. */
bool contd__cr_report(struct contd__cr *cr, bool *toldp);

/*
 * A round of a CR lasts until the CR is reported, and the next one begins then. A continuation is about to wait for the
 * CR: *roundp is the round that it ends. False: none, because the CR is inactive and holds nothing.
 */
bool contd__cr_round(const struct contd__cr *cr, uint32_t *roundp);

/*
 * A continuation has waited for it: it becomes inactive as if a test had reported it, unless something was registered
 * meanwhile, or another call has reported the round: the program may have started the next one. Where another call has
 * taken it, that call sees to this.
 */
void contd__cr_awaited(struct contd__cr *cr, uint32_t round);

/*
 * contd__cr_report(), if calls come by turns. Nothing is attached meanwhile: so the count may be read first, and one
 * exchange makes a revised CR inactive. False: it is not complete, or not active, or contd__cr_awaited() has been
 * faster. If no continuation has waited for it that cannot be, and a store is enough. Until the next MPI_Start no other
 * thread tells the backend of the state.
 */
static inline bool contd__cr_report_in_turn(struct contd__cr *cr, bool *toldp)
{
	uint32_t active = CR_ACTIVE;

	if (!contd__cr_by_turns || contd__group_outstanding_sig(cr->group) != 0)
		return false;
	if (!cr->revised) {
		uint32_t unreported = contd__load(&cr->unreported);

		*toldp = unreported & CR_UNREPORTED;
		if (*toldp)
			contd__store(&cr->unreported, CR_REPORTED(unreported));
		return true;
	}
	if (contd__load(&cr->state) != CR_ACTIVE)
		return false;
	/* Release: pairs with the acquire in contd__cr_awaited, as the store in contd__cr_start_empty. */
	if (contd__cr_one_thread && !contd__load(&cr->asked_about)) { /* and nothing has the number of this round */
		contd__store_release(&cr->state, 0);
	} else {
		if (!contd__cas(&cr->state, &active, 0))
			return false;
		/* Release: as in taken(). No other thread makes the CR active again meanwhile. */
		contd__store_release(&cr->round, contd__load(&cr->round) + 1);
	}
	if (contd__mpi->cr_active)
		contd__mpi->cr_active(cr, false);
	*toldp = true;
	return true;
}

/*
 * A continuation of the CR has run, in a call about it. If calls come by turns, and the program has not freed the CR,
 * its handle keeps the group until this call has returned: only a call of MPI's frees it.
 */
static inline void contd__cr_count_off(const struct contd__cr *cr, struct contd_group *group)
{
	if (contd__cr_by_turns && !contd__load(&cr->closed) && contd__load(&contd__mpi_open))
		contd__group_count_down_sig(group, 1);
	else
		contd__group_count_down_own_sig(group, 1);
}

/*
 * This thread looks at an array of requests, which continuations that it runs meanwhile may change. CRs that are freed
 * on this thread between these two stay in memory, and so does MPI's request of each: no other one can have its handle.
 * contd__cr_freed_here: is it the handle of such a CR? Queries nest.
 */
struct contd__cr_queries {
	uint32_t depth;
	struct contd__cr *freed; /* newest first */
};
extern __thread struct contd__cr_queries contd__cr_queries __attribute__((tls_model("initial-exec")));

static inline void contd__cr_query_begin(void)
{
	contd__cr_queries.depth++;
}

static inline bool contd__cr_any_freed_here(void)
{
	return contd__cr_queries.freed != NULL;
}

void contd__cr_give_freed_back(void);
static inline void contd__cr_query_end(void)
{
	if (--contd__cr_queries.depth == 0 && __builtin_expect(contd__cr_any_freed_here(), 0))
		contd__cr_give_freed_back();
}

bool contd__cr_freed_here(MPI_Request request);

/* A CR has been freed. False: no query of this thread needs it, and MPI's request may be given back at once. */
bool contd__cr_keep_freed(struct contd__cr *cr);

/* Of a CR, as peek() of the backend. */
enum contd__seen contd__peek_cr(struct contd__cr *cr, MPI_Status *status);

extern uint32_t contd__cr_live;    /* CRs that the program has not freed */
extern uint32_t contd__cr_limited; /* one with a finite max_poll has been made */
extern uint32_t contd__cr_shared;  /* the program has asked for the group of one */

/* A CR has been made, and the program gets its handle; the program has freed it. */
static inline void contd__cr_begins(void)
{
	contd__add(&contd__cr_live, 1);
}

static inline void contd__cr_ends(void)
{
	contd__sub(&contd__cr_live, 1);
}

/* A CR with a finite max_poll is about to be made. */
static inline void contd__cr_limits(void)
{
	contd__store(&contd__cr_limited, 1);
}

/* The program gets the group of a CR. */
static inline void contd__cr_shares(void)
{
	if (!contd__load(&contd__cr_shared))
		contd__store(&contd__cr_shared, 1);
}

#define CONTD_CANCELS_CR "*request is a continuation request, and no operation; cancel the operations"

#endif
