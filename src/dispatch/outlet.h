/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor as groups see it: the first member of struct contd_executor (task/executor.h). If a group has one, its
 * continuations do not run on just any thread: a scan hands them over, or the executor's threads scan the executor's
 * roots.
 */
#ifndef CONTD_DISPATCH_OUTLET_H
#define CONTD_DISPATCH_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/classes.h"
#include "rcu/table.h"

struct contd__outlet;

/* Any context. */
struct contd__outlet_ops {
	/* Pull: n more are ready. Between enter and leave. */
	void (*tell)(struct contd__outlet *o, uint32_t n);
	/*
	 * A continuation has just been made RUNNING. 1: it is handed over; 0: it runs here; -1: it is READY again, and
	 * its group should be left alone for a while.
	 */
	int (*takes)(struct contd_group *g, struct contd__slot *s);
	/* Push: it wants nothing from the daemon just now. Between enter and leave. */
	bool (*rests)(const struct contd__outlet *o);
	/* Wake the threads that were to be woken later (contd__self.untold). */
	void (*wake_untold)(void);
	/* Pull: between these a lent thread runs a group by its handle, and contd_executor_drain() waits. */
	void (*begin)(struct contd__outlet *o);
	void (*end)(struct contd__outlet *o);
};

struct contd__outlet {
	const struct contd__outlet_ops *ops;
	bool push;
	uint32_t groups;                     /* that have this executor */
	uint32_t waiters;                    /* lent threads that sleep in a wait, perhaps for its work */
	struct contd__root root[PRIORITIES]; /* pull: the places of its groups */
};

/*
 * Exclusive executors: one thread at a time runs work of any of them, or is lent to one. If there is one, that thread
 * alone may call a library that threads must call by turns. How many there are, and how often this thread runs such
 * work, or is lent. Written by the functions below. Higher floors ask, also in a build without executors.
 */
CONTD_INTERNAL_API extern uint32_t contd__exclusive_outlets;
CONTD_INTERNAL_API extern __thread uint32_t contd__exclusive_here __attribute__((tls_model("initial-exec")));

/* An exclusive executor has been made; it is gone. */
static inline void contd__exclusive_made(void)
{
	contd__add(&contd__exclusive_outlets, 1);
}

static inline void contd__exclusive_gone(void)
{
	contd__sub(&contd__exclusive_outlets, 1);
}

/* This thread is the one, from now on or once more; once less. They nest. */
static inline void contd__exclusive_begin(void)
{
	contd__exclusive_here++;
}

static inline void contd__exclusive_end(void)
{
	contd__exclusive_here--;
}

/* Is there an exclusive executor? Is this thread the one? */
static inline bool contd__exclusive_any(void)
{
	return contd__load(&contd__exclusive_outlets) != 0;
}

static inline bool contd__exclusive_mine(void)
{
	return contd__exclusive_here != 0;
}

#endif
