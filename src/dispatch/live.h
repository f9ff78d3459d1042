/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether contd runs. Any context may ask; life/life.c starts and ends it, under the lock of live_lock.h. */
#ifndef CONTD_DISPATCH_LIVE_H
#define CONTD_DISPATCH_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"

struct contd__live {
	uint32_t users; /* calls of contd_init() without their contd_fini(); 0: it does not run */
	uint32_t lives; /* how often it has been started: what belongs to an earlier one has gone */
	uint32_t forked;
};
CONTD_INTERNAL_API extern struct contd__live contd__live;

/* contd_init(): a new life begins. What belongs to an earlier one can be told from now on. */
static inline void contd__live_start_locked(void)
{
	contd__store(&contd__live.lives, contd__live.lives + 1);
}

/* It runs: for its first user, and for one more. */
static inline void contd__live_run_locked(void)
{
	contd__store_seq(&contd__live.users, 1);
}

static inline void contd__live_join_locked(void)
{
	contd__add(&contd__live.users, 1);
}

/* One user less, and others are left; no user is left. */
static inline void contd__live_leave_locked(void)
{
	contd__sub(&contd__live.users, 1);
}

static inline void contd__live_fini_locked(void)
{
	contd__store_seq(&contd__live.users, 0);
}

/* In the child of a fork: contd does not run there any more. */
static inline void contd__live_forked(void)
{
	contd__live.forked = 1;
}

/*
 * 0, or the error (with its text) that each call returns which needs contd to run. The text names the call; without it,
 * the function that asks: a public one.
 */
CONTD_INTERNAL_API int contd__check_live_sig(const char *call);
#define contd__check_live() contd__check_live_sig(__func__)

static inline bool contd__is_live(void)
{
	return __builtin_expect(!contd__load(&contd__live.forked) && contd__load(&contd__live.users) != 0, 1);
}

#endif
