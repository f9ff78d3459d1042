/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of one continuation that were not complete when it was attached.
 *
 * Draft interface: the thread that completes an operation writes its status and counts it; the thread that runs the
 * continuation releases the set.
 *
 * Revised interface: an operation that fails ends the waiting for the others, so statuses are kept in the set until the
 * continuation is run, and the set lives until the last operation has finished. The slot waits for one event of the
 * set: that all operations have completed, or one has failed, whichever is first. The set knows whether it has been
 * counted (SET_OVER), so operations that complete later count nothing: the slot may be another continuation's by then.
 * The slot's other events are the attaching call, the start of an inactive CR, and CRs among the requests, so a failure
 * waits for these. The set has a reference for each operation and one for the continuation, which passes to the CR's
 * queue if that fails; and a reference to its group.
 *
 * A continuation of one operation takes no slot if the operation can complete only while its thread is in MPI. Its set
 * carries it: the set holds what a slot would hold, and the test or wait of its CR mostly runs it from there
 * (dispatch/carried.h).
 *
 * A revised continuation of one operation, or none, is counted like the draft interface's: its operation is the last
 * one, failed or not, and nothing is left to finish late. Its set is a *short* one. It keeps the status, too, until the
 * continuation is run: if the CR is freed while it is inactive that never happens, and the program may free its own.
 *
 *     operation                 thread  handler  MPI's completion callback  progress
 *     contd__set_new              yes     no              no                blocking (memory)
 *     contd__op_done_sig          yes     yes             yes               lock-free
 *     contd__op_done_carried_sig  yes     yes             yes               lock-free
 *     contd__set_attached_sig     yes     yes             yes               lock-free
 *     contd__set_unref_sig        yes     yes             yes               lock-free
 *     contd__put_off_drain        yes     no              no                blocking
 */
#ifndef CONTD_MPI_OP_SET_H
#define CONTD_MPI_OP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include <urcu/lfstack.h>
#include <urcu/list.h>

#include <mpi.h>

#include "base/atomic.h"
#include "dispatch/carried.h"
#include "dispatch/group.h"
#include "mpi/cr.h"
#include "mpi/grequest.h"
#include "rcu/table.h"

enum contd__op_state { OP_WAITS, OP_TAKEN, OP_DONE };

struct contd__op {
	MPI_Request request;
	struct contd__set *set;
	MPI_Status *status; /* the user's, or NULL */
	uint32_t state;     /* enum contd__op_state */
	bool persistent;
	bool freed;                       /* native: persistent, and the program has freed it while it waited */
	int8_t type;                      /* native: of the request */
	int error;                        /* it failed so, and its error handler is to be called; else MPI_SUCCESS */
	struct contd__instance *instance; /* of a template, or NULL: its complete_fn comes after the callback */
	void *backend; /* a generalized request whose free_fn is held; portable: a persistent one's entry */
	union {
		struct cds_lfs_node incoming;      /* portable, while it waits */
		int (*free)(MPI_Request *request); /* native, while it waits: a persistent request's own */
		void *object;                      /* native, when it has completed: it has the error handler */
	};
};

/* A CR among the requests: the round that the continuation ends, if it ends one. */
struct contd__awaited {
	struct contd__cr *cr;
	uint32_t round;
	bool ends;
};

struct contd__set {
	struct cds_lfs_node node;      /* put off, or left */
	struct contd__slot *slot;      /* or NULL: the set carries the continuation */
	struct contd__unmarked own;    /* what its slot would hold then */
	struct cds_list_head carrying; /* native: those that carry one, until their operation is complete */
	uint32_t generation;
	uint32_t count; /* of op; goes up while they are attached */
	uint32_t crs;   /* of awaited */
	int rc;         /* class of the first failure, or MPI_SUCCESS (draft interface: an error code) */
	bool revised;
	bool instances;                 /* operations of templates are among them */
	bool small;                     /* its memory has room for one operation, and for no CR */
	struct contd__awaited *awaited; /* CRs among the requests, until they are reported */
	uint32_t left;                  /* it is in contd__sets_left, or was */
	/* its CR's, which is not complete until functions of the program's have been called; or NULL */
	struct contd_group *owing;
	struct contd_group *group; /* the continuation's */
	/* Revised interface. */
	struct contd__cr *cr; /* or NULL: none */
	uint64_t life;        /* SET_*; of a short one only if it has failed */
	int flags;
	bool whole;                  /* it waits for all of its operations, also when one has failed */
	void (*discard)(void *data); /* in place of the callback, or NULL */
	MPI_Status *results;         /* of op; NULL: a short one, or the draft interface */
	MPI_Status result;           /* a short one's: the user's status may be gone if its CR was freed inactive */
	struct contd__failure failure;
	struct contd__op op[];
};

/*
 * Of `life`. Its event has been counted at the slot, or is about to be; requests that it waits for, and attaching, in
 * bits 62 to 32; references below.
 */
#define SET_OVER (1ull << 63)
#define SET_WAIT (1ull << 32)
#define SET_REFERENCE 1ull

/* Of the slot's source field; NULL where all was complete at attach. */
static inline struct contd__set *contd__set_of(const struct contd__slot *s)
{
	uintptr_t source = contd__load_acquire(&s->source);

	/* Others than MPI's may be registered with a CR's group: contd_mpi_group(). */
	return (source & 3) == KIND_SOURCE ? (struct contd__set *)(source & ~(uintptr_t)3) : NULL;
}

/* Room for so many operations and CRs, and for results; NULL without memory. */
struct contd__set *contd__set_new(uint32_t operations, uint32_t crs, bool results);

/* It has not been used after all. */
void contd__set_drop(struct contd__set *set);

/*
 * Revised interface: a continuation that runs inside the attaching call has no set. If its callback fails, the failure
 * needs one, and must not fail for want of memory. So each thread keeps a spare set, which is made before the
 * callback. contd__set_spare_ready: there is one, or false without memory. contd__set_spare_fail: uses it up.
 */
extern __thread struct contd__set *contd__set_spare __attribute__((tls_model("initial-exec")));
bool contd__set_spare_make(void);
static inline bool contd__set_spare_ready(void)
{
	return __builtin_expect(contd__set_spare != NULL, 1) || contd__set_spare_make();
}
void contd__set_spare_fail(struct contd__cr *cr, int class, void *failed_data);

/* A CR among the requests: it is reported before the callback; if that runs in a handler, by a thread afterwards. */
void contd__set_await(struct contd__set *set);

/* The rounds of all CRs among the requests. Called before the slot waits for one of them. */
void contd__set_rounds(struct contd__set *set, int count, const MPI_Request requests[]);

/*
 * The operation is complete with this status. Only the caller says so (it has made state OP_TAKEN, or no other thread
 * could). MPI_ERROR of the status counts. The set may be gone afterwards.
 */
void contd__op_done_sig(struct contd__op *op, const MPI_Status *status);

/* The same for the one operation of a set that carries its continuation. */
void contd__op_done_carried_sig(struct contd__op *op, const MPI_Status *status);

/* A failure that attaching found (revised interface), before contd__set_attached_sig(). */
void contd__set_failed_sig(struct contd__set *set, int class);

/* All are attached, of which n were complete (revised interface). 1: the caller counts the set's event with its own. */
uint32_t contd__set_attached_sig(struct contd__set *set, uint32_t n);

void contd__set_unref_sig(struct contd__set *set);

/*
 * Run a continuation that its set carries, taken by a test or wait of its CR: MPI may be called here. waited: on the
 * stack of those without a bit.
 */
void contd__set_run(struct contd__set *set, struct contd__cr *cr, bool waited);

/* The slots of both interfaces call these when they are claimed. */
void contd__invoke_draft(struct contd__slot *s);
void contd__invoke_revised(struct contd__slot *s);

/*
 * Sets of continuations that have failed while an operation was in the state OP_WAITS, with a reference each: for the
 * backend that uses that state, and looks at such operations now and then. Pushed anywhere. _over: some are to be taken
 * out, because no other reference is left.
 */
extern struct __cds_lfs_stack contd__sets_left;
extern uint32_t contd__sets_left_over;

/* true: contd__sets_left_over was set, and is not any more. The caller looks at the sets next. */
static inline bool contd__sets_left_over_taken(void)
{
	if (__builtin_expect(contd__load(&contd__sets_left_over) == 0, 1))
		return false;
	contd__store_seq(&contd__sets_left_over, 0);
	return true;
}

/* A callback that has just returned has ended MPI: there is nothing of MPI's left to be given back, nor to be asked. */
bool contd__mpi_is_gone(void);

/* How many sets are put off whose complete_fn or free_fn must still be called: their CRs wait for that. */
extern uint32_t contd__sets_owing;

/* Sets that handlers have put off, to be released. Ordinary threads that may call MPI. */
extern struct __cds_lfs_stack contd__sets_put_off;
void contd__put_off_start(void);
void contd__put_off_drain(void);
static inline bool contd__put_off_any(void)
{
	return contd__load(&contd__sets_put_off.head) != NULL || contd__general_any();
}

/* One of its continuations failed. `told`: an error handler has heard of it. f belongs to the queue from now on. */
void contd__cr_fail_sig(struct contd__cr *cr, struct contd__failure *f, bool told);

int contd__cr_get_failed(struct contd__cr *cr, int *count, void **data);

/* MPI_Request_free: no call asks for failures any more. The group lives on while something is outstanding. */
void contd__cr_close(struct contd__cr *cr);

/*
 * A call that runs continuations is about this CR: between these two its memory stays, although one of them may free
 * it. If calls come by turns that takes no atomic operation: they are counted, and MPI_Request_free pins the group if
 * there are any (contd__cr_close).
 */
#define CR_KEPT 0x80000000u /* in `asked`: it has pinned it */
void contd__cr_let_go(struct contd__cr *cr);
static inline void contd__cr_ask(struct contd__cr *cr)
{
	if (contd__cr_by_turns)
		cr->asked++;
	else
		contd__group_pin_sig(cr->group);
}
static inline void contd__cr_asked(struct contd__cr *cr)
{
	if (!contd__cr_by_turns || __builtin_expect(--cr->asked == CR_KEPT, 0))
		contd__cr_let_go(cr);
}

#endif
