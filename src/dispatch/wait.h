/* SPDX-License-Identifier: BSD-3-Clause */
/* How ordinary threads pass the time until there is something for them: they look, doze, or give the processor away. */
#ifndef CONTD_DISPATCH_WAIT_H
#define CONTD_DISPATCH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/carried.h"
#include "dispatch/group.h"
#include "dispatch/source.h"

struct contd__idling {
	uint64_t since; /* when a look found nothing for the first time, in clock ticks; 0: it did find something */
	int64_t nap;    /* ns */
	/* Looks in a row that ran nothing of what is ready: a test around the wait has used up its max_poll. */
	uint32_t barred;
	bool lent;      /* to an executor: what comes next mostly comes soon, so it does not sleep at once */
	bool gives_way; /* other threads must run before there is anything to find */
};

/* The last look has found something. */
CONTD_INTERNAL_API void contd__idle_over(struct contd__idling *idling);

/*
 * A look has found nothing: pass the time until the next one, `left` ns at most (< 0: no limit). It ends at once if
 * still(what) no longer holds, which is asked after the thread has said that it sleeps.
 */
CONTD_INTERNAL_API void contd__idle(struct contd__idling *idling, bool (*still)(const void *what), const void *what,
				    int64_t left);

/*
 * Look at words, drive sources (if `sources`), run what is ready, first of g (may be NULL). With `limit` this is a test
 * of g: it runs at most max_poll of g's continuations. Without, it is a wait for g. Returns how many ran. Ordinary
 * threads.
 */
CONTD_INTERNAL_API uint32_t contd__drive(struct contd_group *g, uint32_t most, bool limit, bool sources);

/* Run what is ready of a group by its handle, as contd__scan_group_sig() does; the caller holds a pin and has asked
 * contd__may_scan_sig(). Of an executor's group this counts as the executor's work. */
struct contd__budget;
CONTD_INTERNAL_API uint32_t contd__scan_by_handle(struct contd_group *g, struct contd__budget *budget);

struct contd__taking;

/*
 * Run all that was taken. Now and then call drive(t) in between, which may take more. For callbacks send, and peers
 * that wait for this should not wait for all of a sweep; nor should queues overflow that are shorter than a sweep.
 * Ordinary threads.
 */
CONTD_INTERNAL_API uint32_t contd__taken_run_driving(struct contd__taking *t, void (*drive)(struct contd__taking *t));

/* For a thread that drives `mine` itself: look at words and other sources. */
struct contd__source;
CONTD_INTERNAL_API void contd__look_beside(const struct contd__source *mine);

#endif
