/* SPDX-License-Identifier: BSD-3-Clause */
#undef _FORTIFY_SOURCE /* its longjmp() takes a jump to another stack for an error */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "fiber.h"
#include "taskrt.h"

enum { PRIORITIES = 3, IDLE_MOST = 100 };

/* What a task wants when it goes back to its thread, which sees to it: only then others may run the task. */
enum wish { ENDED, YIELDS, SUSPENDS };

/* RESUMED: taskrt_resume() was called, taskrt_suspend() was not, or is at work. */
enum state { RUNS, RESUMED, SLEEPS };

struct thread {
	jmp_buf context;
	struct fiber fiber;
};

/* At the top of its stack. A stack whose task has ended is kept for the next one. */
struct taskrt_task {
	struct taskrt_task *next;
	struct taskrt_task *next_made;
	struct taskrt *rt;
	struct thread *thread; /* that runs it */
	taskrt_function *function;
	void *data;
	int priority;
	int state;
	enum wish wish;
	int started;
	jmp_buf context;
	struct fiber fiber;
};

struct taskrt {
	pthread_mutex_t lock;
	struct queue {
		struct taskrt_task *first, **last;
	} queues[PRIORITIES];
	unsigned queued;
	struct taskrt_task *idle, *made; /* stacks without a task, and all */
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

static void put(struct taskrt *rt, struct taskrt_task *t)
{
	pthread_mutex_lock(&rt->lock);
	put_locked(rt, t);
	pthread_mutex_unlock(&rt->lock);
}

/* Deal with the task that has just come back, if one has, and take the next: one critical section for both. */
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
	for (int i = 0; i < PRIORITIES && !t; i++) {
		struct queue *q = &rt->queues[i];

		t = q->first;
		if (t && !(q->first = t->next))
			q->last = &q->first;
	}
	*queued = rt->queued;
	rt->queued -= t != NULL;
	pthread_mutex_unlock(&rt->lock);
	return t;
}

/* --------------------------------------------------------------------------------------------------------- switches --- */

/* _setjmp() and _longjmp() save no signal mask: a switch makes no system call. */
static void leave(struct taskrt_task *t, enum wish wish)
{
	t->wish = wish;
	if (_setjmp(t->context) == 0) {
		fiber_leaving(&t->fiber, &t->thread->fiber);
		_longjmp(t->thread->context, 1);
	}
	fiber_arrived(&t->fiber); /* perhaps on another thread */
}

static void first_entry(unsigned high, unsigned low)
{
	struct taskrt_task *t = (struct taskrt_task *)((uintptr_t)high << 16 << 16 | low);

	fiber_arrived(&t->fiber);
	for (;;) {
		t->function(t, t->data);
		leave(t, ENDED);
	}
}

__attribute__((noinline)) static void enter(struct thread *thread, struct taskrt_task *t)
{
	t->thread = thread;
	if (_setjmp(thread->context) == 0) {
		fiber_leaving(&thread->fiber, &t->fiber);
		if (t->started)
			_longjmp(t->context, 1);
		t->started = 1;
		ucontext_t start;
		getcontext(&start);
		start.uc_stack.ss_sp = (char *)t + sizeof(*t) - t->rt->stack_bytes;
		start.uc_stack.ss_size = t->rt->stack_bytes - sizeof(*t);
		makecontext(&start, (void (*)(void))first_entry, 2, (unsigned)((uintptr_t)t >> 16 >> 16), (unsigned)(uintptr_t)t);
		setcontext(&start);
	}
	fiber_arrived(&thread->fiber);
}

void taskrt_yield(void *task)
{
	leave(task, YIELDS);
}

void taskrt_suspend(void *task)
{
	struct taskrt_task *t = task;
	int state = RESUMED;

	/* Acquire: what was done before taskrt_resume(). */
	if (!__atomic_compare_exchange_n(&t->state, &state, RUNS, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		leave(t, SUSPENDS);
}

void taskrt_resume(void *task)
{
	struct taskrt_task *t = task;
	int state = RUNS;

	/* Release: what was done before is seen by the task. Acquire: the task has left its stack, where it sleeps. */
	if (__atomic_compare_exchange_n(&t->state, &state, RESUMED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&t->state, RUNS, __ATOMIC_RELAXED);
	put(t->rt, t);
}

void taskrt_run(struct taskrt *rt)
{
	struct thread thread;
	struct taskrt_task *t = NULL;
	unsigned queued, turns = 0, idle = 0;

	fiber_init(&thread.fiber, NULL, 0);
	for (;;) {
		t = exchange(rt, t, &queued);
		if (!t || turns-- == 0) {
			turns = queued;
			idle = rt->progress(rt->data) > 0 ? 0 : idle + 1;
			if (idle % IDLE_MOST == 0 && idle)
				sched_yield(); /* there may be more threads than processors */
		}
		if (t) {
			int state = RUNS;

			enter(&thread, t);
			if (t->wish != YIELDS)
				idle = 0;
			/* From here on it may be resumed: release and acquire as in taskrt_resume(). */
			if (t->wish == SUSPENDS && __atomic_compare_exchange_n(&t->state, &state, SLEEPS, 0, __ATOMIC_ACQ_REL,
									      __ATOMIC_ACQUIRE))
				t = NULL;
			else if (t->wish == SUSPENDS)
				__atomic_store_n(&t->state, RUNS, __ATOMIC_RELAXED);
		} else if (idle && __atomic_load_n(&rt->stopped, __ATOMIC_ACQUIRE)) {
			return;
		}
	}
}

void taskrt_stop(struct taskrt *rt, int stopped)
{
	__atomic_store_n(&rt->stopped, stopped, __ATOMIC_RELEASE); /* with all that was done before; partner: taskrt_run() */
}

/* ------------------------------------------------------------------------------------------- tasks and the executor --- */

static struct taskrt_task *make_stack(struct taskrt *rt)
{
	char *memory = mmap(NULL, rt->page + rt->stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	struct taskrt_task *t;

	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, rt->page, PROT_NONE); /* running over ends here, not in the next stack */
	t = (struct taskrt_task *)(memory + rt->page + rt->stack_bytes - sizeof(*t));
	t->rt = rt;
	fiber_init(&t->fiber, memory + rt->page, rt->stack_bytes - sizeof(*t));
	pthread_mutex_lock(&rt->lock);
	t->next_made = rt->made;
	rt->made = t;
	pthread_mutex_unlock(&rt->lock);
	return t;
}

int taskrt_spawn(struct taskrt *rt, int priority, taskrt_function *function, void *data)
{
	struct taskrt_task *t;

	pthread_mutex_lock(&rt->lock);
	t = rt->idle;
	if (t)
		rt->idle = t->next;
	pthread_mutex_unlock(&rt->lock);
	if (!t && !(t = make_stack(rt)))
		return -ENOMEM;
	t->function = function;
	t->data = data;
	t->priority = priority;
	t->state = RUNS;
	put(rt, t);
	return 0;
}

static void run_work(struct taskrt_task *self, void *work)
{
	(void)self;
	contd_work_run(work);
}

static int submit(void *rt, struct contd_work *work, int priority)
{
	return taskrt_spawn(rt, priority, run_work, work);
}

static int poll_contd(void *data)
{
	(void)data;
	return contd_poll(0);
}

struct taskrt *taskrt_create(size_t stack_bytes, taskrt_progress *progress, void *data)
{
	struct contd_executor_ops ops = {.size = sizeof(ops), .submit = submit};
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = &ops};
	struct taskrt *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return NULL;
	pthread_mutex_init(&rt->lock, NULL);
	for (int i = 0; i < PRIORITIES; i++)
		rt->queues[i].last = &rt->queues[i].first;
	rt->page = (size_t)sysconf(_SC_PAGESIZE);
	rt->stack_bytes = (stack_bytes + rt->page - 1) / rt->page * rt->page;
	rt->progress = progress ? progress : poll_contd;
	rt->data = data;
	attr.pool = rt;
	if (contd_executor_create(&attr, &rt->executor)) {
		free(rt);
		return NULL;
	}
	return rt;
}

void taskrt_destroy(struct taskrt *rt)
{
	contd_executor_destroy(rt->executor);
	for (struct taskrt_task *t = rt->made, *next; t; t = next) {
		next = t->next_made;
		fiber_fini(&t->fiber);
		munmap((char *)t + sizeof(*t) - rt->stack_bytes - rt->page, rt->page + rt->stack_bytes);
	}
	pthread_mutex_destroy(&rt->lock);
	free(rt);
}

struct contd_executor *taskrt_executor(struct taskrt *rt)
{
	return rt->executor;
}
