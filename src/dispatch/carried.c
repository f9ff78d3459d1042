/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. Continuations that operations carry. */
#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/complete.h"
#include "dispatch/event_word.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/late.h"
#include "dispatch/run.h"
#include "dispatch/slot.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/ways.h"
#include "rcu/table.h"

struct contd_event *contd__put_off_carried;

int contd__carried_room(struct contd_group *g, uint32_t outstanding)
{
	uint32_t limit;

	if (!contd__in_handler() && !contd__self.registered)
		contd__ordinary->thread_register();
	/* Acquire: pairs with the release in contd__table_grow. */
	while (outstanding + TABLE_RESERVE > (limit = contd__load_acquire(&g->table.limit))) {
		int rc;

		if (contd__in_handler())
			return contd__fail(-EAGAIN, "the group's reserve of slots is used up: register from a thread");
		rc = contd__ordinary->grow(&g->table, limit);
		if (rc)
			return contd__fail(
				rc, rc == -ENOSPC ? "2^24 continuations are outstanding in this group; use more groups"
						  : "out of memory for more continuations");
		CONTD_COUNT(grown, 1);
	}
	return 0;
}

void contd__carried_forget(struct contd_carried *c)
{
	struct contd_group *g = c->group;

	CONTD_COUNT(registered, -1);
	c->event.next = NULL;
	/* Release: pairs with the acquire in end_event() (event.c). The completer sees all that happened before. */
	contd__store_release(&c->event.word, 0);
	c->group = NULL;
	contd__group_count_down_own_sig(g, 1);
}

/* After this the event is not touched again: its callback may reuse it, and so may a thread that sees it complete. */
static void carried_over(struct contd_carried *c)
{
	contd__store_release(&c->event.word, contd__event_done_word(c->status));
}

/* -------------------------------------------------------------------------------------------------- with a slot --- */

static struct contd__slot *slot_for(struct contd_group *g)
{
	struct contd__table *t = &g->table;
	struct contd__slot *s;

	/* contd__carried_room() made room for the outstanding continuations. Slots that threads have allocated and not
	 * registered yet are in no count, so the table may have to grow. */
	while (!(s = contd__slot_alloc_sig(t)))
		if (contd__in_handler() || contd__ordinary->grow(t, contd__load(&t->limit)))
			break;
	return s;
}

static inline void push(struct contd_event *e)
{
	e->next = contd__load(&contd__put_off_carried);
	while (!contd__cas(&contd__put_off_carried, &e->next, e))
		;
}

/* There is no memory for a slot: the operation waits on the stack until the next look. */
static void put_off_rcu(struct contd_event *e, const struct contd_group *g)
{
	push(e);
	contd__announce_rcu(g);
}

static void slot_ready_rcu(struct contd__slot *s, uint32_t since, struct contd__marks *m)
{
	contd__store(&s->link, since);
	/* Release: pairs with the acquire in run_claimed() (scan.c). The claiming thread sees what the slot holds. */
	contd__store_release(&s->state, SLOT_WORD(SLOT_GENERATION(contd__load(&s->state)), 0, SLOT_READY));
	contd__marks_add_rcu(m, s);
}

static void make_ready_rcu(struct contd_carried *c, struct contd__marks *m)
{
	struct contd__slot *s = slot_for(c->group);

	if (!s) {
		put_off_rcu(&c->event, c->group);
		return;
	}
	contd__slot_holds_user(s, c->cb, c->data, c->status);
	s->source = KIND_EVENT;
	carried_over(c);
	CONTD_TESTPOINT("carried_over");
	slot_ready_rcu(s, contd__ticks_short(), m);
}

static void make_all_ready(struct contd_carried *const c[], uint32_t n)
{
	struct contd__marks m = CONTD__MARKS_INIT;
	bool reader = contd__enter_sig();

	for (uint32_t i = 0; i < n; i++)
		make_ready_rcu(c[i], &m);
	contd__marks_end_rcu(&m);
	contd__leave_sig(reader);
}

static void mark_rcu(struct contd__unmarked *u, struct contd__marks *m)
{
	struct contd__slot *s = u->slot;

	if (s) {
		contd__marks_add_rcu(m, s);
		return;
	}
	s = slot_for(u->as.group);
	if (!s) {
		put_off_rcu(&u->event, u->as.group);
		return;
	}
	s->invoke = u->as.invoke;
	s->cb = u->as.cb;
	s->data = u->as.data;
	s->out = u->as.out;
	contd__store(&s->source, u->as.source);
	slot_ready_rcu(s, u->as.link, m);
}

/* In the order in which they became complete: the stack has the newest first. */
static void give_slots(struct contd_event *newest)
{
	struct contd_event *oldest = NULL, *next;
	struct contd__marks m = CONTD__MARKS_INIT;
	bool reader = contd__enter_sig();

	for (struct contd_event *e = newest; e; e = next) {
		next = e->next;
		e->next = oldest;
		oldest = e;
	}
	for (struct contd_event *e = oldest; e; e = next) {
		next = e->next;
		if (contd__load(&e->word) == EVENT_UNMARKED)
			mark_rcu((struct contd__unmarked *)e, &m);
		else
			make_ready_rcu((struct contd_carried *)e, &m);
	}
	contd__marks_end_rcu(&m);
	contd__leave_sig(reader);
}

void contd__carried_retry_all_sig(void)
{
	give_slots(contd__xchg(&contd__put_off_carried, NULL));
}

/* Make ready all that has been taken and has not run yet. The slot's handle can be cancelled again. */
static void release(struct contd__taking *t)
{
	struct contd__marks m = CONTD__MARKS_INIT;
	struct contd__slot *s = t->slot;
	struct contd__unmarked *u = t->unmarked;
	uint32_t next = t->next, count = t->count;
	bool reader = contd__enter_sig();

	/* Before the announcement: on an attached thread it may run continuations at once, and these may come here. */
	t->slot = NULL;
	t->unmarked = NULL;
	t->count = next;
	if (s)
		slot_ready_rcu(s, contd__ticks_short(), &m);
	if (u) {
		contd__unmarked_since_now(u);
		mark_rcu(u, &m);
	}
	for (uint32_t i = next; i < count; i++)
		make_ready_rcu(t->carried[i], &m);
	contd__marks_end_rcu(&m);
	contd__leave_sig(reader);
}

void contd__carried_release_all_sig(void)
{
	struct contd__carrying *c = &contd__self.carried;

	contd__carried_retry_sig();
	if (c->running)
		release(c->running);
	if (c->take)
		release(c->take);
	if (c->waking)
		release(c->waking);
}

/* ----------------------------------------------------------------------------------------------- without a bit --- */

/* Must another thread be told, or may a handler interrupt this one and look? */
static inline bool others_look(void)
{
	return contd__load_seq(&contd__threads_count) != 1 || !contd__self.registered ||
	       contd__load_seq(&contd__wake.sleepers) || contd__load_seq(&contd__wake.fd_armed) ||
	       contd__load_seq(&contd__wake.daemon_mode) || !contd__on_thread_sig() ||
	       contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED;
}

static void ready_unmarked(struct contd__unmarked *u)
{
	contd__store(&u->event.word, EVENT_UNMARKED);
	if (others_look()) {
		u->event.next = NULL;
		give_slots(&u->event);
		return;
	}
	CONTD_TESTPOINT("unmarked_alone");
	push(&u->event);
	CONTD_TESTPOINT("unmarked_pushed");
	/*
	 * Once more, Dekker: the push, then these loads. A thread that begins to use contd, to sleep or to poll the
	 * descriptor says so first, and then looks (contd__waits_sig, contd__carried_release_sig).
	 */
	if (others_look())
		contd__carried_retry_all_sig();
	else
		contd__checkpoint_now_sig(); /* the next checkpoint looks: contd__ready does not tell it */
}

/* Does the test or wait that this thread is in take a continuation of g, and has it taken none yet? */
static inline bool takes_one(const struct contd__taking *t, const struct contd_group *g)
{
	return t && t == contd__takes() && t->tested == g && !t->slot && !t->unmarked &&
	       contd__may_be_taken_by_test_sig(g) && contd__on_thread_sig();
}

void contd__complete_or_take_sig(struct contd__slot *s, uint32_t generation, struct contd__unmarked *u,
				 struct contd__taking *t)
{
	struct contd_group *g = s ? s->group : u->as.group;

	if (takes_one(t, g)) {
		if (!s)
			t->unmarked = u;
		else if (contd__slot_take_sig(s, generation, 1))
			t->slot = s;
	} else if (!s) {
		contd__unmarked_since_now(u);
		ready_unmarked(u);
	} else if (!contd__may_be_unmarked_sig(g)) {
		/* An async-signal-safe continuation may run right here, as it might in a handler that interrupted the
		 * source here. */
		contd__slot_event_done_sig(s, generation, 1);
	} else if (contd__slot_ready_sig(s, generation, 1)) {
		/* Without its bit it is this thread's until another one finds u. */
		u->slot = s;
		u->as.group = g;
		ready_unmarked(u);
	}
}

struct contd__unmarked *contd__unmarked_take_sig(const struct contd_group *g)
{
	struct contd_event *e = contd__xchg(&contd__put_off_carried, NULL);
	struct contd__unmarked *u = (struct contd__unmarked *)e;

	CONTD_TESTPOINT("unmarked_taken");
	if (!e)
		return NULL;
	if (!e->next && contd__load(&e->word) == EVENT_UNMARKED && u->as.group == g &&
	    !(contd__load(&g->flags) & GROUP_EXECUTOR))
		return u;
	give_slots(e);
	return NULL;
}

void contd__unmarked_run(struct contd__unmarked *u)
{
	struct contd_group *g = u->as.group;

	if (u->slot) {
		contd__slot_run_unmarked(u->slot);
		return;
	}
	contd__unmarked_run_by(u, u->as.invoke, true);
	contd__group_count_down_own_sig(g, 1);
}

/* ----------------------------------------------------------------------------------------------- without a slot --- */

/* All of them or none: otherwise later ones could run before earlier ones. */
static bool take(struct contd_carried *const c[], uint32_t n)
{
	struct contd__taking *t = contd__takes();
	struct contd_group *last = NULL;
	uint32_t count;

	if (!contd__may_take_sig(t, n))
		return false;
	count = t->count;
	for (uint32_t i = 0; i < n; i++) {
		struct contd_group *g = c[i]->group;

		if (g != last && !contd__may_be_taken_sig(g))
			return false;
		last = g;
		t->carried[count + i] = c[i];
	}
	t->count = count + n;
	return true;
}

bool contd__word_take_rcu(uint64_t word)
{
	struct contd__slot *s = contd__word_slot(word);
	struct contd__taking *take = contd__takes();
	struct contd_group *g = s->group;

	if (!take || take->slot || take->unmarked || !take->slot_may || !contd__on_thread_sig() ||
	    contd__marked_sig(CLASSES_ALL) || !contd__may_be_taken_sig(g))
		return false;
	if (contd__slot_take_sig(s, contd__word_generation(word), 1))
		take->slot = s;
	return true;
}

void contd__carried_done_sig(struct contd_carried *const c[], uint32_t n)
{
	if (!take(c, n))
		make_all_ready(c, n);
}

static inline void run_one(void *c)
{
	struct contd__taking mine;

	contd__taking_init(&mine, UINT32_MAX);
	mine.carried[mine.count++] = c;
	contd__taken_run(&mine, UINT32_MAX);
}

void contd__carried_at_once(struct contd_carried *c)
{
	struct contd__taking *t = contd__self.carried.running;

	if (contd__may_run_inline(c->group)) {
		contd__run_at_once(run_one, c);
		return;
	}
	/* At most TAKEN_MOST in a row: then other continuations, and sources, get their turn. */
	if (contd__may_take_sig(t, 1) && t->next > 0 && t->chained < TAKEN_MOST && contd__may_be_taken_sig(c->group) &&
	    !(c->group->flags & CONTD_ENQUEUE_COMPLETE)) {
		t->carried[--t->next] = c;
		t->chained++;
	} else {
		bool deferring = contd__defer_begin_sig(c->group->flags);

		make_all_ready(&c, 1);
		contd__defer_end_sig(deferring);
	}
}

struct turn {
	struct contd__taking *t;
	struct contd_carried *c; /* the first one */
	uint32_t most;
	bool watched;
};

static inline uint32_t call_some(void *what)
{
	const struct turn *turn = what;
	struct contd__taking *t = turn->t;
	struct contd_carried *c = turn->c;
	const struct contd_group *g = c->group;
	uint32_t most = turn->most;
	bool watched = turn->watched;

	do {
		contd_callback *cb = c->cb;
		void *data = c->data;
		int status = c->status;

		t->next++;
		t->left--;
		carried_over(c);
		CONTD_TESTPOINT("carried_runs");
		cb(status, data);
		t->returned++;
	} while (t->next < t->count && (c = t->carried[t->next])->group == g && !watched && t->returned < most);
	return t->returned;
}

/* Run the next ones of one group in one frame. With the watchdog on, each has a separate frame, so that the watchdog
 * can tell them apart. */
static uint32_t run_some(struct contd__taking *t, uint32_t most)
{
	struct contd_carried *c = t->carried[t->next];
	struct contd_group *g = c->group;
	struct turn turn = {t, c, most, contd__late_watched_sig()};
	uint32_t ran;

	/* They keep the group: each stays counted as outstanding until all have run. */
	t->group = g;
	ran = contd__call_in_frame(g, NULL, (const void *)(uintptr_t)c->cb, call_some, &turn);
	CONTD_COUNT(latency[0], ran);
	t->returned = 0; /* first: what is counted down is not subtracted once more (contd__carried_returned_sig) */
	contd__group_count_down_own_sig(g, ran);
	return ran;
}

static void drop(struct contd__taking *t)
{
	t->slot = NULL;
	t->unmarked = NULL;
	t->slot_may = false;
	t->count = t->next;
}

void contd__carried_fini(void)
{
	contd__store(&contd__put_off_carried, NULL);
}

void contd__carried_forked(void)
{
	struct contd__carrying *c = &contd__self.carried;

	if (c->take)
		drop(c->take);
	if (c->waking)
		drop(c->waking);
	c->take = c->waking = NULL; /* the source that was being driven goes on in the child */
	for (struct contd__taking *t = c->running; t; t = t->outer)
		drop(t);
}

uint32_t contd__taken_run(struct contd__taking *t, uint32_t most)
{
	uint32_t ran = 0;

	if (!t->slot && t->next == t->count)
		return 0;
	contd__runs_begin(t);
	if (t->slot) {
		struct contd__slot *s = t->slot;

		t->slot = NULL;
		/* If `left` has room for one more, the next slot may be taken. */
		t->slot_may = t->left > t->count - t->next;
		t->left -= t->slot_may;
		contd__slot_run_taken(s);
		ran = 1;
	}
	while (t->next < t->count && ran < most)
		ran += run_some(t, most - ran);
	contd__runs_end(t);
	return ran;
}
