/* SPDX-License-Identifier: BSD-3-Clause */
/* A count of users, for an object that many threads use and one thread destroys when it has no users. A lock to try. */
#ifndef CONTD_TESTS_CHAOS_GATE_H
#define CONTD_TESTS_CHAOS_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define CLOSED 0x80000000u

/* true: it stays until leave(). */
static inline bool enter(uint32_t *users)
{
	if (!(contd__add(users, 1) & CLOSED))
		return true;
	contd__sub(users, 1);
	return false;
}

static inline void leave(uint32_t *users)
{
	contd__sub(users, 1);
}

/* If no thread uses it; no waiting. Then no thread can until open_it(). */
static inline bool close_it(uint32_t *users)
{
	uint32_t none = 0;

	return contd__cas(users, &none, CLOSED);
}

static inline void open_it(uint32_t *users)
{
	contd__sub(users, CLOSED);
}

static inline bool try_lock(uint32_t *lock)
{
	return !contd__xchg(lock, 1);
}

static inline void unlock(uint32_t *lock)
{
	contd__store_seq(lock, 0);
}

#endif
