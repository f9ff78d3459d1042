/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether contd runs. life/life.c starts and ends it. Any context. */
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

/*
 * 0, or the error (with its text) that each call returns which needs contd to run. The text names the call; without it,
 * the function that asks: a public one.
 */
CONTD_INTERNAL_API int contd__check_live_in(const char *call);
#define contd__check_live() contd__check_live_in(__func__)

static inline bool contd__is_live(void)
{
	return __builtin_expect(!contd__load(&contd__live.forked) && contd__load(&contd__live.users) != 0, 1);
}

#endif
