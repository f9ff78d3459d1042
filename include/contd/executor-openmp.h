/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An executor on OpenMP: continuations become explicit tasks of a parallel region. Header only; compile with -fopenmp.
 * The tags of contexts are those of contd/contd.h.
 *
 * OpenMP has no queue that other threads could fill: tasks are made by threads of the team. So this is a pull executor:
 * one thread of the region makes a task of each piece of work that becomes ready, and sleeps meanwhile
 * (contd_executor_omp_generate()); or threads do now and then (contd_executor_omp_spawn()); or threads that wait in a
 * task run pieces (contd_executor_omp_yield()).
 *
 * Work is taken highest priority first, and its tasks have a priority clause: 2, 1 and 0 for high, normal and low.
 * OpenMP obeys it where the variable OMP_MAX_TASK_PRIORITY is 2 or more when the program starts; it is 0 unless set.
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
	 * Who generates does not sleep: it looks at memory words and sources (MPI, fabric) and runs what is ready of
	 * groups without executor, as contd_poll(), again and again. Without this flag somebody else makes progress:
	 * contd's daemon, or another thread.
	 */
	CONTD_EXECUTOR_OMP_POLL = 1
};

/* The memory is the program's, from contd_executor_omp_init() until contd_executor_omp_fini() has returned 0. */
struct contd_executor_omp {
	struct contd_executor *executor; /* for contd_group_set_executor() and contd_task_init() */
	sem_t told;
	int flags;
	int stopped;
	int stopping; /* threads in contd_executor_omp_stop() that touch this yet */
	int threads;  /* of the team that generates; 0: none does */
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

/* Context: any thread; may block. Errors: -EINVAL (NULL, flags), and contd_executor_create()'s. */
static inline int contd_executor_omp_init(struct contd_executor_omp *omp, int flags)
{
	struct contd_executor_ops ops = {sizeof(ops), NULL, contd__omp_notify, NULL, contd__omp_describe};
	struct contd_executor_attr attr = {sizeof(attr), 0, &ops, omp};
	int r;

	if (!omp || (flags & ~CONTD_EXECUTOR_OMP_POLL))
		return -EINVAL;
	omp->flags = flags;
	omp->stopped = 0;
	omp->stopping = 0;
	omp->threads = 0;
	if (sem_init(&omp->told, 0, 0))
		return -errno;
	r = contd_executor_create(&attr, &omp->executor);
	if (r)
		sem_destroy(&omp->told);
	return r;
}

/* Context: as contd_executor_destroy(); nobody generates. Errors: -EINVAL (NULL), and contd_executor_destroy()'s. */
static inline int contd_executor_omp_fini(struct contd_executor_omp *omp)
{
	int r = omp ? contd_executor_destroy(omp->executor) : -EINVAL;

	if (!r)
		sem_destroy(&omp->told);
	return r;
}

/*
 * Make a task of each piece that is ready; the team's threads run them when they come to a scheduling point. For a
 * thread that goes there itself afterwards (a barrier, a taskwait), or whose team has others that do. Returns how many.
 * Context: any thread, in a callback.
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
 * Make tasks of all that becomes ready, until contd_executor_omp_stop(). To be called by one thread of a team while the
 * others are at a barrier, such as that which ends `#pragma omp single`: there they run the tasks. In a team of one
 * thread the tasks run in this call. Context: a thread in a parallel region, or outside (then tasks run here, as OpenMP
 * has it); blocks.
 */
static inline void contd_executor_omp_generate(struct contd_executor_omp *omp)
{
	int n;

	__atomic_store_n(&omp->threads, omp_get_num_threads(), __ATOMIC_RELAXED);
	for (;;) {
		/* Looked at first: what was ready when the program said stop is still seen to. Partner:
		 * contd_executor_omp_stop(). */
		int stopped = __atomic_load_n(&omp->stopped, __ATOMIC_ACQUIRE);

		n = contd_executor_omp_spawn(omp);
		if (n && omp_get_num_threads() == 1) { /* nobody else is there to run them */
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
	/* The memory may go now: partner contd_executor_omp_stop(). */
	while (__atomic_load_n(&omp->stopping, __ATOMIC_ACQUIRE))
		sched_yield();
}

/*
 * contd_executor_omp_generate() returns as soon as nothing is ready; stopped = 0: no more.
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
 * For a thread that waits in a task: runs one piece of what is ready, and yields. It runs it itself, not as a task,
 * because a taskyield may do nothing (gcc's does not), and then threads that all wait would never come to run it.
 * Returns how many it has run. Context: any thread, in a callback.
 */
static inline int contd_executor_omp_yield(struct contd_executor_omp *omp)
{
	int n = contd_executor_run(omp->executor, 1, 0);

#pragma omp taskyield
	return n;
}

#ifdef __cplusplus
}
#endif

#endif
