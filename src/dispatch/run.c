/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. The claim protocol, scans and what tells of them. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatch/carried.h"
#include "dispatch/executor.h"
#include "rcu/reader.h"

static struct contd__page private_page; /* while there is no shared one, at the beginning */

struct contd__dispatch contd__dispatch = {
	.fd = -1, .daemon_fd = -1, .page = &private_page, .lock = PTHREAD_MUTEX_INITIALIZER};
__thread struct contd__self contd__self __attribute__((tls_model("initial-exec")));
const uint32_t contd__never_rung = 1;
__thread struct contd_tls contd__tls __attribute__((tls_model("initial-exec"))) = {.watch = &contd__never_rung};

#define D contd__dispatch

/* --------------------------------------------------------------------------------------------------------- errors --- */

int contd__fail(int err, const char *text)
{
	contd__self.error = text;
	return err;
}

int contd__check_live(void)
{
	if (__builtin_expect(contd__load(&D.forked), 0))
		return contd__fail(-ECHILD, "this is the child of a fork: contd works in the process that started it, or after exec");
	if (__builtin_expect(contd__load(&D.live) == 0, 0))
		return contd__fail(-EPERM, "contd is not running: call contd_init() first");
	return 0;
}

#define NO_REGION "contd_compute_end() without a contd_compute_begin() on this thread: it changes nothing"
#define NO_GUARD "contd_guard_end() without a contd_guard_begin() on this thread: it changes nothing"

void contd__unbalanced(uint32_t what)
{
	static const char no_region[] = "contd: " NO_REGION "\n", no_guard[] = "contd: " NO_GUARD "\n";
	static uint32_t told;
	int saved = errno; /* contd_guard_end() is allowed in handlers */

	contd__self.error = what == CONTD__END_OF_REGION ? NO_REGION : NO_GUARD;
	if (contd__or(&told, what) & what)
		return;
	if (what == CONTD__END_OF_REGION)
		syscall(SYS_write, STDERR_FILENO, no_region, sizeof(no_region) - 1);
	else
		syscall(SYS_write, STDERR_FILENO, no_guard, sizeof(no_guard) - 1);
	errno = saved;
}

/* ----------------------------------------------------------------------------------------------------- references --- */

void contd__group_unpin_sig(struct contd_group *g)
{
	if (contd__sub(&g->life, LIFE_REFERENCE) == LIFE_REFERENCE) {
		/* The last reference, and nothing outstanding: an ordinary thread frees it (contd__reap). */
		/* Counted first: who takes it off the stack counts it down, and never below 0. */
		contd__add(&D.dead_count, 1);
		cds_lfs_push((cds_lfs_stack_ptr_t){._s = &D.dead}, &g->dead);
	}
}

/* ------------------------------------------------------------------------------------------------------- telling --- */

/*
 * Make an eventfd(2) readable. Fails only when its counter is full, and then it is readable as it is. Not by write(3), a
 * cancellation point: a thread that is to be cancelled would be, in the middle of a handler.
 */
void contd__poke_sig(int fd)
{
	uint64_t one = 1;

	CONTD_TESTPOINT("descriptor_loaded");
	syscall(SYS_write, fd, &one, sizeof(one));
}

/* The daemon says that it sleeps before it looks for the last time; the caller has set what it looks for. */
void contd__daemon_wake_sig(bool ready)
{
	uint32_t *word = &D.page->armed.by.daemon, how;
	int saved;

	if (contd__load_seq(&D.daemon_asleep) && contd__xchg(&D.daemon_asleep, 0)) {
		saved = errno;
		syscall(SYS_futex, &D.daemon_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		errno = saved;
		return;
	}
	how = contd__load_seq(word);
	if (how == DAEMON_AWAKE || (how == DAEMON_NAPS && !ready))
		return;
	contd__store(&D.daemon_called, 1); /* the exchange orders it */
	if ((how = contd__xchg(word, DAEMON_AWAKE)) == DAEMON_AWAKE)
		return;
	saved = errno;
	if (how == DAEMON_POLLS)
		contd__poke_sig(contd__load(&D.daemon_fd));
	else
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); /* not the private kind: peers wake it too */
	errno = saved;
}

void contd__wake_sleepers_sig(void)
{
	int saved;

	if (!contd__load_seq(&D.sleepers))
		return;
	saved = errno;
	contd__add(&D.wake, 1);
	syscall(SYS_futex, &D.wake, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	errno = saved;
}

/* Something of a group with these flags is ready. */
static void announce(uint32_t flags)
{
	/* These pairs are Dekker's: the bit or count before was set with sequential consistency, and the other side says
	 * that it sleeps (is armed) before it looks for the last time. */
	contd__wake_sleepers_sig();
	if (flags & CONTD_THREAD_ANY && !(flags & CONTD_POLL_ONLY))
		contd__daemon_wake_sig(true);
	if (!(flags & CONTD_POLL_ONLY) && contd__load_seq(&D.fd_armed) && contd__xchg(&D.fd_armed, 0)) {
		int saved = errno;

		CONTD_TESTPOINT("fd_disarmed");
		contd__poke_sig(contd__load(&D.fd));
		errno = saved;
	}
}

/*
 * Who is interrupted for something ready. Of async-signal-safe groups: an attached thread, wherever it is. Of others: one that
 * computes in a region; with CONTD_THREAD_ANY the daemon does it where there is one. Nobody for a poll-only group, or one
 * whose executor's threads take it themselves.
 */
#define KICK_SIGNAL 1u
#define KICK_REGION 2u

static uint32_t whom(uint32_t flags)
{
	if (flags & (CONTD_POLL_ONLY | GROUP_PULL))
		return 0;
	if (flags & CONTD_ASYNC_SIGNAL_SAFE)
		return KICK_SIGNAL;
	return flags & CONTD_THREAD_ANY && contd__load(&D.daemon_mode) ? 0 : KICK_REGION;
}

/*
 * A thread that computes in a region runs it here and now, or at the end of what keeps it. Else another one is interrupted. If
 * there is none, whoever begins a region next looks (contd__region_rearm()).
 */
static void kick_region(void)
{
	struct contd_tls *tls = &contd__tls;
	const struct contd__signal_ops *ops;

	if (contd__self.context == CONTEXT_REGION)
		return; /* inside a scan of the handler's, which goes on */
	if (contd__load(&tls->flags) & CONTD__TLS_ATTACHED && tls->region && contd__self.context == CONTEXT_THREAD) {
		contd__or(&tls->flags, CONTD__TLS_MISSED);
		contd__guard_pickup();
		return;
	}
	/* Dekker: the bit was set, then this is loaded. Partner: contd__region_rearm(), which stores this, then looks. */
	if (!contd__load_seq(&D.regions))
		return;
	ops = contd__load_acquire(&D.signal_ops);
	if (ops)
		ops->notify_region();
}

static void kick_signal(void)
{
	struct contd_tls *tls = &contd__tls;
	const struct contd__signal_ops *ops;

	if (contd__load(&tls->flags) & CONTD__TLS_ATTACHED) {
		if (contd__self.context != CONTEXT_THREAD)
			return; /* inside a scan of the handler's, which goes on */
		contd__or(&tls->flags, CONTD__TLS_MISSED);
		contd__guard_pickup();
		return;
	}
	ops = contd__load_acquire(&D.signal_ops);
	if (ops)
		ops->notify();
}

void contd__kick_sig(uint32_t kicks)
{
	if (kicks & KICK_SIGNAL)
		kick_signal();
	if (kicks & KICK_REGION)
		kick_region();
}

/* Between enter and leave: what keeps the executor (executor.h). */
static void tell_executor_rcu(const struct contd_group *g, uint32_t n)
{
	struct contd_executor *ex = contd__load(&g->executor);

	if (ex) /* or else somebody has run it, and the group has been given to nobody since */
		contd__executor_tell_sig(ex, n);
}

void contd__announce_rcu(const struct contd_group *g)
{
	uint32_t flags = contd__load_seq(&g->flags);

	if (flags & GROUP_PULL) {
		tell_executor_rcu(g, 1);
		return;
	}
	announce(flags);
	contd__kick_sig(whom(flags));
}

/*
 * A hint that this scan had cleared was set again. Whoever looked in between has found nothing, and was told before that:
 * sleepers, the daemon, and handlers.
 */
static void tell_again(uint32_t flags, struct contd_executor *executor)
{
	uint32_t kicks = whom(flags);

	if (executor) {
		contd__executor_tell_sig(executor, 1);
		return;
	}
	announce(flags);
	if (contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED && (kicks & KICK_SIGNAL || (kicks && contd__tls.region)))
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED); /* for contd__react_sig() or contd__pickup() */
	else
		contd__kick_sig(kicks);
}

/* The same of a hint in g's own table. The caller holds a pin, which does not keep an executor. */
static void tell_group_again(const struct contd_group *g)
{
	uint32_t flags = contd__load_seq(&g->flags);
	bool reader;

	if (!(flags & GROUP_PULL)) {
		tell_again(flags, NULL);
		return;
	}
	reader = contd__enter_sig();
	tell_executor_rcu(g, 1);
	contd__leave_sig(reader);
}

void contd__pending_sig(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&D.signal_ops);

	if (ops)
		ops->arm();
	contd__daemon_wake_sig(false);
	contd__wake_sleepers_sig(); /* who waits without a limit now has something to look at */
}

bool contd__sources_pending_sig(uint32_t where)
{
	/* Acquire: pairs with the release in contd__source_register. */
	uint32_t n = contd__load_acquire(&D.source_count);

	for (uint32_t i = 0; i < n; i++)
		if (D.source[i]->where & where && D.source[i]->pending())
			return true;
	return false;
}

bool contd__sources_steady_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&D.source_count);

	for (uint32_t i = 0; i < n; i++)
		if (D.source[i]->steady && D.source[i]->where & where && D.source[i]->pending())
			return true;
	return false;
}

void contd__sources_drive_sig(enum contd__where where, const struct contd__source *but, bool last)
{
	uint32_t n = contd__load_acquire(&D.source_count);

	for (uint32_t i = 0; i < n; i++)
		if (D.source[i] != but && D.source[i]->where & (uint32_t)where && D.source[i]->pending()) {
			uint64_t begin = contd__late_watched_sig() ? contd__ticks() : 0;

			D.source[i]->progress(where, last);
			if (begin)
				contd__late_note_sig((const void *)(uintptr_t)D.source[i]->progress, LATE_SOURCE,
						     contd__ticks() - begin);
		}
}

bool contd__sources_here_sig(uint32_t where)
{
	uint32_t n = contd__load_acquire(&D.source_count);

	for (uint32_t i = 0; i < n; i++)
		if (D.source[i]->where & where && D.source[i]->pending() && (!D.source[i]->here || D.source[i]->here()))
			return true;
	return false;
}

/* ---------------------------------------------------------------------------------------------------- completion --- */

bool contd__enter_sig(void)
{
	if (contd__self.registered) {
		contd__read_lock_sig();
		return true;
	}
	contd__add(&D.strangers, 1);
	return false;
}

void contd__leave_sig(bool reader)
{
	if (reader)
		contd__read_unlock_sig();
	else
		contd__sub(&D.strangers, 1);
}

struct contd__slot *contd__slot_get(struct contd_group *g, int *errp)
{
	struct contd__table *t = &g->table;
	struct contd__slot *s;

	if (contd__in_handler()) {
		s = contd__slot_alloc_sig(t);
		if (!s)
			*errp = contd__fail(-EAGAIN, "the group's reserve of slots is used up: register from a thread");
		return s;
	}
	if (__builtin_expect(!contd__self.registered, 0))
		D.ordinary->thread_register();
	for (;;) {
		/* Acquire: pairs with the release in contd__table_grow. */
		uint32_t limit = contd__load_acquire(&t->limit), used;
		int rc;

		s = contd__slot_alloc_sig(t);
		used = contd__load(&t->used);
		if (s && (used > limit || limit - used >= TABLE_RESERVE || limit >= TABLE_SLOTS_MAX))
			return s;
		/* Grow with the reserve still there; where memory is short the continuation at hand goes first. */
		rc = D.ordinary->grow(t, limit);
		if (rc == 0)
			CONTD_COUNT(grown, 1);
		if (s)
			return s;
		if (rc) {
			*errp = contd__fail(rc, rc == -ENOSPC ? "2^24 continuations are outstanding in this group; use more groups"
							      : "out of memory for more continuations");
			return NULL;
		}
	}
}

uint32_t contd__slot_publish_sig(struct contd__slot *s, uint32_t n)
{
	uint32_t generation = SLOT_GENERATION(contd__load(&s->state));

	contd__add(&s->group->life, 1);
	/* Release: what the slot holds is visible to who completes or claims it. */
	contd__store_release(&s->state, SLOT_WORD(generation, n, SLOT_PENDING));
	CONTD_TESTPOINT("publish_pending");
	CONTD_COUNT(registered, 1);
	return generation;
}

/*
 * When it became ready. The caller has made it READY and not set its bit yet: until then the slot is the caller's. Before the exchange
 * it is not: another thread may make that one, and by now the slot may be free, and its link name the next free one.
 */
static void became_ready(struct contd__slot *s)
{
	contd__store(&s->link, (uint32_t)(contd__ticks() >> 5));
}

/*
 * Count n events; the last ones take the slot from PENDING to `last`: then 1. A cancelled slot stays nobody else's until
 * all of its events are counted, so that no completer ever meets another continuation in it; the last one frees it.
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

int contd__slot_withdraw_sig(struct contd__slot *s, uint32_t generation)
{
	uint64_t w = contd__load_acquire(&s->state);

	while (SLOT_GENERATION(w) == generation && (SLOT_STATE(w) == SLOT_PENDING || SLOT_STATE(w) == SLOT_READY)) {
		/* The canceller's own hold: while it looks at what the slot waited for, completers may count the rest, and
		 * the slot must not become another continuation's. */
		uint32_t hold = SLOT_STATE(w) == SLOT_PENDING;

		if (contd__cas(&s->state, &w, SLOT_WORD(generation, SLOT_REMAINING(w) + hold, SLOT_CANCELLED)))
			return (int)hold;
	}
	return -EALREADY;
}

/*
 * s was READY and is CANCELLED: whoever clears its bit frees it. Left to a scan, it would be outstanding until somebody comes
 * who may run the group's continuations. So the canceller tries to clear the bit. If there is none, either a scan was faster
 * and frees the slot, or the bit is not set yet: then whoever sets it calls this. Dekker: the state is CANCELLED, then the bit
 * is cleared; the bit is set, then the state is looked at.
 */
void contd__slot_withdrawn_rcu(struct contd_group *g, struct contd__slot *s)
{
	while (contd__table_unmark_sig(&g->table, s->index)) {
		CONTD_TESTPOINT("cancel_unmarked");
		/* Nobody else can take it, or free it, while its bit is here. */
		if (SLOT_STATE(contd__load_seq(&s->state)) == SLOT_CANCELLED) {
			contd__slot_finish_sig(g, s);
			return;
		}
		/* A scan was faster, and the bit is that of the slot's next continuation, which may be cancelled by now, too. */
		contd__table_mark_sig(&g->table, s->index);
		contd__announce_rcu(g);
		if (SLOT_STATE(contd__load_seq(&s->state)) != SLOT_CANCELLED)
			return;
	}
}

void contd__slot_mark_sig(struct contd_group *g, struct contd__slot *s)
{
	contd__table_mark_sig(&g->table, s->index);
	/* After the mark; partner: contd__slot_withdraw_sig(). */
	if (__builtin_expect(SLOT_STATE(contd__load_seq(&s->state)) == SLOT_CANCELLED, 0))
		contd__slot_withdrawn_rcu(g, s);
}

int contd__slot_event_done_rcu(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	struct contd_group *g = s->group;
	int ready = count_events(s, generation, n, SLOT_READY);

	CONTD_TESTPOINT("complete_ready");
	if (ready) {
		contd__slot_mark_sig(g, s);
		CONTD_TESTPOINT("complete_marked");
		contd__announce_rcu(g);
	}
	return ready;
}

static void mark_all(struct contd__marks *m)
{
	uint32_t f;

	contd__table_mark_leaf_sig(&m->group->table, m->leaf << 6, m->bits);
	CONTD_TESTPOINT("complete_leaf_marked");
	/* As in contd__slot_mark_sig(). */
	for (uint64_t bits = m->bits; bits; bits &= bits - 1) {
		uint32_t index = m->leaf << 6 | (uint32_t)__builtin_ctzll(bits);
		struct contd__slot *s = contd__table_slot(&m->group->table, index);

		if (__builtin_expect(SLOT_STATE(contd__load_seq(&s->state)) == SLOT_CANCELLED, 0))
			contd__slot_withdrawn_rcu(m->group, s);
	}
	/* After they were counted, as in contd_event_complete(). */
	f = contd__load_seq(&m->group->flags);
	if (f & GROUP_PULL) {
		tell_executor_rcu(m->group, m->bits & (m->bits - 1) ? INT32_MAX : 1);
		return;
	}
	m->announce = true;
	m->kicks |= whom(f);
	if (!(f & CONTD_POLL_ONLY))
		m->flags = (m->flags & ~CONTD_POLL_ONLY) | f;
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
	if (m->announce)
		announce(m->flags);
	contd__kick_sig(m->kicks);
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

uint32_t contd__word_holds_sig(struct contd__slot *s, uint32_t generation)
{
	bool reader = contd__enter_sig();
	uint32_t kicks = 0;

	if (count_events(s, generation, 1, SLOT_READY)) {
		struct contd_group *g = s->group;
		uint32_t flags;

		contd__slot_mark_sig(g, s);
		/* After it was counted, as in contd__announce_rcu(). */
		flags = contd__load_seq(&g->flags);
		if (flags & GROUP_PULL)
			tell_executor_rcu(g, 1);
		else
			announce(flags);
		kicks = whom(flags);
	}
	contd__leave_sig(reader);
	return kicks;
}

bool contd__word_take_rcu(uint64_t word)
{
	struct contd__slot *s = contd__word_slot(word);
	struct contd__taking *take = contd__self.take;
	struct contd_group *g = s->group;

	if (!take || take->slot || !take->slot_may || contd__self.context != CONTEXT_THREAD ||
	    contd__marked_sig(CLASSES_ALL) || g->max_poll >= 0 ||
	    contd__load_seq(&g->flags) & (CONTD_POLL_ONLY | GROUP_EXECUTOR))
		return false;
	if (contd__slot_take_sig(s, contd__word_generation(word), 1))
		take->slot = s;
	return true;
}

int contd__slot_event_done_sig(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	bool reader = contd__enter_sig();
	int ready = contd__slot_event_done_rcu(s, generation, n);

	contd__leave_sig(reader);
	return ready;
}

/* --------------------------------------------------------------------------------------------------------- running --- */

/* Whoever reacts looks at the count again: by now it may have gone up. */
void contd__group_idle_sig(struct contd_group *g)
{
	uint64_t waiter;

	if (g->idle)
		g->idle(g);
	/* Who waits is read before the count: one that has been registered since, with the count up again, waits for the next
	 * time that it comes to 0. */
	waiter = contd__load_seq(&g->waiter);
	if (waiter && contd__group_outstanding_sig(g) == 0 && contd__cas(&g->waiter, &waiter, 0)) {
		struct contd__slot *s = contd__word_slot(waiter);
		struct contd_group *waiting = s->group;

		/* Its continuation is outstanding until this completes it. */
		contd__group_pin_sig(waiting);
		contd__slot_event_done_sig(s, contd__word_generation(waiter), 1);
		contd__group_unpin_sig(waiting);
	}
	contd__wake_sleepers_sig(); /* whoever waits for the group; the descriptor tells of what is to be run */
}

void contd__group_count_down_sig(struct contd_group *g, uint32_t n)
{
	if (LIFE_OUTSTANDING(contd__sub(&g->life, n)) == n)
		contd__group_idle_sig(g);
}

void contd__slot_finish_sig(struct contd_group *g, struct contd__slot *s)
{
	contd__slot_free_sig(&g->table, s);
	CONTD_TESTPOINT("finish_freed");
	contd__group_count_down_own_sig(g, 1);
}

static void count_latency(const struct contd__slot *s)
{
	uint32_t waited = (uint32_t)(contd__ticks() >> 5) - contd__load(&s->link);
	unsigned b = (int32_t)waited <= 0 ? 0 : 32u - (unsigned)__builtin_clz(waited);

	CONTD_COUNT(latency[b], 1);
}

/* A slot that the caller has made RUNNING, and which keeps the group. */
static void run(struct contd_group *g, struct contd__slot *s)
{
	struct contd__frame f;

	contd__frame_enter_sig(&f, g, (const void *)(uintptr_t)s->cb.any);
	s->invoke(s);
	contd__frame_leave_sig(&f, 1);
	contd__slot_finish_sig(g, s);
}

int contd__slot_take_sig(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	return count_events(s, generation, n, SLOT_RUNNING);
}

void contd__slot_run_here(struct contd__slot *s)
{
	run(s->group, s);
}

void contd__slot_run_taken(struct contd__slot *s)
{
	CONTD_COUNT(latency[0], 1);
	run(s->group, s);
}

int contd__slot_run_inline(struct contd__slot *s, uint32_t generation, uint32_t n)
{
	int last = contd__slot_take_sig(s, generation, n);

	if (last) {
		CONTD_COUNT(run_inline, 1);
		contd__wake_untold_sig();
		contd__slot_run_taken(s);
	}
	contd__pickup();
	return last;
}

/*
 * May a scan of this root (NULL: of the group by its handle) run what it has claimed of g? Since it came to g the group may have been given
 * to another executor. With something claimed it can't be, so this stays as it is.
 */
static bool is_ours(const struct contd_group *g, const struct contd__root *root)
{
	return root ? contd__load(&g->table.root) == root : contd__may_scan_sig(g);
}

/* RUNNING, and another one's to run: READY again, for who may. */
static void put_back(struct contd_group *g, struct contd__slot *s)
{
	bool reader = contd__enter_sig();

	/* Release: as contd__slot_publish_sig. */
	contd__store_release(&s->state, SLOT_WORD(SLOT_GENERATION(contd__load(&s->state)), 0, SLOT_READY));
	contd__slot_mark_sig(g, s);
	contd__announce_rcu(g);
	contd__leave_sig(reader);
}

/* A slot whose bit the caller has cleared. Returns 1 if it ran, or an executor has it; 0 if it had been cancelled; -1 if it is
 * ready again, for the executor does not want it, or this scan may not run it. */
static int run_claimed(struct contd_group *g, const struct contd__root *root, struct contd__slot *s)
{
	/* Acquire: pairs with the release in contd__slot_publish_sig, through the completer's exchange. */
	uint64_t w = contd__load_acquire(&s->state);
	int rc;

	while (SLOT_STATE(w) == SLOT_READY) {
		if (!contd__cas(&s->state, &w, SLOT_WORD(SLOT_GENERATION(w), 0, SLOT_RUNNING)))
			continue;
		CONTD_TESTPOINT("claim_running");
		if (__builtin_expect(!is_ours(g, root), 0)) {
			put_back(g, s);
			return -1;
		}
		if (__builtin_expect((g->flags & GROUP_EXECUTOR) != 0, 0) && (rc = contd__executor_takes_sig(g, s)) != 0)
			return rc;
		count_latency(s);
		run(g, s);
		return 1;
	}
	contd__slot_finish_sig(g, s); /* cancelled between ready and claim */
	return 0;
}

static bool spent(const struct contd__budget *b)
{
	/* At least one, however long finding it took: or a slow source would keep everything from running. */
	return b->count == 0 || (b->deadline && b->ran && contd__ticks() >= b->deadline);
}

/*
 * How many of g's continuations may this scan run? The only place that knows what max_poll means to a scan (contd.h says it to
 * programs). *testingp: the test of g that this thread is in, which is charged, or NULL.
 */
static uint32_t allowance(const struct contd_group *g, const struct contd__budget *b, struct contd__testing **testingp)
{
	struct contd__testing *t = contd__self.testing;

	*testingp = NULL;
	if (__builtin_expect(g->max_poll < 0, 1) || b->by == SCAN_DAEMON)
		return UINT32_MAX;
	while (t && t->group != g)
		t = t->outer;
	if (t && t->left == CONTD__WAITED)
		t = NULL;
	if (b->by == SCAN_INTERRUPTION)
		return t || b->rounds ? 0 : (uint32_t)g->max_poll; /* the interrupted test has a bound of its own */
	*testingp = t;
	if (t)
		return t->left;
	return g->max_poll ? (uint32_t)g->max_poll : UINT32_MAX;
}

uint32_t contd__scan_group_sig(struct contd_group *g, const struct contd__root *root, struct contd__budget *budget)
{
	struct contd__table *table = &g->table;
	uint32_t start, pos, left, ran = 0;
	struct contd__testing *t;
	bool wrapped;

	CONTD_TESTPOINT("scan_group");
	if (contd__load_seq(&table->top) == 0 || contd__executor_rests_sig(g))
		return 0;
	left = allowance(g, budget, &t);
	start = pos = contd__load(&table->cursor);
	wrapped = start == 0;
	while (left && !spent(budget)) {
		struct contd__slot *s = contd__table_claim_sig(table, &pos);
		bool round;
		int rc;

		if (!s) {
			if (wrapped)
				break;
			wrapped = true;
			pos = 0;
			continue;
		}
		round = wrapped && start && pos > start;
		/* Charged before it runs: its callback may look for others of the same group, or a handler may. */
		if (t)
			t->left--;
		rc = run_claimed(g, root, s);
		if (t && rc <= 0)
			t->left++;
		if (rc < 0)
			break;
		if (rc) {
			ran++;
			budget->ran++;
			budget->count--;
			left--;
		}
		/* What they ran of it is charged to this test, too. */
		if (t)
			left = t->left;
		if (round)
			break; /* one revolution: what became ready behind us is for the next */
	}
	contd__store(&table->cursor, pos);
	if (left == 0 && budget->by == SCAN_INTERRUPTION && g->max_poll > 0)
		budget->left = true;
	if (contd__load_seq(&table->again) && contd__xchg(&table->again, 0))
		tell_group_again(g);
	return ran;
}

/* What of its groups' flags matters when something of it is announced. */
static uint32_t class_flags(const struct contd__root *root)
{
	uint32_t bit = contd__load(&root->bit);

	return (bit & CLASSES_DAEMON ? CONTD_THREAD_ANY : 0) | (bit & CLASSES_SIGNAL ? CONTD_ASYNC_SIGNAL_SAFE : 0);
}

/*
 * Clear the bit of g's place if nothing of its table (NULL: it is dead) is marked. But g may have left the place meanwhile, or leave it
 * now: another group that takes it, and is marked before the bit is cleared, is to be found. Something keeps g's address
 * from becoming that group's.
 */
static void settle_place(struct contd__root *root, uint32_t at, const struct contd_group *g, struct contd__table *t)
{
	bool again = contd__root_settle_sig(root, at, t);
	/* After the bit was cleared; pairs with the store in root_enter_locked (group.c). */
	const struct contd_group *now = contd__load_seq(&root->group[at]);

	if (now && now != g) {
		contd__root_mark_sig(root, at);
		again = true;
	}
	if (again)
		tell_again(class_flags(root), root->executor);
}

uint32_t contd__scan_root_sig(struct contd__root *root, struct contd__budget *budget)
{
	uint32_t start, pos, at, ran = 0;
	bool wrapped;

	if (contd__load_seq(&root->top) == 0) {
		/* A marker that was overtaken by the scan that ran its continuation has set the class's bit for nothing. */
		if (contd__class_settle_sig(root))
			tell_again(class_flags(root), root->executor);
		return 0;
	}
	CONTD_COUNT(scans, 1);
	start = pos = contd__load(&root->cursor);
	wrapped = start == 0;
	while (!spent(budget)) {
		struct contd_group *g;
		int i = contd__root_next_sig(root, &pos);

		if (i < 0) {
			if (wrapped)
				break;
			wrapped = true;
			pos = 0;
			continue;
		}
		at = (uint32_t)i;
		if (wrapped && start && at >= start)
			break;
		contd__read_lock_sig();
		/* Acquire: pairs with the release in root_enter_locked (group.c). */
		g = contd__load_acquire(&root->group[at]);
		if (!g || !contd__group_try_pin_sig(g)) {
			settle_place(root, at, g, NULL); /* nothing of it is outstanding */
			contd__read_unlock_sig();
			continue;
		}
		contd__read_unlock_sig();
		CONTD_TESTPOINT("scan_pinned");
		ran += contd__scan_group_sig(g, root, budget);
		settle_place(root, at, g, &g->table);
		contd__group_unpin_sig(g);
	}
	if (contd__class_settle_sig(root) || (contd__load_seq(&root->again) && contd__xchg(&root->again, 0)))
		tell_again(class_flags(root), root->executor);
	/* With the budget spent inside a group the next scan begins with it again, at the group's own cursor; groups
	 * take turns because a scan starts one further each time. */
	contd__store(&root->cursor, pos >= ROOT_GROUPS ? 0 : pos);
	return ran;
}

/* Each kind of scan has turns of its own: or another kind, which can't run what waits, would use them up. */
static unsigned kind_of(uint32_t classes)
{
	return classes == CLASSES_ALL ? 0 : classes == CLASSES_DAEMON ? 1 : 2;
}

/*
 * The classes of one priority. Async-signal-safe ones first: somebody cares for their latency. But after a scan whose
 * budget ended in one class the next scan begins with the next class, so that a class that never runs dry starves no
 * other one.
 */
static uint32_t scan_priority(unsigned priority, uint32_t classes, struct contd__budget *budget)
{
	uint32_t *skip_at = &D.class_skip[kind_of(classes)][priority], skip = contd__load(skip_at) % CLASS_KINDS, ran = 0;

	for (unsigned i = 0; i < CLASS_KINDS; i++) {
		unsigned c = priority * CLASS_KINDS + (2 * CLASS_KINDS - 1 - skip - i) % CLASS_KINDS;

		if (!(classes & contd__load_seq(&contd__ready) & 1u << c))
			continue;
		ran += contd__scan_root_sig(&D.root[c], budget);
		if (spent(budget)) {
			contd__store(skip_at, (skip + i + 1) % CLASS_KINDS);
			return ran;
		}
	}
	if (skip)
		contd__store(skip_at, 0);
	return ran;
}

static uint32_t classes_below(unsigned priority)
{
	return (1u << priority * CLASS_KINDS) - 1;
}

uint32_t contd__scan_sig(uint32_t classes, struct contd__budget *budget)
{
	/* High priority first. But when scans have ended before lower ones had their turn, every fourth begins with those:
	 * with the lowest every other time. */
	static const uint8_t orders[PRIORITIES][PRIORITIES] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
	uint32_t *turn_at = &D.short_scans[kind_of(classes)], turn = contd__load(turn_at), ran = 0;
	unsigned first = turn % 8 == 7 ? 0 : turn % 4 == 3 ? PRIORITIES - 2 : PRIORITIES - 1;

	for (unsigned i = 0; i < PRIORITIES; i++) {
		unsigned p = orders[first][i];

		if (!(classes & contd__load_seq(&contd__ready) & classes_below(p + 1) & ~classes_below(p)))
			continue;
		ran += scan_priority(p, classes, budget);
		if (spent(budget)) {
			if (first != PRIORITIES - 1 || contd__marked_sig(classes & classes_below(p)))
				contd__store(turn_at, turn + 1);
			return ran;
		}
	}
	/* All had their turn. */
	if (turn)
		contd__store(turn_at, 0);
	return ran;
}

uint32_t contd__scan_through_sig(uint32_t classes, struct contd__budget *budget)
{
	uint32_t ran = 0, n;

	do {
		ran += n = contd__scan_sig(classes, budget);
		budget->rounds = true;
	} while (n && !spent(budget) && contd__marked_sig(classes));
	return ran;
}

/* -------------------------------------------------------------------------------------------------- interruption --- */

#define RUNG_DRIVES 16u

uint32_t contd__react_sig(enum contd__looking how)
{
	uint32_t ran;
	/* The look that goes with arming a bell belongs to the interruption before it. */
	struct contd__budget budget = {
		.count = contd__load(&D.scan_count), .by = SCAN_INTERRUPTION, .rounds = how == LOOK_LAST};
	const struct contd__signal_ops *ops;
	uint8_t before = contd__self.context;
	bool region = contd__tls.region && !contd__self.frame, again = false;
	uint32_t classes = region ? CLASSES_ALL : CLASSES_SIGNAL, drives = region && how == LOOK_RUNG ? RUNG_DRIVES : 1;

	/* Atomic: the watchdog reads it. */
	contd__store(&contd__self.context, region ? CONTEXT_REGION : CONTEXT_HANDLER);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__words_look_sig(budget.count);
	contd__carried_retry_sig();
	do
		contd__sources_drive_sig(region ? WHERE_REGION : WHERE_HANDLER, NULL, how == LOOK_LAST);
	while (--drives && !contd__marked_sig(classes));
	budget.deadline = contd__ticks() + contd__load(&D.scan_ticks);
	ran = contd__scan_through_sig(classes, &budget);
	/* This scan has set a hint again (tell_again). Others who were told before have found nothing: nobody else comes for it. Under a
	 * guard the end of the guard does this. */
	while (contd__tls.guard == 0 && !spent(&budget) && contd__marked_sig(classes) &&
	       contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) {
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		ran += contd__scan_through_sig(classes, &budget);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	contd__store(&contd__self.context, before);
	/* The same, with the budget spent. Where a guard is around this its end acts on the note; in the handler nobody else would. */
	if (contd__tls.guard == 0 && contd__load(&contd__tls.flags) & CONTD__TLS_MISSED) {
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		again = true;
	}
	ops = contd__load_acquire(&D.signal_ops);
	if (!ops)
		return ran;
	/* Left by the budget or by a max_poll, or made ready behind the scan by a callback of it: no other signal need come for
	 * that. */
	if (budget.left)
		ops->later();
	else if (contd__marked_sig(classes))
		ops->again(ran != 0 || again);
	/* The thread has left the region for which the signal came; or a guard's end comes after that. Others may compute. */
	if (!region && contd__marked_sig(CLASSES_ALL & ~CLASSES_SIGNAL) && contd__load_seq(&D.regions))
		ops->notify_region();
	return ran;
}

uint32_t contd__react_under_guard(enum contd__looking how)
{
	struct contd_tls *tls = &contd__tls;
	const struct contd__signal_ops *ops = contd__load_acquire(&D.signal_ops);
	uint32_t ran;

	tls->guard++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ran = contd__react_sig(how);
	if (ops && contd__load(&tls->flags) & CONTD__TLS_ATTACHED)
		ops->looked(ran);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tls->guard--;
	return ran;
}

void contd__guard_pickup(void)
{
	struct contd_tls *tls = &contd__tls;
	int saved = errno; /* contd_event_complete() and contd_guard_end() are allowed in handlers */

	/* In a scan, of a handler's too, and in a read-side section the note stays for the end of that. */
	while (tls->guard == 0 && !contd__self.frame && contd__load(&tls->flags) & CONTD__TLS_MISSED &&
	       contd__self.context == CONTEXT_THREAD && !contd__reading_sig()) {
		contd__and(&tls->flags, ~CONTD__TLS_MISSED);
		if (!(contd__load(&tls->flags) & CONTD__TLS_ATTACHED))
			break;
		contd__react_under_guard(LOOK);
	}
	errno = saved;
}

void contd__deferred_sig(void)
{
	struct contd_tls *tls = &contd__tls;
	const struct contd__signal_ops *ops = contd__load_acquire(&D.signal_ops);

	/* Without the pick-up of contd_guard_end(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tls->guard--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (tls->guard || !(contd__load(&tls->flags) & CONTD__TLS_MISSED) || contd__self.context != CONTEXT_THREAD)
		return;
	contd__and(&tls->flags, ~CONTD__TLS_MISSED);
	if (ops)
		ops->later();
}
