/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/outlet.h"
#include "dispatch/slot.h"
#include "dispatch/wake.h"
#include "rcu/table.h"

/* ------------------------------------------------------------------------------------------------ telling of it --- */

void contd__tell_executor_rcu(const struct contd_group *g, uint32_t n)
{
	struct contd__outlet *o = contd__load(&g->outlet);

	if (o) /* NULL: it has been run since, and the group has no executor any more */
		o->ops->tell(o, n);
}

/*
 * n slots of a group with these flags are marked. Whom that concerns is noted, for woken(); the threads of a pull
 * executor are told at once.
 */
static inline void note_rcu(struct contd__marks *m, const struct contd_group *g, uint32_t flags, uint32_t n)
{
	if (flags & GROUP_PULL) {
		contd__tell_executor_rcu(g, n);
		return;
	}
	m->announce = true;
	m->kicks |= contd__whom_sig(flags);
	if (!(flags & CONTD_POLL_ONLY))
		m->flags = (m->flags & ~CONTD_POLL_ONLY) | flags;
}

/* Wake those that sleep and may run something of what was noted. Returns whom to interrupt. */
static inline uint32_t woken(const struct contd__marks *m)
{
	if (m->announce)
		contd__wake_for_ready_sig(m->flags);
	return m->kicks;
}

/* The same for one slot. */
static inline uint32_t wake(const struct contd_group *g, uint32_t flags)
{
	struct contd__marks m = CONTD__MARKS_INIT;

	note_rcu(&m, g, flags, 1);
	return woken(&m);
}

void contd__announce_rcu(const struct contd_group *g)
{
	contd__kick_sig(wake(g, contd__load_seq(&g->flags)));
}

/* ----------------------------------------------------------------------------------------------------- counting --- */

/*
 * Note when it became ready. The caller has made it READY and not set its bit yet: until then the slot is the caller's.
 * Before the exchange it is not: another thread may make that exchange, and by now the slot may be free, and its link
 * name the next free one.
 */
static void became_ready(struct contd__slot *s)
{
	contd__store(&s->link, contd__ticks_short());
}

/*
 * Count n events. Returns 1 if they are the last ones, and took the slot from PENDING to `last`. A cancelled slot is
 * not reused until all of its events are counted, so that no completer ever meets another continuation in it. The
 * completer that counts the last one frees it.
 */
static int count_events(struct contd__slot *s, uint32_t generation, uint32_t n, enum contd__slot_state last)
{
	/* Acquire: pairs with the release in contd__slot_publish_sig. */
	uint64_t w = contd__load_acquire(&s->state), to;
	enum contd__slot_state st;
	bool all;

	do {
		st = SLOT_STATE(w);
		if (((SLOT_GENERATION(w) ^ generation) & GENERATION_MASK) != 0 ||
		    (st != SLOT_PENDING && st != SLOT_CANCELLED))
			return 0;
		all = SLOT_REMAINING(w) == n;
		to = SLOT_WORD(SLOT_GENERATION(w), SLOT_REMAINING(w) - n, all && st == SLOT_PENDING ? last : st);
		CONTD_TESTPOINT("count_before_exchange");
	} while (!contd__cas(&s->state, &w, to));
	if (all && st == SLOT_CANCELLED)
		contd__slot_finish_sig(s->group, s);
	else if (all && last == SLOT_READY)
		became_ready(s);
	return all && st == SLOT_PENDING;
}

/*
 * s was READY and is CANCELLED: the thread that clears its bit frees it. If that were left to a scan, s would be
 * outstanding until a thread comes that may run the group's continuations. So the canceller tries to clear the bit. If
 * the bit is not set, either a scan was faster and frees the slot, or the bit has yet to be set: then the thread that
 * sets it calls this. Dekker: the canceller makes the state CANCELLED, then clears the bit; the completer sets the bit,
 * then loads the state.
 */
void contd__slot_withdrawn_rcu(struct contd_group *g, struct contd__slot *s)
{
	while (contd__table_unmark_sig(&g->table, s->index)) {
		CONTD_TESTPOINT("cancel_unmarked");
		/* This thread has the bit, so no other thread can take or free the slot. */
		if (SLOT_STATE(contd__load_seq(&s->state)) == SLOT_CANCELLED) {
			contd__slot_finish_sig(g, s);
			return;
		}
		/* A scan was faster, and this is the bit of the slot's next continuation. Put it back. That one may be
		 * cancelled by now, too. */
		contd__table_mark_sig(&g->table, s->index);
		contd__announce_rcu(g);
		if (SLOT_STATE(contd__load_seq(&s->state)) != SLOT_CANCELLED)
			return;
	}
}

/* It has just been marked. Free it if it has been withdrawn since it became READY. Partner:
 * contd__slot_withdraw_sig(). */
static inline void marked_rcu(struct contd_group *g, struct contd__slot *s)
{
	if (__builtin_expect(SLOT_STATE(contd__load_seq(&s->state)) == SLOT_CANCELLED, 0))
		contd__slot_withdrawn_rcu(g, s);
}

static inline void mark(struct contd_group *g, struct contd__slot *s)
{
	contd__table_mark_sig(&g->table, s->index);
	marked_rcu(g, s);
	CONTD_TESTPOINT("complete_marked");
}

int contd__slot_event_done_rcu(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	struct contd_group *g = s->group;
	int ready = count_events(s, generation, n, SLOT_READY);

	CONTD_TESTPOINT("complete_ready");
	if (ready) {
		mark(g, s);
		contd__announce_rcu(g);
	}
	return ready;
}

int contd__slot_event_done_sig(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	bool reader = contd__enter_sig();
	int ready = contd__slot_event_done_rcu(s, generation, n);

	contd__leave_sig(reader);
	return ready;
}

int contd__slot_take_sig(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	return count_events(s, generation, n, SLOT_RUNNING);
}

int contd__slot_ready_sig(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	return count_events(s, generation, n, SLOT_READY);
}

uint32_t contd__word_holds_sig(struct contd__slot *s, uint32_t generation)
{
	bool reader = contd__enter_sig();
	uint32_t kicks = 0;

	if (count_events(s, generation, 1, SLOT_READY)) {
		struct contd_group *g = s->group;

		mark(g, s);
		kicks = wake(g, contd__load_seq(&g->flags));
	}
	contd__leave_sig(reader);
	return kicks;
}

void contd__slot_ready_again_sig(struct contd_group *g, struct contd__slot *s, bool by_daemon)
{
	bool reader = contd__enter_sig();

	/* Release: as contd__slot_publish_sig. */
	contd__store_release(&s->state, SLOT_WORD(SLOT_GENERATION(contd__load(&s->state)), 0, SLOT_READY));
	mark(g, s);
	if (by_daemon)
		wake(g, contd__load_seq(&g->flags) & ~(uint32_t)CONTD_THREAD_ANY);
	else
		contd__announce_rcu(g);
	contd__leave_sig(reader);
}

void contd__group_shown(struct contd_group *g)
{
	/* The root was set, then this is loaded. Dekker with mark_up (rcu/table.c). */
	if (contd__table_any_sig(&g->table))
		contd__root_mark_sig(g->table.root, g->table.root_index);
	contd__announce_rcu(g); /* a poll-only group has no executor */
}

/* ---------------------------------------------------------------------------------------------- several at once --- */

static void mark_all(struct contd__marks *m)
{
	contd__table_mark_leaf_sig(&m->group->table, m->leaf << 6, m->bits);
	CONTD_TESTPOINT("complete_leaf_marked");
	for (uint64_t bits = m->bits; bits; bits &= bits - 1)
		marked_rcu(m->group,
			   contd__table_slot(&m->group->table, m->leaf << 6 | (uint32_t)__builtin_ctzll(bits)));
	/* After they were counted, as in contd_event_complete(). */
	note_rcu(m, m->group, contd__load_seq(&m->group->flags), m->bits & (m->bits - 1) ? INT32_MAX : 1);
}

void contd__marks_add_rcu(struct contd__marks *m, struct contd__slot *s)
{
	if (s->group != m->group || s->index >> 6 != m->leaf) {
		if (m->group)
			mark_all(m);
		m->group = s->group;
		m->leaf = s->index >> 6;
		m->bits = 0;
	}
	m->bits |= 1ull << (s->index & 63);
}

void contd__marks_end_rcu(struct contd__marks *m)
{
	if (m->group)
		mark_all(m);
	contd__kick_sig(woken(m));
}

void contd__words_done_rcu(const uint64_t word[], uint32_t n)
{
	struct contd__marks m = CONTD__MARKS_INIT;

	for (uint32_t i = 0; i < n; i++) {
		struct contd__slot *s = contd__word_slot(word[i]);

		if (!count_events(s, contd__word_generation(word[i]), 1, SLOT_READY))
			continue;
		CONTD_TESTPOINT("complete_counted");
		contd__marks_add_rcu(&m, s);
	}
	contd__marks_end_rcu(&m);
}

/* ------------------------------------------------------------------------------------------------------ the end --- */

/* Nothing of g is outstanding any more; the caller holds a pin. By now the count may have gone up again. All that react
 * to this check it themselves. */
static void group_idle(struct contd_group *g)
{
	uint64_t waiter;

	if (g->idle)
		g->idle(g);
	/* Load the waiter before the count. A continuation that was registered in between, with the count up again,
	 * waits for the next time that it comes to 0. */
	waiter = contd__load_seq(&g->waiter);
	if (waiter && contd__group_outstanding_sig(g) == 0 && contd__cas(&g->waiter, &waiter, 0)) {
		struct contd__slot *s = contd__word_slot(waiter);
		struct contd_group *waiting = s->group;

		/* The waiting continuation is outstanding until this completes it, so its group exists. */
		contd__group_pin_sig(waiting);
		contd__slot_event_done_sig(s, contd__word_generation(waiter), 1);
		contd__group_unpin_sig(waiting);
	}
	contd__wake_sleepers_sig(); /* threads that wait for the group; the descriptor only tells of what can be run */
}

void contd__group_count_down_sig(struct contd_group *g, uint32_t n)
{
	if (LIFE_OUTSTANDING(contd__sub(&g->life, n)) == n)
		group_idle(g);
}

/* One atomic operation pins the group and counts down. */
void contd__group_count_down_last_sig(struct contd_group *g, uint32_t n)
{
	if (LIFE_OUTSTANDING(contd__add(&g->life, LIFE_REFERENCE - n)) == n)
		group_idle(g);
	contd__group_unpin_sig(g);
}

static inline void finish(struct contd_group *g, struct contd__slot *s)
{
	contd__slot_free_sig(&g->table, s);
	CONTD_TESTPOINT("finish_freed");
}

void contd__slot_finish_pinned_sig(struct contd_group *g, struct contd__slot *s)
{
	finish(g, s);
	contd__group_count_down_sig(g, 1);
}

void contd__slot_finish_sig(struct contd_group *g, struct contd__slot *s)
{
	finish(g, s);
	contd__group_count_down_own_sig(g, 1);
}
