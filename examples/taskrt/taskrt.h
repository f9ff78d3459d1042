/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * taskrt: a minimal runtime of user-level tasks, as an example of how one integrates contd: docs/runtimes.md. A task is
 * a function with a separate stack; threads that call taskrt_run() take tasks from a queue, those of high priority
 * first.
 *
 *   for contd_mpi_op_run()     taskrt_yield, taskrt_suspend, taskrt_resume are what struct contd_mode_attr asks for;
 *                              the task that waits goes into op.task
 *   executor                   the threads are lent to a pull executor of contd's, once a round of the queue and while
 *                              it is empty: they run continuations, and with CONTD_EXECUTOR_PROGRESS they drive MPI
 */
#ifndef TASKRT_H
#define TASKRT_H

#include <stddef.h>

#include <contd/executor.h>

struct taskrt;
struct taskrt_task;

typedef void taskrt_function(struct taskrt_task *self, void *data);

/* executor: a pull executor, which outlives it. NULL is returned where there is no memory. */
struct taskrt *taskrt_create(size_t stack_bytes, struct contd_executor *executor);

/* No thread is in taskrt_run() any more, and no task is left. */
void taskrt_destroy(struct taskrt *rt);

/* Queue a new task. Any thread, in a continuation. Returns 0 or -ENOMEM. */
int taskrt_spawn(struct taskrt *rt, int priority, taskrt_function *function, void *data);

/* Lend the calling thread: returns when taskrt_stop() was called and nothing is queued. */
void taskrt_run(struct taskrt *rt);

/* stopped = 0: no more. Any thread. */
void taskrt_stop(struct taskrt *rt, int stopped);

/* By a task, with itself: others have their turn. */
void taskrt_yield(void *task);

/* By a task, with itself: sleep until taskrt_resume(task) is called, which may have happened. */
void taskrt_suspend(void *task);

/* Once for each taskrt_suspend(). Any thread, in a continuation. */
void taskrt_resume(void *task);

#endif
