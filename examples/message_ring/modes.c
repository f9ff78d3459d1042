/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring by contd's modes: each step of a slot is one operation of contd_mpi_op_run().
 *
 *   yield, suspend           a task for each slot, of taskrt's or a thread, which makes its steps one after the other;
 *                            where completions are transferred each step is a task, and done() makes the next one
 *   task, continuation, mpix done() makes the next step
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "../taskrt/taskrt.h"
#include "message_ring.h"
#ifdef RING_GLIB
#include <contd/executor-glib.h>
static struct contd_executor_glib glib;
#endif

static struct taskrt *runtime;
static struct contd_executor *requests_pool, *completions_pool, *runtime_pool;
static pthread_t comm_thread;

static int priority_of(const struct options *o)
{
	return o->high ? CONTD_PRIORITY_HIGH : CONTD_PRIORITY_NORMAL;
}

/* The task that issues is asleep until its step is complete. */
static bool waits(const struct options *o)
{
	return o->mode == MODE_YIELD || o->mode == MODE_SUSPEND;
}

static bool has_fibers(const struct options *o)
{
	return waits(o) && !o->thread_tasks;
}

/* -------------------------------------------------------------------------------------------------------- steps --- */

static int issue(struct contd_mpi_op *op)
{
	struct slot *s = op->data;
	int rc = ring_issue(s, op->requests);

	/* Where op_run() does not return before: else it is cancelled when its continuation is registered already. */
	if (s->cancels && s->cancel_at_once)
		MPI_Cancel(&s->nobody);
	return rc;
}

static void run(struct slot *s, void *task)
{
	const struct options *o = &s->worker->ring->options;
	bool cancel_later = s->cancels && !waits(o) && !o->requests_transfer;
	int rc;

	s->cancel_at_once = !cancel_later;
	s->op.count = ring_count(s);
	s->op.task = task;
	rc = contd_mpi_op_run(&s->op, &s->worker->how);
	if (rc != MPI_SUCCESS)
		ring_die("contd_mpi_op_run: %d: %s", rc, contd_error_text());
	if (cancel_later) { /* only now it can complete: the slot is as it was */
		MPI_Request nobody = s->nobody;

		MPI_Cancel(&nobody);
	}
}

static void fiber(struct taskrt_task *self, void *slot)
{
	struct slot *s = slot;
	bool transferred = s->worker->ring->options.completions_transfer;

	while (ring_next(s)) {
		run(s, self);
		if (transferred)
			return; /* the slot is done()'s */
		ring_finished(s);
	}
}

static void *thread(void *slot)
{
	struct slot *s = slot;

	while (ring_next(s)) {
		run(s, s);
		if (s->worker->ring->options.completions_transfer)
			sem_wait(&s->done);
		else
			ring_finished(s);
	}
	return NULL;
}

static void make_fiber(struct slot *s)
{
	if (taskrt_spawn(runtime, priority_of(&s->worker->ring->options), fiber, s))
		ring_die("no stack for a task");
}

static void done(struct contd_mpi_op *op, int status)
{
	struct slot *s = op->data;
	const struct options *o = &s->worker->ring->options;

	if (status != MPI_SUCCESS)
		ring_die("a step has failed: %d", status);
	ring_finished(s);
	if (!waits(o)) {
		if (ring_next(s))
			run(s, NULL);
	} else if (o->thread_tasks) {
		sem_post(&s->done);
	} else {
		make_fiber(s);
	}
}

/* The same without a waiting thread and without cancelling: then it does no more than the loop of MPI_Testsome. */
static int issue_plainly(struct contd_mpi_op *op)
{
	return ring_issue(op->data, op->requests);
}

static void done_plainly(struct contd_mpi_op *op, int status)
{
	struct slot *s = op->data;

	if (status != MPI_SUCCESS)
		ring_die("a step has failed: %d", status);
	ring_finished(s);
	if (!ring_next(s))
		return;
	op->count = s->sends + s->receives;
	status = contd_mpi_op_run(op, &s->worker->how);
	if (status != MPI_SUCCESS)
		ring_die("contd_mpi_op_run: %d: %s", status, contd_error_text());
}

/* ------------------------------------------------------------------------------------------------------ driving --- */

static void ended(struct ring *r)
{
	if (runtime)
		taskrt_stop(runtime, 1);
	if (r->options.pool == POOL_PULL || r->options.pool == POOL_COMM) {
		contd_executor_stop(requests_pool, 1);
		contd_executor_stop(completions_pool, 1);
	}
}

static void *communicate(void *unused)
{
	(void)unused;
	if (contd_executor_run(requests_pool, 0, -1) < 0)
		ring_die("contd_executor_run: %s", contd_error_text());
	return NULL;
}

static void drive(struct worker *w)
{
	const struct options *o = &w->ring->options;

	if (has_fibers(o) || o->pool == POOL_TASKRT) {
		taskrt_run(runtime);
	} else if (o->pool == POOL_PULL || o->pool == POOL_COMM) {
		if (contd_executor_run(completions_pool, 0, -1) < 0)
			ring_die("contd_executor_run: %s", contd_error_text());
	} else if (o->pool == POOL_NONE && w->cr != MPI_REQUEST_NULL) {
		MPI_Wait(&w->cr, MPI_STATUS_IGNORE);
	} else {
		int vain = 0;

		while (!ring_is_over(w->ring)) {
			vain = contd_poll(0) > 0 ? 0 : vain + 1;
			if (vain > 1000) /* there may be more threads than processors */
				sched_yield();
		}
	}
}

void modes_work(struct worker *w)
{
	const struct options *o = &w->ring->options;
	pthread_t *threads = NULL;

	if (w == w->ring->workers && o->pool == POOL_COMM && pthread_create(&comm_thread, NULL, communicate, NULL))
		ring_die("no thread to be had");
	if (waits(o) && o->thread_tasks && !(threads = malloc((size_t)w->count * sizeof(*threads))))
		ring_die("out of memory");
	for (long i = 0; i < w->count; i++) {
		struct slot *s = &w->slots[i];

		if (threads && pthread_create(&threads[i], NULL, thread, s))
			ring_die("no thread to be had");
		else if (has_fibers(o))
			make_fiber(s);
		else if (!threads && ring_next(s))
			run(s, NULL);
	}
	drive(w);
	for (long i = 0; threads && i < w->count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	if (w == w->ring->workers && o->pool == POOL_COMM)
		pthread_join(comm_thread, NULL);
}

/* --------------------------------------------------------------------------------------------- before and after --- */

void modes_needs(const struct options *o, int *thread_level, bool *shared)
{
	if (o->all) {
		*thread_level = MPI_THREAD_MULTIPLE;
		*shared = true;
	} else if (o->pool == POOL_COMM) {
		*thread_level = MPI_THREAD_SERIALIZED;
		*shared = true;
	} else if (o->pool == POOL_GLIB || (waits(o) && o->thread_tasks)) {
		*thread_level = MPI_THREAD_MULTIPLE;
		*shared = true;
	}
}

/* Where one has no executor nothing can be transferred to it; where one is used, something is. */
bool modes_exists(const struct options *o)
{
	bool transfers = o->requests_transfer || o->completions_transfer;

	if (o->mode == MODE_TESTSOME)
		return !transfers && o->pool == POOL_NONE;
#ifndef RING_GLIB
	if (o->pool == POOL_GLIB)
		return false;
#endif
	if (o->mode == MODE_TASK && !o->completions_transfer)
		return false; /* a task of whom? */
	if (o->pool == POOL_COMM && !o->requests_transfer)
		return false; /* no other thread may call MPI */
	return transfers == (o->pool != POOL_NONE);
}

static struct contd_executor *lent_threads(uint32_t flags)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = flags};
	struct contd_executor *e;

	if (contd_executor_create(&attr, &e))
		ring_die("contd_executor_create: %s", contd_error_text());
	return e;
}

static void make_pools(const struct options *o)
{
	bool lent = o->pool == POOL_PULL || o->pool == POOL_COMM;

	if (o->pool == POOL_COMM) {
		requests_pool = lent_threads(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
		completions_pool = lent_threads(0);
	} else if (lent) {
		requests_pool = completions_pool = lent_threads(CONTD_EXECUTOR_PROGRESS);
	}
	if (has_fibers(o) || o->pool == POOL_TASKRT) {
		runtime_pool = lent ? completions_pool : lent_threads(CONTD_EXECUTOR_PROGRESS);
		runtime = taskrt_create(64 * 1024, runtime_pool);
		if (!runtime)
			ring_die("out of memory");
	}
	if (o->pool == POOL_TASKRT)
		requests_pool = completions_pool = runtime_pool;
#ifdef RING_GLIB
	if (o->pool == POOL_GLIB) {
		if (contd_executor_glib_init(&glib, o->threads, FALSE))
			ring_die("contd_executor_glib_init: %s", contd_error_text());
		requests_pool = completions_pool = glib.executor;
	}
#endif
}

static MPI_Request make_cr(const struct options *o)
{
	MPI_Request cr;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "contd_priority", o->high ? "high" : "normal");
	if (o->mode == MODE_MPIX)
		MPIX_Continue_init(0, 0, info, &cr);
	else
		MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	return cr;
}

void modes_begin(struct ring *r)
{
	static const int modes[] = {CONTD_MODE_YIELD_WHILE, CONTD_MODE_SUSPEND, CONTD_MODE_NEW_TASK,
				    CONTD_MODE_CONTINUATION, CONTD_MODE_MPIX};
	const struct options *o = &r->options;

	if (contd_init(NULL))
		ring_die("contd_init: %s", contd_error_text());
	make_pools(o);
	r->ended = ended;
	for (int i = 0; i < o->threads; i++) {
		struct worker *w = &r->workers[i];

		if (!waits(o) && !o->no_cr)
			w->cr = make_cr(o);
		w->how = (struct contd_mode_attr){
			.size = sizeof(w->how), .mode = modes[o->mode], .priority = priority_of(o), .cont_req = w->cr};
		w->how.requests = o->requests_transfer ? requests_pool : NULL;
		w->how.completions = o->completions_transfer ? completions_pool : NULL;
		if (has_fibers(o)) {
			w->how.yield = taskrt_yield;
			w->how.suspend = taskrt_suspend;
			w->how.resume = taskrt_resume;
		}
		for (long n = 0; n < w->count; n++) {
			struct slot *s = &w->slots[n];

			s->op.requests = s->requests;
			s->op.statuses = r->statuses ? s->statuses : MPI_STATUSES_IGNORE;
			s->op.issue = o->cancel ? issue : issue_plainly;
			s->op.done = waits(o) && !o->completions_transfer ? NULL
				     : waits(o) || o->cancel              ? done
									  : done_plainly;
			s->op.data = s;
			sem_init(&s->done, 0, 0);
		}
	}
}

void modes_pass(struct ring *r)
{
	if (runtime)
		taskrt_stop(runtime, 0);
	if (r->options.pool == POOL_PULL || r->options.pool == POOL_COMM) {
		contd_executor_stop(requests_pool, 0);
		contd_executor_stop(completions_pool, 0);
	}
	for (int i = 0; i < r->options.threads && r->options.mode == MODE_MPIX; i++) {
		if (r->workers[i].cr != MPI_REQUEST_NULL)
			MPI_Start(&r->workers[i].cr);
	}
}

void modes_passed(struct ring *r)
{
	for (int i = 0; i < r->options.threads; i++) {
		if (r->workers[i].cr != MPI_REQUEST_NULL)
			MPI_Wait(&r->workers[i].cr, MPI_STATUS_IGNORE);
	}
}

static void give_back(struct contd_executor *e)
{
	if (contd_executor_destroy(e))
		ring_die("contd_executor_destroy: %s", contd_error_text());
}

void modes_end(struct ring *r)
{
	const struct options *o = &r->options;

	for (int i = 0; i < o->threads; i++) {
		if (r->workers[i].cr != MPI_REQUEST_NULL)
			MPI_Request_free(&r->workers[i].cr);
	}
	for (long i = 0; i < r->slot_count; i++)
		sem_destroy(&r->slots[i].done);
	if (runtime)
		taskrt_destroy(runtime);
	if (runtime_pool && runtime_pool != completions_pool)
		give_back(runtime_pool);
	if (o->pool == POOL_PULL || o->pool == POOL_COMM || o->pool == POOL_TASKRT)
		give_back(completions_pool);
	if (o->pool == POOL_COMM)
		give_back(requests_pool);
#ifdef RING_GLIB
	/* A thread of the pool's may just be coming out of its last piece of work. */
	if (o->pool == POOL_GLIB && (contd_executor_drain(glib.executor) || contd_executor_glib_fini(&glib)))
		ring_die("contd_executor_glib_fini: %s", contd_error_text());
#endif
	runtime = NULL;
	requests_pool = completions_pool = runtime_pool = NULL;
	contd_fini();
}
