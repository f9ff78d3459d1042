/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a queue that are under way, by address. So contd finds out to which operation a completion belongs
 * without touching what the context points to, which may not be contd's. The thread that takes an operation out is the
 * one that completes it. Each address has four cache lines of eight places where it may stand; a quarter of the places
 * are used at most. The first line is found by a hash that is cheap, and for operations at some distances bad.
 *
 *     operation                 thread  handler  progress
 *     contd__begun_add            yes     yes    wait-free
 *     contd__begun_take           yes     yes    wait-free
 */
#ifndef CONTD_FABRIC_BEGUN_H
#define CONTD_FABRIC_BEGUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/memory.h"

#define BEGUN_LINE 8u
#define BEGUN_LINES 4u

struct contd__begun {
	uintptr_t (*line)[BEGUN_LINE];
	uint64_t mask;  /* of lines: a power of two less 1 */
	unsigned shift; /* what is left of 64 bits is a line */
};

static inline bool contd__begun_make(struct contd__begun *b, uint32_t operations)
{
	uint64_t lines = 2;

	b->shift = 63;
	while (lines * BEGUN_LINE < 4ull * operations) {
		lines *= 2;
		b->shift--;
	}
	b->mask = lines - 1;
	b->line = contd__memalign(64, lines * sizeof(*b->line));
	for (uint64_t i = 0; b->line && i < lines; i++)
		for (unsigned k = 0; k < BEGUN_LINE; k++)
			b->line[i][k] = 0;
	return b->line != NULL;
}

/* A multiplication is cheap, but keeps what operations at equal distances have in common. */
static inline uint64_t contd__begun_first(const struct contd__begun *b, uintptr_t key)
{
	return (uint64_t)key * 0x9e3779b97f4a7c15ull >> b->shift;
}

/* The others, `which` from 1: lines that differ, as far as there are so many. */
static inline uintptr_t *contd__begun_line(const struct contd__begun *b, uintptr_t key, unsigned which)
{
	uint64_t h = key;

	/* The end of splitmix64. */
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 27) * 0x94d049bb133111ebull;
	h ^= h >> 31;
	return b->line[(contd__begun_first(b, key) + which * (h | 1)) & b->mask];
}

static inline bool contd__begun_add_to(uintptr_t *line, uintptr_t key)
{
	for (unsigned i = 0; i < BEGUN_LINE; i++) {
		uintptr_t none = 0;

		if (!contd__load(&line[i]) && contd__cas(&line[i], &none, key))
			return true;
	}
	return false;
}

static inline uintptr_t *contd__begun_find_in(uintptr_t *line, uintptr_t key)
{
	for (unsigned i = 0; i < BEGUN_LINE; i++)
		if (contd__load(&line[i]) == key)
			return &line[i];
	return NULL;
}

/* If the first line does not do; not often. */
static __attribute__((noinline, unused)) bool contd__begun_add_elsewhere(struct contd__begun *b, uintptr_t key)
{
	for (unsigned which = 1; which < BEGUN_LINES; which++)
		if (contd__begun_add_to(contd__begun_line(b, key, which), key))
			return true;
	return false;
}

static __attribute__((noinline, unused)) uintptr_t *contd__begun_find_elsewhere(const struct contd__begun *b,
										uintptr_t key)
{
	uintptr_t *at = NULL;

	for (unsigned which = 1; which < BEGUN_LINES && !at; which++)
		at = contd__begun_find_in(contd__begun_line(b, key, which), key);
	return at;
}

static inline bool contd__begun_add(struct contd__begun *b, uintptr_t key)
{
	return contd__begun_add_to(b->line[contd__begun_first(b, key)], key) || contd__begun_add_elsewhere(b, key);
}

static inline uintptr_t *contd__begun_find(const struct contd__begun *b, uintptr_t key)
{
	uintptr_t *at = contd__begun_find_in(b->line[contd__begun_first(b, key)], key);

	return at ? at : contd__begun_find_elsewhere(b, key);
}

/* true: it was there, and now belongs to the caller. */
static inline bool contd__begun_take(struct contd__begun *b, uintptr_t key)
{
	uintptr_t *at = contd__begun_find(b, key);

	return at && contd__cas(at, &key, 0);
}

#endif
