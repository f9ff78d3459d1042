/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. What is ready goes to an executor, or its threads are told. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatch/executor.h"

#define D contd__dispatch

#define REST_NS 1000000 /* after a refusal the daemon waits that long */

/* Wake so many of its threads. */
static void wake(struct contd_executor *ex, uint32_t n)
{
	int saved = errno;

	contd__add(&ex->wake, 1);
	syscall(SYS_futex, &ex->wake, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	errno = saved;
}

/*
 * Who is woken may well take this thread's processor, and finds one task where there are to be dozens. One that is awake may run
 * them all meanwhile, so ex is held.
 *
 * A signal handler of the program's may submit a task at any instruction of this: `telling` says that `untold` is being changed, and then
 * the handler wakes at once.
 */
static void wake_later(struct contd_executor *ex, uint32_t n)
{
	struct contd__self *self = &contd__self;

	if (self->telling) {
		wake(ex, n);
		return;
	}
	if (self->untold != ex)
		contd__wake_untold_sig();
	self->telling = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (self->untold && self->untold != ex) {
		wake(ex, n); /* a handler has put off another one since */
	} else {
		if (!self->untold)
			contd__executor_hold_sig(ex, 1);
		CONTD_TESTPOINT("tell_held");
		/* More than INT32_MAX futex(2) takes for one. */
		self->untold_threads = n < INT32_MAX - self->untold_threads ? self->untold_threads + n : INT32_MAX;
		self->untold = ex;
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->telling = false;
}

void contd__wake_all_untold_sig(void)
{
	struct contd__self *self = &contd__self;
	struct contd_executor *ex;
	uint32_t n;

	if (self->telling)
		return; /* what this handler has interrupted wakes them */
	self->telling = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ex = self->untold;
	n = self->untold_threads;
	CONTD_TESTPOINT("tells_now");
	self->untold = NULL;
	self->untold_threads = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->telling = false;
	if (!ex)
		return; /* a handler has woken them */
	wake(ex, n);
	contd__executor_done_sig(ex);
}

void contd__executor_tell_sig(struct contd_executor *ex, uint32_t n)
{
	if (ex->ops.notify && !contd__load_seq(&ex->notified) && !contd__xchg(&ex->notified, 1))
		ex->ops.notify(ex->pool);
	/* Who drains runs it, where nobody else is lent. Dekker: made ready, then looked for; others_work() comes last. */
	if (ex->flags & CONTD_EXECUTOR_PROGRESS || contd__load_seq(&D.drainers))
		contd__wake_sleepers_sig();
	if (ex->flags & CONTD_EXECUTOR_PROGRESS)
		return;
	if (!contd__load_seq(&ex->sleepers))
		return;
	/* A callback that runs in a brief task may wait for what it hands over. */
	if ((contd__self.take || (contd__self.tells_later && !contd__self.frame)) &&
	    contd__self.context == CONTEXT_THREAD)
		wake_later(ex, n);
	else
		wake(ex, n);
}

bool contd__executor_rests_sig(const struct contd_group *g)
{
	const struct contd_executor *ex;
	uint64_t till;
	bool reader;

	if (__builtin_expect(!(contd__load(&g->flags) & GROUP_PUSH), 1) || contd__self.context != CONTEXT_DAEMON)
		return false;
	CONTD_TESTPOINT("executor_rests");
	reader = contd__enter_sig();
	ex = contd__load(&g->executor);
	CONTD_TESTPOINT("executor_read");
	till = ex ? contd__load(&ex->rests_till) : 0; /* or it has been taken from the group since */
	contd__leave_sig(reader);
	/* Later than that it is over, and earlier than it began the clock has gone back: both are far away, unsigned. */
	return till && till - contd__ticks() <= (uint64_t)(REST_NS * D.ticks_per_ns);
}

/* Nobody else can touch it but who withdraws it. */
static int ready_again(struct contd_group *g, struct contd__slot *s)
{
	contd__store(&g->executor->rests_till, contd__ticks() + (uint64_t)(REST_NS * D.ticks_per_ns));
	/* Release: as contd__slot_publish_sig. */
	contd__store_release(&s->state, SLOT_WORD(SLOT_GENERATION(contd__load(&s->state)), 0, SLOT_READY));
	contd__slot_mark_sig(g, s);
	return -1;
}

int contd__executor_takes_sig(struct contd_group *g, struct contd__slot *s)
{
	struct contd_executor *ex = g->executor;
	int rc;

	if (g->flags & GROUP_PULL) {
		if (!contd__self.collect)
			return 0;
		contd__executor_hold_sig(ex, 1);
		*contd__self.collect = s;
		return 1;
	}
	contd__executor_hold_sig(ex, 2); /* one for this call: who waits for the work may destroy the pool when it is over */
	rc = ex->ops.submit(ex->pool, contd__work_of_slot(s), g->priority);
	contd__executor_done_sig(ex);
	if (rc == 0)
		return 1;
	contd__executor_done_sig(ex);
	return contd__self.context == CONTEXT_DAEMON && g->flags & GROUP_ONLY_PROGRAM ? ready_again(g, s) : 0;
}

void contd__executor_done_sig(struct contd_executor *ex)
{
	/* Dekker with contd_executor_drain(): counted down, then looked. */
	if (IN_HAND_NOW(contd__sub(&ex->in_hand, 1)) == 1 && contd__load_seq(&D.drainers))
		contd__wake_sleepers_sig();
}

/* ---------------------------------------------------------------------------------------------------------- tasks --- */

static int submit_to_pool(struct contd_executor *ex, struct contd_task *task)
{
	int rc;

	contd__executor_hold_sig(ex, 2); /* as above */
	rc = ex->ops.submit(ex->pool, (struct contd_work *)task, task->priority);
	if (rc)
		contd__executor_done_sig(ex);
	contd__executor_done_sig(ex);
	return rc;
}

/* Behind those that it would be taken after: not where another thread has pushed some since. */
static bool queue_inside(struct contd_executor *ex, struct contd_task *task, unsigned p)
{
	bool empty;

	if (contd__in_handler() || !contd__executor_inside_sig(ex))
		return false;
	empty = !contd__load(&ex->task[p]);
	if (empty) {
		task->next = NULL;
		CONTD_TESTPOINT("task_inside");
		if (ex->first[p])
			ex->last[p]->next = task;
		else
			contd__store(&ex->first[p], task);
		ex->last[p] = task;
	}
	contd__executor_outside_sig(ex);
	return empty;
}

static void push(struct contd_executor *ex, struct contd_task *task, unsigned p)
{
	task->next = contd__load(&ex->task[p]);
	while (!contd__cas(&ex->task[p], &task->next, task))
		;
	CONTD_TESTPOINT("task_pushed");
}

int contd__task_hand_over(struct contd_task *task, int status, struct contd_group *group)
{
	struct contd_executor *ex = task->executor;
	unsigned p = (unsigned)(task->priority - CONTD_PRIORITY_LOW);
	bool reader;

	task->status = status;
	task->group = group;
	if (ex->ops.submit)
		return submit_to_pool(ex, task);
	reader = contd__enter_sig(); /* as soon as it is queued it may have run, and the executor be destroyed */
	if (!queue_inside(ex, task, p))
		push(ex, task, p);
	contd__executor_tell_sig(ex, 1);
	contd__leave_sig(reader);
	return 0;
}

int contd_task_submit(struct contd_task *task, int status)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!task || !task->executor || !task->cb)
		return contd__fail(-EINVAL, "contd_task_submit: a task with an executor and a callback is needed");
	if (task->priority < CONTD_PRIORITY_LOW || task->priority > CONTD_PRIORITY_HIGH)
		return contd__fail(-EINVAL, "contd_task_submit: the priority must be one of enum contd_priority");
	if (contd__in_handler() && task->executor->ops.submit)
		return contd__fail(-EPERM, "contd_task_submit: not in a signal handler, with a push executor");
	rc = contd__task_hand_over(task, status, NULL);
	return rc ? contd__fail(rc, "contd_task_submit: the executor's submit() refuses it") : 0;
}

void contd_task_continue(int status, void *data)
{
	struct contd_task *task = data;
	struct contd_group *g = contd__self.frame ? (struct contd_group *)contd__self.frame->group : NULL;

	if (g)
		contd__add(&g->life, 1);
	if (contd__task_hand_over(task, status, g) == 0)
		return;
	if (g)
		contd__group_count_down_sig(g, 1);
	task->cb(status, task->data);
}
