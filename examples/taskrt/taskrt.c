/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "fiber.h"
#include "taskrt.h"

enum { PRIORITIES = 3, BATCH = 16, IDLE_MOST = 1000 };

/*
 * Where a stack was left, for the compiler's own setjmp, which saves three pointers and no signal mask, and makes no call: a switch
 * costs a few nanoseconds.
 */
typedef void *context[5];

/* What a task wants when it goes back to its thread, which sees to it: only then others may run the task. */
enum wish { ENDED, YIELDS, SUSPENDS };

/* RESUMED: taskrt_resume() was called, taskrt_suspend() was not, or is at work. */
enum state { RUNS, RESUMED, SLEEPS };

struct thread {
	context context;
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
	context context;
	struct fiber fiber;
};

struct queue {
	struct taskrt_task *first, **last;
};

struct taskrt {
	pthread_mutex_t lock;
	struct queue queues[PRIORITIES];
	unsigned queued, threads;
	struct taskrt_task *idle, *made; /* stacks without a task, and all */
	size_t stack_bytes, page;
	int stopped;
	taskrt_progress *progress;
	void *data;
	struct contd_executor *executor;
};

/* ------------------------------------------------------------------------------------------------------- the queue --- */

static void append(struct queue *q, struct taskrt_task *t)
{
	t->next = NULL;
	*q->last = t;
	q->last = &t->next;
}

static void put_locked(struct taskrt *rt, struct taskrt_task *t)
{
	append(&rt->queues[CONTD_PRIORITY_HIGH - t->priority], t);
	rt->queued++;
}

static void put(struct taskrt *rt, struct taskrt_task *t)
{
	pthread_mutex_lock(&rt->lock);
	put_locked(rt, t);
	pthread_mutex_unlock(&rt->lock);
}

/* Give back the tasks that have yielded or ended, and take some, not more than this thread's share. Returns how many. */
static unsigned exchange(struct taskrt *rt, struct queue *mine, unsigned *queued)
{
	struct taskrt_task *t, *next;
	unsigned share, n = 0;

	pthread_mutex_lock(&rt->lock);
	for (t = mine->first; t; t = next) {
		next = t->next;
		if (t->wish == YIELDS) {
			put_locked(rt, t);
		} else {
			t->next = rt->idle;
			rt->idle = t;
		}
	}
	mine->last = &mine->first;
	*mine->last = NULL;
	*queued = rt->queued;
	share = rt->queued / rt->threads + 1 < BATCH ? rt->queued / rt->threads + 1 : BATCH;
	for (int i = 0; i < PRIORITIES; i++) {
		struct queue *q = &rt->queues[i];

		for (; n < share && (t = q->first); n++) {
			if (!(q->first = t->next))
				q->last = &q->first;
			append(mine, t);
		}
	}
	rt->queued -= n;
	pthread_mutex_unlock(&rt->lock);
	return n;
}

/* --------------------------------------------------------------------------------------------------------- switches --- */

/* The compiler's longjmp must not stand in a function that has its setjmp. */
__attribute__((noinline, noreturn)) static void jump(void **to)
{
	__builtin_longjmp(to, 1);
}

/* To the thread, which sees to the wish. */
__attribute__((noinline)) static void leave(struct taskrt_task *t, enum wish wish)
{
	t->wish = wish;
	if (__builtin_setjmp(t->context) == 0) {
		fiber_leaving(&t->fiber, &t->thread->fiber);
		jump(t->thread->context);
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
	if (__builtin_setjmp(thread->context) == 0) {
		fiber_leaving(&thread->fiber, &t->fiber);
		if (t->started)
			jump(t->context);
		t->started = 1;
		ucontext_t start;
		getcontext(&start);
		start.uc_stack.ss_sp = (char *)t + sizeof(*t) - t->rt->stack_bytes;
		start.uc_stack.ss_size = t->rt->stack_bytes - sizeof(*t);
		makecontext(&start, (void (*)(void))first_entry, 2, (unsigned)((uintptr_t)t >> 16 >> 16),
			    (unsigned)(uintptr_t)t);
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

/* It sleeps from here on, unless it has been resumed meanwhile. Release and acquire as in taskrt_resume(). */
static int falls_asleep(struct taskrt_task *t)
{
	int state = RUNS;

	if (__atomic_compare_exchange_n(&t->state, &state, SLEEPS, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return 1;
	__atomic_store_n(&t->state, RUNS, __ATOMIC_RELAXED);
	t->wish = YIELDS;
	return 0;
}

void taskrt_run(struct taskrt *rt)
{
	struct thread thread;
	struct queue mine = {NULL, &mine.first};
	unsigned n, queued, turns = 0, idle = 0;

	fiber_init(&thread.fiber, NULL, 0);
	__atomic_fetch_add(&rt->threads, 1, __ATOMIC_RELAXED);
	for (;;) {
		struct taskrt_task *t, *next;

		n = exchange(rt, &mine, &queued);
		if (n == 0 || turns <= n) { /* a round is over */
			turns = queued;
			idle = rt->progress(rt->data) > 0 ? 0 : idle + 1;
			if (n == 0 && idle && __atomic_load_n(&rt->stopped, __ATOMIC_ACQUIRE))
				break;
			if (idle && idle % IDLE_MOST == 0)
				sched_yield(); /* there may be more threads than processors */
		} else {
			turns -= n;
		}
		t = mine.first;
		mine.last = &mine.first;
		for (mine.first = NULL; t; t = next) {
			next = t->next;
			enter(&thread, t);
			if (t->wish != YIELDS)
				idle = 0;
			if (t->wish != SUSPENDS || !falls_asleep(t))
				append(&mine, t);
		}
	}
	__atomic_fetch_sub(&rt->threads, 1, __ATOMIC_RELAXED);
}

void taskrt_stop(struct taskrt *rt, int stopped)
{
	__atomic_store_n(&rt->stopped, stopped,
			 __ATOMIC_RELEASE); /* with all that was done before; partner: taskrt_run() */
}

/* ------------------------------------------------------------------------------------------- tasks and the executor --- */

/* A stack without a task. */
static struct taskrt_task *make_stack(struct taskrt *rt)
{
	char *memory = mmap(NULL, rt->page + rt->stack_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	struct taskrt_task *t;

	if (memory == MAP_FAILED)
		return NULL;
	mprotect(memory, rt->page, PROT_NONE); /* running over ends here, not in the next stack */
	t = (struct taskrt_task *)(memory + rt->page + rt->stack_bytes - sizeof(*t));
	t->rt = rt;
	fiber_init(&t->fiber, memory + rt->page, rt->stack_bytes - sizeof(*t));
	return t;
}

int taskrt_spawn(struct taskrt *rt, int priority, taskrt_function *function, void *data)
{
	struct taskrt_task *t;

	pthread_mutex_lock(&rt->lock);
	t = rt->idle;
	if (t) {
		rt->idle = t->next;
	} else if ((t = make_stack(rt))) {
		t->next_made = rt->made;
		rt->made = t;
	} else {
		pthread_mutex_unlock(&rt->lock);
		return -ENOMEM;
	}
	t->function = function;
	t->data = data;
	t->priority = priority;
	t->state = RUNS;
	put_locked(rt, t);
	pthread_mutex_unlock(&rt->lock);
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
