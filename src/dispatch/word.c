/* SPDX-License-Identifier: BSD-3-Clause */
/* Watched memory words: registering and withdrawing, on ordinary threads. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/testpoint.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/run.h"
#include "dispatch/slot.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/word.h"
#include "rcu/table.h"

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

/* A free entry, taken; NULL: out of memory. */
static struct contd__word_block *take_entry_locked(unsigned *bit)
{
	struct contd__word_block **link = &contd__words.first, *b;

	for (; (b = *link) != NULL; link = &b->next) {
		uint64_t used = contd__load_seq(&b->used);

		if (~used) {
			*bit = (unsigned)__builtin_ctzll(~used);
			contd__or(&b->used, 1ull << *bit);
			return b;
		}
	}
	b = contd__zalloc(sizeof(*b));
	if (!b)
		return NULL;
	b->used = 1;
	*bit = 0;
	/* Release: pairs with the acquires in contd__words_look_sig. */
	contd__store_release(link, b);
	return b;
}

int contd_word_continue(const struct contd_word *word, contd_callback *cb, void *data, struct contd_group *group,
			struct contd_handle *handlep)
{
	struct contd__word_block *b;
	struct contd__slot *s;
	uint32_t generation;
	unsigned bit;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!word || !cb || !group || !word->address)
		return contd__fail(-EINVAL, !word    ? CONTD_NULL("contd_word_continue", "word")
					    : !cb    ? CONTD_NULL("contd_word_continue", "cb")
					    : !group ? CONTD_NULL("contd_word_continue", "group")
						     : CONTD_NULL("contd_word_continue", "word->address"));
	if ((uintptr_t)word->address % sizeof(uint64_t))
		return contd__fail(-EINVAL, "contd_word_continue: word->address must be aligned to 8 bytes");
	if (word->op < CONTD_WORD_EQ || word->op > CONTD_WORD_GE)
		return contd__fail(-EINVAL, "contd_word_continue: word->op must be one of enum contd_word_op");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_word_continue: not in a signal handler");
	s = contd__slot_get_sig(group, &rc);
	if (!s)
		return contd__fail_in(__func__, rc);
	pthread_mutex_lock(&watch_lock);
	b = take_entry_locked(&bit);
	pthread_mutex_unlock(&watch_lock);
	if (!b) {
		contd__slot_free_sig(&group->table, s);
		return contd__fail(-ENOMEM, "contd_word_continue: out of memory");
	}
	contd__slot_holds_user(s, cb, data, 0);
	s->source = (uintptr_t)b | KIND_WORD;
	generation = contd__slot_publish_sig(s, 1);
	b->entry[bit].word = *word;
	if (word->mask == 0)
		b->entry[bit].word.mask = ~0ull;
	b->entry[bit].slot = s;
	b->entry[bit].generation = generation;
	if (handlep) {
		handlep->slot = s;
		handlep->generation = generation;
	}
	contd__add(&contd__words.pending, 1);
	CONTD_TESTPOINT("word_before_live");
	contd__or(&b->live, 1ull << bit);
	contd__pending_sig();
	return 0;
}

/* Stop watching the slot's entry, and return its bit; 0: its word has been found to hold. */
static uint64_t unwatch_locked(struct contd__word_block *b, const struct contd__slot *s)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t mine = 1ull << i;

		if (!(contd__load_acquire(&b->live) & mine) || contd__load(&b->entry[i].slot) != s)
			continue;
		CONTD_TESTPOINT("word_unwatch");
		return contd__and(&b->live, ~mine) & mine;
	}
	return 0;
}

uint32_t contd__word_remove(struct contd__slot *s)
{
	struct contd__word_block *b = (struct contd__word_block *)(s->source & ~(uintptr_t)3);
	uint64_t mine;

	/*
	 * If a look finds meanwhile that the word holds, it frees the entry. Under the lock no other registration takes
	 * it.
	 */
	pthread_mutex_lock(&watch_lock);
	mine = unwatch_locked(b, s);
	pthread_mutex_unlock(&watch_lock);
	if (!mine)
		return 0;
	contd__sub(&contd__words.pending, 1);
	/* A look may be under way: the entry and the word stay until it is over. It is another thread's look, since
	 * this is no handler. */
	while (contd__load_acquire(&contd__words.busy))
		contd__rest();
	contd__and(&b->used, ~mine);
	return 1;
}

void contd__words_fini(void)
{
	struct contd__word_block *b = contd__words.first, *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
	contd__words = (struct contd__words){0};
}
