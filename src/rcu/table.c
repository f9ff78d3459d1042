/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. See rcu/table.h for the protocol. */
#include "base/atomic.h"
#include "base/testpoint.h"
#include "rcu/table.h"

uint32_t contd__ready;

struct contd__slot *contd__slot_alloc_sig(struct contd__table *t)
{
	/* Acquire: pairs with the exchange in contd__slot_free_sig, so that link is what that one stored. */
	uint64_t head = contd__load_acquire(&t->free_head);

	while ((uint32_t)head != 0) {
		struct contd__slot *s = contd__table_slot(t, (uint32_t)head - 1);
		/* May be stale if another took the slot meanwhile; then the tag makes the exchange fail. */
		uint32_t next = contd__load(&s->link);

		CONTD_TESTPOINT("alloc_before_pop");
		if (contd__cas(&t->free_head, &head, ((head >> 32) + 1) << 32 | next))
			return s;
	}

	uint32_t used = contd__load(&t->used);

	/* Acquire: pairs with the release of limit in contd__table_grow; the chunk is there if limit says so. */
	while (used < contd__load_acquire(&t->limit)) {
		if (contd__cas(&t->used, &used, used + 1)) {
			uint32_t index = contd__table_index(used);
			struct contd__slot *s = contd__table_slot(t, index);

			s->index = index;
			s->group = t->group;
			return s;
		}
	}
	return NULL;
}

void contd__slot_free_sig(struct contd__table *t, struct contd__slot *s)
{
	uint64_t head = contd__load(&t->free_head);
	uint32_t generation = SLOT_GENERATION(contd__load(&s->state)) + 1;

	contd__store(&s->state, SLOT_WORD(generation, 0, SLOT_FREE));
	do {
		contd__store(&s->link, (uint32_t)head);
		CONTD_TESTPOINT("free_before_push");
	} while (!contd__cas(&t->free_head, &head, ((head >> 32) + 1) << 32 | (s->index + 1)));
}

static inline void mark(uint64_t *word, unsigned bit)
{
	if (!(contd__load_seq(word) & 1ull << bit))
		contd__or(word, 1ull << bit);
}

static inline void mark_root_up(struct contd__root *root, unsigned word)
{
	if (word)
		mark(&root->top, word);
	CONTD_TESTPOINT("root_marked");
	if (!(contd__load_seq(&contd__ready) & contd__load(&root->bit)))
		contd__or(&contd__ready, contd__load(&root->bit));
}

void contd__root_mark_sig(struct contd__root *root, uint32_t index)
{
	mark(&root->word[index >> 6], index & 63);
	mark_root_up(root, index >> 6);
}

bool contd__class_settle_sig(struct contd__root *root)
{
	if (contd__root_any_sig(root))
		return false;
	contd__and(&contd__ready, ~contd__load(&root->bit));
	CONTD_TESTPOINT("class_cleared");
	if (!contd__root_any_sig(root))
		return false;
	contd__or(&contd__ready, contd__load(&root->bit));
	return true;
}

void contd__ready_fini(void)
{
	contd__store(&contd__ready, 0);
}

static inline void mark_root(struct contd__table *t)
{
	struct contd__root *root = contd__load_seq(&t->root);

	CONTD_TESTPOINT("mark_root");
	if (root)
		contd__root_mark_sig(root, contd__load(&t->root_index));
}

/* Mark the levels above the leaf, upwards. Check each level, even if another thread set the one below: that thread may
 * be stopped in between. Not for the first chunk: claims pass over hints of it, and these would stay for ever. */
static void mark_up(struct contd__table *t, uint32_t index)
{
	struct contd__branch *b = contd__load_acquire(&t->branch[index >> 18]);
	struct contd__chunk *c = contd__load_acquire(&b->chunk[index >> 12 & 63]);

	mark(&c->summary, index >> 6 & 63);
	CONTD_TESTPOINT("mark_summary");
	mark(&b->word, index >> 12 & 63);
	mark(&t->top, index >> 18);
	CONTD_TESTPOINT("mark_top");
	mark_root(t);
}

void contd__table_mark_leaf_sig(struct contd__table *t, uint32_t index, uint64_t bits)
{
	contd__or(contd__table_leaf(t, index), bits);
	CONTD_TESTPOINT("mark_leaf");
	if (index < CHUNK_FIRST)
		mark_root(t);
	else
		mark_up(t, index);
}

void contd__table_mark_sig(struct contd__table *t, uint32_t index)
{
	contd__table_mark_leaf_sig(t, index, 1ull << (index & 63));
}

bool contd__table_unmark_sig(struct contd__table *t, uint32_t index)
{
	uint64_t bit = 1ull << (index & 63);

	return contd__and(contd__table_leaf(t, index), ~bit) & bit;
}

/* Clear the hint for an empty word, and look again. */
static inline void settle(struct contd__table *t, uint64_t *word, unsigned bit, const uint64_t *below, uint32_t index)
{
	CONTD_TESTPOINT("settle_empty");
	contd__and(word, ~(1ull << bit));
	CONTD_TESTPOINT("settle_cleared");
	if (contd__load_seq(below) != 0) {
		mark_up(t, index);
		contd__store_seq(&t->again, 1);
	}
}

static inline uint64_t at_or_after(uint32_t bit)
{
	return ~0ull << bit;
}

/* Claim one of the masked bits of a leaf: which, or -1. */
static inline int claim_bit(uint64_t *leaf, uint64_t mask)
{
	uint64_t v;

	while ((v = contd__load_acquire(leaf) & mask) != 0) {
		unsigned bit = (unsigned)__builtin_ctzll(v);

		if (contd__and(leaf, ~(1ull << bit)) & 1ull << bit)
			return (int)bit;
	}
	return -1;
}

static inline struct contd__slot *claim_leaf(struct contd__chunk *c, unsigned leaf, uint64_t mask)
{
	int bit = claim_bit(&c->leaf[leaf], mask);

	return bit < 0 ? NULL : &c->slot[leaf << 6 | (unsigned)bit];
}

static struct contd__slot *claim_chunk(struct contd__table *t, struct contd__chunk *c, uint32_t from)
{
	unsigned leaf = from >> 6;
	uint64_t mask = at_or_after(from & 63);
	uint64_t v;

	while (leaf < 64 && (v = contd__load_seq(&c->summary) & at_or_after(leaf)) != 0) {
		unsigned l = (unsigned)__builtin_ctzll(v);
		struct contd__slot *s = claim_leaf(c, l, l == leaf ? mask : ~0ull);

		if (s)
			return s;
		if (contd__load_seq(&c->leaf[l]) == 0)
			settle(t, &c->summary, l, &c->leaf[l], c->first | l << 6);
		leaf = l + 1;
		mask = ~0ull;
	}
	return NULL;
}

/* From the top, at or after `from`. */
static __attribute__((noinline)) struct contd__slot *claim_down(struct contd__table *t, uint32_t from, uint32_t *pos)
{
	uint64_t v;

	while (from >> 18 < 64 && (v = contd__load_seq(&t->top) & at_or_after(from >> 18)) != 0) {
		unsigned bi = (unsigned)__builtin_ctzll(v);
		struct contd__branch *b = contd__load_acquire(&t->branch[bi]);

		if (bi != from >> 18)
			from = (uint32_t)bi << 18;
		while (from >> 18 == bi && (v = contd__load_seq(&b->word) & at_or_after(from >> 12 & 63)) != 0) {
			unsigned ci = (unsigned)__builtin_ctzll(v);
			struct contd__chunk *c = contd__load_acquire(&b->chunk[ci]);
			struct contd__slot *s;

			if (ci != (from >> 12 & 63))
				from = (uint32_t)bi << 18 | (uint32_t)ci << 12;
			s = claim_chunk(t, c, from & (CHUNK_SLOTS - 1));
			if (s) {
				*pos = s->index + 1;
				return s;
			}
			if (contd__load_seq(&c->summary) == 0)
				settle(t, &b->word, ci, &c->summary, c->first);
			from = ((from >> 12) + 1) << 12;
		}
		/* The first chunk has no hints, and the second is the first of branch 0 that may have some. */
		if (contd__load_seq(&b->word) == 0)
			settle(t, &t->top, bi, &b->word, bi ? (uint32_t)bi << 18 : CHUNK_SLOTS);
		from = ((uint32_t)bi + 1) << 18;
	}
	*pos = TABLE_END;
	return NULL;
}

struct contd__slot *contd__table_claim_first_sig(struct contd__table *t, uint32_t *pos)
{
	int bit = claim_bit(&t->first, at_or_after(*pos));

	*pos = bit >= 0 ? (uint32_t)bit + 1 : CHUNK_FIRST;
	return bit >= 0 ? contd__table_slot(t, (uint32_t)bit) : NULL;
}

struct contd__slot *contd__table_claim_sig(struct contd__table *t, uint32_t *pos)
{
	/* The first index that counts; the rest of it below a level is 0 once that level moved on. */
	uint32_t from = *pos;

	if (from < CHUNK_FIRST) {
		struct contd__slot *s = contd__table_claim_first_sig(t, pos);

		if (s)
			return s;
		from = CHUNK_FIRST;
	} else if (from & 63 && from < TABLE_END) {
		/* In the middle of a leaf, which exists: take its next slot, whatever the levels above say. */
		struct contd__branch *b = contd__load_acquire(&t->branch[from >> 18]);
		struct contd__chunk *c = contd__load_acquire(&b->chunk[from >> 12 & 63]);
		struct contd__slot *s = claim_leaf(c, from >> 6 & 63, at_or_after(from & 63));

		if (s) {
			*pos = s->index + 1;
			return s;
		}
	}
	if (contd__load_seq(&t->top))
		return claim_down(t, from, pos);
	*pos = TABLE_END;
	return NULL;
}

int contd__root_next_sig(struct contd__root *root, uint32_t *pos)
{
	uint32_t from = *pos;
	uint64_t v;

	if (from < 64) {
		v = contd__load_seq(&root->word[0]) & at_or_after(from);
		if (v) {
			*pos = (uint32_t)__builtin_ctzll(v) + 1;
			return (int)*pos - 1;
		}
		from = 64;
	}
	while (from < ROOT_GROUPS && (v = contd__load_seq(&root->top) & at_or_after(from >> 6)) != 0) {
		unsigned wi = (unsigned)__builtin_ctzll(v);
		uint64_t w;

		if (wi != from >> 6)
			from = wi << 6;
		w = contd__load_seq(&root->word[wi]) & at_or_after(from & 63);
		if (w) {
			*pos = (wi << 6 | (uint32_t)__builtin_ctzll(w)) + 1;
			return (int)*pos - 1;
		}
		if (contd__load_seq(&root->word[wi]) == 0) {
			contd__and(&root->top, ~(1ull << wi));
			if (contd__load_seq(&root->word[wi]) != 0) {
				mark_root_up(root, wi);
				contd__store_seq(&root->again, 1);
			}
		}
		from = (wi + 1) << 6;
	}
	*pos = ROOT_GROUPS;
	return -1;
}

bool contd__root_settle_sig(struct contd__root *root, uint32_t index, struct contd__table *t)
{
	if (t && contd__table_any_sig(t))
		return false;
	CONTD_TESTPOINT("root_empty");
	contd__and(&root->word[index >> 6], ~(1ull << (index & 63)));
	CONTD_TESTPOINT("root_cleared");
	if (!t || !contd__table_any_sig(t))
		return false;
	contd__root_mark_sig(root, index);
	return true;
}
