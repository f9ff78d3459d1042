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
	bool gives_way; /* others must run for there to be something to be found */
};

/* The last look has found something. */
CONTD_INTERNAL_API void contd__idle_over(struct contd__idling *idling);

/*
 * A look has found nothing: until the next one, `left` ns at most (< 0: no limit). It ends at once where still(what)
 * does not hold any more: asked after the thread has said that it sleeps.
 */
CONTD_INTERNAL_API void contd__idle(struct contd__idling *idling, bool (*still)(const void *what), const void *what,
				    int64_t left);

/*
 * Look at words, drive sources (where `sources`), run what is ready, of g (may be NULL) first. With
 * `limit` this is a test of g: all that it runs of g's is at most its max_poll. Without, a wait for g.
 * Returns how many ran. Ordinary threads.
 */
CONTD_INTERNAL_API uint32_t contd__drive(struct contd_group *g, uint32_t most, bool limit, bool sources);

struct contd__taking;

/*
 * All that was taken runs, but now and then drive(t) comes in between, which may take more: callbacks send, and who
 * waits for that should not have to wait for all of a sweep; nor do queues overflow that are shorter than a sweep is
 * long. Ordinary threads.
 */
CONTD_INTERNAL_API uint32_t contd__taken_run_driving(struct contd__taking *t, void (*drive)(struct contd__taking *t));

/* A thread that drives `mine` itself looks at everything else: words, and other sources. */
struct contd__source;
CONTD_INTERNAL_API void contd__look_beside(const struct contd__source *mine);

#endif
