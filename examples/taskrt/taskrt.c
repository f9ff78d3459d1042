/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fiber.h"
#include "taskrt.h"

enum { PRIORITIES = 3, WORK_MOST = 64, IDLE_MOST = 1000, COLOURS = 8, COLOUR_BYTES = 512 };

/* What a task wants when it goes back to its thread, which sees to it: only then others may run the task. */
enum wish { YIELDS, SUSPENDS, ENDED };

/* At the top of its stack. A stack whose task has ended is kept for the next one. */
struct taskrt_task {
	struct fiber fiber;   /* the first */
	struct fiber *thread; /* that runs it */
	struct taskrt_task *next;
	struct taskrt *rt;
	taskrt_function *function;
	void *data, *memory;
	int priority;
	enum wish wish;
	int permits; /* calls of taskrt_resume() that no taskrt_suspend() has used; -1: asleep */
};

struct taskrt {
	pthread_mutex_t lock;
	struct queue {
		struct taskrt_task *first, **last;
	} queues[PRIORITIES];
	unsigned queued, made;
	struct taskrt_task *idle; /* stacks without a task */
	size_t stack_bytes, page;
	int stopped;
	taskrt_progress *progress;
	void *data;
	struct contd_executor *executor;
};

/* ------------------------------------------------------------------------------------------------------- the queue --- */

static void put_locked(struct taskrt *rt, struct taskrt_task *t)
{
	struct queue *q = &rt->queues[CONTD_PRIORITY_HIGH - t->priority];

	t->next = NULL;
	*q->last = t;
	q->last = &t->next;
	rt->queued++;
}

static void put(struct taskrt_task *t)
{
	pthread_mutex_lock(&t->rt->lock);
	put_locked(t->rt, t);
	pthread_mutex_unlock(&t->rt->lock);
}

/* Give back the task that was run, if any, and take another. */
static struct taskrt_task *exchange(struct taskrt *rt, struct taskrt_task *back, unsigned *queued)
{
	struct taskrt_task *t = NULL;

	pthread_mutex_lock(&rt->lock);
	if (back && back->wish == ENDED) {
		back->next = rt->idle;
		rt->idle = back;
	} else if (back) {
		put_locked(rt, back);
	}
	*queued = rt->queued;
	for (struct queue *q = rt->queues; !t && q < rt->queues + PRIORITIES; q++) {
		t = q->first;
		if (t && !(q->first = t->next))
			q->last = &q->first;
	}
	rt->queued -= t != NULL;
	pthread_mutex_unlock(&rt->lock);
	return t;
}

/* --------------------------------------------------------------------------------------------------------- switches --- */

static void leave(struct taskrt_task *t, enum wish wish)
{
	t->wish = wish;
	fiber_switch(&t->fiber, t->thread);
}

static void body(struct fiber *self)
{
	struct taskrt_task *t = (struct taskrt_task *)self;

	for (;; leave(t, ENDED))
		t->function(t, t->data);
}

void taskrt_yield(void *task)
{
	leave(task, YIELDS);
}

void taskrt_suspend(void *task)
{
	struct taskrt_task *t = task;

	/* Acquire: what was done before taskrt_resume(). */
	if (__atomic_load_n(&t->permits, __ATOMIC_ACQUIRE) > 0)
		__atomic_fetch_sub(&t->permits, 1, __ATOMIC_RELAXED);
	else
		leave(t, SUSPENDS);
}

void taskrt_resume(void *task)
{
	struct taskrt_task *t = task;

	/* Release: what was done before is seen by the task. Acquire: the task has left its stack, where it sleeps. */
	if (__atomic_fetch_add(&t->permits, 1, __ATOMIC_ACQ_REL) < 0)
		put(t);
}

/* Some of contd's work, on this stack: continuations return, and have no task with which they could wait. */
static int work_a_while(struct taskrt *rt)
{
	int n = contd_executor_run(rt->executor, WORK_MOST, 0);

	return (rt->progress ? rt->progress(rt->data) : 0) + n;
}

void taskrt_run(struct taskrt *rt)
{
	struct taskrt_task *t = NULL;
	struct fiber here;
	unsigned queued, turns = 0, idle = 0;

	fiber_here(&here);
	for (;;) {
		t = exchange(rt, t, &queued);
		if (!t || turns-- == 0) { /* a round is over */
			turns = queued;
			idle = work_a_while(rt) > 0 ? 0 : idle + 1;
			if (!t && idle && __atomic_load_n(&rt->stopped, __ATOMIC_ACQUIRE))
				break;
			if (idle && idle % IDLE_MOST == 0)
				sched_yield(); /* there may be more threads than processors */
		}
		if (!t)
			continue;
		t->thread = &here;
		fiber_switch(&here, &t->fiber);
		if (t->wish != YIELDS)
			idle = 0;
		/* It sleeps from here on, unless it has been resumed meanwhile. Release and acquire as in taskrt_resume(). */
		if (t->wish == SUSPENDS && __atomic_fetch_sub(&t->permits, 1, __ATOMIC_ACQ_REL) == 0)
			t = NULL;
	}
}

void taskrt_stop(struct taskrt *rt, int stopped)
{
	/* Release: all that was done before. Partner: taskrt_run(). */
	__atomic_store_n(&rt->stopped, stopped, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------- tasks and the executor --- */

/* A stack without a task. Where tasks of many stacks begin at one address of their page, they are in each other's way in caches. */
static struct taskrt_task *make_locked(struct taskrt *rt)
{
	size_t bytes = rt->stack_bytes + COLOURS * COLOUR_BYTES;
	char *memory =
		mmap(NULL, rt->page + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	struct taskrt_task *t;

	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, rt->page, PROT_NONE); /* running over ends here, not in the next stack */
	t = (struct taskrt_task *)(memory + rt->page + bytes - rt->made++ % COLOURS * COLOUR_BYTES) - 1;
	t->rt = rt;
	t->memory = memory;
	fiber_make(&t->fiber, memory + rt->page, (size_t)((char *)t - memory) - rt->page, body);
	return t;
}

int taskrt_spawn(struct taskrt *rt, int priority, taskrt_function *function, void *data)
{
	struct taskrt_task *t;

	pthread_mutex_lock(&rt->lock);
	t = rt->idle;
	if (t)
		rt->idle = t->next;
	else
		t = make_locked(rt);
	if (t) {
		t->function = function;
		t->data = data;
		t->priority = priority;
		t->permits = 0;
		put_locked(rt, t);
	}
	pthread_mutex_unlock(&rt->lock);
	return t ? 0 : -ENOMEM;
}

struct taskrt *taskrt_create(size_t stack_bytes, taskrt_progress *progress, void *data)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = progress ? 0 : CONTD_EXECUTOR_PROGRESS};
	struct taskrt *rt = calloc(1, sizeof(*rt));

	if (!rt || contd_executor_create(&attr, &rt->executor)) {
		free(rt);
		return NULL;
	}
	pthread_mutex_init(&rt->lock, NULL);
	for (int i = 0; i < PRIORITIES; i++)
		rt->queues[i].last = &rt->queues[i].first;
	rt->page = (size_t)sysconf(_SC_PAGESIZE);
	rt->stack_bytes = (stack_bytes + rt->page - 1) / rt->page * rt->page;
	rt->progress = progress;
	rt->data = data;
	return rt;
}

void taskrt_destroy(struct taskrt *rt)
{
	contd_executor_destroy(rt->executor);
	for (struct taskrt_task *t = rt->idle, *next; t; t = next) {
		next = t->next;
		__tsan_destroy_fiber(t->fiber.tsan);
		munmap(t->memory, rt->page + rt->stack_bytes + COLOURS * COLOUR_BYTES);
	}
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

struct contd_executor *taskrt_executor(struct taskrt *rt)
{
	return rt->executor;
}
