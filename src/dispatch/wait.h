/* SPDX-License-Identifier: BSD-3-Clause */
/* How ordinary threads pass the time until there is something for them: they look, doze, or give the processor away. */
#ifndef CONTD_DISPATCH_WAIT_H
#define CONTD_DISPATCH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "rcu/atomic.h"

struct contd__idling {
	uint64_t since; /* when a look found nothing for the first time, in clock ticks; 0: it did find something */
	int64_t nap;    /* ns */
	bool lent;      /* to an executor: what comes next mostly comes soon, so it does not sleep at once */
	bool gives_way; /* others must run for there to be something to be found */
};

CONTD_INTERNAL_API int64_t contd__now_ns(void);

/* The last look has found something. */
CONTD_INTERNAL_API void contd__idle_over(struct contd__idling *idling);

/*
 * A look has found nothing: until the next one, `left` ns at most (< 0: no limit). It ends at once where still(what) does not
 * hold any more: asked after the thread has said that it sleeps.
 */
CONTD_INTERNAL_API void contd__idle(struct contd__idling *idling, bool (*still)(const void *what), const void *what,
				    int64_t left);

#endif
