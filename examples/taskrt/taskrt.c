/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fiber.h"
#include "taskrt.h"

enum { PRIORITIES = 3, WORK_MOST = 1024, IDLE_MOST = 100, PAGES = 65536, COLOURS = 8, COLOUR_SIZE = 512, PREFETCH = 8 };

/* The wish of a task that goes back to its thread. The thread fulfils it: only then others may run the task. */
enum wish { YIELDS, SUSPENDS, ENDED };

/* At the top of its stack. A stack whose task has ended is kept for the next one. */
struct taskrt_task {
	struct taskrt_task *next;
	enum wish wish;
	int priority, permits;       /* calls of taskrt_resume() that no taskrt_suspend() has used; -1: asleep */
	struct fiber fiber, *thread; /* its own, and that of the thread that runs it */
	struct taskrt *rt;
	taskrt_function *function;
	void *data, *memory;
} __attribute__((aligned(64)));

struct taskrt {
	struct contd_executor *executor;
	size_t bytes;             /* of a stack's memory, with all */
	struct taskrt_task *idle; /* stacks without a task */
	struct taskrt_task *first[PRIORITIES], **last[PRIORITIES];
	unsigned queued, made;
	int locked, stopped;
};

/* ---------------------------------------------------------------------------------------------------- the queue --- */

/* Held for a few instructions, which take less time than a mutex; or while a stack is made. */
static void lock(struct taskrt *rt)
{
	for (int tries = 1; __atomic_exchange_n(&rt->locked, 1, __ATOMIC_ACQUIRE); tries++)
		if (tries % IDLE_MOST == 0)
			sched_yield();
}

static void unlock(struct taskrt *rt)
{
	__atomic_store_n(&rt->locked, 0, __ATOMIC_RELEASE);
}

static void put_locked(struct taskrt *rt, struct taskrt_task *t)
{
	int i = CONTD_PRIORITY_HIGH - t->priority;

	t->next = NULL;
	*rt->last[i] = t;
	rt->last[i] = &t->next;
	rt->queued++;
}

/* Give back the task that was run, if any, and take another, if there is one. */
static struct taskrt_task *exchange(struct taskrt *rt, struct taskrt_task *back, unsigned *queued)
{
	struct taskrt_task *t = NULL;

	lock(rt);
	if (back && back->wish == ENDED) {
		back->next = rt->idle;
		rt->idle = back;
	} else if (back) {
		put_locked(rt, back);
	}
	*queued = rt->queued;
	for (int i = 0; i < PRIORITIES && !t; i++) {
		t = rt->first[i];
		if (t && !(rt->first[i] = t->next))
			rt->last[i] = &rt->first[i];
	}
	rt->queued -= t != NULL;
	for (int i = 0; t && t->next && i < PREFETCH; i++)
		__builtin_prefetch((char *)t->next - 64 * i); /* the stack that is next */
	unlock(rt);
	return t;
}

/* ----------------------------------------------------------------------------------------------------- switches --- */

static void leave(struct taskrt_task *t, enum wish wish)
{
	t->wish = wish;
	fiber_switch(&t->fiber, t->thread, NULL);
}

void taskrt_yield(void *task)
{
	leave(task, YIELDS);
}

void taskrt_suspend(void *task)
{
	struct taskrt_task *t = task;

	if (__atomic_load_n(&t->permits, __ATOMIC_ACQUIRE) == 0) /* what was done before taskrt_resume() */
		leave(t, SUSPENDS);
	else
		__atomic_fetch_sub(&t->permits, 1, __ATOMIC_RELAXED);
}

void taskrt_resume(void *task)
{
	struct taskrt_task *t = task;
	struct taskrt *rt = t->rt;

	/* Release: what was done before is seen by the task. Acquire: the task has left its stack, where it sleeps. */
	if (__atomic_fetch_add(&t->permits, 1, __ATOMIC_ACQ_REL) < 0) {
		lock(rt);
		put_locked(rt, t);
		unlock(rt);
	}
}

void taskrt_run(struct taskrt *rt)
{
	struct fiber here = {.stack.thread = STACK_HERE()};
	struct taskrt_task *t = NULL;
	unsigned queued, turns = 0, idle = 0;

	for (;;) {
		t = exchange(rt, t, &queued);
		if (!t || turns-- == 0) { /* a round is over */
			/* Continuations run on this stack: they return, and have no task with which they could wait. */
			int n = contd_executor_run(rt->executor, WORK_MOST, 0);

			turns = queued;
			idle = n > 0 ? 0 : idle + 1 + queued;
			if (!t && idle && __atomic_load_n(&rt->stopped, __ATOMIC_ACQUIRE))
				return;
			if (idle > IDLE_MOST) {
				sched_yield(); /* there may be more threads than processors */
				idle = 1;
			}
		}
		if (!t)
			continue;
		t->thread = &here;
		fiber_switch(&here, &t->fiber, NULL);
		if (t->wish != YIELDS)
			idle = 0;
		/* It sleeps from here on, unless it has been resumed meanwhile. Release and acquire as in
		 * taskrt_resume(). */
		if (t->wish == SUSPENDS && __atomic_fetch_sub(&t->permits, 1, __ATOMIC_ACQ_REL) == 0)
			t = NULL;
	}
}

void taskrt_stop(struct taskrt *rt, int stopped)
{
	/* Release: all that was done before. Partner: taskrt_run(). */
	__atomic_store_n(&rt->stopped, stopped, __ATOMIC_RELEASE);
}

/* --------------------------------------------------------------------------------------- tasks and the executor --- */

static __thread struct taskrt_task *made;

static void body(void)
{
	struct taskrt_task *t = made;

	STACK_ARRIVED(&t->fiber.stack, &t->fiber.came_from->stack);
	for (;; t->function(t, t->data))
		leave(t, ENDED);
}

static struct taskrt_task *make_locked(struct taskrt *rt)
{
	struct fiber here = {.stack.thread = STACK_HERE()};
	char *memory = mmap(NULL, rt->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, PAGES, PROT_NONE); /* running over ends here, not in the next stack */
	/* Colours: where all stacks begin at one place of their page they are in each other's way in caches. */
	made = (struct taskrt_task *)(void *)(memory + rt->bytes - rt->made++ % COLOURS * COLOUR_SIZE) - 1;
	*made = (struct taskrt_task){.rt = rt, .memory = memory, .thread = &here};
	fiber_make(&here, &made->fiber, memory + PAGES, (size_t)((char *)made - memory) - PAGES, body);
	return made;
}

int taskrt_spawn(struct taskrt *rt, int priority, taskrt_function *function, void *data)
{
	struct taskrt_task *t;

	lock(rt);
	if ((t = rt->idle))
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
	unlock(rt);
	return t ? 0 : -ENOMEM;
}

struct taskrt *taskrt_create(size_t stack_bytes, struct contd_executor *executor)
{
	struct taskrt *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return NULL;
	for (int i = 0; i < PRIORITIES; i++)
		rt->last[i] = &rt->first[i];
	rt->bytes = (stack_bytes / PAGES + 2) * PAGES; /* rounded up, and a page to keep others out */
	rt->executor = executor;
	return rt;
}

void taskrt_destroy(struct taskrt *rt)
{
	for (struct taskrt_task *t = rt->idle, *next; t; t = next) {
		next = t->next;
		STACK_GONE(&t->fiber.stack);
		munmap(t->memory, rt->bytes);
	}
	free(rt);
}
