/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executors. Of a push executor's group whoever claims a continuation hands it over, RUNNING, and contd_work_run() ends it. A
 * pull executor has roots of its own, in which its groups stand: nobody but its threads scans them, so a continuation stays
 * ready, in the table, until one of these claims it. Tasks are linked through the program's memory: pushed anywhere, and put
 * in order by who takes them.
 *
 *  operation                   thread  handler                in a callback  progress
 *  contd__executor_tell_sig      yes     yes                    yes          wait-free, but for notify()
 *  contd__executor_takes_sig     yes     in a region only       yes          what submit() does
 *  contd__executor_rests_sig     yes     yes                    yes          wait-free
 *  contd_task_submit             yes     pull executors         yes          lock-free, but for notify(); push: what submit() does
 *  contd_executor_run, _take     yes     no                     yes          blocking
 *
 * Who sleeps for work: arm (count as a sleeper), look again, sleep. Who makes something ready marks it first and then looks for
 * sleepers. The same with `notified`, which is cleared before a look.
 */
#ifndef CONTD_DISPATCH_EXECUTOR_H
#define CONTD_DISPATCH_EXECUTOR_H

#include <pthread.h>

#include <contd/executor.h>

#include "dispatch/group.h"

struct contd_executor {
	struct contd_executor_ops ops;
	void *pool;
	uint32_t flags;
	uint32_t stopped;
	/* Read by who makes something ready. */
	uint32_t sleepers __attribute__((aligned(64))); /* its threads without CONTD_EXECUTOR_PROGRESS that sleep, or are about to */
	uint32_t wake;      /* their futex word */
	uint32_t notified;  /* notify() was called, and nobody has looked since */
	uint64_t rests_till; /* push: the daemon offers it nothing before that; in clock ticks */
	struct contd_task *task[PRIORITIES]; /* submitted, newest first */
	/* Its threads'. */
	uint32_t in_hand __attribute__((aligned(64))); /* submitted or taken, and not over; continuations that run here as well */
	uint32_t groups;    /* that name it */
	uint32_t threads;   /* that are lent */
	uint32_t turn;
	pthread_mutex_t lock; /* of: */
	struct contd_task *first[PRIORITIES]; /* tasks in order, older than those */
	struct contd__root root[PRIORITIES];
};

/* n more are ready, of a pull executor. */
void contd__executor_tell_sig(struct contd_executor *ex, uint32_t n);

/* Its threads that were to be woken later: now. */
CONTD_INTERNAL_API void contd__wake_all_untold_sig(void);
static inline void contd__wake_untold_sig(void)
{
	if (__builtin_expect(contd__self.untold != NULL, 0))
		contd__wake_all_untold_sig();
}

/*
 * A continuation that has just been made RUNNING, of a group with an executor: 1: the executor has it; 0: it runs here; -1: it is
 * ready again, and nobody is to look at its group for a while.
 */
int contd__executor_takes_sig(struct contd_group *g, struct contd__slot *s);

/* It wants nothing from the daemon just now. */
bool contd__executor_rests_sig(const struct contd_group *g);

/*
 * Submit a task for which the group is outstanding (or NULL) until it has run. 0 or what submit() returns. Handlers: pull
 * executors only.
 */
CONTD_INTERNAL_API int contd__task_hand_over(struct contd_task *task, int status, struct contd_group *group);

/* One less in hand; it may be gone afterwards. */
void contd__executor_done_sig(struct contd_executor *ex);

/* Names of what a work pointer is: bit 0 is set where it is a slot's. */
static inline struct contd_work *contd__work_of_slot(struct contd__slot *s)
{
	return (struct contd_work *)((uintptr_t)s | 1);
}

#endif
