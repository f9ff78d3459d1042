/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of a group: slots for its continuations and a tree of ready bits above them.
 *
 *     ready      1 word  a bit per class                         (contd__ready)
 *     root top   1 word  a bit per root word but the first       (struct contd__root, one a class)
 *     root       64 words, a bit per group
 *     top        1 word  a bit per branch                        (struct contd__table, one a group)
 *     branch     a word, a bit per chunk but the first
 *     summary    a word, a bit per leaf                          (struct contd__chunk)
 *     leaf       a word, a bit per slot
 *
 * Most programs have few groups, and most groups few continuations. So the first chunk's only leaf stands beside top
 * (struct contd__table, `first`): both are under the group's bit in the root. And a root's first word stands beside
 * its top: both are under the class's bit.
 *
 * A leaf bit is exact: the thread that clears it owns the slot. The bits above are hints, which may be set without need
 * but are never missing. A marker sets the leaf and then looks at every level above. A scanner that clears a bit above
 * looks at the word below again. If it finds something, it marks upwards again. Then it also tells sleepers and others,
 * as the first marker did, because another thread may have found no hint in between and gone to sleep. Both are
 * store-then-load with sequentially consistent operations, so one of the two sees the other.
 *
 * Bits above are cleared by a scan that finds nothing below them, so while more keeps becoming ready it costs one
 * atomic operation to mark and one to claim. (Leaving the hints to the next scan was tried: 4 % of a round, for
 * wake-ups and signals that a leftover hint costs.)
 *
 *     operation            thread  handler  in a callback  progress
 *     contd__slot_alloc_sig  yes     yes        yes        lock-free
 *     contd__slot_free_sig   yes     yes        yes        lock-free
 *     contd__table_mark_sig  yes     yes        yes        wait-free (3 to 7 atomic operations)
 *     contd__table_claim_sig yes     yes        yes        lock-free
 *     contd__table_grow      yes     no         yes        blocking (a mutex, memory)
 *
 * Nothing of a table is freed before its group; slots are type-stable until then. A thread that uses a table holds a
 * reference to its group (dispatch/group.h).
 */
#ifndef CONTD_RCU_TABLE_H
#define CONTD_RCU_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"

struct contd_group;
struct contd__outlet;

/* state: generation in bits 63..32, events that are not complete in 31..8, enum contd__slot_state in 7..0 */
enum contd__slot_state {
	SLOT_FREE,
	SLOT_PENDING,  /* waits for its events */
	SLOT_READY,    /* its bit is set, or about to be */
	SLOT_RUNNING,  /* claimed */
	SLOT_CANCELLED /* withdrawn; freed when its bit is cleared, or when its last event is counted */
};

#define SLOT_STATE(w) ((enum contd__slot_state)((w)&0xff))
#define SLOT_REMAINING(w) ((uint32_t)((w) >> 8) & 0xffffffu)
#define SLOT_GENERATION(w) ((uint32_t)((w) >> 32))
#define SLOT_WORD(gen, remaining, st) ((uint64_t)(gen) << 32 | (uint64_t)(remaining) << 8 | (uint64_t)(st))
#define SLOT_REMAINING_MAX 0x7fffffu /* events of one continuation */
#define SLOT_LOOKED_AT 0x800000u     /* one event more, while a thread looks at what a pending slot waits for */

enum contd__slot_kind { KIND_EVENT, KIND_WORD, KIND_GROUP, KIND_SOURCE };

struct contd__slot {
	uint64_t state;
	uint32_t index; /* in the table, 24 bits */
	/* Free: index + 1 of the next free slot. Pending: contd__registered_now() of its registration; while its CR is
	 * inactive, the next held slot. Ready: contd__ticks_short() of when it became so. */
	uint32_t link;
	struct contd_group *group;
	void (*invoke)(struct contd__slot *slot); /* calls the callback as its source wants it called */
	union {
		contd_callback *user;
		void (*any)(void);
	} cb;
	void *data;
	union {
		int32_t status; /* KIND_EVENT, _WORD, _GROUP: first status other than 0 */
		void *dest;     /* KIND_SOURCE: the source's */
	} out;
	uintptr_t source; /* enum contd__slot_kind in the low 2 bits; above: what it waits for */
};

_Static_assert(sizeof(struct contd__slot) == 64 || sizeof(void *) != 8, "a slot is one cache line");

#define CHUNK_SLOTS 4096u
#define CHUNK_FIRST 64u /* slots of a table's first chunk, so that a small group stays small */
#define TABLE_SLOTS_MAX ((1u << 24) - CHUNK_SLOTS + CHUNK_FIRST)
#define TABLE_END (1u << 24)
#define TABLE_RESERVE 32u /* slots that threads leave for handlers, if growing can provide them */

struct contd__chunk {
	uint64_t summary;
	uint32_t slots;
	uint32_t first; /* index of slot[0] */
	uint64_t leaf[64];
	struct contd__slot slot[] __attribute__((aligned(64)));
};

struct contd__branch {
	uint64_t word;
	struct contd__chunk *chunk[64];
};

/* Which groups of a class have something ready. */
struct contd__root {
	uint64_t top;                 /* of word[1] to word[63] */
	uint32_t cursor;              /* where the next scan begins */
	uint32_t bit;                 /* of the class in contd__ready; 0: never used, or an executor's */
	uint32_t again;               /* as in struct contd__table */
	struct contd__outlet *outlet; /* only its threads scan it; or NULL */
	uint64_t word[64] __attribute__((aligned(64)));
	struct contd_group *group[4096]; /* RCU: published by group_set.c, freed after a grace period */
};
#define ROOT_GROUPS 4096u

struct contd__table {
	uint64_t first; /* the leaf of the first chunk */
	uint64_t top;
	uint64_t free_head; /* tag in the high half against reuse between load and exchange; index + 1, 0: none */
	uint32_t used;      /* slots that were ever handed out */
	uint32_t limit;     /* slots there are */
	uint32_t cursor;
	uint32_t root_index;
	uint32_t again;           /* a hint was set again after it had been cleared: the scanner tells of it */
	struct contd__root *root; /* NULL: poll-only, only a scan of the group itself finds it */
	struct contd_group *group;
	struct contd__branch *branch[64];
};

static inline struct contd__slot *contd__table_slot(struct contd__table *t, uint32_t index)
{
	/* Acquire: pairs with the releases in contd__table_grow. */
	struct contd__branch *b = contd__load_acquire(&t->branch[index >> 18]);
	struct contd__chunk *c = contd__load_acquire(&b->chunk[index >> 12 & 63]);

	return &c->slot[index & (CHUNK_SLOTS - 1)];
}

/* The n-th slot handed out has this index: the first chunk is short. */
static inline uint32_t contd__table_index(uint32_t n)
{
	return n < CHUNK_FIRST ? n : n - CHUNK_FIRST + CHUNK_SLOTS;
}

/* A free slot, SLOT_FREE, that no other thread has; or NULL if the table must grow first. */
CONTD_INTERNAL_API struct contd__slot *contd__slot_alloc_sig(struct contd__table *t);

/* Give a slot back; its generation goes up, so that handles to it become stale. */
CONTD_INTERNAL_API void contd__slot_free_sig(struct contd__table *t, struct contd__slot *s);

/* Set the ready bit of a slot; several, of the leaf that the index is in. */
CONTD_INTERNAL_API void contd__table_mark_sig(struct contd__table *t, uint32_t index);
void contd__table_mark_leaf_sig(struct contd__table *t, uint32_t index, uint64_t bits);

/* Clear the ready bit of a slot. true: it was set, so that no scan finds the slot any more. Hints above it stay,
 * without need. */
bool contd__table_unmark_sig(struct contd__table *t, uint32_t index);

/* The word with the ready bit of this slot, which exists. */
static inline uint64_t *contd__table_leaf(struct contd__table *t, uint32_t index)
{
	struct contd__branch *b;
	struct contd__chunk *c;

	if (index < CHUNK_FIRST)
		return &t->first;
	/* Acquire: pairs with the releases in contd__table_grow. */
	b = contd__load_acquire(&t->branch[index >> 18]);
	c = contd__load_acquire(&b->chunk[index >> 12 & 63]);
	return &c->leaf[index >> 6 & 63];
}

/* Is the ready bit of a slot set? A momentary answer. */
static inline bool contd__table_marked(struct contd__table *t, uint32_t index)
{
	return contd__load_seq(contd__table_leaf(t, index)) & 1ull << (index & 63);
}

/* Is something of the table marked? Of a root? "No" is exact if no thread marks meanwhile. */
static inline bool contd__table_any_sig(const struct contd__table *t)
{
	return contd__load_seq(&t->first) || contd__load_seq(&t->top);
}
static inline bool contd__root_any_sig(const struct contd__root *root)
{
	return contd__load_seq(&root->word[0]) || contd__load_seq(&root->top);
}

/*
 * Clear the first ready bit at or after *pos and return its slot, which then belongs to the caller; *pos goes behind
 * it. NULL if there is none up to the end; then *pos is TABLE_END. In a read-side critical section: hints are marked
 * again up to the root, which may be that of an executor which the group has just got, and loses again.
 */
struct contd__slot *contd__table_claim_sig(struct contd__table *t, uint32_t *pos);

/* The same among the first CHUNK_FIRST slots, which have no hints, for *pos below that. NULL: *pos is CHUNK_FIRST. */
struct contd__slot *contd__table_claim_first_sig(struct contd__table *t, uint32_t *pos);

/* The first group at or after *pos that has something marked, *pos going behind it; or -1, and *pos is ROOT_GROUPS. */
int contd__root_next_sig(struct contd__root *root, uint32_t *pos);

void contd__root_mark_sig(struct contd__root *root, uint32_t index);

/* Clear a class's bit if its root has nothing marked. true: it was set again. */
bool contd__class_settle_sig(struct contd__root *root);

/* contd_fini(): no class has anything ready. */
void contd__ready_fini(void);

/* Clear a group's bit in its root if its table has nothing marked. true: it was set again. */
bool contd__root_settle_sig(struct contd__root *root, uint32_t index, struct contd__table *t);

/* 0 or -ENOMEM, -ENOSPC. Does nothing if `limit` is not what the caller saw. */
int contd__table_grow(struct contd__table *t, uint32_t seen_limit);
int contd__table_init(struct contd__table *t, struct contd_group *group);
void contd__table_fini(struct contd__table *t);

#endif
