/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. Hands ready work to an executor, or notifies its
 * threads. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/live.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "rcu/table.h"
#include "task/executor.h"

struct contd__executors contd__executors;
__thread struct contd__lent contd__lent __attribute__((tls_model("initial-exec")));

#define REST_NS 1000000 /* how long the daemon waits after a refusal */

/* Wake so many of the executor's threads. */
static void wake(struct contd_executor *ex, uint32_t n)
{
	int saved = errno;

	contd__add(&ex->wake, 1);
	syscall(SYS_futex, &ex->wake, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	errno = saved;
}

/*
 * A thread that is woken may take this thread's processor, and would find one task instead of dozens. A thread that is
 * awake may run them all meanwhile, so ex is held.
 *
 * A signal handler of the program may submit a task at any instruction of this: `telling` says that `untold` is being
 * changed, and then the handler wakes at once.
 */
static void wake_later(struct contd_executor *ex, uint32_t n)
{
	struct contd__lent *lent = &contd__lent;

	if (lent->telling) {
		wake(ex, n);
		return;
	}
	if (contd__self.untold != &ex->outlet)
		contd__wake_untold_sig();
	lent->telling = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (contd__self.untold && contd__self.untold != &ex->outlet) {
		wake(ex, n); /* a handler has put off another one since */
	} else {
		CONTD_TESTPOINT("tell_holds");
		if (!contd__self.untold)
			contd__executor_hold_sig(ex, 1);
		CONTD_TESTPOINT("tell_held");
		/* futex(2) takes more than INT32_MAX for one. */
		lent->untold_threads = n < INT32_MAX - lent->untold_threads ? lent->untold_threads + n : INT32_MAX;
		contd__untold_put_sig(&ex->outlet, ex->outlet.ops);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lent->telling = false;
}

static void wake_all_untold(void)
{
	struct contd__lent *lent = &contd__lent;
	struct contd_executor *ex;
	uint32_t n;

	if (lent->telling)
		return; /* what this handler has interrupted wakes them */
	lent->telling = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ex = contd__executor_of(contd__self.untold);
	n = lent->untold_threads;
	CONTD_TESTPOINT("tells_now");
	contd__untold_none_sig();
	lent->untold_threads = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lent->telling = false;
	if (!ex)
		return; /* a handler has woken them */
	wake(ex, n);
	contd__executor_done_sig(ex);
}

void contd__executor_notify_sig(struct contd_executor *ex)
{
	int saved = errno;

	ex->ops.notify(ex->pool);
	errno = saved;
}

/* n more are ready, of a pull executor: tasks, or continuations. Any context. */
static void tell_threads(struct contd_executor *ex, uint32_t n)
{
	if (ex->ops.notify && !contd__load_seq(&ex->notified) && !contd__xchg(&ex->notified, 1))
		contd__executor_notify_sig(ex);
	/* A thread that drains, or is lent and waits for a group, runs the work itself. Dekker: made ready, then looked
	 * for; such a thread says that it sleeps before it looks for the last time. */
	if (ex->flags & CONTD_EXECUTOR_PROGRESS || contd__load_seq(&ex->outlet.waiters))
		contd__wake_sleepers_sig();
	if (ex->flags & CONTD_EXECUTOR_PROGRESS)
		return;
	if (!contd__load_seq(&ex->sleepers))
		return;
	/* A callback that runs in a brief task may wait for what it hands over. */
	if ((contd__takes() || (contd__lent.tells_later && !contd__in_continuation_sig())) && contd__on_thread_sig())
		wake_later(ex, n);
	else
		wake(ex, n);
}

static bool rests(const struct contd__outlet *o)
{
	uint64_t till = contd__load(&((const struct contd_executor *)o)->rests_till);

	/* Later than that the rest is over, and earlier than its beginning the clock has gone back: both are far away,
	 * unsigned. */
	return till && till - contd__ticks() <= (uint64_t)(REST_NS * contd__clock.ticks_per_ns);
}

/* The daemon has offered it in vain, and may not run it itself. */
static int refused(struct contd_group *g, struct contd__slot *s)
{
	contd__store(&contd__executor_of(g->outlet)->rests_till,
		     contd__ticks() + (uint64_t)(REST_NS * contd__clock.ticks_per_ns));
	contd__slot_ready_again_sig(g, s, true);
	return -1;
}

static int takes(struct contd_group *g, struct contd__slot *s)
{
	struct contd_executor *ex = contd__executor_of(g->outlet);
	int rc;

	if (g->flags & GROUP_PULL) {
		if (!contd__lent.collect)
			return 0;
		contd__executor_hold_sig(ex, 1);
		*contd__lent.collect = s;
		return 1;
	}
	contd__executor_hold_sig(
		ex, 2); /* one for this call: a thread that waits for the work may destroy the pool when it is over */
	rc = ex->ops.submit(ex->pool, contd__work_of_slot(s), g->priority);
	contd__executor_done_sig(ex);
	if (rc == 0)
		return 1;
	contd__executor_done_sig(ex);
	return contd__on_daemon_sig() && g->flags & GROUP_ONLY_PROGRAM ? refused(g, s) : 0;
}

void contd__executor_done_sig(struct contd_executor *ex)
{
	/* Dekker with contd_executor_drain(): counted down, then looked. */
	if (IN_HAND_NOW(contd__sub(&ex->in_hand, 1)) == 1 && contd__load_seq(&contd__executors.drainers))
		contd__wake_sleepers_sig();
}

static void tell(struct contd__outlet *o, uint32_t n)
{
	tell_threads(contd__executor_of(o), n);
}

static void begin(struct contd__outlet *o)
{
	contd__executor_hold_sig(contd__executor_of(o), 1);
}

static void end(struct contd__outlet *o)
{
	contd__executor_done_sig(contd__executor_of(o));
}

const struct contd__outlet_ops contd__executor_outlet = {tell, takes, rests, wake_all_untold, begin, end};

/* -------------------------------------------------------------------------------------------------------- tasks --- */

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

/* Queue it behind the tasks that come before it; not if another thread has pushed some since. */
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

int contd__task_hand_over_sig(struct contd_task *task, int status, struct contd_group *group)
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
	tell_threads(ex, 1);
	contd__leave_sig(reader);
	return 0;
}

int contd_task_submit(struct contd_task *task, int status)
{
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!task || !task->executor || !task->cb)
		return contd__fail(-EINVAL, !task             ? CONTD_NULL("contd_task_submit", "task")
					    : !task->executor ? CONTD_NULL("contd_task_submit", "task->executor")
							      : CONTD_NULL("contd_task_submit", "task->cb"));
	if (task->priority < CONTD_PRIORITY_LOW || task->priority > CONTD_PRIORITY_HIGH)
		return contd__fail(-EINVAL, "contd_task_submit: task->priority must be one of enum contd_priority");
	if (contd__in_handler() && task->executor->ops.submit)
		return contd__fail(-EPERM, "contd_task_submit: not in a signal handler, with a push executor");
	rc = contd__task_hand_over_sig(task, status, NULL);
	return rc ? contd__fail(rc, "contd_task_submit: the submit() of task->executor refuses it") : 0;
}

void contd_task_callback(int status, void *data)
{
	struct contd_task *task = data;
	struct contd_group *g = contd__self.frame ? (struct contd_group *)contd__self.frame->group : NULL;

	if (!task->executor || task->priority < CONTD_PRIORITY_LOW || task->priority > CONTD_PRIORITY_HIGH) {
		contd__fail(-EINVAL,
			    "contd_task_callback: the task's executor is NULL, or its priority is none of enum "
			    "contd_priority; it runs here");
		task->cb(status, task->data);
		return;
	}
	if (g)
		contd__add(&g->life, 1);
	if (contd__task_hand_over_sig(task, status, g) == 0)
		return;
	if (g)
		contd__group_count_down_sig(g, 1);
	task->cb(status, task->data);
}
