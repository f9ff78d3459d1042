/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings in force, and the values that handlers need and that follow from them. contd_configure() stores these
 * one by one (limits_settle.c). */
#ifndef CONTD_DISPATCH_LIMITS_H
#define CONTD_DISPATCH_LIMITS_H

#include <stdint.h>

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"

#define CONTD_SETTING_TEXT 256 /* bytes of a setting's text, its end included */

struct contd__limits {
	uint64_t scan_ticks __attribute__((aligned(64))); /* of one interruption, in clock ticks */
	uint32_t scan_count;
	uint64_t tick_min, tick_max; /* ns */
	uint64_t tick_rate;          /* share of a thread's time that ticks alone may take, times 2^20 */
	uint64_t purse_rate;         /* what flows into a purse per clock tick, times 2^20 */
	uint64_t purse_most;
	uint64_t late_ticks; /* the watchdog's bound, 0: none */
};
CONTD_INTERNAL_API extern struct contd__limits contd__limits;
CONTD_INTERNAL_API extern struct contd_config contd__config;

/* Puts these settings in force. Their texts are copied. Under the lock of live_lock.h. */
void contd__limits_settle_locked(const struct contd_config *c);

#endif
