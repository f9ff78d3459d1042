/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups, and the life of a continuation:
 *
 *   register   contd__slot_get, fill it, contd__slot_publish_sig (PENDING)
 *   complete   contd__slot_event_done_sig, once an event; the last makes it READY and sets its bit
 *   claim      contd__table_claim_sig clears the bit, then READY becomes RUNNING
 *   run        invoke; then contd__slot_finish_sig frees the slot and counts down
 *   cancel     PENDING or READY becomes CANCELLED
 *
 *  operation                     thread  handler  in a callback  progress
 *  contd__slot_get                 yes     yes*       yes        lock-free; on a thread it may grow the table (blocks)
 *  contd__slot_publish_sig         yes     yes        yes        wait-free
 *  contd__slot_event_done_sig      yes     yes        yes        lock-free
 *  contd__slot_finish_sig          yes     yes        yes        lock-free
 *  contd__scan_sig                 yes     yes        yes        lock-free, but for what the callbacks do
 *  contd__group_pin/unpin_sig      yes     yes        yes        wait-free
 *  contd_group_create              yes     no         yes        blocking
 *   * -EAGAIN there when the reserve is used up
 */
#ifndef CONTD_DISPATCH_GROUP_H
#define CONTD_DISPATCH_GROUP_H

#include <stdint.h>

#include <urcu/lfstack.h>
#include <urcu/list.h>

#include <contd/contd.h>

#include "dispatch/dispatcher.h"
#include "dispatch/late.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

/* life: references (the handle, scans and completers that look) in the high half, continuations outstanding below. */
#define LIFE_REFERENCE (1ull << 32)
#define LIFE_OUTSTANDING(w) ((uint32_t)(w))

struct contd_group {
	struct contd__table table;
	uint64_t life __attribute__((aligned(64)));
	uint32_t flags;        /* enum contd_group_flags, and GROUP_* */
	int32_t max_poll;      /* -1: no limit */
	int32_t priority;
	struct contd_executor *executor; /* runs its continuations, or NULL */
	uint64_t waiter;       /* contd__slot_word of who (of another group) runs when this one is complete, or 0 */
	void (*idle)(struct contd_group *group); /* outstanding reached 0; any context; or NULL */
	void (*freed)(void *owner); /* the group is gone; an ordinary thread; or NULL */
	void *owner;           /* of idle and freed */
	struct cds_lfs_node dead;
	struct cds_list_head node; /* all groups; under contd__dispatch.lock */
};

/*
 * With an executor. PUSH: whoever finds a continuation hands it over, the daemon too, so that it has CONTD_THREAD_ANY; ONLY_PROGRAM:
 * which the program has not given. PULL: it is in the executor's own root, where nobody else finds it.
 */
#define GROUP_PUSH 0x80000000u
#define GROUP_PULL 0x40000000u
#define GROUP_ONLY_PROGRAM 0x20000000u
#define GROUP_EXECUTOR (GROUP_PUSH | GROUP_PULL)

static inline void contd__group_pin_sig(struct contd_group *g)
{
	contd__add(&g->life, LIFE_REFERENCE);
}

/* The same of a group that may be dead already: then false. Something keeps its memory meanwhile (RCU, a lock). */
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

/* A free slot of the group, or -EAGAIN (in a handler), -ENOMEM, -ENOSPC through *errp. */
CONTD_INTERNAL_API struct contd__slot *contd__slot_get(struct contd_group *g, int *errp);

/* Count it as outstanding and make it PENDING on n events; returns its generation. */
CONTD_INTERNAL_API uint32_t contd__slot_publish_sig(struct contd__slot *s, uint32_t n);

/*
 * n of the events that the continuation of this generation waits for are complete. Stale: nothing happens.
 * Returns 1 if it became ready.
 * The caller knows that the group lives until this call begins (the continuation is outstanding, or it holds a pin, or
 * it is between contd__enter_sig and contd__leave_sig since before that could change).
 * Of generations the low GENERATION_MASK bits are compared: an event's word has no room for more.
 */
CONTD_INTERNAL_API int contd__slot_event_done_sig(struct contd__slot *s, uint32_t generation, uint32_t n);
int contd__slot_event_done_rcu(struct contd__slot *s, uint32_t generation, uint32_t n); /* between enter and leave */
#define GENERATION_MASK 0xfffffu

/* A slot and its generation's low 20 bits in one word, bits 0 and 1 free: slots are cache lines, addresses have 48 bits. */
static inline uint64_t contd__slot_word(const struct contd__slot *s, uint32_t generation)
{
	return (uint64_t)(uintptr_t)s | (uint64_t)(generation & 0xffff) << 48 | (uint64_t)(generation >> 16 & 0xf) << 2;
}

static inline struct contd__slot *contd__word_slot(uint64_t w)
{
	return (struct contd__slot *)(uintptr_t)(w & 0x0000ffffffffffc0ull);
}

static inline uint32_t contd__word_generation(uint64_t w)
{
	return (uint32_t)(w >> 48) | (uint32_t)(w >> 2 & 0xf) << 16;
}

/* An event's word: see event.c. */
#define EVENT_DONE 1u
#define EVENT_ATTACHED 2u
#define EVENT_CARRIED 4u

static inline uint64_t contd__event_done_word(int status)
{
	return (uint64_t)(uint32_t)status << 32 | EVENT_DONE;
}

/* Ready ones of one leaf of a group's, whose bits are not set yet; and what is to be announced when they are. */
struct contd__marks {
	struct contd_group *group; /* NULL: there are none */
	uint32_t leaf, flags, kicks;
	uint64_t bits;
	bool announce; /* there are groups without executor among them */
};
#define CONTD__MARKS_INIT {.flags = CONTD_POLL_ONLY}

/* One more, between enter and leave. From its being ready to its bit nobody finds it; a group that something of is outstanding
 * lives. */
void contd__marks_add_rcu(struct contd__marks *m, struct contd__slot *s);

/* All of them are marked, and told of. */
void contd__marks_end_rcu(struct contd__marks *m);

/* Nothing of g is outstanding any more; the caller holds a pin. */
void contd__group_idle_sig(struct contd_group *g);

/* n that have no slot are outstanding no more. The caller holds a pin. */
void contd__group_count_down_sig(struct contd_group *g, uint32_t n);

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

/* The same with one event of each of n (contd__slot_word), told of together. Between enter and leave. */
void contd__words_done_rcu(const uint64_t word[], uint32_t n);

/*
 * The same with the one event of a memory word's. Nobody is interrupted, for the caller is about to scan: what it leaves, and
 * what it may not run, it gives to contd__kick_sig() with what this returns.
 */
uint32_t contd__word_holds_sig(struct contd__slot *s, uint32_t generation);

/*
 * The same with one event of one that sources which are driven on this thread have completed alone, while nothing else is ready:
 * contd__drive() runs it when they are through, without a bit being set and found again. At most one, for what is taken nobody
 * else can run, and callbacks may wait for each other. false: nothing was counted.
 */
bool contd__word_take_rcu(uint64_t word);

/* dispatch/event.c: complete so many events with 0, those that are not complete already. Any context. */
#define EVENTS_TOGETHER 16u
CONTD_INTERNAL_API void contd__events_complete_sig(struct contd_event *const event[], uint32_t n);

/*
 * Between these no group is freed: a read-side critical section, or, on a thread that RCU does not know, a count that
 * contd__reap looks at. Any context; nests.
 */
bool contd__enter_sig(void);
void contd__leave_sig(bool reader);

/*
 * Withdraw: 1 if it was PENDING (then the caller takes it from its events and counts those it took, and one more for
 * itself, with contd__slot_event_done_sig), 0 if it was READY (then contd__slot_withdrawn_rcu), -EALREADY.
 */
CONTD_INTERNAL_API int contd__slot_withdraw_sig(struct contd__slot *s, uint32_t generation);

/* Free a slot that was READY when it was withdrawn, unless somebody else does. Between enter and leave, since before that. */
void contd__slot_withdrawn_rcu(struct contd_group *g, struct contd__slot *s);

/* Mark a READY slot, or free it if it has been withdrawn since it became READY. Between enter and leave, or with a pin. */
void contd__slot_mark_sig(struct contd_group *g, struct contd__slot *s);

/* Frees a slot that nobody else will touch, and which keeps the group until then, and counts down. */
void contd__slot_finish_sig(struct contd_group *g, struct contd__slot *s);

/* May a continuation of g run right now inside the call that registers it? */
static inline bool contd__may_run_inline(const struct contd_group *g)
{
	return !(g->flags & (CONTD_POLL_ONLY | CONTD_ENQUEUE_COMPLETE | GROUP_EXECUTOR)) && g->max_poll != 0 && !contd__self.frame &&
	       contd__self.context == CONTEXT_THREAD;
}

/*
 * The same as contd__slot_event_done_sig with the last n events, but the continuation runs here instead of becoming
 * ready. 1 if it ran. Where others are still missing nothing more happens than that n are counted.
 */
CONTD_INTERNAL_API int contd__slot_run_inline(struct contd__slot *s, uint32_t generation, uint32_t n);

/*
 * The two halves of that, for who finds an event in the midst of something: take it (1: it is the caller's, RUNNING), and
 * run it, soon and on this thread.
 */
CONTD_INTERNAL_API int contd__slot_take_sig(struct contd__slot *s, uint32_t generation, uint32_t n);
CONTD_INTERNAL_API void contd__slot_run_taken(struct contd__slot *s);

/* The same of one that an executor has been given: here, whatever its group says. */
void contd__slot_run_here(struct contd__slot *s);

/* Around a callback of g's, or `ran` of them where the watchdog is off: frame, guard, count. */
static inline void contd__frame_enter_sig(struct contd__frame *f, const struct contd_group *g, const void *site)
{
	f->group = g;
	f->outer = contd__self.frame;
	f->site = NULL;
	f->since = 0;
	f->guard = contd__tls.guard;
	/* A continuation is not interrupted by another one: the handler leaves it for the end of the guard. */
	contd_guard_begin();
	contd__self.frame = f;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (contd__late_watched_sig()) {
		f->site = contd__self.site;
		f->since = contd__self.since;
		contd__store(&contd__self.since, contd__ticks());
		/* Release: pairs with the acquire in contd__stats_running. */
		contd__store_release(&contd__self.site, site);
	}
}

static inline void contd__frame_leave_sig(struct contd__frame *f, uint32_t ran)
{
	if (__builtin_expect(contd__self.site != NULL, 0)) {
		contd__late_note_sig(contd__self.site, LATE_CONTINUATION, contd__ticks() - contd__self.since);
		contd__store(&contd__self.site, NULL);
		contd__store(&contd__self.since, f->since);
		contd__store_release(&contd__self.site, f->site);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__self.frame = f->outer;
	CONTD_COUNT(run, ran);
	if (contd__self.context == CONTEXT_HANDLER)
		CONTD_COUNT(run_handler, ran);
	else if (contd__self.context == CONTEXT_REGION)
		CONTD_COUNT(run_region, ran);
	else if (contd__self.context == CONTEXT_DAEMON)
		CONTD_COUNT(run_daemon, ran);
	/* Without the pick-up of contd_guard_end(): see contd__pickup(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__tls.guard <= f->guard, 0)) {
		contd__tls.guard = f->guard; /* the callback has ended one guard too many: this one */
		contd__unbalanced(CONTD__END_OF_GUARD);
	} else {
		contd__tls.guard--;
	}
}

/*
 * A signal that comes while a continuation runs, or a completion in it, leaves CONTD__TLS_MISSED. Whoever runs continuations on a thread
 * calls this when the last of them has ended, and before the thread sleeps or goes back to the program:
 *
 *   contd__drive (wait.c)             what test, wait and poll run, and a drain
 *   run_work, contd_work_run (executor.c)
 *   contd__slot_run_inline (run.c), contd__carried_at_once (carried.c), run_now (mpi/attach.c): in the call that registers it
 *   test_waking (mpi/modes.c)
 *   contd__run_ready, cr_progress, testing_end (mpi/calls.c): before the end of the test that they belong to, whose max_poll
 *                                     holds for what is picked up, too
 *
 * In a handler, and under a guard, it does nothing: contd__react_sig() scans until nothing is left, or has another signal sent.
 */
static inline void contd__pickup(void)
{
	if (__builtin_expect(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED, 0))
		contd__guard_pickup();
}

/* Is one of g's continuations on this thread's stack? */
static inline bool contd__inside_sig(const struct contd_group *g)
{
	for (const struct contd__frame *f = contd__self.frame; f; f = f->outer)
		if (f->group == g)
			return true;
	return false;
}

/*
 * Count one event at s, which is published, when awaited is complete. 1: it is already, and the caller counts it; 0;
 * -ELOOP; -EBUSY. Ordinary threads. The end of it, before that: 1 if it had not been counted.
 */
CONTD_INTERNAL_API int contd__group_await(struct contd_group *awaited, struct contd__slot *s);
CONTD_INTERNAL_API uint32_t contd__group_await_end(struct contd_group *awaited, struct contd__slot *s);

/* May this thread run what is ready of a group that it has the handle of? Of a pull executor's group its own threads may. */
static inline bool contd__may_scan_sig(const struct contd_group *g)
{
	uint32_t flags = contd__load(&g->flags);

	if (flags & GROUP_PULL)
		return contd__self.executor == contd__load(&g->executor);
	return contd__self.context != CONTEXT_DAEMON || flags & CONTD_THREAD_ANY;
}

/* What scans: a call of the program's, an interruption, or the daemon. */
enum contd__scanner { SCAN_CALL, SCAN_INTERRUPTION, SCAN_DAEMON };

struct contd__budget {
	uint32_t count;    /* how many more may run */
	uint64_t deadline; /* contd__ticks() after which none is started but the first; 0: none */
	uint32_t ran;
	enum contd__scanner by;
	bool rounds;   /* of an interruption: each group has had its turn, and its max_poll */
	bool left;     /* an interruption leaves something because of a max_poll */
};

/*
 * Run ready continuations of one group, which this root's scan has found, or (NULL) the caller has the handle of and may scan; the caller
 * holds a pin. Returns how many ran.
 */
CONTD_INTERNAL_API uint32_t contd__scan_group_sig(struct contd_group *g, const struct contd__root *root, struct contd__budget *budget);

/* Run ready continuations of all groups of a root. */
uint32_t contd__scan_root_sig(struct contd__root *root, struct contd__budget *budget);

/* Run ready continuations of all groups of the classes in the mask. */
CONTD_INTERNAL_API uint32_t contd__scan_sig(uint32_t classes, struct contd__budget *budget);

/* The same, round after round, until nothing is left or the budget is used up: a chain's links in one go. */
uint32_t contd__scan_through_sig(uint32_t classes, struct contd__budget *budget);

/* Has a class of the mask anything marked? A hint that is never wrong about "no" for what was marked before. */
static inline bool contd__marked_sig(uint32_t classes)
{
	return (contd__load_seq(&contd__ready) & classes) != 0;
}

/* Wake who sleeps in a wait, to look again. Any context. */
CONTD_INTERNAL_API void contd__wake_sleepers_sig(void);

/*
 * Something of g is ready: tell sleepers, the daemon, the file descriptor, and a thread that may be interrupted for it; or
 * its executor's threads. The one step that follows each mark. On an attached thread it may run continuations there and
 * then, but not in a read-side section, under a guard or in a handler: then at the end of that. Between enter and leave if g
 * may have an executor.
 */
void contd__announce_rcu(const struct contd_group *g);

enum contd__looking {
	LOOK,
	LOOK_RUNG, /* a peer has rung, so that something is there: sources are driven until something becomes ready, */
	           /* or RUNG_DRIVES times (each may bring one fragment of a long message) */
	LOOK_LAST  /* the bell is armed, and nobody looks again unless it rings */
};

/*
 * What an interruption may do where it found this thread: memory words, sources, scan, within the handler's budget.
 * Returns how many continuations ran.
 */
uint32_t contd__react_sig(enum contd__looking how);

/* As an interruption here and now would; signals that come meanwhile are kept out by the guard. Ordinary threads. */
uint32_t contd__react_under_guard(enum contd__looking how);

/* Have a thread look that may be interrupted: what contd__words_look_sig() returns says which. Any context. */
void contd__kick_sig(uint32_t kicks);

/*
 * Around what a call does that registers with a group of these flags. An async-signal-safe continuation that is ready already,
 * and must not run inside the call (CONTD_ENQUEUE_COMPLETE), is not picked up by this thread in between: a tick comes soon
 * after it. Any context.
 */
static inline bool contd__defer_begin_sig(uint32_t flags)
{
	if (__builtin_expect((flags & (CONTD_ENQUEUE_COMPLETE | CONTD_ASYNC_SIGNAL_SAFE)) !=
				     (CONTD_ENQUEUE_COMPLETE | CONTD_ASYNC_SIGNAL_SAFE),
			     1))
		return false;
	contd_guard_begin();
	return true;
}

CONTD_INTERNAL_API void contd__deferred_sig(void);
static inline void contd__defer_end_sig(bool deferring)
{
	if (__builtin_expect(deferring, 0))
		contd__deferred_sig();
}

/*
 * dispatch/wait.c: look at words, drive sources (where `sources`), run what is ready, of g (may be NULL) first. With
 * `limit` this is a test of g: all that it runs of g's is at most its max_poll. Without, a wait for g. Returns how many ran. Ordinary threads.
 */
CONTD_INTERNAL_API uint32_t contd__drive(struct contd_group *g, uint32_t most, bool limit, bool sources);

/* dispatch/event.c: take the slot's events back; how many had not completed. */
uint32_t contd__events_detach_sig(struct contd__slot *s, uint32_t generation);

/* Calls the slot's callback as contd_callback. */
void contd__invoke_user_sig(struct contd__slot *s);

/*
 * dispatch/word.c: look at memory words; skips where another thread, or the interrupted one, is doing it. The caller scans
 * next; what it returns is for contd__kick_sig(), if something is left then.
 */
CONTD_INTERNAL_API uint32_t contd__words_look_sig(uint32_t most);

#endif
