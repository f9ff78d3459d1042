/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor on OpenMP: continuations become explicit tasks of a parallel region. Header only; compile with -fopenmp.
 * The tags of contexts are those of contd/contd.h.
 *
 * OpenMP has no queue that other threads could fill: only threads of the team make tasks. So this is a pull executor.
 * There are three ways to take its work:
 *
 *   contd_executor_omp_generate()   one thread of the region makes a task of each piece of work that becomes ready, and
 *                                   sleeps in between
 *   contd_executor_omp_spawn()      a thread calls this now and then, and makes tasks of the pieces that are ready
 *   contd_executor_omp_yield()      a thread that waits in a task runs one piece
 *
 * Work is taken highest priority first, and its tasks have a priority clause: 2, 1 and 0 for high, normal and low.
 * OpenMP obeys it if the variable OMP_MAX_TASK_PRIORITY is 2 or more when the program starts. Its default is 0.
 */
#ifndef CONTD_EXECUTOR_OPENMP_H
#define CONTD_EXECUTOR_OPENMP_H

#ifndef _OPENMP
#error "contd/executor-openmp.h needs -fopenmp"
#endif

#include <contd/executor.h>
#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum contd_executor_omp_flags {
	/*
	 * The thread in contd_executor_omp_generate() does not sleep. It calls contd_poll() again and again, which
	 * looks at memory words and sources (MPI, fabric), and runs the ready continuations of groups without executor.
	 * Without this flag another thread must make progress, such as contd's daemon.
	 */
	CONTD_EXECUTOR_OMP_POLL = 1
};

/* The memory is the program's, from contd_executor_omp_init() until contd_executor_omp_fini() has returned 0. */
struct contd_executor_omp {
	struct contd_executor *executor; /* for contd_group_set_executor() and contd_task_init() */
	sem_t told;
	int flags;
	int stopped;
	int stopping; /* threads in contd_executor_omp_stop() that still use this struct */
	int threads;  /* of the team whose thread generates; 0: none does */
};

static inline void contd__omp_notify(void *omp)
{
	sem_post(&((struct contd_executor_omp *)omp)->told); /* async-signal-safe */
}

static inline int contd__omp_describe(void *data, char *text, size_t bytes)
{
	struct contd_executor_omp *omp = (struct contd_executor_omp *)data;

	return snprintf(text, bytes, "OpenMP tasks, %d threads", __atomic_load_n(&omp->threads, __ATOMIC_RELAXED));
}

/*
 * Make the executor. flags: enum contd_executor_omp_flags. The memory of *omp is the program's: see struct
 * contd_executor_omp.
 * Context: any thread; may block. Errors: -EINVAL (NULL, flags), -errno of sem_init(3), and those of
 * contd_executor_create().
 */
static inline int contd_executor_omp_init(struct contd_executor_omp *omp, int flags)
{
	struct contd_executor_ops ops = {sizeof(ops), NULL, contd__omp_notify, NULL, contd__omp_describe};
	struct contd_executor_attr attr = {sizeof(attr), 0, &ops, omp};
	int r;

	if (!omp || (flags & ~CONTD_EXECUTOR_OMP_POLL))
		return contd__fails("contd_executor_omp_init", -EINVAL,
				    !omp ? "omp must not be NULL"
					 : "flags has bits that are no enum contd_executor_omp_flags");
	omp->flags = flags;
	omp->stopped = 0;
	omp->stopping = 0;
	omp->threads = 0;
	if (sem_init(&omp->told, 0, 0))
		return contd__fails("contd_executor_omp_init", -errno, "sem_init(3) refuses");
	r = contd__fails("contd_executor_omp_init", contd_executor_create(&attr, &omp->executor), NULL);
	if (r)
		sem_destroy(&omp->told);
	return r;
}

/*
 * Destroy the executor. No thread may be in contd_executor_omp_generate().
 * Context: as contd_executor_destroy(). Errors: -EINVAL (NULL), and those of contd_executor_destroy(). After an error
 * nothing has changed.
 */
static inline int contd_executor_omp_fini(struct contd_executor_omp *omp)
{
	int r = omp ? contd_executor_destroy(omp->executor) : -EINVAL;

	contd__fails("contd_executor_omp_fini", r, omp ? NULL : "omp must not be NULL");
	if (!r)
		sem_destroy(&omp->told);
	return r;
}

/*
 * Make a task of each piece that is ready. The team's threads run the tasks when they come to a task scheduling point
 * (a barrier, a taskwait). So call this if the calling thread, or another one of its team, will come to such a point.
 * Returns the number of tasks. Context: any thread, in a callback.
 */
static inline int contd_executor_omp_spawn(struct contd_executor_omp *omp)
{
	struct contd_work *work;
	int n = 0;

	while ((work = contd_executor_take(omp->executor))) {
#pragma omp task firstprivate(work) priority(contd_work_priority(work) + 1)
		contd_work_run(work);
		n++;
	}
	return n;
}

/*
 * Make a task of each piece of work that becomes ready, until contd_executor_omp_stop(). One thread of a team calls
 * this while the others are at a barrier, such as the one at the end of `#pragma omp single`. There they run the tasks.
 * In a team of one thread, and outside a parallel region, the tasks run in this call.
 * Context: a thread in a parallel region, or outside; blocks.
 */
static inline void contd_executor_omp_generate(struct contd_executor_omp *omp)
{
	int n;

	__atomic_store_n(&omp->threads, omp_get_num_threads(), __ATOMIC_RELAXED);
	for (;;) {
		/* Read first: work that was ready before the stop still becomes a task. Partner:
		 * contd_executor_omp_stop(). */
		int stopped = __atomic_load_n(&omp->stopped, __ATOMIC_ACQUIRE);

		n = contd_executor_omp_spawn(omp);
		if (n && omp_get_num_threads() == 1) { /* no other thread could run them */
#pragma omp taskwait
		} else if (n == 0) {
			if (stopped)
				break;
			if (!(omp->flags & CONTD_EXECUTOR_OMP_POLL))
				while (sem_wait(&omp->told) && errno == EINTR)
					;
			else if (contd_poll(0) == 0)
				sched_yield();
		}
	}
	__atomic_store_n(&omp->threads, 0, __ATOMIC_RELAXED);
	/* After this the program may free the memory. Partner: contd_executor_omp_stop(). */
	while (__atomic_load_n(&omp->stopping, __ATOMIC_ACQUIRE))
		sched_yield();
}

/*
 * Make contd_executor_omp_generate() return as soon as nothing is ready, now and in later calls. stopped = 0 ends this:
 * later calls generate again.
 * Context: any thread, handler, in a callback.
 */
static inline void contd_executor_omp_stop(struct contd_executor_omp *omp, int stopped)
{
	/* A thread that sees `stopped` also sees that this thread is here. */
	__atomic_add_fetch(&omp->stopping, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&omp->stopped, stopped, __ATOMIC_RELEASE);
	if (stopped)
		sem_post(&omp->told);
	__atomic_sub_fetch(&omp->stopping, 1, __ATOMIC_RELEASE);
}

/*
 * Run one ready piece of work, and yield. Call this on a thread that waits in a task. The thread runs the piece itself,
 * not as a task, because a taskyield may do nothing (gcc's does nothing). Then, if all threads waited, none would run
 * the task. Returns the number of pieces it has run, or a negative error of contd_executor_run().
 * Context: any thread, in a callback.
 */
static inline int contd_executor_omp_yield(struct contd_executor_omp *omp)
{
	int n = contd_executor_run(omp->executor, 1, 0);

	if (n < 0)
		contd__fails("contd_executor_omp_yield", n, NULL);
#pragma omp taskyield
	return n;
}

#ifdef __cplusplus
}
#endif

#endif
