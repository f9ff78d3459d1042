/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. Looking at watched memory words. */
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/complete.h"
#include "dispatch/word.h"
#include "rcu/table.h"

struct contd__words contd__words;

static bool holds(const struct contd_word *w)
{
	/* Acquire: what was written before the word is visible to the continuation. */
	uint64_t v = __atomic_load_n(w->address, __ATOMIC_ACQUIRE) & w->mask;

	switch (w->op) {
	case CONTD_WORD_EQ:
		return v == w->value;
	case CONTD_WORD_NE:
		return v != w->value;
	default:
		return v >= w->value;
	}
}

static uint32_t look_at(struct contd__word_block *b, unsigned i)
{
	struct contd__word_entry *e = &b->entry[i];
	struct contd__slot *s;
	uint32_t generation;

	if (!holds(&e->word))
		return 0;
	s = e->slot;
	generation = e->generation;
	CONTD_TESTPOINT("word_holds");
	if (!(contd__and(&b->live, ~(1ull << i)) & 1ull << i))
		return 0; /* removed meanwhile */
	contd__and(&b->used, ~(1ull << i));
	contd__sub(&contd__words.pending, 1);
	return contd__word_holds_sig(s, generation);
}

uint32_t contd__words_look_sig(uint32_t most)
{
	struct contd__words *ws = &contd__words;
	struct contd__word_block *start, *b;
	uint32_t kicks = 0;
	uint64_t live;
	unsigned bit;
	bool wrapped = false;

	if (contd__load_seq(&contd__words.pending) == 0 || contd__xchg(&ws->busy, 1))
		return 0;
	start = b = ws->cursor ? ws->cursor : contd__load_acquire(&ws->first);
	bit = ws->cursor_bit;
	while (b) {
		for (; bit < 64 && (live = contd__load_acquire(&b->live) & ~0ull << bit) != 0; bit++) {
			bit = (unsigned)__builtin_ctzll(live);
			if (most-- == 0)
				goto out;
			kicks |= look_at(b, bit);
		}
		if (wrapped && b == start)
			break;
		bit = 0;
		b = contd__load_acquire(&b->next);
		if (!b) {
			b = contd__load_acquire(&ws->first);
			wrapped = true;
			if (b == start && ws->cursor_bit == 0)
				break;
		}
		/* A block without watched entries counts as much as an entry: blocks are never freed. */
		if (most-- == 0)
			break;
	}
out:
	ws->cursor = b;
	ws->cursor_bit = bit & 63;
	/* Release: pairs with the exchange above and with the wait in contd__word_remove. */
	contd__store_release(&ws->busy, 0);
	return kicks;
}
