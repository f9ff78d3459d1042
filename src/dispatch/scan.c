/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/interrupt.h"
#include "dispatch/live.h"
#include "dispatch/outlet.h"
#include "dispatch/run.h"
#include "dispatch/scan.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/ways.h"
#include "rcu/reader.h"
#include "rcu/table.h"

/* The turns of each kind of scan (kind_of()): how many classes of a priority the next one leaves for later, from the
 * highest; and how many scans in a row left lower priorities without a turn. */
#define SCANS 3u /* kinds: of all, of those with bit 0, of those with bit 1 */
static uint32_t class_skip[SCANS][PRIORITIES], short_scans[SCANS];

/*
 * A hint that this scan had cleared was set again. Threads that looked in between have found nothing, and they had been
 * told before. So sleepers, the daemon, and handlers are told again.
 */
static void tell_again(uint32_t flags, struct contd__outlet *outlet)
{
	uint32_t kicks = contd__whom_sig(flags);

	if (outlet) {
		outlet->ops->tell(outlet, 1);
		return;
	}
	contd__wake_for_ready_sig(flags);
	if (contd__load(&contd__tls.flags) & CONTD__TLS_ATTACHED &&
	    (kicks & KICK_SIGNAL || (kicks && contd__tls.region)))
		contd__or(&contd__tls.flags, CONTD__TLS_MISSED); /* for contd__react_sig() or contd__pickup() */
	else
		contd__kick_sig(kicks);
}

/* The same for a hint in g's own table. The caller holds a pin, which does not keep an executor. */
static void tell_group_again(const struct contd_group *g)
{
	uint32_t flags = contd__load_seq(&g->flags);
	bool reader;

	if (!(flags & GROUP_PULL)) {
		tell_again(flags, NULL);
		return;
	}
	reader = contd__enter_sig();
	contd__tell_executor_rcu(g, 1);
	contd__leave_sig(reader);
}

/*
 * May a scan of this root (NULL: of the group by its handle) run what it has claimed of g? Since the scan came to g,
 * the group may have got another executor. It cannot while something of it is claimed, so the answer stays true.
 */
static bool is_ours(const struct contd_group *g, const struct contd__root *root)
{
	return root ? contd__load(&g->table.root) == root : contd__may_scan_sig(g);
}

/* Run a slot, if it is still READY. The caller has cleared its bit. Returns 1 if it ran, or an executor has it; 0 if it
 * had been cancelled; -1 if it is ready again, because the executor does not want it, or this scan may not run it. */
static int run_claimed(struct contd_group *g, const struct contd__root *root, struct contd__slot *s)
{
	/* Acquire: pairs with the release in contd__slot_publish_sig, through the completer's exchange. */
	uint64_t w = contd__load_acquire(&s->state);
	int rc;

	CONTD_TESTPOINT("claim_cleared");
	while (SLOT_STATE(w) == SLOT_READY) {
		if (!contd__cas(&s->state, &w, SLOT_WORD(SLOT_GENERATION(w), 0, SLOT_RUNNING)))
			continue;
		CONTD_TESTPOINT("claim_running");
		if (__builtin_expect(!is_ours(g, root), 0)) {
			contd__slot_ready_again_sig(g, s, false); /* for threads that may */
			return -1;
		}
		if (__builtin_expect((g->flags & GROUP_EXECUTOR) != 0, 0) &&
		    (rc = contd__load(&g->outlet)->ops->takes(g, s)) != 0)
			return rc;
		contd__count_latency(contd__load(&s->link));
		contd__slot_run_sig(g, s, true);
		return 1;
	}
	contd__slot_finish_sig(g, s); /* cancelled between ready and claim */
	return 0;
}

/* The executor of a push group wants nothing from the daemon just now. */
static bool rests(const struct contd_group *g)
{
	const struct contd__outlet *o;
	bool reader, rests;

	if (__builtin_expect(!(contd__load(&g->flags) & GROUP_PUSH), 1) || !contd__on_daemon_sig())
		return false;
	CONTD_TESTPOINT("executor_rests");
	reader = contd__enter_sig();
	o = contd__load(&g->outlet);
	CONTD_TESTPOINT("executor_read");
	rests = o && o->ops->rests(o); /* NULL: it has been taken from the group since */
	contd__leave_sig(reader);
	return rests;
}

bool contd__spent_sig(const struct contd__budget *b)
{
	/* At least one runs, however long finding it took: otherwise a slow source would keep everything from running.
	 * In a child that a callback has forked nothing more runs. */
	return b->count == 0 || contd__load(&contd__live.forked) ||
	       (b->deadline && b->ran && contd__ticks() >= b->deadline);
}

/*
 * How many of g's continuations may this scan run? The only place that knows what max_poll means to a scan (contd.h
 * says it to programs). *testingp: the test of g that this thread is in, which is charged, or NULL.
 */
static uint32_t allowance(const struct contd_group *g, const struct contd__budget *b, struct contd__testing **testingp)
{
	struct contd__testing *t = contd__self.testing;

	*testingp = NULL;
	if (__builtin_expect(!contd__limited(g), 1) || b->by == SCAN_DAEMON)
		return UINT32_MAX;
	while (t && t->group != g)
		t = t->outer;
	if (t && t->left == CONTD__WAITED)
		t = NULL;
	if (b->by == SCAN_INTERRUPTION)
		return t || b->rounds ? 0 : (uint32_t)g->max_poll; /* the interrupted test has its own bound */
	*testingp = t;
	if (t)
		return t->left;
	return g->max_poll ? (uint32_t)g->max_poll : UINT32_MAX;
}

/* The flags that matter when something of this root's groups is announced. */
static uint32_t class_flags(const struct contd__root *root)
{
	uint32_t bit = contd__load(&root->bit);

	return (bit & CLASSES_DAEMON ? CONTD_THREAD_ANY : 0) | (bit & CLASSES_SIGNAL ? CONTD_ASYNC_SIGNAL_SAFE : 0);
}

/*
 * Clear the bit of g's place if nothing of its table (NULL: it is dead) is marked. But g may have left the place
 * meanwhile, or leave it now. Another group that takes the place, and is marked before the bit is cleared, must be
 * found. The caller keeps g's memory, so that its address does not become that group's.
 */
static void settle_place(struct contd__root *root, uint32_t at, const struct contd_group *g, struct contd__table *t)
{
	bool again = contd__root_settle_sig(root, at, t);
	/* After the bit was cleared; pairs with the store in root_enter_locked (group_set.c). */
	const struct contd_group *now = contd__load_seq(&root->group[at]);

	if (now && now != g) {
		contd__root_mark_sig(root, at);
		again = true;
	}
	if (again)
		tell_again(class_flags(root), root->outlet);
}

/*
 * A test or wait of g has run something of it, by its handle. If that was all, the hints above are for nothing: clear
 * them here, or the scan of all groups that comes next would go down to g again. Executors' roots may be freed.
 */
static void settle_own(const struct contd_group *g, struct contd__table *t)
{
	struct contd__root *root = contd__load_seq(&t->root);

	if (!root || root < contd__groups.root || root >= contd__groups.root + CLASSES)
		return;
	settle_place(root, contd__load(&t->root_index), g, t);
	if (contd__class_settle_sig(root))
		tell_again(class_flags(root), NULL);
}

static struct contd__slot *claim(struct contd__table *t, uint32_t *pos)
{
	struct contd__slot *s;
	bool reader;

	if (*pos < CHUNK_FIRST) {
		s = contd__table_claim_first_sig(t, pos);
		if (s)
			return s;
		if (!contd__load_seq(&t->top)) {
			*pos = TABLE_END;
			return NULL;
		}
	}
	reader = contd__enter_sig();
	s = contd__table_claim_sig(t, pos);
	contd__leave_sig(reader);
	return s;
}

uint32_t contd__scan_group_sig(struct contd_group *g, const struct contd__root *root, struct contd__budget *budget)
{
	struct contd__table *table = &g->table;
	uint32_t start, pos, left, ran = 0;
	struct contd__testing *t;
	bool wrapped;

	CONTD_TESTPOINT("scan_group");
	if (!contd__table_any_sig(table) || rests(g))
		return 0;
	left = allowance(g, budget, &t);
	start = pos = contd__load(&table->cursor);
	wrapped = start == 0;
	while (left && !contd__spent_sig(budget)) {
		struct contd__slot *s = claim(table, &pos);
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
		/* The callback, or a handler, may have run more of the group: that is charged to this test, too. */
		if (t)
			left = t->left;
		if (round)
			break; /* one revolution: what became ready behind us is for the next */
	}
	contd__store(&table->cursor, pos < TABLE_END ? pos : 0);
	if (left == 0 && budget->by == SCAN_INTERRUPTION && g->max_poll > 0)
		budget->left = true;
	if (contd__load_seq(&table->again) && contd__xchg(&table->again, 0))
		tell_group_again(g);
	if (!root && ran && !contd__table_any_sig(table))
		settle_own(g, table);
	return ran;
}

uint32_t contd__scan_root_sig(struct contd__root *root, struct contd__budget *budget)
{
	uint32_t start, pos, at, ran = 0;
	bool wrapped;

	if (!contd__root_any_sig(root)) {
		/* A marker that was overtaken by the scan that ran its continuation has set the class's bit without
		 * need. */
		if (contd__class_settle_sig(root))
			tell_again(class_flags(root), root->outlet);
		return 0;
	}
	CONTD_COUNT(scans, 1);
	start = pos = contd__load(&root->cursor);
	wrapped = start == 0;
	while (!contd__spent_sig(budget)) {
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
		/* Acquire: pairs with the release in root_enter_locked (group_set.c). */
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
		tell_again(class_flags(root), root->outlet);
	/* The next scan begins with the next group, even if the budget was used up inside this one: so groups take
	 * turns. Within a group a scan begins at the group's own cursor. */
	contd__store(&root->cursor, pos >= ROOT_GROUPS ? 0 : pos);
	return ran;
}

/* Each kind of scan has separate turns: otherwise another kind, which cannot run what waits, would use them up. */
static unsigned kind_of(uint32_t classes)
{
	return classes == CLASSES_ALL ? 0 : classes == CLASSES_DAEMON ? 1 : 2;
}

static uint32_t classes_below(unsigned priority)
{
	return (1u << priority * CLASS_KINDS) - 1;
}

/*
 * One round through the classes of the mask.
 *
 * High priority first. But while scans end before the lower ones had their turn, every fourth scan begins with a lower
 * one: normal and low, by turns.
 *
 * Of one priority async-signal-safe classes first, because programs choose them for their latency. But after a scan
 * whose budget ended in one class the next scan begins with the next class, so that a class that never runs dry does
 * not starve the others.
 */
static inline uint32_t scan_round(uint32_t classes, struct contd__budget *budget)
{
	static const uint8_t orders[PRIORITIES][PRIORITIES] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
	unsigned kind = kind_of(classes);
	uint32_t *turn_at = &short_scans[kind], turn = contd__load(turn_at), ran = 0;
	unsigned first = turn % 8 == 7 ? 0 : turn % 4 == 3 ? PRIORITIES - 2 : PRIORITIES - 1;

	for (unsigned i = 0; i < PRIORITIES; i++) {
		unsigned p = orders[first][i];
		uint32_t *skip_at = &class_skip[kind][p], skip;

		if (!(classes & contd__load_seq(&contd__ready) & classes_below(p + 1) & ~classes_below(p)))
			continue;
		skip = contd__load(skip_at) % CLASS_KINDS;
		for (unsigned j = 0; j < CLASS_KINDS; j++) {
			unsigned c = p * CLASS_KINDS + (2 * CLASS_KINDS - 1 - skip - j) % CLASS_KINDS;

			if (!(classes & contd__load_seq(&contd__ready) & 1u << c))
				continue;
			ran += contd__scan_root_sig(&contd__groups.root[c], budget);
			if (!contd__spent_sig(budget))
				continue;
			contd__store(skip_at, (skip + j + 1) % CLASS_KINDS);
			if (first != PRIORITIES - 1 || contd__marked_sig(classes & classes_below(p)))
				contd__store(turn_at, turn + 1);
			return ran;
		}
		if (skip)
			contd__store(skip_at, 0);
	}
	/* All had their turn. */
	if (turn)
		contd__store(turn_at, 0);
	return ran;
}

uint32_t contd__scan_sig(uint32_t classes, struct contd__budget *budget)
{
	uint32_t ran = 0, n;

	do {
		contd__carried_retry_sig();
		ran += n = scan_round(classes, budget);
		if (budget->by == SCAN_CALL)
			break;
		budget->rounds = true;
	} while (n && !contd__spent_sig(budget) && contd__waits_sig(classes));
	return ran;
}
