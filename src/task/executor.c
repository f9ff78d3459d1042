/* SPDX-License-Identifier: BSD-3-Clause */
/* Executors, on ordinary threads. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/complete.h"
#include "dispatch/group.h"
#include "dispatch/group_set.h"
#include "dispatch/live.h"
#include "dispatch/outlet.h"
#include "dispatch/run.h"
#include "dispatch/scan.h"
#include "dispatch/thread.h"
#include "dispatch/wait.h"
#include "dispatch/wake.h"
#include "rcu/table.h"
#include "task/executor.h"

#define RUN_FEW 32u   /* tasks of one priority, before continuations of it have their turn, and the other way round */
#define SPIN_NS 20000 /* before a thread sleeps */
#define FAIR 8u       /* every so often one of the lowest priority comes first */
#define LOCK_SPINS 100u
#define LOCK_NAP_NS 50000
#define DRAIN_NAP_NS 1000000 /* after which a pool that drains itself is told again */

/* ------------------------------------------------------------------------------------------------------- queues --- */

static bool has_tasks(const struct contd_executor *ex, unsigned p)
{
	return contd__load_seq(&ex->task[p]) || contd__load_seq(&ex->first[p]);
}

static bool any_tasks(const struct contd_executor *ex)
{
	for (unsigned p = 0; p < PRIORITIES; p++)
		if (has_tasks(ex, p))
			return true;
	return false;
}

static bool has_some(const struct contd_executor *ex, unsigned p)
{
	return has_tasks(ex, p) || contd__root_any_sig(&ex->outlet.root[p]);
}

static bool has_work(const struct contd_executor *ex)
{
	for (unsigned p = 0; p < PRIORITIES; p++)
		if (has_some(ex, p))
			return true;
	return false;
}

/* Nothing waits and nothing runs, and no work was begun between the two loads. */
static bool is_idle(const struct contd_executor *ex)
{
	uint64_t before = contd__load_seq(&ex->in_hand);

	return IN_HAND_NOW(before) == 0 && !has_work(ex) && contd__load_seq(&ex->in_hand) == before;
}

/* The thread that this one waits for may have lost its processor to it, and have a lower priority: let it run. */
static void rest(unsigned tries)
{
	static const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
	int cancel;

	if (tries < LOCK_SPINS) {
		CONTD_RELAX();
	} else if (tries < 2 * LOCK_SPINS) {
		sched_yield();
	} else {
		cancel = contd__cancel_off();
		nanosleep(&nap, NULL);
		contd__cancel_as(cancel);
	}
}

/* Held for a few instructions, which take less time than a mutex. */
static void lock(struct contd_executor *ex)
{
	for (unsigned tries = 0; contd__xchg(&ex->locked, 1); tries++)
		rest(tries);
}

static void unlock(struct contd_executor *ex)
{
	contd__store_release(&ex->locked, 0); /* partner: lock() */
}

/* Every processor sees what this one has stored, and the other way round. */
static bool barrier_everywhere(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;
}

/* A region's handler has interrupted this thread inside, in contd_task_submit(). */
static bool in_the_middle(const struct contd_executor *ex)
{
	return contd__load(&ex->owner) == &contd__self && contd__load(&ex->inside);
}

/*
 * Before this thread takes anything, or sleeps because there is nothing: it is the owner, or the list is shared from
 * now on. true: it has become the owner.
 */
static bool settle(struct contd_executor *ex)
{
	const struct contd__self *owner = contd__load_acquire(&ex->owner); /* partner: disown() */

	if (contd__load_acquire(&ex->shared) == SHARED || in_the_middle(ex) ||
	    (owner == &contd__self && contd__load(&ex->shared) == OWNED))
		return false;
	if (!owner && contd__cas(&ex->owner, &owner, &contd__self))
		return true;
	lock(ex);
	if (contd__load(&ex->shared) == OWNED) {
		contd__store_seq(&ex->shared, SHARING);
		CONTD_TESTPOINT("executor_sharing");
		for (unsigned tries = 0; !barrier_everywhere(); tries++) /* no memory: it did work before */
			rest(tries);
		for (unsigned tries = 0; contd__load_acquire(&ex->inside); tries++)
			rest(tries);
		contd__store_release(&ex->shared, SHARED);
	}
	unlock(ex);
	return false;
}

/* Another thread may become the owner. */
static void disown(struct contd_executor *ex)
{
	contd__store_release(&ex->owner, NULL);
}

static struct contd_task *first_inside(struct contd_executor *ex, unsigned p)
{
	struct contd_task *task = ex->first[p];

	if (!task) {
		/* Tasks that were pushed since, newest first. */
		ex->last[p] = contd__xchg(&ex->task[p], NULL);
		for (struct contd_task *newer = ex->last[p], *next; newer; newer = next) {
			next = newer->next;
			newer->next = task;
			task = newer;
		}
	}
	CONTD_TESTPOINT("task_found");
	if (task)
		contd__store(&ex->first[p], task->next);
	return task;
}

/* The oldest one of this priority, or NULL. Hold the executor, settled. */
static struct contd_task *task_take(struct contd_executor *ex, unsigned p)
{
	struct contd_task *task;

	if (!has_tasks(ex, p))
		return NULL;
	if (contd__executor_inside_sig(ex)) {
		task = first_inside(ex, p);
		contd__executor_outside_sig(ex);
		return task;
	}
	if (in_the_middle(ex))
		return NULL;
	lock(ex);
	task = first_inside(ex, p);
	unlock(ex);
	return task;
}

/* ----------------------------------------------------------------------------------------------------- its life --- */

#define PATIENCE_NS 1000000000 /* how long a call waits for what other threads are about to leave; then -EBUSY */

/* Copy the program's attributes as this library knows them: *attr, its ops NULL or *ops. */
static int attr_take(const struct contd_executor_attr *given, struct contd_executor_attr *attr,
		     struct contd_executor_ops *ops)
{
	int rc;

	rc = contd__sized_take(attr, sizeof(*attr), given,
			       CONTD_SIZED_TEXTS("contd_executor_create", "attr", "struct contd_executor_attr"));
	if (rc || !attr->ops)
		return rc;
	rc = contd__sized_take(ops, sizeof(*ops), attr->ops,
			       CONTD_SIZED_TEXTS("contd_executor_create", "attr->ops", "struct contd_executor_ops"));
	attr->ops = ops;
	return rc;
}

static int attr_check(const struct contd_executor_attr *attr)
{
	if (attr->flags & ~(uint32_t)(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI))
		return contd__fail(-EINVAL,
				   "contd_executor_create: attr->flags has bits that are no enum contd_executor_flags");
	if (attr->flags && attr->ops && attr->ops->submit)
		return contd__fail(
			-EINVAL,
			"contd_executor_create: attr->flags are for pull executors, without attr->ops->submit()");
	if (attr->ops && attr->ops->submit && attr->ops->notify)
		return contd__fail(
			-EINVAL, "contd_executor_create: attr->ops->notify() is for pull executors, without submit()");
	if (attr->flags & CONTD_EXECUTOR_MPI && !(attr->flags & CONTD_EXECUTOR_PROGRESS))
		return contd__fail(-EINVAL, "contd_executor_create: attr->flags must have CONTD_EXECUTOR_PROGRESS if "
					    "they have CONTD_EXECUTOR_MPI");
	return 0;
}

int contd_executor_create(const struct contd_executor_attr *given, struct contd_executor **executorp)
{
	struct contd_executor_attr attr = {.size = sizeof(attr)};
	struct contd_executor_ops ops = {.size = sizeof(ops)};
	struct contd_executor *ex;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!executorp)
		return contd__fail(-EINVAL, "contd_executor_create: executorp must not be NULL");
	if (given && ((rc = attr_take(given, &attr, &ops)) != 0 || (rc = attr_check(&attr)) != 0))
		return rc;
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_executor_create: not in a signal handler");
	ex = contd__memalign(64, sizeof(*ex));
	if (!ex)
		return contd__fail(-ENOMEM, "contd_executor_create: out of memory");
	*ex = (struct contd_executor){.pool = attr.pool, .flags = attr.flags, .ops = ops};
	ex->outlet.ops = &contd__executor_outlet;
	ex->outlet.push = ex->ops.submit != NULL;
	for (unsigned p = 0; p < PRIORITIES; p++)
		ex->outlet.root[p].outlet = &ex->outlet;
	if (!barrier_everywhere())
		ex->shared = SHARED; /* the kernel has none */
	if (ex->flags & CONTD_EXECUTOR_MPI)
		contd__exclusive_made();
	contd__groups_outlet_made();
	*executorp = ex;
	return 0;
}

/*
 * Groups that are given back and have nothing outstanding name the executor for some moments more: while a scan of
 * another thread leaves them, or another thread frees them. False: other groups name it, or it takes too long: a wait
 * for such a group may be in a callback of another one. In a callback the thread that leaves may be this one.
 */
static bool await_groups(struct contd_executor *ex)
{
	int64_t until = contd__now_ns() + PATIENCE_NS;

	for (unsigned tries = 0; contd__load_seq(&ex->outlet.groups); tries++) {
		if (!contd__is_live() || contd__in_continuation_sig() || contd__groups_name_outlet(&ex->outlet) ||
		    contd__now_ns() > until)
			return false;
		rest(tries);
		contd__reap(true);
	}
	return true;
}

int contd_executor_destroy(struct contd_executor *ex)
{
	if (!ex)
		return contd__fail(-EINVAL, "contd_executor_destroy: executor must not be NULL");
	if (contd__load(&contd__live.forked))
		return contd__check_live();
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_executor_destroy: not in a signal handler");
	if (contd__is_live()) {
		contd__thread_ensure();
		contd__wake_untold_sig(); /* what this thread has put off holds it, too */
		contd__reap(true);
	}
	if (!await_groups(ex))
		return contd__fail(
			-EBUSY, "contd_executor_destroy: a group names it that is not given back, or has something "
				"outstanding: contd_group_wait(), contd_group_destroy() or contd_group_set_executor()");
	if (contd__load_seq(&ex->threads))
		return contd__fail(
			-EBUSY,
			"contd_executor_destroy: threads are lent to it: contd_executor_stop(), and let them return");
	/* A root without groups may still be marked, without need: by a completer whose continuation has run because of
	 * another mark, or before contd_fini() freed the groups. */
	if (any_tasks(ex) || IN_HAND_NOW(contd__load_seq(&ex->in_hand)) != 0)
		return contd__fail(
			-EBUSY, contd__is_live()
					? "contd_executor_destroy: something is queued or runs: contd_executor_drain()"
					: "contd_executor_destroy: tasks are queued, and contd has ended: "
					  "contd_init(), and contd_executor_drain()");
	if (ex->flags & CONTD_EXECUTOR_MPI)
		contd__exclusive_gone();
	CONTD_TESTPOINT("executor_leaves");
	if (contd__is_live())
		contd__grace_over(); /* a thread may still tell of the last task, or be in contd_executor_stop() */
	/*
	 * Such a thread may have put the waking off (wake_later). Then it has held the executor since this thread
	 * found it idle. It lets go before it runs a callback, so it never waits for this thread.
	 */
	for (unsigned tries = 0; IN_HAND_NOW(contd__load_seq(&ex->in_hand)) != 0; tries++)
		rest(tries);
	contd__groups_outlet_gone();
	free(ex);
	return 0;
}

int contd_group_set_executor(struct contd_group *group, struct contd_executor *executor)
{
	struct contd__outlet *outlet = executor ? &executor->outlet : NULL;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!group)
		return contd__fail(-EINVAL, "contd_group_set_executor: group must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_group_set_executor: not in a signal handler");
	if (contd__load(&group->flags) & (CONTD_POLL_ONLY | CONTD_ASYNC_SIGNAL_SAFE) || contd__limited(group))
		return contd__fail(-EINVAL,
				   "contd_group_set_executor: a group that is poll-only, async-signal-safe or has a "
				   "max_poll says itself who runs its continuations");
	contd__thread_ensure();
	if (contd__group_outstanding_sig(group))
		return contd__fail(-EBUSY, "contd_group_set_executor: something of group is outstanding; do it before "
					   "the first registration");
	if (contd__load(&group->outlet) == outlet)
		return 0;
	rc = contd__group_set_outlet(group, outlet);
	return rc ? contd__fail(rc, "contd_group_set_executor: 4096 groups of this kind exist; destroy some, or share")
		  : 0;
}

/* ------------------------------------------------------------------------------------------------------ running --- */

/* Does this thread run work of the executor, or is it lent to it? */
static bool at_work(const struct contd_executor *ex)
{
	for (const struct contd__at_work *w = contd__self.at_work; w; w = w->outer)
		if (w->outlet == &ex->outlet)
			return true;
	return false;
}

/* The task's memory belongs to the program again before the callback begins. */
static void task_run(struct contd_executor *ex, struct contd_task *task)
{
	struct contd__at_work work;
	struct contd_group *g = task->group;
	contd_callback *cb = task->cb;
	void *data = task->data;

	if (g && contd__load(&g->kept))
		return; /* contd_fini() has counted it */
	contd__at_work_begin(&work, &ex->outlet, g, false);
	cb(task->status, data);
	contd__at_work_end(&work);
	if (g)
		contd__group_count_down_own_sig(g, 1); /* of the continuation that has become this task */
}

void contd_work_run(struct contd_work *work)
{
	if (contd__load(&contd__live.forked))
		return; /* the parent runs it */
	contd__thread_ensure();
	if ((uintptr_t)work & 1) {
		struct contd__slot *s = (struct contd__slot *)((uintptr_t)work & ~(uintptr_t)1);
		struct contd_executor *ex = contd__executor_of(s->group->outlet);
		bool counted = contd__load(&s->group->kept); /* by contd_fini() */
		struct contd__at_work at;

		if (!counted) {
			contd__at_work_begin(&at, &ex->outlet, NULL, false); /* its frame knows the group */
			contd__slot_run_sig(s->group, s, false);             /* here, whatever its group says */
			contd__at_work_end(&at);
		}
		contd__executor_done_sig(ex);
		if (!counted)
			contd__pickup();
	} else {
		struct contd_executor *ex = ((struct contd_task *)work)->executor;

		task_run(ex, (struct contd_task *)work);
		contd__executor_done_sig(ex);
	}
}

int contd_work_priority(const struct contd_work *work)
{
	uintptr_t w = (uintptr_t)work;

	return w & 1 ? ((const struct contd__slot *)(w & ~(uintptr_t)1))->group->priority
		     : ((const struct contd_task *)work)->priority;
}

/* ---------------------------------------------------------------------------------------------- lending threads --- */

static int check_pull(struct contd_executor *ex, const char *call)
{
	int rc = contd__check_live_sig(call);

	/* The pool has looked, though in vain: in contd's next life it is told again. */
	if (rc && ex)
		contd__store(&ex->notified, 0);
	if (!rc && (!ex || ex->ops.submit))
		rc = contd__fail(-EINVAL, !ex ? "executor must not be NULL"
					      : "executor must be a pull executor, made without ops->submit()");
	return contd__fail_in(call, rc);
}

/* The pool looks. Work that comes after this is announced again. */
static void looks(struct contd_executor *ex)
{
	if (contd__load(&ex->notified))
		contd__xchg(&ex->notified, 0);
}

static bool has_higher(const struct contd_executor *ex, unsigned p)
{
	while (++p < PRIORITIES)
		if (has_some(ex, p))
			return true;
	return false;
}

/* Run some work of one priority, until there is something of a higher one. Tasks and continuations get the same
 * share. */
static uint32_t run_held(struct contd_executor *ex, unsigned p, uint32_t most)
{
	uint32_t few = most < RUN_FEW ? most : RUN_FEW, ran = 0;
	struct contd_task *task;

	while (ran < few && !contd__load(&contd__live.forked) && !(ran && has_higher(ex, p)) &&
	       (task = task_take(ex, p)) != NULL) {
		bool outer = contd__lent.tells_later;

		contd__lent.tells_later = task->cb == contd__load(&contd__executors.issues);
		if (!contd__lent.tells_later)
			contd__wake_untold_sig();
		task_run(ex, task);
		contd__lent.tells_later = outer;
		ran++;
	}
	contd__wake_untold_sig();
	few = most - ran < RUN_FEW ? most - ran : RUN_FEW;
	while (few && !(ran && has_higher(ex, p)) && contd__root_any_sig(&ex->outlet.root[p])) {
		/* One by one if a higher priority may come in between. */
		struct contd__budget budget = {.count = p == PRIORITIES - 1 ? few : 1};
		uint32_t n = contd__scan_root_sig(&ex->outlet.root[p], &budget);

		if (!n)
			break;
		ran += n;
		few -= n;
	}
	return ran;
}

static uint32_t run_some(struct contd_executor *ex, unsigned p, uint32_t most)
{
	uint32_t ran;

	if (!has_some(ex, p))
		return 0;
	contd__executor_hold_sig(ex, 1); /* before it takes anything: is_idle() */
	ran = run_held(ex, p, most);
	contd__executor_done_sig(ex);
	return ran;
}

/* Every few looks begin with the lowest priority, so that none waits for ever. */
static bool is_lowest_turn(struct contd_executor *ex)
{
	uint32_t turn = contd__load(&ex->turn);

	contd__store(&ex->turn, turn + 1);
	return turn % FAIR == FAIR - 1;
}

/* Run work of the highest priority that has some. */
static uint32_t run_work(struct contd_executor *ex, uint32_t most)
{
	bool lowest_first = is_lowest_turn(ex);
	uint32_t ran = 0;

	for (unsigned p = 0; p < PRIORITIES && lowest_first && !ran; p++)
		ran = run_some(ex, p, 1);
	for (unsigned p = PRIORITIES; p-- > 0 && !ran;)
		ran = run_some(ex, p, most);
	contd__pickup();
	return ran;
}

/* Is there nothing for a thread of the executor? */
static bool nothing(const void *executor)
{
	const struct contd_executor *ex = executor;

	return !has_work(ex) && !contd__load_seq(&ex->stopped);
}

/*
 * Without CONTD_EXECUTOR_PROGRESS: another thread looks at the sources, and tells. This thread does not sleep at once,
 * because work mostly comes soon, and being woken costs more. Arm, look again, sleep.
 */
static void sleep_on(struct contd_executor *ex, int64_t ns)
{
	struct timespec ts = {ns / 1000000000, ns % 1000000000};
	uint64_t since = contd__ticks();
	uint32_t seen;

	do {
		sched_yield();
		if (!nothing(ex))
			return;
	} while (contd__ticks() - since < (uint64_t)(SPIN_NS * contd__clock.ticks_per_ns));
	contd__add(&ex->sleepers, 1);
	seen = contd__load_seq(&ex->wake);
	CONTD_TESTPOINT("executor_sleeps");
	if (nothing(ex))
		syscall(SYS_futex, &ex->wake, FUTEX_WAIT_PRIVATE, seen, ns < 0 ? NULL : &ts, NULL, 0);
	contd__sub(&ex->sleepers, 1);
}

static uint32_t lend(struct contd_executor *ex, uint32_t most, int64_t timeout_ns)
{
	bool progress = ex->flags & CONTD_EXECUTOR_PROGRESS;
	/* A thread that calls MPI for others must give way: other threads use what it completes, and issue its next
	 * calls. */
	struct contd__idling idling = {.lent = true, .gives_way = ex->flags & CONTD_EXECUTOR_MPI};
	int64_t left = timeout_ns, since = 0;
	uint32_t ran = 0, n;

	contd__idle_over(&idling);
	while (ran < most && !contd__load(&contd__live.forked)) {
		looks(ex);
		n = run_work(ex, most - ran);
		/* If there is work, look at the sources now and then, too: otherwise no more work would ever be
		 * found. */
		if (progress && ran + n < most && (!n || contd__load(&ex->turn) % FAIR == 0))
			n += contd__drive(NULL, most - ran - n, false, true);
		ran += n;
		if (n) {
			contd__idle_over(&idling);
			since = 0;
			continue;
		}
		if (timeout_ns == 0 || contd__load_seq(&ex->stopped))
			break;
		if (timeout_ns > 0) {
			int64_t now = contd__now_ns();

			since = since ? since : now;
			left = timeout_ns - (now - since);
			if (left <= 0)
				break;
		}
		/* In a callback: what its work has begun, and was complete at once, was taken with that callback. */
		contd__carried_release_sig();
		if (progress)
			contd__idle(&idling, nothing, ex, left);
		else
			sleep_on(ex, left);
	}
	return ran;
}

/* One thread at a time runs work of executors with CONTD_EXECUTOR_MPI. True: this one may, as with all others. */
static bool mpi_take(const struct contd_executor *ex, uint32_t as)
{
	uint32_t nobody = MPI_NOBODY;

	if (!(ex->flags & CONTD_EXECUTOR_MPI))
		return true;
	if (!contd__exclusive_mine() && !contd__cas(&contd__executors.mpi_owned, &nobody, as))
		return false;
	contd__exclusive_begin();
	return true;
}

/* The same for a loan: a drain has it for some work at a time only. But that work may wait for this thread. */
static bool mpi_take_for_loan(const struct contd_executor *ex)
{
	int64_t until = 0;

	for (unsigned tries = 0; !mpi_take(ex, MPI_LENT); tries++) {
		until = until ? until : contd__now_ns() + PATIENCE_NS;
		if (contd__load_seq(&contd__executors.mpi_owned) == MPI_LENT || contd__now_ns() > until)
			return false;
		rest(tries);
	}
	return true;
}

/* After mpi_take(). */
static void mpi_give_back(const struct contd_executor *ex)
{
	if (!(ex->flags & CONTD_EXECUTOR_MPI))
		return;
	contd__exclusive_end();
	/* Release, with what it did in MPI; partner: the exchange in mpi_take(). */
	if (!contd__exclusive_mine())
		contd__store_release(&contd__executors.mpi_owned, MPI_NOBODY);
}

int contd_executor_run(struct contd_executor *ex, uint32_t max, int64_t timeout_ns)
{
	struct contd_executor *outer = contd__lent.executor;
	struct contd__at_work loan;
	uint32_t ran, progress;
	void (*left)(void);
	bool owner;
	int rc = check_pull(ex, __func__);

	if (rc)
		return rc;
	looks(ex); /* also if the call is refused */
	if (timeout_ns < -1)
		return contd__fail(-EINVAL, "contd_executor_run: timeout_ns must be at least -1");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_executor_run: not in a signal handler");
	if (contd__on_daemon_sig())
		return contd__fail(-EDEADLK, "contd_executor_run: not on contd's daemon, which cannot be lent");
	contd__thread_ensure();
	contd__carried_release_sig(); /* in a callback: others may wait for those that were taken with it */
	progress = ex->flags & CONTD_EXECUTOR_PROGRESS;
	if (!mpi_take_for_loan(ex))
		return contd__fail(-EBUSY,
				   "contd_executor_run: another thread is lent to an executor with CONTD_EXECUTOR_MPI; "
				   "contd_executor_stop() that one first");
	contd__add(&ex->threads, 1);
	contd__lent.executor = ex;
	contd__at_work_begin(&loan, &ex->outlet, NULL, true);
	owner = settle(ex);
	ran = lend(ex, max ? max : UINT32_MAX, timeout_ns);
	if (owner && timeout_ns != 0) /* else it will be back soon */
		disown(ex);
	contd__at_work_end(&loan);
	contd__lent.executor = outer;
	mpi_give_back(ex);
	/*
	 * It may be destroyed as soon as it has no threads. Dekker: counted down, then looked; partner:
	 * sleep_until_woken() (modes.c).
	 */
	if (contd__sub(&ex->threads, 1) == 1 && progress && (left = contd__load_seq(&contd__executors.left)) != NULL)
		left();
	if (contd__load(&contd__live.forked))
		return contd__check_live(); /* what it ran has forked, and this is the child */
	return ran > INT_MAX ? INT_MAX : (int)ran;
}

/* Claim something ready of one priority without running it. It is held, too. NULL: there is nothing. Hold the executor.
 */
static struct contd__slot *slot_take(struct contd_executor *ex, unsigned p)
{
	struct contd__budget budget = {.count = 1};
	struct contd__slot *slot = NULL;

	contd__lent.collect = &slot;
	contd__scan_root_sig(&ex->outlet.root[p], &budget);
	contd__lent.collect = NULL;
	return slot;
}

static struct contd_work *take_some(struct contd_executor *ex, unsigned p)
{
	struct contd__slot *slot;
	struct contd_task *task;

	if (!has_some(ex, p))
		return NULL;
	contd__executor_hold_sig(ex, 1);
	if ((task = task_take(ex, p)) != NULL)
		return (struct contd_work *)task; /* contd_work_run() lets go */
	slot = slot_take(ex, p);
	contd__executor_done_sig(ex);
	return slot ? contd__work_of_slot(slot) : NULL;
}

struct contd_work *contd_executor_take(struct contd_executor *ex)
{
	struct contd_work *work = NULL;
	bool lowest_first;

	if (check_pull(ex, __func__))
		return NULL;
	looks(ex); /* as above */
	if (contd__in_handler()) {
		contd__fail(-EPERM, "contd_executor_take: not in a signal handler");
		return NULL;
	}
	contd__thread_ensure();
	contd__carried_release_sig();
	settle(ex);
	lowest_first = is_lowest_turn(ex);
	for (unsigned p = 0; p < PRIORITIES && lowest_first && !work; p++)
		work = take_some(ex, p);
	for (unsigned p = PRIORITIES; p-- > 0 && !work;)
		work = take_some(ex, p);
	return work;
}

/* All of the executor's threads look again. */
static void rouse(struct contd_executor *ex)
{
	contd__add(&ex->wake, 1);
	syscall(SYS_futex, &ex->wake, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	contd__wake_sleepers_sig();
}

int contd_executor_stop(struct contd_executor *ex, int stopped)
{
	int rc = check_pull(ex, __func__);
	bool reader;

	if (rc)
		return rc;
	reader = contd__enter_sig(); /* its threads may return at once, and another one destroy it */
	contd__store_seq(&ex->stopped, stopped != 0);
	CONTD_TESTPOINT("executor_stopped");
	if (stopped) {
		rouse(ex);
		if (ex->ops.notify)
			contd__executor_notify_sig(ex);
	}
	contd__leave_sig(reader);
	return 0;
}

/* ----------------------------------------------------------------------------------------------------- draining --- */

struct draining {
	const struct contd_executor *ex;
	bool told; /* something waits that is not for this thread, and others know of it */
};

/* Is something left, with nothing of it for this thread? Others tell when it is over, or when there is more. */
static bool others_work(const void *data)
{
	const struct draining *d = data;

	return !is_idle(d->ex) && (d->ex->ops.submit || d->told || !has_work(d->ex));
}

/* It has work that no thread runs, as long as the thread that calls MPI is lent to another executor. */
static bool mpi_is_anothers(struct contd_executor *ex)
{
	return !ex->ops.submit && !ex->ops.drain && has_work(ex) && !contd__load_seq(&ex->threads) &&
	       contd__load_seq(&contd__executors.mpi_owned) == MPI_LENT;
}

/*
 * A root may be marked with nothing ready behind the mark: what was ready has been cancelled, or its group has moved. A
 * scan clears such a mark. But the thread that drains may not run what a scan finds, so it makes that ready again. That
 * wakes other threads that drain, which do the same: so each does it only once in so long. *lastp: when it did so last.
 */
static void clear_marks(struct contd_executor *ex, int64_t *lastp)
{
	int64_t now = contd__now_ns();

	if (now - *lastp < DRAIN_NAP_NS)
		return;
	*lastp = now;
	for (unsigned p = 0; p < PRIORITIES; p++) {
		struct contd__slot *slot;

		if (!contd__root_any_sig(&ex->outlet.root[p]))
			continue;
		contd__executor_hold_sig(ex, 1); /* as in run_some() */
		if ((slot = slot_take(ex, p)) != NULL) {
			contd__slot_ready_again_sig(slot->group, slot, false);
			contd__executor_done_sig(ex);
		}
		contd__executor_done_sig(ex);
	}
}

int contd_executor_drain(struct contd_executor *ex)
{
	struct contd_executor *outer = contd__lent.executor;
	struct contd__idling idling = {0};
	struct draining draining = {.ex = ex};
	struct contd__at_work drain;
	int64_t since = 0, cleared = 0;
	int rc = contd__check_live();

	if (rc)
		return rc;
	if (!ex)
		return contd__fail(-EINVAL, "contd_executor_drain: executor must not be NULL");
	if (contd__in_handler())
		return contd__fail(-EPERM, "contd_executor_drain: not in a signal handler");
	if (contd__on_daemon_sig() || at_work(ex))
		return contd__fail(-EDEADLK,
				   "contd_executor_drain: not in executor's own work: it would wait for itself");
	contd__thread_ensure();
	contd__add(&contd__executors.drainers, 1);
	if (ex->ops.drain)
		ex->ops.drain(ex->pool);
	contd__lent.executor = ex;
	contd__at_work_begin(&drain, &ex->outlet, NULL, false);
	if (!ex->ops.submit && !ex->ops.drain)
		settle(ex);
	contd__idle_over(&idling);
	while (!is_idle(ex)) {
		bool here = !ex->ops.submit && !ex->ops.drain && mpi_take(ex, MPI_DRAINS);
		uint32_t ran = 0;

		drain.loan = here; /* what it runs may wait for more of it */
		if (here)
			ran = run_work(ex, UINT32_MAX);
		else if (!contd__load_seq(&ex->threads)) /* those do it */
			clear_marks(ex, &cleared);
		if (here || !mpi_is_anothers(ex))
			since = 0;
		else if (!since)
			since = contd__now_ns();
		else if (contd__now_ns() - since > PATIENCE_NS)
			rc = contd__fail(-EBUSY, "contd_executor_drain: another thread is lent to another executor "
						 "with CONTD_EXECUTOR_MPI: contd_executor_stop() that one first");
		/* A pool that only this thread can run, such as a loop's, has got more meanwhile. Or another thread is
		 * the one that calls MPI: it may run this. */
		draining.told = !ex->ops.submit && !here && has_work(ex);
		if (draining.told && ex->ops.drain)
			ex->ops.drain(ex->pool);
		if (contd__load(&contd__live.forked))
			rc = contd__check_live();
		/* Work that runs elsewhere may wait for something that this thread would find. */
		if (!rc)
			ran += contd__drive(NULL, UINT32_MAX, false, true);
		drain.loan = false;
		if (here)
			mpi_give_back(ex);
		if (rc)
			break;
		if (ran)
			contd__idle_over(&idling);
		else
			contd__idle(&idling, others_work, &draining, draining.told ? DRAIN_NAP_NS : -1);
	}
	contd__at_work_end(&drain);
	contd__lent.executor = outer;
	contd__sub(&contd__executors.drainers, 1);
	return rc;
}

/* Tasks that wait in a pull executor. */
static uint32_t count_queued(struct contd_executor *ex)
{
	uint32_t n = 0;

	settle(ex);
	if (in_the_middle(ex))
		return 0;
	lock(ex); /* only the holder of the lock takes any out */
	for (unsigned p = 0; p < PRIORITIES; p++) {
		for (const struct contd_task *t = ex->first[p]; t; t = t->next)
			n++;
		for (const struct contd_task *t = contd__load_acquire(&ex->task[p]); t; t = t->next)
			n++;
	}
	unlock(ex);
	return n;
}

int contd_executor_describe(struct contd_executor *ex, char *text, size_t bytes)
{
	char own[128] = "";
	int length;

	if (!ex || (!text && bytes))
		return contd__fail(-EINVAL, !ex ? CONTD_NULL("contd_executor_describe", "executor")
						: "contd_executor_describe: text must not be NULL unless bytes is 0");
	if (contd__load(&contd__live.forked))
		return contd__check_live();
	if (ex->ops.describe)
		ex->ops.describe(ex->pool, own, sizeof(own));
	else if (ex->ops.submit)
		snprintf(own, sizeof(own), "a pool that does not describe itself");
	else
		snprintf(own, sizeof(own), "%u threads lent", contd__load(&ex->threads));
	length =
		snprintf(text, bytes, "%s, %u in hand", own, IN_HAND_NOW(contd__load(&ex->in_hand)) + count_queued(ex));
	return length;
}
