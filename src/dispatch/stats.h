/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_STATS_H
#define CONTD_DISPATCH_STATS_H

#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/thread.h"

/* Counts that are in no thread's counters. */
struct contd__strays {
	uint64_t notifications, notify_failed, put_off, rings_sent; /* by threads that are not in the list */
	uint64_t handler_max;                                       /* the longest handler, in clock ticks */
};
CONTD_INTERNAL_API extern struct contd__strays contd__strays;

/* Counts 1, also on a thread that statistics do not know of. Any context. */
#define CONTD_COUNT_STRAY(field) \
	do { \
		if (contd__self.registered) \
			CONTD_COUNT(field, 1); \
		else \
			contd__add(&contd__strays.field, 1); \
	} while (0)

/* A handler has taken so long; in clock ticks. */
static inline void contd__strays_handler_sig(uint64_t cost)
{
	uint64_t most = contd__load(&contd__strays.handler_max);

	if (cost > most)
		contd__cas(&contd__strays.handler_max, &most, cost); /* a statistic: one of two at a time is enough */
}

/* All counters to zero. */
void contd__stats_reset(void);

#endif
