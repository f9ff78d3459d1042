/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_STATS_H
#define CONTD_DISPATCH_STATS_H

#include <stdint.h>

#include "base/api.h"

/* Counts that are in no thread's counters. */
struct contd__strays {
	uint64_t notifications, notify_failed, put_off, rings_sent; /* by threads that are not in the list */
	uint64_t handler_max;                                       /* the longest handler, in clock ticks */
};
CONTD_INTERNAL_API extern struct contd__strays contd__strays;

/* All counters to zero. */
void contd__stats_reset(void);

#endif
