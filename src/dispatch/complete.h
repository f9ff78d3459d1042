/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From "complete" to "ready": count the event at the slot. The last event makes the slot READY, marks its bit, wakes
 * sleeping threads, and interrupts a busy one. Each function here that makes something ready does all of that, so that
 * no caller has to remember a step. Where a caller must do one itself, the compiler makes it take the result:
 *
 *     contd__slot_ready_sig   the slot gets no bit: contd__complete_or_take_sig() (carried.h) sees to it
 *     contd__slot_take_sig    the slot is not READY but RUNNING: the caller runs it
 *     contd__word_holds_sig   a scan follows, and only what it leaves is worth an interruption
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
 * n of the events that the continuation of this generation waits for are complete. If the generation is stale, nothing
 * happens. Returns 1 if the continuation became ready.
 *
 * The caller knows that the group lives until this call begins: the continuation is outstanding, or the caller holds a
 * pin, or has been between contd__enter_sig and contd__leave_sig since before that could change. Only the low
 * GENERATION_MASK bits of generations are compared: an event's word has no room for more.
 */
CONTD_INTERNAL_API int contd__slot_event_done_sig(struct contd__slot *s, uint32_t generation, uint32_t n);
int contd__slot_event_done_rcu(struct contd__slot *s, uint32_t generation, uint32_t n); /* between enter and leave */

/* The same, but no bit is set, and no thread is told: if it returns 1, the caller sees to that. */
int contd__slot_ready_sig(struct contd__slot *s, uint32_t generation, uint32_t n) __attribute__((warn_unused_result));

/* The same for one event of each of n slots (contd__slot_word), announced together. Between enter and leave. */
void contd__words_done_rcu(const uint64_t word[], uint32_t n);

/*
 * The same for the one event of a memory word. It interrupts no thread, because the caller is about to scan. For what
 * the scan leaves, or may not run, the caller gives the returned bits to contd__kick_sig().
 */
uint32_t contd__word_holds_sig(struct contd__slot *s, uint32_t generation) __attribute__((warn_unused_result));

/*
 * s is RUNNING on this thread, which does not run it after all: it is READY again, marked and announced. No other
 * thread can touch it before, except to withdraw it. The caller holds a pin. by_daemon: its executor has refused it.
 * Then only sleeping threads are woken, because the daemon itself looks again.
 */
void contd__slot_ready_again_sig(struct contd_group *g, struct contd__slot *s, bool by_daemon);

/* A poll-only group has become one that all threads scan, and has a place in a root. Marks that were made before are
 * passed on to the root, and announced. Ordinary threads; the caller holds a pin. */
void contd__group_shown(struct contd_group *g);

/* READY slots of one leaf of a group, which have no bit yet, and what to announce when they get it. */
struct contd__marks {
	struct contd_group *group; /* NULL: there are none */
	uint32_t leaf, flags, kicks;
	uint64_t bits;
	bool announce; /* a group without pull executor is among them */
};
#define CONTD__MARKS_INIT \
	{ \
		.flags = CONTD_POLL_ONLY \
	}

/* Add a slot, between enter and leave. No thread finds it before its bit is set. Its group lives, because the
 * continuation is outstanding. */
void contd__marks_add_rcu(struct contd__marks *m, struct contd__slot *s);

/* Mark all of them, and announce them. */
void contd__marks_end_rcu(struct contd__marks *m);

/*
 * Something of g is ready: wake sleepers, the daemon and the file descriptor, and interrupt a thread that may run it;
 * or wake its executor's threads. This step follows each mark. (It is here for carried.c, which has a stack instead of
 * marks where memory is short.) On an attached thread it may run continuations at once.
 * In a read-side critical section, under a guard or in a handler they run at its end instead. Between enter and leave
 * if g may have an executor.
 */
void contd__announce_rcu(const struct contd_group *g);

/* Tell its executor's threads that n are ready. Between enter and leave, which keep the executor (executor.h). */
void contd__tell_executor_rcu(const struct contd_group *g, uint32_t n);

/* Count n events. Returns 1 if they are the last ones: then the slot is RUNNING, and the caller runs it (run.h). */
int contd__slot_take_sig(struct contd__slot *s, uint32_t generation, uint32_t n) __attribute__((warn_unused_result));

/* Free a slot that was READY when it was withdrawn, unless another thread frees it. Between enter and leave, since
 * before the withdrawal. */
void contd__slot_withdrawn_rcu(struct contd_group *g, struct contd__slot *s);

/* Free a slot that no other thread will touch, and count down. Until then the slot keeps the group. */
void contd__slot_finish_sig(struct contd_group *g, struct contd__slot *s);

/* The same; the caller holds a pin. */
void contd__slot_finish_pinned_sig(struct contd_group *g, struct contd__slot *s);

/* n continuations without a slot are no longer outstanding. The caller holds a pin. */
CONTD_INTERNAL_API void contd__group_count_down_sig(struct contd_group *g, uint32_t n);

/* The same without a pin: maybe nothing but these n keeps the group. _last: they are all there are, or were a moment
 * ago. */
CONTD_INTERNAL_API void contd__group_count_down_last_sig(struct contd_group *g, uint32_t n);
static inline void contd__group_count_down_own_sig(struct contd_group *g, uint32_t n)
{
	uint64_t life = contd__load(&g->life);

	while (LIFE_OUTSTANDING(life) > n) /* others keep it, and report its end */
		if (contd__cas(&g->life, &life, life - n))
			return;
	contd__group_count_down_last_sig(g, n);
}

#endif
