/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executors. In a push executor's group, the thread that claims a continuation hands it over, RUNNING, and
 * contd_work_run() ends it. A pull executor has separate roots for its groups. Only its threads scan them, so a
 * continuation stays ready, in the table, until one of these claims it. Tasks are linked through the program's memory:
 * pushed anywhere, and put in order by the thread that takes them.
 *
 *     operation                   thread  handler                in a callback  progress
 *     contd__executor_outlet.tell   yes     yes                    yes          wait-free, but for notify()
 *                           .takes  yes     in a region only       yes          what submit() does
 *                           .rests  yes     yes                    yes          wait-free
 *     contd_task_submit             yes     pull executors         yes          lock-free, but for notify(); push:
 *                                                                               what submit() does
 *     contd_executor_run, _take     yes     no                     yes          blocking
 *
 * Queued tasks are in two lists: task[], pushed anywhere, and first[], in order, from which they are taken. first[]
 * belongs to its owner, the one thread that takes any. The owner needs no atomic operations; tasks that it submits
 * itself go to the end of first[]. If several threads take, first[] belongs to the holder of the lock. The owner first
 * says that it is inside, and only then looks whether the list is shared by now. A thread that comes to share it says
 * so, makes all processors see that by membarrier(2), and waits until the owner is outside. Before a thread looks for
 * work, and so before it sleeps, it makes sure that it is the owner or that the list is shared.
 *
 * A group's executor changes only if nothing of the group is outstanding. A thread that has a continuation of it
 * (claimed, taken, or about to count its last event) reads g->outlet as often as it likes. All others (scans, which
 * have a pin, and completers that have counted) read it once, between contd__enter_sig() and contd__leave_sig(). They
 * find the one before, the one after or NULL, and use it no longer than that: contd_executor_destroy() waits for a
 * grace period when the last group has left.
 *
 * A thread that sleeps for work: arm (count as a sleeper), look again, sleep. A thread that makes something ready marks
 * it first and then looks for sleepers. The same with `notified`, which is cleared before a look.
 */
#ifndef CONTD_TASK_EXECUTOR_H
#define CONTD_TASK_EXECUTOR_H

#include <pthread.h>

#include <contd/executor.h>

#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/classes.h"
#include "dispatch/group.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

struct contd_executor {
	struct contd__outlet outlet; /* first */
	struct contd_executor_ops ops;
	void *pool;
	uint32_t flags;
	uint32_t stopped;
	/* Read by threads that make something ready. */
	uint32_t sleepers __attribute__((
		aligned(64))); /* its threads without CONTD_EXECUTOR_PROGRESS that sleep, or are about to */
	uint32_t wake;         /* their futex word */
	uint32_t notified;     /* notify() was called, and no thread has looked since */
	uint64_t rests_till;   /* push: the daemon offers it nothing before that; in clock ticks */
	struct contd_task *task[PRIORITIES]; /* submitted, newest first */
	/*
	 * Low half: what was submitted to a pool, or taken, and is not over; and sweeps of lent threads that are under
	 * way, not what waits for them in task[], first[] and root[]. High half: how often that has begun.
	 */
	uint64_t in_hand __attribute__((aligned(64)));
	uint32_t threads; /* lent threads */
	/* For its threads. */
	uint32_t turn;
	uint32_t inside; /* the owner is inside: it takes a few instructions */
	uint32_t shared; /* enum: OWNED, SHARING, SHARED */
	const struct contd__self *owner;
	uint32_t locked;
	struct contd_task *first[PRIORITIES], *last[PRIORITIES]; /* tasks in order, older than those of task[] */
};

static inline struct contd_executor *contd__executor_of(struct contd__outlet *o)
{
	return (struct contd_executor *)o;
}

enum { OWNED, SHARING, SHARED };
enum { MPI_NOBODY, MPI_LENT, MPI_DRAINS };

/* For all executors. */
struct contd__executors {
	contd_callback *issues; /* of tasks that call MPI to start something: contd_mpi_op_run()'s */
	uint32_t mpi_owned;     /* enum MPI_*: who runs work of executors with CONTD_EXECUTOR_MPI */
	uint32_t drainers;      /* threads in contd_executor_drain() */
	/*
	 * The last thread of an executor with CONTD_EXECUTOR_PROGRESS has returned: threads that sleep because that
	 * executor makes progress look again. NULL: there are none.
	 */
	void (*left)(void);
};
CONTD_INTERNAL_API extern struct contd__executors contd__executors;

/* Sets `left`. The caller looks at the threads of an executor next. Partner: the end of contd_executor_run(). */
static inline void contd__executors_on_left(void (*left)(void))
{
	contd__store_seq(&contd__executors.left, left);
}

/* Sets `issues`, which is the same function each time. */
static inline void contd__executors_issue_by(contd_callback *issues)
{
	if (!contd__load(&contd__executors.issues))
		contd__store(&contd__executors.issues, issues);
}

/*
 * What a thread does for executors, besides what groups must know of it (contd__self.at_work and .untold). A handler
 * that interrupts the thread finds it as it is.
 */
struct contd__lent {
	struct contd_executor *executor; /* to which it is lent, innermost, or NULL */
	/* contd_executor_take(): what its scan finds goes here, and is not run. Otherwise NULL. */
	struct contd__slot **collect;
	bool tells_later;        /* it runs tasks that hand over other tasks, and are brief */
	bool telling;            /* it is changing contd__self.untold and the number: a handler must leave them alone */
	uint32_t untold_threads; /* of the executor contd__self.untold: how many to wake */
};
CONTD_INTERNAL_API extern __thread struct contd__lent contd__lent __attribute__((tls_model("initial-exec")));

/* From now on the tasks that this thread hands over are told of at once. */
static inline void contd__tells_at_once(void)
{
	contd__lent.tells_later = false;
}

/* The first list belongs to this thread until it says that it is outside. false: it does not. Not in handlers outside
 * regions. */
static inline bool contd__executor_inside_sig(struct contd_executor *ex)
{
	/* In a region's handler the thread may have been interrupted there. */
	if (contd__load(&ex->owner) != &contd__self || contd__load(&ex->inside))
		return false;
	contd__store(&ex->inside, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the processor's part is done by membarrier(2), in settle() */
	if (contd__load(&ex->shared) == OWNED)
		return true;
	contd__store(&ex->inside, 0);
	return false;
}

static inline void contd__executor_outside_sig(struct contd_executor *ex)
{
	contd__store_release(&ex->inside, 0); /* partner: settle() */
}

#define IN_HAND_ONE (1ull << 32 | 1)
#define IN_HAND_NOW(w) ((uint32_t)(w))

/* The functions that groups call. */
extern const struct contd__outlet_ops contd__executor_outlet;

/* Call notify(), which there is; errno keeps its value. */
void contd__executor_notify_sig(struct contd_executor *ex);

/*
 * Submit a task for which the group is outstanding (or NULL) until it has run. 0 or what submit() returns. Handlers:
 * pull executors only.
 */
CONTD_INTERNAL_API int contd__task_hand_over_sig(struct contd_task *task, int status, struct contd_group *group);

/* n more pieces of work (in_hand). */
static inline void contd__executor_hold_sig(struct contd_executor *ex, uint32_t n)
{
	contd__add(&ex->in_hand, n * IN_HAND_ONE);
}

/* One piece less. The executor may be gone afterwards. */
void contd__executor_done_sig(struct contd_executor *ex);

/* A work pointer: bit 0 is set if it points to a slot. */
static inline struct contd_work *contd__work_of_slot(struct contd__slot *s)
{
	return (struct contd_work *)((uintptr_t)s | 1);
}

#endif
