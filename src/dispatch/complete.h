/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From "complete" to "ready": count the event at the slot; the last one makes it READY, marks its bit, wakes who
 * sleeps, and interrupts who is busy elsewhere. No caller has to remember a step.
 */
#ifndef CONTD_DISPATCH_COMPLETE_H
#define CONTD_DISPATCH_COMPLETE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/slot.h"
#include "rcu/table.h"

/*
 * n of the events that the continuation of this generation waits for are complete. Stale: nothing happens.
 * Returns 1 if it became ready.
 * The caller knows that the group lives until this call begins (the continuation is outstanding, or it holds a pin, or
 * it is between contd__enter_sig and contd__leave_sig since before that could change).
 * Of generations the low GENERATION_MASK bits are compared: an event's word has no room for more.
 */
CONTD_INTERNAL_API int contd__slot_event_done_sig(struct contd__slot *s, uint32_t generation, uint32_t n);
int contd__slot_event_done_rcu(struct contd__slot *s, uint32_t generation, uint32_t n); /* between enter and leave */

/* The same with one event of each of n (contd__slot_word), told of together. Between enter and leave. */
void contd__words_done_rcu(const uint64_t word[], uint32_t n);

/*
 * The same with the one event of a memory word's. Nobody is interrupted, for the caller is about to scan: what it
 * leaves, and what it may not run, it gives to contd__kick_sig() with what this returns.
 */
uint32_t contd__word_holds_sig(struct contd__slot *s, uint32_t generation);

/* Ready ones of one leaf of a group's, whose bits are not set yet; and what is to be announced when they are. */
struct contd__marks {
	struct contd_group *group; /* NULL: there are none */
	uint32_t leaf, flags, kicks;
	uint64_t bits;
	bool announce; /* there are groups without executor among them */
};
#define CONTD__MARKS_INIT \
	{ \
		.flags = CONTD_POLL_ONLY \
	}

/* One more, between enter and leave. From its being ready to its bit nobody finds it; a group that something of is
 * outstanding lives. */
void contd__marks_add_rcu(struct contd__marks *m, struct contd__slot *s);

/* All of them are marked, and told of. */
void contd__marks_end_rcu(struct contd__marks *m);

/*
 * Something of g is ready: tell sleepers, the daemon, the file descriptor, and a thread that may be interrupted for it;
 * or its executor's threads. The one step that follows each mark. On an attached thread it may run continuations there
 * and then, but not in a read-side section, under a guard or in a handler: then at the end of that. Between enter and
 * leave if g may have an executor.
 */
void contd__announce_rcu(const struct contd_group *g);

/* Its executor's threads: n are ready. Between enter and leave: what keeps the executor (executor.h). */
void contd__tell_executor_rcu(const struct contd_group *g, uint32_t n);

/*
 * Count n events; the last ones make the slot RUNNING: 1, and it is the caller's to run (run.h).
 */
CONTD_INTERNAL_API int contd__slot_take_sig(struct contd__slot *s, uint32_t generation, uint32_t n);

/* Free a slot that was READY when it was withdrawn, unless somebody else does. Between enter and leave, since before
 * that. */
void contd__slot_withdrawn_rcu(struct contd_group *g, struct contd__slot *s);

/* Mark a READY slot, or free it if it has been withdrawn since it became READY. Between enter and leave, or with a
 * pin. */
void contd__slot_mark_sig(struct contd_group *g, struct contd__slot *s);

/* Frees a slot that nobody else will touch, and which keeps the group until then, and counts down. */
void contd__slot_finish_sig(struct contd_group *g, struct contd__slot *s);

/* Nothing of g is outstanding any more; the caller holds a pin. */
void contd__group_idle_sig(struct contd_group *g);

/* n that have no slot are outstanding no more. The caller holds a pin. */
CONTD_INTERNAL_API void contd__group_count_down_sig(struct contd_group *g, uint32_t n);

/* The same where nothing but they keep the group. */
static inline void contd__group_count_down_own_sig(struct contd_group *g, uint32_t n)
{
	uint64_t life = contd__load(&g->life);

	while (LIFE_OUTSTANDING(life) > n) /* others keep it, and tell when it is complete */
		if (contd__cas(&g->life, &life, life - n))
			return;
	contd__group_pin_sig(g);
	contd__group_count_down_sig(g, n);
	contd__group_unpin_sig(g);
}

#endif
