/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of continuations that never ran: one line for those with the same callback, kind and reason. Ordinary
 * threads; contd__never_say() may block (dladdr(3), memory, the terminal), the others are wait-free.
 */
#ifndef CONTD_DISPATCH_NEVER_H
#define CONTD_DISPATCH_NEVER_H

#include <stdint.h>

#include "base/api.h"
#include "dispatch/group.h"
#include "rcu/table.h"

/* Continuations that never ran for one reason. */
struct contd__never {
	void (*cb)(void);
	const char *no_callback; /* in place of a callback's name, if cb is NULL */
	const char *what, *why;  /* what they wait for, or NULL; constant texts */
	double age, oldest;      /* seconds that they have waited, at least and at most; below 0: not known */
	unsigned count;
};

#define NEVER_LINES 12u

struct contd__never_report {
	struct contd__never of[NEVER_LINES];
	unsigned used, beyond, total;
};

CONTD_INTERNAL_API void contd__never_add(struct contd__never_report *r, const struct contd__never *never);

/* What a slot that is not ready waits for, in words; of_source: if that is a source's. */
CONTD_INTERNAL_API const char *contd__never_awaited(const struct contd__slot *s, const char *of_source);

/* How long a slot with this word has been PENDING or READY, in seconds; below 0: not known. */
CONTD_INTERNAL_API double contd__never_age(const struct contd__slot *s, uint64_t w);

/* The same of contd__registered_now(). */
CONTD_INTERNAL_API double contd__never_since(uint32_t coarse);

/* Adds what a group of the program's has that never ran. Nothing of it runs any more. */
void contd__never_add_group(struct contd__never_report *r, struct contd_group *g);

/* One message; `end` is the call that found out. Nothing if there is nothing to say. */
CONTD_INTERNAL_API void contd__never_say(const struct contd__never_report *r, const char *end);

#endif
