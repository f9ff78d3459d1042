/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor as groups see it: the first member of struct contd_executor (task/executor.h). Who names one runs none of
 * its continuations on just any thread: a scan hands them over, or its own threads scan its own roots.
 */
#ifndef CONTD_DISPATCH_OUTLET_H
#define CONTD_DISPATCH_OUTLET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "dispatch/classes.h"
#include "rcu/table.h"

struct contd__outlet;

/* Any context. */
struct contd__outlet_ops {
	/* Pull: n more are ready. Between enter and leave. */
	void (*tell)(struct contd__outlet *o, uint32_t n);
	/*
	 * A continuation that has just been made RUNNING. 1: it is handed over; 0: it runs here; -1: it is READY again,
	 * and nobody is to look at its group for a while.
	 */
	int (*takes)(struct contd_group *g, struct contd__slot *s);
	/* Push: it wants nothing from the daemon just now. Between enter and leave. */
	bool (*rests)(const struct contd__outlet *o);
	/* Threads that were to be woken later: now (contd__self.lent.untold). */
	void (*wake_untold)(void);
};

struct contd__outlet {
	const struct contd__outlet_ops *ops;
	bool push;
	uint32_t groups;                     /* that name it */
	struct contd__root root[PRIORITIES]; /* pull: its groups stand here */
};

#endif
