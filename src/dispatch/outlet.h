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
 * Executors that have MPI (CONTD_EXECUTOR_MPI): how many there are. If there is one, only a thread that is lent to one
 * of them, or runs its work, may call MPI: contd__owns_mpi says how often this thread is. Executors write both. MPI
 * asks, also in a build without executors.
 */
CONTD_INTERNAL_API extern uint32_t contd__outlets_own_mpi;
CONTD_INTERNAL_API extern __thread uint32_t contd__owns_mpi __attribute__((tls_model("initial-exec")));

#endif
