/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watched memory words: entries in blocks of 64 that are never freed before the dispatcher, each with a word of live
 * bits. One thread at a time looks (`busy`, taken by try, never waited for), a bounded number at a time, from a cursor.
 *
 *     operation                thread  handler  progress
 *     contd__words_look_sig      yes     yes    wait-free in the count, of entries and blocks; does nothing while
 *                                               another look is under way
 *     contd_word_continue        yes     no     blocking
 *     contd__word_remove         yes     no     blocking (waits for a look of another thread to end)
 */
#ifndef CONTD_DISPATCH_WORD_H
#define CONTD_DISPATCH_WORD_H

#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "rcu/table.h"

struct contd__word_entry {
	struct contd_word word;
	struct contd__slot *slot;
	uint32_t generation;
};

struct contd__word_block {
	uint64_t live; /* entries that are watched; the thread that clears a bit owns the entry */
	uint64_t used; /* entries that are taken, live or not; set under a mutex, cleared by the owner of the entry */
	struct contd__word_block *next;
	struct contd__word_entry entry[64];
};

struct contd__words {
	uint32_t pending; /* entries that are watched: they need ticks */
	uint32_t busy;
	struct contd__word_block *first;  /* blocks are appended, never taken out */
	struct contd__word_block *cursor; /* of the thread that is busy */
	unsigned cursor_bit;
};

CONTD_INTERNAL_API extern struct contd__words contd__words;

/*
 * Look at memory words, unless another thread, or the interrupted code, is doing it. The caller scans next. If
 * something is left then, it gives the returned bits to contd__kick_sig(). Interruptions and the daemon need not: for
 * what they leave they interrupt other threads in any case.
 */
CONTD_INTERNAL_API uint32_t contd__words_look_sig(uint32_t most);

/* Stop watching for a withdrawn continuation; 1 if its word had not been found to hold. Ordinary threads; may block. */
uint32_t contd__word_remove(struct contd__slot *s);

void contd__words_fini(void);

#endif
