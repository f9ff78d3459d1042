/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the halves of the torture program: torture.c makes the trouble, reclaim.c watches contd's memory. */
#ifndef CONTD_TESTS_TORTURE_H
#define CONTD_TESTS_TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct contd_group;

/* ---------------------------------------------------------------------------------------------------- torture.c --- */

/* One more thing that must not be. Any context; the first few are printed. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* xorshift64: state must not be 0. A signal that draws from the same state in between may make two draws equal. */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t s = *state;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	*state = s;
	return s;
}

static inline uint32_t below(uint64_t random, uint32_t n)
{
	return (uint32_t)((random >> 32) * n >> 32);
}

/* ---------------------------------------------------------------------------------------------------- reclaim.c --- */

#define AGES 11 /* 10 stands for all that is older */

/* Holders of memory that may be reclaimed: rows of the histogram. */
enum holder { HOLDER_READER, HOLDER_STRANGER, HOLDER_COMPLETER, HOLDERS };

void reclaim_init(void);

/* A name for a group, 0 for none: other groups that come to stand at the same address have other names. Any context. */
uint32_t reclaim_name(const struct contd_group *group);

/* contd_group_destroy() is about to be called for it. */
void reclaim_given_back(const struct contd_group *group);

/*
 * The age of a group: 0 in use, 1 given back, 2 reclaimed, 3 and more reclaimed so many grace periods ago (and 2). Any
 * context.
 */
unsigned reclaim_age(uint32_t name);

/*
 * A holder is about to leave its read-side section: what it held since the section began must not be older than 1. Of
 * readers of the roots 1 is what is in its root no longer, of completers what was given back.
 */
void reclaim_note(enum holder holder, uint32_t name, bool in_root);

/* Inside contd_fini() no thread reads, and contd does not wait for readers. */
void reclaim_fini(bool begins);

/* After contd_fini(): everything is given back. */
void reclaim_check_empty(void);

/* After the last contd_fini(): what is still kept is looked at too. */
void reclaim_end(void);

void reclaim_report(void);

/* How often holders found something at age 1: reclaiming and reading did meet. */
uint64_t reclaim_met(enum holder holder);
uint64_t reclaim_groups(void);

/* Has it seen every sort of object? They are known by their sizes. */
bool reclaim_watches(void);

/* Describes the memory at this address; NULL if it is not contd's. Any context. */
const char *reclaim_describe(const void *address, unsigned *agep);

#endif
