/* SPDX-License-Identifier: BSD-3-Clause */
/* Scanning: claim what is ready, run it, settle the hints. */
#ifndef CONTD_DISPATCH_SCAN_H
#define CONTD_DISPATCH_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "dispatch/ways.h"
#include "rcu/table.h"

/* Scans are made by a call of the program, by an interruption, or by the daemon. */
enum contd__scanner { SCAN_CALL, SCAN_INTERRUPTION, SCAN_DAEMON };

/* A test of g on this thread, or a wait for it, is under way from here to contd__testing_end(). A test has the whole
 * max_poll. */
static inline void contd__testing_begin(struct contd__testing *t, const struct contd_group *g, uint32_t left)
{
	*t = (struct contd__testing){g, left, contd__self.testing};
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler walks along them */
	contd__self.testing = t;
}

static inline void contd__testing_of(struct contd__testing *t, const struct contd_group *g)
{
	contd__testing_begin(t, g, contd__limited(g) ? (uint32_t)g->max_poll : CONTD__UNLIMITED);
}

static inline void contd__waiting_of(struct contd__testing *t, const struct contd_group *g)
{
	contd__testing_begin(t, g, CONTD__WAITED);
}

/* The test is a wait. */
static inline void contd__testing_waits(struct contd__testing *t)
{
	t->left = CONTD__WAITED;
}

static inline void contd__testing_end(struct contd__testing *outer)
{
	contd__self.testing = outer;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* before its memory is used for something else */
}

struct contd__budget {
	uint32_t count;    /* how many more may run */
	uint64_t deadline; /* contd__ticks() after which none is started but the first; 0: none */
	uint32_t ran;
	enum contd__scanner by;
	bool rounds; /* of an interruption: each group has had its turn, and its max_poll */
	bool left;   /* an interruption leaves something because of a max_poll */
};

bool contd__spent_sig(const struct contd__budget *b);

/*
 * Run ready continuations of one group. The scan of `root` has found it, or (NULL) the caller has its handle and may
 * scan it. The caller holds a pin. Returns how many ran.
 */
CONTD_INTERNAL_API uint32_t contd__scan_group_sig(struct contd_group *g, const struct contd__root *root,
						  struct contd__budget *budget);

/* Run ready continuations of all groups of a root. */
uint32_t contd__scan_root_sig(struct contd__root *root, struct contd__budget *budget);

/*
 * Run ready continuations of all groups of the classes in the mask. A call of the program makes one round.
 * Interruptions and the daemon go round until nothing is left or the budget is used up: a chain's links in one go.
 */
CONTD_INTERNAL_API uint32_t contd__scan_sig(uint32_t classes, struct contd__budget *budget);

#endif
