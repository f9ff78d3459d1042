/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations without a slot. The operation carries its continuation (struct contd_carried, contd.h), which counts as
 * outstanding. When the operation is complete, the thread that found out runs the continuation as soon as it has driven
 * the sources. In some places it must not: in regions' handlers, on the daemon, in groups with limited tests, and while
 * something else is ready. Then the continuation gets a slot, READY, and is like any other.
 *
 * No other thread can run a continuation that has been taken. So a carried callback can wait for another one only in
 * calls of contd. These look for continuations, and first give slots to those that the thread has taken. The same holds
 * if a source, while it is driven, calls a function of the program that makes such a call.
 *
 *     operation                  thread  region's handler  progress
 *     contd__carried_begin         yes         yes         wait-free, unless the table must grow (blocks)
 *     contd__carried_done_sig      yes         yes         as above
 *     contd__complete_or_take_sig  yes         yes         as above
 *     contd__carried_retry_sig     yes         yes         as above
 *     contd__carried_release_sig   yes         no          as above
 */
#ifndef CONTD_DISPATCH_CARRIED_H
#define CONTD_DISPATCH_CARRIED_H

#include "base/api.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/classes.h"
#include "dispatch/event_word.h"
#include "dispatch/group.h"
#include "dispatch/run.h"
#include "dispatch/thread.h"
#include "dispatch/ways.h"
#include "rcu/table.h"

/*
 * The continuations that a thread has taken while it drove the sources. It runs them afterwards, in order, with one
 * exception: if an operation is complete when a callback begins it, its continuation runs right after that callback,
 * while its memory is still in the cache. On the thread's stack.
 */
#define TAKEN_MOST 256u
struct contd__unmarked;
struct contd__taking {
	struct contd__slot *slot;         /* at most one with a slot, RUNNING, */
	struct contd__unmarked *unmarked; /* or one that is ready without; the thread that drives runs it */
	uint32_t next, count;             /* taken and not run yet: carried[next] to carried[count - 1] */
	uint32_t left;                    /* how many may still run, those that are taken included */
	uint32_t chained;                 /* how many were complete when callbacks began them */
	uint32_t returned;                /* callbacks of `group` that have returned, and still count as outstanding */
	bool slot_may; /* `slot` may be filled: `left` does not include the run that is set aside for it */
	struct contd_group *group;
	const struct contd_group *tested; /* the source is driven in a test or wait of this group, or NULL */
	struct contd__taking *outer;
	struct contd_carried *carried[TAKEN_MOST];
};

/*
 * What this thread takes now, or NULL: it drives sources, and no continuation runs on it before it has done so. The one
 * that runs may do that in a call of test or wait, so takings nest. _begin returns the one around it, for _end.
 */
static inline struct contd__taking *contd__takes(void)
{
	return contd__self.carried.take;
}

static inline struct contd__taking *contd__takes_begin(struct contd__taking *t)
{
	struct contd__taking *outer = contd__self.carried.take;

	contd__self.carried.take = t;
	return outer;
}

static inline void contd__takes_end(struct contd__taking *outer)
{
	contd__self.carried.take = outer;
}

/* These go around the continuations of a taking: contd__self.carried.running. */
static inline void contd__runs_begin(struct contd__taking *t)
{
	t->outer = contd__self.carried.running;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* contd__carried_returned_sig() walks along them, also in handlers */
	contd__self.carried.running = t;
}

static inline void contd__runs_end(const struct contd__taking *t)
{
	contd__self.carried.running = t->outer;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Callbacks of g that have returned on this thread, and that g still counts as outstanding. Any context. */
static inline uint32_t contd__carried_returned_sig(const struct contd_group *g)
{
	uint32_t n = 0;

	for (const struct contd__taking *t = contd__self.carried.running; t; t = t->outer)
		if (t->returned && t->group == g)
			n += t->returned;
	return n;
}

/* The tasks that an MPI_Test of this thread finds complete, and wakes at its end. NULL: it is in none. Such tests do
 * not nest. */
static inline struct contd__taking *contd__wakes(void)
{
	return contd__self.carried.waking;
}

static inline void contd__wakes_begin(struct contd__taking *t)
{
	contd__self.carried.waking = t;
}

static inline void contd__wakes_end(void)
{
	contd__self.carried.waking = NULL;
}

static inline void contd__taking_init(struct contd__taking *t, uint32_t most)
{
	t->slot = NULL;
	t->unmarked = NULL;
	t->tested = NULL;
	t->next = t->count = t->chained = t->returned = 0;
	t->left = most - 1; /* one for the slot */
	t->slot_may = true;
}

/* contd_fini(): the groups of what was put off are gone. */
void contd__carried_fini(void);

/* In the child of a fork: drop what this thread has taken, so that it does not run there. */
void contd__carried_forked(void);

/* Run what has been taken, at most `most` of it (which is 1 at least); returns how many ran. */
CONTD_INTERNAL_API uint32_t contd__taken_run(struct contd__taking *t, uint32_t most);

/*
 * Make sure that the table has slots for so many continuations, and the reserve. They need slots only when they are
 * complete, and then no call can report that memory is short. Returns 0, -ENOMEM, -ENOSPC, or -EAGAIN (in a handler
 * outside regions).
 */
CONTD_INTERNAL_API int contd__carried_room(struct contd_group *g, uint32_t outstanding);

static inline void contd__carry(struct contd_carried *c, contd_callback *cb, void *data, struct contd_group *g)
{
	contd__store(&c->event.word, EVENT_CARRIED);
	c->group = g;
	c->cb = cb;
	c->data = data;
	CONTD_COUNT(registered, 1);
}

/*
 * c carries this continuation from now on, and counts as outstanding; it is complete, and contd__carried_at_once() or
 * contd__carried_done_sig() comes next. So there need not be room for a slot: mostly it takes none, and without
 * memory for one it waits for the next look. Ordinary threads, regions' handlers.
 */
static inline void contd__carried_begin_complete(struct contd_carried *c, contd_callback *cb, void *data,
						 struct contd_group *g)
{
	contd__thread_ensure();
	contd__carry(c, cb, data, g);
	contd__add(&g->life, 1);
}

/* The same for one that is pending. Errors: as contd__carried_room(). */
static inline int contd__carried_begin(struct contd_carried *c, contd_callback *cb, void *data, struct contd_group *g)
{
	uint32_t outstanding = LIFE_OUTSTANDING(contd__load(&g->life)) + 1;
	int rc;

	if (__builtin_expect(outstanding + TABLE_RESERVE > contd__load(&g->table.limit) || !contd__self.registered,
			     0) &&
	    (rc = contd__carried_room(g, outstanding)) != 0)
		return rc;
	contd__add(&g->life, 1);
	contd__carry(c, cb, data, g);
	return 0;
}

/* Undo contd__carried_begin(). */
CONTD_INTERNAL_API void contd__carried_forget(struct contd_carried *c);

/*
 * c is complete, with its status, in the call that began it. Its continuation runs before this returns, if it may run
 * here. Otherwise it runs after the one that runs now, or gets a slot. Ordinary threads, regions' handlers.
 */
CONTD_INTERNAL_API void contd__carried_at_once(struct contd_carried *c);

/*
 * Count an event that a source, driven on this thread, has completed. If nothing else is ready, take the continuation
 * instead of making it ready: contd__drive() runs it after the sources, and no bit need be set and found again. One at
 * most is taken, because no other thread can run a continuation that has been taken, and callbacks may wait for each
 * other. false: nothing was counted.
 */
bool contd__word_take_rcu(uint64_t word);

/* These operations are complete, each with its status. */
CONTD_INTERNAL_API void contd__carried_done_sig(struct contd_carried *const c[], uint32_t n);

/* May n more be taken on this thread, and run here after the one that runs now, or when the sources have been
 * driven? */
static inline bool contd__may_take_sig(const struct contd__taking *t, uint32_t n)
{
	return t && n <= TAKEN_MOST - t->count && n <= t->left - (t->count - t->next) && contd__on_thread_sig() &&
	       !contd__marked_sig(CLASSES_ALL);
}

/* Complete operations that have no slot or no bit: a stack, linked by `next`. */
CONTD_INTERNAL_API extern struct contd_event *contd__put_off_carried;

/* Is anything marked in a class of the mask, or ready without a slot, and so without a bit? That has no class yet:
 * contd__scan_sig() gives it a slot first. */
static inline bool contd__waits_sig(uint32_t classes)
{
	return contd__marked_sig(classes) || contd__load_seq(&contd__put_off_carried) != NULL;
}

/*
 * Ready, but without a bit, and mostly without a slot: the part of a source's operation that says what its slot would
 * hold. It is on the stack contd__put_off_carried, too. A test or wait of its group runs it from there
 * (contd__unmarked_take_sig). All others that look for continuations give it slot and bit first
 * (contd__carried_retry_sig).
 */
struct contd__unmarked {
	struct contd_event event;
	struct contd__slot *slot; /* READY, without its bit; or NULL: it has none */
	/* Its group; without a slot also invoke, cb, data, out, source and link, as in a slot that is ready. */
	struct contd__slot as;
};

/*
 * A source's operation is complete: one event more of the continuation in s, or (s: NULL) the only one of that in u. If
 * it was the last one, the continuation goes one of three ways. All steps of the way are done here:
 *
 *     taken          the test or wait of its group in which this thread drives the source (t, or NULL: in none) runs it
 *                    when the source has been driven: no bit need be set and found again. At most one, because no other
 *                    thread can run a continuation that has been taken, and callbacks may wait for each other
 *     without a bit  as long as this thread alone uses contd: there is no other thread to tell. The next look for
 *                    continuations finds it in u, which must stay until then
 *     marked         it gets its bit, and a slot if it has none, and is announced
 *
 * A u without a slot counts as outstanding, and is one that contd__may_be_unmarked_sig() allows. Afterwards s and u may
 * be gone. Any context.
 */
CONTD_INTERNAL_API void contd__complete_or_take_sig(struct contd__slot *s, uint32_t generation,
						    struct contd__unmarked *u, struct contd__taking *t);

/*
 * If nothing is on the stack but one continuation of g, that is taken, and the caller runs it at once. If not, all get
 * slots and bits, and this returns NULL. _run: afterwards u may be gone. Ordinary threads that are registered.
 */
CONTD_INTERNAL_API struct contd__unmarked *contd__unmarked_take_sig(const struct contd_group *g);
CONTD_INTERNAL_API void contd__unmarked_run(struct contd__unmarked *u);

/*
 * The middle of contd__unmarked_run(), for a u without a slot: the caller counts the continuation off. `invoke` does
 * what u->as.invoke would do here; as a constant, it costs no indirect call. waited: u was on the stack.
 */
static inline void contd__unmarked_run_by(struct contd__unmarked *u, void (*invoke)(struct contd__slot *), bool waited)
{
	if (waited)
		contd__count_latency(u->as.link);
	else
		CONTD_COUNT(latency[0], 1);
	contd__slot_call(u->as.group, &u->as, NULL, invoke);
}

/* u is ready since now, which counts if it is not run at once. */
static inline void contd__unmarked_since_now(struct contd__unmarked *u)
{
	u->as.link = contd__ticks_short();
}

/*
 * A callback, or a function of the program that a source calls, looks for continuations: all that this thread has taken
 * and not run yet becomes ready.
 */
CONTD_INTERNAL_API void contd__carried_release_all_sig(void);
static inline void contd__carried_release_sig(void)
{
	const struct contd__carrying *c = &contd__self.carried;

	if (__builtin_expect((c->running && c->running->next != c->running->count) || c->take || c->waking ||
				     contd__load(&contd__put_off_carried) != NULL,
			     0))
		contd__carried_release_all_sig();
}

/* Give slots to the operations that have none, among them those that found no memory for one. */
CONTD_INTERNAL_API void contd__carried_retry_all_sig(void);
static inline void contd__carried_retry_sig(void)
{
	if (__builtin_expect(contd__load(&contd__put_off_carried) != NULL, 0))
		contd__carried_retry_all_sig();
}

#endif
