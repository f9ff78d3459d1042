/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continuations without a slot: the operation that one waits for carries it (struct contd_carried, contd.h), and counts
 * as outstanding. When the operation is complete the thread that found out runs it as soon as sources have been driven;
 * where that may not be (in regions' handlers, on the daemon, with groups whose tests are limited, with something else
 * ready), it gets a slot, READY, and is like any other.
 *
 * What was taken nobody else can run until its turn comes. So callbacks that are carried wait for each other only in
 * calls of contd's, which look for continuations: and give these slots first. The same where a source, while it is
 * driven, calls a function of the program's that makes such a call.
 *
 *  operation                  thread  region's handler  progress
 *  contd__carried_begin         yes         yes         wait-free, but where the table must grow (blocks)
 *  contd__carried_done_sig      yes         yes         as above
 *  contd__carried_retry_sig     yes         yes         as above
 *  contd__carried_release_sig   yes         no          as above
 */
#ifndef CONTD_DISPATCH_CARRIED_H
#define CONTD_DISPATCH_CARRIED_H

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/classes.h"
#include "dispatch/event_word.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

/*
 * What the sources that a thread drives have completed, and it runs afterwards, in order, but for what was complete
 * when a callback began it: that comes right behind the callback, whose memory is warm still. On the thread's stack.
 */
#define TAKEN_MOST 256u
struct contd__taking {
	struct contd__slot *slot; /* this one alone, RUNNING, */
	bool slot_may;            /* one may be taken: there is a place for it, which `left` does not count, */
	uint32_t next, count;     /* and those from `next` on */
	uint32_t left;            /* how many may run, these included */
	uint32_t chained;         /* that were complete when callbacks began them */
	uint32_t spare;           /* callbacks that have returned, of `group`, and still count as outstanding */
	struct contd_group *group;
	struct contd__taking *outer;
	struct contd_carried *carried[TAKEN_MOST];
};

static inline void contd__taking_init(struct contd__taking *t, uint32_t most)
{
	t->slot = NULL;
	t->next = t->count = t->chained = t->spare = 0;
	t->left = most - 1; /* one for the slot */
	t->slot_may = true;
}

/* In the child of a fork: what this thread has taken does not run there. */
void contd__carried_forked(void);

/* Not many more than `most`; returns how many ran. */
CONTD_INTERNAL_API uint32_t contd__taken_run(struct contd__taking *t, uint32_t most);

/*
 * So many and the reserve must find slots when they are complete: then nobody can be told that memory is short. 0,
 * -ENOMEM, -ENOSPC, -EAGAIN (in a handler outside regions).
 */
CONTD_INTERNAL_API int contd__carried_room(struct contd_group *g, uint32_t outstanding);

/*
 * The same in a callback of g's that was carried: in place of one that ran before it, and need not be counted down
 * then. false: there is none.
 */
static inline bool contd__carried_begin_in_turn(struct contd_carried *c, contd_callback *cb, void *data,
						struct contd_group *g)
{
	struct contd__taking *t = contd__self.carried.running;

	if (!t || t->spare == 0 || t->group != g || contd__self.context != CONTEXT_THREAD)
		return false;
	t->spare--;
	contd__store(&c->event.word, EVENT_CARRIED);
	c->group = g;
	c->cb = cb;
	c->data = data;
	CONTD_COUNT(registered, 1);
	return true;
}

/* c waits, with this continuation: counted as outstanding. Errors: as above. */
static inline int contd__carried_begin(struct contd_carried *c, contd_callback *cb, void *data, struct contd_group *g)
{
	uint32_t outstanding = LIFE_OUTSTANDING(contd__load(&g->life)) + 1;
	int rc;

	if (__builtin_expect(outstanding + TABLE_RESERVE > contd__load(&g->table.limit) || !contd__self.registered,
			     0) &&
	    (rc = contd__carried_room(g, outstanding)) != 0)
		return rc;
	contd__store(&c->event.word, EVENT_CARRIED);
	c->group = g;
	c->cb = cb;
	c->data = data;
	contd__add(&g->life, 1);
	CONTD_COUNT(registered, 1);
	return 0;
}

/* It does not, after all. */
CONTD_INTERNAL_API void contd__carried_forget(struct contd_carried *c);

/*
 * c is complete, with its status, in the call that began it: it runs before this one returns, where nothing else runs
 * on the thread, else after what runs. Ordinary threads, regions' handlers.
 */
CONTD_INTERNAL_API void contd__carried_at_once(struct contd_carried *c);

/*
 * The same with one event of one that sources which are driven on this thread have completed alone, while nothing else
 * is ready: contd__drive() runs it when they are through, without a bit being set and found again. At most one, for
 * what is taken nobody else can run, and callbacks may wait for each other. false: nothing was counted.
 */
bool contd__word_take_rcu(uint64_t word);

/* These are complete, each with its status. */
CONTD_INTERNAL_API void contd__carried_done_sig(struct contd_carried *const c[], uint32_t n);

/* May others be taken on this thread, and run here after what is being run, or when sources have been driven? */
static inline bool contd__may_take_sig(const struct contd__taking *t, uint32_t n)
{
	return t && n <= TAKEN_MOST - t->count && n <= t->left - (t->count - t->next) &&
	       contd__self.context == CONTEXT_THREAD && !contd__marked_sig(CLASSES_ALL);
}

static inline bool contd__may_be_taken_sig(const struct contd_group *g)
{
	return g->max_poll < 0 && !(contd__load_seq(&g->flags) & (CONTD_POLL_ONLY | GROUP_EXECUTOR));
}

static inline void contd__carried_done_one_sig(struct contd_carried *c)
{
	struct contd__taking *t = contd__self.carried.take;

	if (__builtin_expect(contd__may_take_sig(t, 1) && contd__may_be_taken_sig(c->group), 1))
		t->carried[t->count++] = c;
	else
		contd__carried_done_sig(&c, 1);
}

/* For which there was no memory: a stack, linked by `next`. */
CONTD_INTERNAL_API extern struct contd_event *contd__put_off_carried;

/*
 * A callback, or what a source calls of the program's, looks for others: all that this thread has taken and not run yet
 * becomes ready.
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

/* Those that found no memory for a slot before. */
void contd__carried_retry_all_sig(void);
static inline void contd__carried_retry_sig(void)
{
	if (__builtin_expect(contd__load(&contd__put_off_carried) != NULL, 0))
		contd__carried_retry_all_sig();
}

#endif
