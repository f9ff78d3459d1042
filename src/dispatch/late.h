/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callbacks, handlers and sources that took too long. They are noted when they end, in any context, and reported by the
 * watchdog's thread (watchdog.c). Nothing is measured unless a bound is set.
 *
 *     operation            thread  handler  progress
 *     contd__late_note_sig   yes     yes    wait-free
 */
#ifndef CONTD_DISPATCH_LATE_H
#define CONTD_DISPATCH_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/limits.h"
#include "dispatch/thread.h"

enum contd__late_what { LATE_CONTINUATION, LATE_HANDLER, LATE_SOURCE };

/* One per site. `site` is claimed first; the rest is there once `ticks` is not 0. */
struct contd__late_site {
	const void *site;
	uint8_t what, where; /* enum contd__late_what, enum contd__context */
	uint64_t ticks;
	uint32_t reported;
};
#define LATE_SITES 256u

extern struct contd__late_site contd__late_sites[LATE_SITES];

static inline bool contd__late_watched_sig(void)
{
	return __builtin_expect(contd__load(&contd__limits.late_ticks) != 0, 0);
}

/* The site took so long: note it if that is over the bound. true: it was. */
CONTD_INTERNAL_API bool contd__late_note_sig(const void *site, enum contd__late_what what, uint64_t ticks);

#endif
