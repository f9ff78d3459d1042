/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups, and the life of a continuation:
 *
 *     register   contd__slot_get_sig, fill it, contd__slot_publish_sig (PENDING)
 *     complete   contd__slot_event_done_sig, once an event; the last makes it READY and sets its bit
 *     claim      contd__table_claim_sig clears the bit, then READY becomes RUNNING
 *     run        invoke; then contd__slot_finish_sig frees the slot and counts down
 *     cancel     PENDING or READY becomes CANCELLED
 *
 *     operation                     thread  handler  in a callback  progress
 *     contd__slot_get_sig                 yes     yes*       yes        lock-free; a thread may grow the table (blocks)
 *     contd__slot_publish_sig         yes     yes        yes        wait-free
 *     contd__slot_event_done_sig      yes     yes        yes        lock-free
 *     contd__slot_finish_sig          yes     yes        yes        lock-free
 *     contd__scan_sig                 yes     yes        yes        lock-free, but for what the callbacks do
 *     contd__group_pin/unpin_sig      yes     yes        yes        wait-free
 *     contd_group_create              yes     no         yes        blocking
 *     * -EAGAIN there when the reserve is used up
 */
#ifndef CONTD_DISPATCH_GROUP_H
#define CONTD_DISPATCH_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <urcu/lfstack.h>
#include <urcu/list.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/classes.h"
#include "dispatch/outlet.h"
#include "rcu/table.h"

/* life: references (the handle, scans and completers that look) in the high half, continuations outstanding below. */
#define LIFE_REFERENCE (1ull << 32)
#define LIFE_OUTSTANDING(w) ((uint32_t)(w))

struct contd_group {
	struct contd__table table;
	uint64_t life __attribute__((aligned(64)));
	uint32_t flags;   /* enum contd_group_flags, and GROUP_* */
	int32_t max_poll; /* -1: no limit */
	int32_t priority;
	struct contd__outlet *outlet; /* of the executor that runs its continuations, or NULL */
	uint64_t waiter; /* contd__slot_word of the continuation (of another group) that waits for this group, or 0 */
	void (*idle)(struct contd_group *group); /* outstanding reached 0; any context; or NULL */
	void (*freed)(void *owner);              /* the group is gone; an ordinary thread; or NULL */
	void *owner;                             /* of idle and freed */
	struct cds_lfs_node dead;
	struct cds_list_head node; /* all groups, or those that are kept: under contd__groups.lock; read with RCU */
	uint32_t kept;             /* contd_fini() is over: nothing of it runs (group_set.h) */
	uint32_t given_back;       /* the program has no handle any more */
};

/* Has it a max_poll, so that a test, or an interruption, runs no more than that? */
static inline bool contd__limited(const struct contd_group *g)
{
	return g->max_poll >= 0;
}

/*
 * Groups with an executor. PUSH: the thread that finds a continuation hands it over. The daemon does, too, so the group
 * has CONTD_THREAD_ANY. ONLY_PROGRAM: the program has not given CONTD_THREAD_ANY itself. PULL: the group is in the
 * executor's own root, where only the executor's threads find it.
 */
#define GROUP_PUSH 0x80000000u
#define GROUP_PULL 0x40000000u
#define GROUP_ONLY_PROGRAM 0x20000000u
#define GROUP_EXECUTOR (GROUP_PUSH | GROUP_PULL)

/* Two units write these: group.c, which handlers reach, and group_set.c, on ordinary threads. */
struct contd__groups {
	struct __cds_lfs_stack dead; /* to be freed; pushed in handlers too, emptied by threads under `lock` */
	uint32_t dead_count;
	uint32_t strangers; /* completers on threads that RCU does not know: no group is freed while there are any */
	struct cds_list_head all;
	struct contd__root root[CLASSES];
	pthread_mutex_t lock; /* `all` and the places in roots; never taken in a handler */
};
CONTD_INTERNAL_API extern struct contd__groups contd__groups;

static inline void contd__group_pin_sig(struct contd_group *g)
{
	contd__add(&g->life, LIFE_REFERENCE);
}

/* The same for a group that may be dead already: then false. Something else (RCU, a lock) keeps its memory
 * meanwhile. */
static inline bool contd__group_try_pin_sig(struct contd_group *g)
{
	uint64_t life = contd__load(&g->life);

	while (life != 0)
		if (contd__cas(&g->life, &life, life + LIFE_REFERENCE))
			return true;
	return false;
}

CONTD_INTERNAL_API void contd__group_unpin_sig(struct contd_group *g);

static inline uint32_t contd__group_outstanding_sig(const struct contd_group *g)
{
	return LIFE_OUTSTANDING(contd__load_seq(&g->life));
}

/*
 * Between these no group is freed. They are a read-side critical section, or, on a thread that RCU does not know, a
 * count that contd__reap looks at. Any context; they nest.
 */
bool contd__enter_sig(void);
void contd__leave_sig(bool reader);

#endif
