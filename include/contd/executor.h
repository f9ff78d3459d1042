/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executors: where continuations run that are to become tasks of the program's own thread pool.
 *
 * An executor stands for a pool. There are two kinds:
 *
 *   push    The pool has a queue. contd gives it each piece of work by submit(), and the pool calls contd_work_run().
 *           The thread that finds a continuation ready submits it: a thread in test, wait or poll, contd's daemon, a
 *           compute region.
 *   pull    There is no submit(). The program lends threads by contd_executor_run(): they take the work, and sleep
 *           while there is none. Or an event loop takes it, after notify() has told it. Nothing is copied into a queue:
 *           ready continuations stay in contd's table until one of these threads claims them.
 *
 * A piece of work is either a continuation of a group that has an executor (contd_group_set_executor()), or a task
 * (struct contd_task). The program submits tasks itself, or makes one of a single continuation. Each executor runs
 * high-priority work before normal, and normal before low. In a pull executor every eighth look begins with one piece
 * of the lowest priority, so that none waits for ever.
 *
 * Work runs on its thread from beginning to end: on the same stack, and contd keeps what belongs to the thread while it
 * is inside contd_work_run(), contd_executor_run() or a callback. A runtime whose tasks may move to another thread, or
 * be put aside for another task, must switch only where contd asks it to (yield(), suspend() of contd/modes.h), or make
 * its own task in the callback.
 *
 * The tags of contexts are those of contd/contd.h. Adapters for pools of GLib, libuv, OpenMP and TBB are in separate
 * headers beside this one.
 */
#ifndef CONTD_EXECUTOR_H
#define CONTD_EXECUTOR_H

#include <contd/contd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct contd_executor;

/* One thing to be run, once. Not to be looked into. */
struct contd_work;

/*
 * A pool, as contd sees it. Set size to sizeof(struct contd_executor_ops); the struct is copied. NULL where not said
 * otherwise means: there is none.
 */
struct contd_executor_ops {
	size_t size;
	/*
	 * Queue the work, for one of the pool's threads to call contd_work_run(work) once; or do so at once. priority
	 * is one of enum contd_priority. Returns 0, or -errno: refused. A continuation that is refused runs where it
	 * was found, if that is a thread of the program's, or its group has CONTD_THREAD_ANY; otherwise contd's daemon
	 * keeps it and offers it again, a millisecond later at the earliest. Called on any thread of the program's that
	 * contd works on, on contd's daemon, and in the handler that has interrupted a compute region, as if the thread
	 * had called it; never in a handler elsewhere. It must not call contd's waiting functions. A thread that it
	 * creates is a child of the calling thread: from contd's daemon it inherits a mask that blocks all signals, the
	 * daemon's name, processors and scheduling policy; pools should have their threads before. NULL: a pull
	 * executor.
	 */
	int (*submit)(void *pool, struct contd_work *work, int priority);
	/*
	 * Pull executors only: there is work, where before there was none; not again before contd_executor_run() or
	 * contd_executor_take() was called. Called wherever a completion is, also in signal handlers: must be
	 * async-signal-safe (write(2), uv_async_send()), and must not call contd.
	 */
	void (*notify)(void *pool);
	/*
	 * Part of contd_executor_drain(): return when the pool's queue is empty, or has been made to be emptied. May
	 * block. Pull executors: called instead of running the ready work on the calling thread, for pools that are
	 * bound to a thread; called again on that thread while work waits.
	 */
	void (*drain)(void *pool);
	/* As snprintf(3): a line for people, such as "GThreadPool, 4 threads". */
	int (*describe)(void *pool, char *text, size_t bytes);
};

enum contd_executor_flags {
	/*
	 * Pull executors: while a thread is in contd_executor_run() and has no work it does what contd_group_wait()
	 * does: looks at memory words and sources (MPI, fabric), and runs what is ready of groups without executor.
	 * Without this flag such threads sleep, and contd's daemon or another thread makes progress.
	 */
	CONTD_EXECUTOR_PROGRESS = 1,
	/*
	 * With CONTD_EXECUTOR_PROGRESS, and one thread at a time: that thread is the one that calls MPI. Below
	 * MPI_THREAD_MULTIPLE contd enters MPI on one thread only, except inside the program's own MPI calls. That is
	 * the thread of MPI_Init_thread(), or, if an executor with this flag exists, the one in contd_executor_run().
	 * MPI_THREAD_SERIALIZED is needed, or MPI_THREAD_FUNNELED where the main thread is lent.
	 */
	CONTD_EXECUTOR_MPI = 2
};

struct contd_executor_attr {
	size_t size;                          /* sizeof(struct contd_executor_attr) */
	uint32_t flags;                       /* enum contd_executor_flags */
	const struct contd_executor_ops *ops; /* NULL: a pull executor without notify() */
	void *pool;                           /* passed to ops */
};

/*
 * Create an executor. attr is copied; NULL: a pull executor without flags. It is the caller's until
 * contd_executor_destroy().
 * Context: any thread, in a callback; may block. Errors: -EINVAL (executorp is NULL; sizes; flags; flags or notify()
 * with submit(); _MPI without _PROGRESS), -E2BIG, -ENOMEM, -EPERM (not initialized, in contd's handler), -ECHILD.
 */
CONTD_API int contd_executor_create(const struct contd_executor_attr *attr,
				    struct contd_executor **executorp) CONTD_NOEXCEPT;

/*
 * Destroy an executor. Call contd_executor_drain() between contd_group_wait() and this: the last continuation of a
 * group is counted as run a moment before the pool's thread has finished with it.
 * The call works after contd_fini(), too. contd_fini() drops ready continuations of the executor's groups, but no
 * submitted tasks: contd_executor_drain() runs those after another contd_init().
 * Context: any thread, not in its own work; may block.
 * Errors:
 *     -EINVAL  NULL
 *     -EBUSY   a group uses it or has continuations outstanding; work is queued or runs; or a thread is in
 *              contd_executor_run(). First wait for the groups and destroy them, then stop the executor and let its
 *              threads return, then drain it
 *     -EPERM   in contd's handler
 *     -ECHILD  in the child of a fork: the executor is the parent's
 */
CONTD_API int contd_executor_destroy(struct contd_executor *executor) CONTD_NOEXCEPT;

/*
 * From now on this executor runs the group's continuations, with the group's priority. NULL: the group has no executor
 * any more. The continuations never run inside the call that registers them. contd_group_test() and contd_group_wait()
 * on the group look at its operations and tell whether it is complete. They run its continuations only on a thread of a
 * pull executor, inside contd_executor_run() of that executor. For a continuation request: its group is
 * contd_mpi_group()'s. The group must have nothing outstanding, and no thread may register with it during the call.
 * Context: any thread, in a callback; may block. Errors: -EINVAL (NULL; a group with CONTD_POLL_ONLY,
 * CONTD_ASYNC_SIGNAL_SAFE or a max_poll), -EBUSY (something is outstanding), -EAGAIN (4096 groups name it, or exist of
 * this kind, with that priority), -EPERM (in contd's handler).
 */
CONTD_API int contd_group_set_executor(struct contd_group *group, struct contd_executor *executor) CONTD_NOEXCEPT;

/*
 * Run the work that submit() was given: once, and not after that. A continuation that contd_fini() has counted as one
 * that never ran does not run any more: the call only takes it off the executor. In the child of a fork it does
 * nothing: the parent runs the work.
 * Context: any thread of the program's, in a callback; may do what the continuation or task does.
 */
CONTD_API void contd_work_run(struct contd_work *work);

/* The priority of a piece of work that has not run yet: enum contd_priority. Context: any thread. */
CONTD_API int contd_work_priority(const struct contd_work *work) CONTD_NOEXCEPT;

/* -------------------------------------------------------------------------------------------------------- tasks --- */

/*
 * A callback and its data, to be run by an executor: work of the program's own, or what a continuation becomes. The
 * memory is the caller's, and free again when cb begins. The other fields are contd's.
 */
struct contd_task {
	contd_callback *cb;
	void *data;
	struct contd_executor *executor;
	int32_t priority;
	int32_t status;
	struct contd_task *next;
	struct contd_group *group;
};

/* Prepare a task; nothing runs yet. priority: enum contd_priority. Context: any thread, handler. */
static inline void contd_task_init(struct contd_task *task, struct contd_executor *executor, int priority,
				   contd_callback *cb, void *data)
{
	task->cb = cb;
	task->data = data;
	task->executor = executor;
	task->priority = priority;
	task->status = 0;
	task->next = NULL;
	task->group = NULL;
}

/*
 * Run cb(status, data) on the task's executor, soon. A task must not be submitted again before cb has begun.
 * Context: any thread, in a callback; pull executors: handler, too. May do what submit() does. Errors: -EINVAL (no
 * executor, no callback, priority), -EPERM (a push executor, in contd's handler), and what submit() returns; then cb
 * will not be called.
 */
CONTD_API int contd_task_submit(struct contd_task *task, int status);

/*
 * A contd_callback whose data is a struct contd_task: a single continuation that names its executor. It hands the task
 * over, with the status, and its group stays outstanding until the task has run. If submit() refuses, or the task has
 * no executor or no valid priority, the task runs here.
 *
 *   contd_task_init(&op->task, pool, CONTD_PRIORITY_NORMAL, finished, op);
 *   contd_event_continue(1, events, contd_task_callback, &op->task, group, NULL);
 *
 * Context: as a continuation, nowhere else. The group may be async-signal-safe only where the executor is a pull
 * executor.
 */
CONTD_API void contd_task_callback(int status, void *task);

/* ---------------------------------------------------------------------------------------------- lending threads --- */

/*
 * Lend the calling thread to a pull executor. The call returns after `max` pieces of work (0: no limit). It returns
 * also when there has been no work for timeout_ns (0: it runs only the work that is there now; -1: no limit). And it
 * returns when contd_executor_stop() has been called and nothing is ready. Calls may nest (in a task, for example), and
 * any number of threads may be lent at a time. Returns how many pieces it has run; with CONTD_EXECUTOR_PROGRESS the
 * continuations of groups without executor that it has run count as well.
 * Context: any thread, in a callback; blocks. Errors: -EINVAL (NULL, timeout_ns below -1; a push executor), -EPERM (in
 * contd's handler, not initialized), -EDEADLK (on contd's daemon), -EBUSY. The last one comes with CONTD_EXECUTOR_MPI
 * only: another thread is lent to this executor or to another one with that flag, or contd_executor_drain() has been
 * running work of such an executor for a second.
 */
CONTD_API int contd_executor_run(struct contd_executor *executor, uint32_t max, int64_t timeout_ns);

/*
 * Take one piece of work out of a pull executor without running it. A pool that makes a task of each piece needs this.
 * The caller must see to it that contd_work_run() is called with it. NULL: nothing is ready, or an error, which
 * contd_error_text() names. Context: any thread, in a callback. It never blocks, nor makes progress.
 */
CONTD_API struct contd_work *contd_executor_take(struct contd_executor *executor);

/*
 * All calls of contd_executor_run() that are under way, and later ones, return as soon as nothing is ready. stopped =
 * 0: undo that. notify() is called, too. Context: any thread, in a callback. Errors: -EINVAL (NULL, a push executor).
 */
CONTD_API int contd_executor_stop(struct contd_executor *executor, int stopped) CONTD_NOEXCEPT;

/*
 * Return when no work is queued or running, and no call of submit() is under way. Work that comes during the call
 * counts too, and so does what contd_executor_take() gave and contd_work_run() has not run: a thread that has yet to
 * call contd_work_run() must not call this. If the executor has drain(), that is called. In a pull executor without
 * drain() this thread runs the ready work. With every executor it does what contd_poll() does while it waits:
 * continuations of other groups may run in this call. (With CONTD_EXECUTOR_MPI only while no thread is lent to an
 * executor with that flag; it leaves the work to a thread that is lent to this one.) Then it waits for the work that
 * other threads are running. It does not wait for pending operations: contd_group_wait() does.
 * Context: any thread, not in its own work; blocks. Errors: -EINVAL (NULL), -EPERM (in contd's handler), -EDEADLK (in
 * its own work, on contd's daemon), -EBUSY. The last one comes with CONTD_EXECUTOR_MPI only: the executor has work, no
 * thread is lent to it, and one has been lent to another executor with that flag for a second.
 */
CONTD_API int contd_executor_drain(struct contd_executor *executor);

/*
 * Write a line for people into text: what describe() says (its first 127 characters), or of a pull executor how many
 * threads it has. One sum follows, of the tasks that are queued and of what is running. Ready continuations of a pull
 * executor are not counted. As snprintf(3) it writes at most `bytes` bytes and returns how many the whole line has,
 * without the 0 at its end; text may be NULL if bytes is 0.
 * Context: any thread, in a callback; works after contd_fini(), too. Errors: -EINVAL (NULL).
 */
CONTD_API int contd_executor_describe(struct contd_executor *executor, char *text, size_t bytes) CONTD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
