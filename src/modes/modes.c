/* SPDX-License-Identifier: BSD-3-Clause */
/* How a task learns that its communication is done: five ways, over the same continuations. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <contd/modes.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rest.h"
#include "base/sized.h"
#include "dispatch/carried.h"
#include "dispatch/daemon.h"
#include "dispatch/group.h"
#include "dispatch/run.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wait.h"
#include "dispatch/wake.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/continue.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/finalize.h"
#include "mpi/life.h"
#include "mpi/mpich_forgets.h"
#include "mpi/op_set.h"
#include "mpi/source.h"
#include "mpi/state.h"
#include "task/executor.h"

#define CALL "contd_mpi_op_run"
#define LENT_NAP_NS 1000000 /* after which it looks for other work */
#define STATUSES_FEW 16     /* that the stack has room for */

_Static_assert(sizeof(struct contd_mpi_op) ==
		       offsetof(struct contd_mpi_op, contd_room) + sizeof(((struct contd_mpi_op *)0)->contd_room),
	       "what is contd's has outgrown its room: an operation would be longer than in older headers");

static const struct contd__sized_texts texts_of_how = {
	.size = "how->size must be sizeof(struct contd_mode_attr)",
	.unknown =
		"how has a field that is set and that this contd does not know: use the contd of the program's headers",
};

/* op->contd.state, of modes that return at completion. */
enum { UNDER_WAY, COMPLETE, ASLEEP };

static bool returns_at_completion(const struct contd_mode_attr *how)
{
	return how->mode == CONTD_MODE_YIELD_WHILE || how->mode == CONTD_MODE_SUSPEND;
}

/* Does the end of the operation resume the waiting task by a function of the program? */
static bool resumes(const struct contd_mode_attr *how)
{
	return how->mode == CONTD_MODE_SUSPEND && how->resume;
}

/* ------------------------------------------------------------------------------------------------------ its end --- */

/* An error code has become a class by now: a handler must not call MPI_Error_class. */
static void call_done(int status, void *data)
{
	struct contd_mpi_op *op = data;

	if (contd__mpi_over())
		return;
	op->done(op, status == MPI_SUCCESS ? status : contd__mpi_error_class(status));
}

/* MPI_Finalize waits for the task while it runs, and says so if it never has. 0, or an error of submit(). */
static int hand_over(struct contd_mpi_op *op, int status)
{
	int rc;

	contd__task_queued();
	rc = contd__task_hand_over_sig(&op->contd.work, status, NULL);
	if (rc)
		contd__task_refused();
	return rc;
}

static void done_there(int status, void *data)
{
	contd__task_begins();
	call_done(status, data);
	contd__task_ends();
}

/* It is complete, and the caller may run what is to be done. */
/* The return value of contd_mpi_op_run() when an operation has failed. */
static int failed(int class)
{
	return __builtin_expect(class, 0) ? contd__fails(CALL, class,
							 "an operation of op has failed; MPI_Error_string() says what "
							 "the class means, and op->statuses which one")
					  : class;
}

static int finish(struct contd_mpi_op *op, int status)
{
	const struct contd_mode_attr *how = op->contd.how;

	if (!op->done)
		return status;
	if (how->completions) {
		contd_task_init(&op->contd.work, how->completions, how->priority, done_there, op);
		if (hand_over(op, status) == 0)
			return status;
	}
	op->done(op, status);
	return status;
}

/*
 * The end of an operation: a waiting thread goes on, or its task is resumed, or done() runs, or is handed over. In a
 * handler outside regions only what is async-signal-safe there: see where().
 */
static void completed(struct contd_mpi_op *op, int status)
{
	const struct contd_mode_attr *how = op->contd.how;
	uint32_t *state = &op->contd.state;
	void *task = op->task, (*resume)(void *) = resumes(how) ? how->resume : NULL;

	if (!returns_at_completion(how)) {
		if (how->completions) {
			contd_task_init(&op->contd.work, how->completions, how->priority, call_done, op);
			contd_task_callback(status, &op->contd.work);
		} else {
			call_done(status, op);
		}
		return;
	}
	op->contd.status = status;
	/* Release: pairs with the acquire in under_way. The operation may be gone after that, and so may `how`. */
	if (how->mode == CONTD_MODE_YIELD_WHILE || resume)
		contd__store_release(state, COMPLETE);
	else if (contd__xchg(state, COMPLETE) == ASLEEP)
		syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	else
		contd__wake_sleepers_sig();
	if (resume)
		resume(task);
}

static void completed_draft(MPI_Status *statuses, void *data)
{
	completed(data, statuses->MPI_ERROR);
}

static int completed_revised(int rc, void *data)
{
	completed(data, rc);
	return MPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------- attaching --- */

/* The program names no CR: where may completed() run? */
static enum contd__loose where(const struct contd_mode_attr *how)
{
	if (returns_at_completion(how))
		return resumes(how) ? LOOSE_ANY : LOOSE_EVENTS;
	if (how->completions)
		return how->completions->ops.submit ? LOOSE_ANY : LOOSE_EVENTS;
	return LOOSE;
}

static bool names_cr(const struct contd_mode_attr *how)
{
	return how->cont_req != (MPI_Request)0 && how->cont_req != MPI_REQUEST_NULL;
}

/* The CR that is named, or NULL: to be looked for before anything is issued. */
static struct contd__cr *named_cr(const struct contd_mode_attr *how)
{
	return names_cr(how) ? contd__mpi->cr_of(how->cont_req) : NULL;
}

/* MPI error class, which is not told. */
static int attach(struct contd_mpi_op *op, struct contd__cr *cr)
{
	const struct contd_mode_attr *how = op->contd.how;
	bool ignore = op->statuses == MPI_STATUSES_IGNORE, mpix = how->mode == CONTD_MODE_MPIX,
	     draft = op->count == 1 && !mpix;
	struct contd__mpi_attach a = {.call = CALL,
				      .names = NAMES_OP,
				      .count = op->count,
				      .requests = op->requests,
				      .cb = draft ? (void (*)(void))completed_draft : (void (*)(void))completed_revised,
				      .data = op,
				      .statuses = draft && ignore ? &op->contd.own : op->statuses,
				      .ignore = ignore && !draft,
				      .revised = !draft,
				      .whole = !mpix,
				      .flags = draft  ? 0
					       : mpix ? how->flags
						      : MPIX_CONT_INVOKE_FAILED,
				      .failed_data = op};
	struct contd_group *group = cr ? cr->group : contd__mpi_loose(where(how));

	return group ? contd__attach(&a, cr, group) : MPI_ERR_NO_MEM; /* its text is set */
}

/* A code of MPICH's. */
static bool is_pending(const MPI_Status *status)
{
	return status->MPI_ERROR != MPI_SUCCESS && contd__mpi_error_class(status->MPI_ERROR) == MPI_ERR_PENDING;
}

/* Without a continuation. */
static int class_of(const struct contd_mpi_op *op, int rc, const MPI_Status *statuses)
{
	if (rc == MPI_SUCCESS)
		return MPI_SUCCESS;
	for (int i = 0; i < op->count && statuses && contd__mpi_error_class(rc) == MPI_ERR_IN_STATUS; i++)
		if (statuses[i].MPI_ERROR != MPI_SUCCESS && !is_pending(&statuses[i]))
			return contd__mpi_error_class(statuses[i].MPI_ERROR);
	return contd__mpi_error_class(rc);
}

/*
 * Of several whose statuses are ignored MPI says that one has failed, but not which, nor of what class: so they are
 * asked for, if there is memory. flag: test; NULL: wait.
 */
__attribute__((noinline)) static int ask_all(struct contd_mpi_op *op, int *flag)
{
	MPI_Status few[STATUSES_FEW], *statuses = few, *given;
	int rc;

	if (op->count > STATUSES_FEW)
		statuses = contd__zalloc((size_t)op->count * sizeof(*statuses));
	given = statuses ? statuses : MPI_STATUSES_IGNORE;
	rc = flag ? PMPI_Testall(op->count, op->requests, flag, given) : PMPI_Waitall(op->count, op->requests, given);
	rc = class_of(op, rc, statuses);
	if (statuses != few)
		free(statuses);
	return rc;
}

/*
 * If one of several fails, MPICH (4.2) tells an error handler in Testall and Waitall, but leaves the request in the
 * array. The call that gives it back would tell of it once more. So with such an MPICH all are tested singly.
 */
static bool singly(const struct contd_mpi_op *op)
{
	return op->count != 1 && contd__mpich_forgets();
}

/* Before they are tested singly: no status is there yet, but of what is null. */
static void singly_begin(struct contd_mpi_op *op)
{
	for (int i = 0; i < op->count && op->statuses != MPI_STATUSES_IGNORE; i++) {
		op->statuses[i] = contd__status_empty;
		if (op->requests[i] != MPI_REQUEST_NULL)
			op->statuses[i].MPI_ERROR = MPI_ERR_PENDING;
	}
}

/*
 * One of several has failed, with op->contd.status, and others may be under way yet: MPICH says so as soon as one
 * fails. They end, too, before the operation does, because their memory belongs to the caller again then. MPICH (4.2)
 * leaves requests in the array even if their status is there. Or each is tested singly.
 */
static bool rest_is_over(struct contd_mpi_op *op, bool waits)
{
	bool ignore = op->statuses == MPI_STATUSES_IGNORE, all = true;

	for (int i = 0; i < op->count; i++) {
		bool told = !ignore && !is_pending(&op->statuses[i]);
		MPI_Status *status = ignore || told ? MPI_STATUS_IGNORE : &op->statuses[i];
		int flag = 1, rc;

		if (op->requests[i] == MPI_REQUEST_NULL || op->requests[i] == (MPI_Request)0)
			continue;
		if (waits)
			rc = PMPI_Wait(&op->requests[i], status);
		else
			rc = PMPI_Test(&op->requests[i], &flag, status);
		if (status != MPI_STATUS_IGNORE && (flag || rc != MPI_SUCCESS))
			status->MPI_ERROR = rc;
		if (rc != MPI_SUCCESS && op->contd.status == MPI_SUCCESS)
			op->contd.status = contd__mpi_error_class(rc);
		all &= flag || rc != MPI_SUCCESS;
	}
	return all;
}

static bool test(struct contd_mpi_op *op, int *statusp)
{
	bool ignore = op->statuses == MPI_STATUSES_IGNORE;
	int flag = 0, rc = MPI_SUCCESS;

	if (singly(op)) {
		bool over = rest_is_over(op, false);

		*statusp = op->contd.status;
		return over;
	}
	if (op->count != 1 && (ignore || op->contd.status != MPI_SUCCESS)) {
		if (op->contd.status == MPI_SUCCESS)
			op->contd.status = ask_all(op, &flag);
		*statusp = op->contd.status;
		return op->contd.status == MPI_SUCCESS ? flag : rest_is_over(op, false);
	}
	if (op->count == 1)
		rc = PMPI_Test(op->requests, &flag, ignore ? MPI_STATUS_IGNORE : op->statuses);
	else
		rc = PMPI_Testall(op->count, op->requests, &flag, op->statuses);
	*statusp = class_of(op, rc, ignore ? NULL : op->statuses);
	if (op->count != 1 && rc != MPI_SUCCESS && contd__mpi_error_class(rc) == MPI_ERR_IN_STATUS) {
		op->contd.status = *statusp;
		return rest_is_over(op, false);
	}
	/* Test leaves MPI_ERROR as it was, Testall where all went well. */
	for (int i = 0; i < op->count && !ignore && flag && (op->count == 1 || rc == MPI_SUCCESS); i++)
		op->statuses[i].MPI_ERROR = rc;
	return flag || rc != MPI_SUCCESS;
}

/* Zero is no handle. Open MPI 5 looks into requests before it checks that they are there. */
static bool all_handles(const struct contd_mpi_op *op)
{
	for (int i = 0; i < op->count; i++)
		if (op->requests[i] == (MPI_Request)0)
			return false;
	return true;
}

/* Operations that could not be attached to must be completed somehow. */
static int wait_here(struct contd_mpi_op *op)
{
	int rc, class;

	if (!all_handles(op))
		return contd__mpi_refuse(CALL, MPI_ERR_REQUEST, "op->requests: " CONTD_ZERO_HANDLE);
	if (singly(op)) {
		singly_begin(op);
		rest_is_over(op, true);
		return failed(op->contd.status);
	}
	if (op->statuses == MPI_STATUSES_IGNORE) {
		rc = class = ask_all(op, NULL);
	} else {
		rc = PMPI_Waitall(op->count, op->requests, op->statuses);
		class = class_of(op, rc, op->statuses);
	}
	if (rc != MPI_SUCCESS &&
	    (op->statuses == MPI_STATUSES_IGNORE || contd__mpi_error_class(rc) == MPI_ERR_IN_STATUS))
		rest_is_over(op, true);
	return failed(class);
}

static int issue(struct contd_mpi_op *op)
{
	int rc = op->issue ? op->issue(op) : MPI_SUCCESS;

	return rc == MPI_SUCCESS ? rc : contd__mpi_error_class(rc);
}

/* ------------------------------------------------------------------------------------------------ the short way --- */

/*
 * One plain request, where the backend has a short way: no set, and no slot while it waits. The operation carries its
 * continuation (dispatch/carried.h); or, where it only sets a word or is handed to a pull executor, that is done inside
 * MPI's progress.
 */

_Static_assert(sizeof(struct contd__failure) <= sizeof(struct contd_task), "a failure takes the task's place");

/* As the MPIX interface has it: its CR is told instead. */
static bool not_invoked(const struct contd_mode_attr *how, int code)
{
	return __builtin_expect(code != MPI_SUCCESS, 0) && how->mode == CONTD_MODE_MPIX &&
	       !(how->flags & (MPIX_CONT_INVOKE_FAILED | MPIX_CONT_REQBUF_VOLATILE));
}

static void release(struct contd_mpi_op *op, int code)
{
	if (op->contd.hooked != MPI_REQUEST_NULL)
		contd__mpi->quick_release(op->contd.hooked, code);
}

static void fail(struct contd_mpi_op *op, int code, struct contd__cr *cr)
{
	struct contd__failure *f = (struct contd__failure *)(void *)&op->contd.work;

	release(op, code);
	if (!cr)
		return;
	*f = (struct contd__failure){.data = op, .class = contd__mpi_error_class(code)};
	contd__cr_fail_sig(cr, f, true);
}

/* The request goes back to MPI: with an error before the callback, for its handler comes first. */
static void quick_run(int code, void *data)
{
	struct contd_mpi_op *op = data;
	MPI_Request request = op->contd.hooked;

	if (contd__mpi_over())
		return;
	if (__builtin_expect(code != MPI_SUCCESS, 0)) {
		release(op, code);
		op->done(op, contd__mpi_error_class(code));
		return;
	}
	op->done(op, code);
	if (request != MPI_REQUEST_NULL)
		contd__mpi->quick_release(request, code);
}

static void quick_task(struct contd_mpi_op *op)
{
	contd_task_init(&op->contd.work, op->contd.how->completions, op->contd.how->priority, quick_run, op);
}

static void quick_carried(int code, void *data)
{
	struct contd_mpi_op *op = data;
	const struct contd_mode_attr *how = op->contd.how;

	if (returns_at_completion(how)) {
		completed(op, code); /* the waiting thread gives the request back */
	} else if (not_invoked(how, code)) {
		fail(op, code, names_cr(how) ? op->contd.carried.group->owner : NULL);
	} else if (how->completions) {
		quick_task(op);
		contd_task_callback(code, &op->contd.work);
	} else {
		quick_run(code, op);
	}
}

/* Nothing of the program's is called for it, but what pull executors' notify() is: it may be done inside MPI. */
static bool inside_mpi(const struct contd_mode_attr *how)
{
	return returns_at_completion(how) ? !resumes(how) : how->completions && !how->completions->ops.submit;
}

/* Its continuation is nothing but resume(), which may be called on the stack of any task. */
static bool is_woken(const struct contd_mode_attr *how)
{
	return resumes(how) && !contd__takes() && contd__wakes()->count < TAKEN_MOST && contd__on_thread_sig();
}

static void carried_done(struct contd_mpi_op *op)
{
	struct contd_carried *c = &op->contd.carried;

	contd__carried_done_sig(&c, 1);
}

/* It is complete. Inside MPI's progress. */
static void quick_done(const MPI_Status *status, void *data)
{
	struct contd_mpi_op *op = data;
	const struct contd_mode_attr *how = op->contd.how;

	if (op->statuses != MPI_STATUSES_IGNORE)
		op->statuses[0] = *status;
	op->contd.status = op->contd.carried.status = status->MPI_ERROR;
	if (__builtin_expect(contd__wakes() != NULL, 0) && is_woken(how)) {
		contd__wakes()->carried[contd__wakes()->count++] = &op->contd.carried;
	} else if (!inside_mpi(how) || not_invoked(how, op->contd.status)) {
		carried_done(op);
	} else if (returns_at_completion(how)) {
		completed(op, op->contd.status);
	} else {
		quick_task(op);
		contd__task_hand_over_sig(&op->contd.work, op->contd.status, op->contd.carried.group);
	}
}

/* It is complete already; unless the calling thread waits for it, it counts as outstanding. */
static void quick_complete(struct contd_mpi_op *op, struct contd_group *group)
{
	const struct contd_mode_attr *how = op->contd.how;

	if (returns_at_completion(how)) {
		completed(op, op->contd.status);
		return;
	}
	/* A pool may run it in submit(): not one inside the other. */
	if (how->completions && !how->completions->ops.submit && !not_invoked(how, op->contd.status)) {
		quick_task(op);
		if (contd__task_hand_over_sig(&op->contd.work, op->contd.status, group) == 0)
			return;
	}
	op->contd.carried.status = op->contd.status;
	if (how->mode == CONTD_MODE_MPIX && how->flags & MPIX_CONT_DEFER_COMPLETE)
		carried_done(op);
	else
		contd__carried_at_once(&op->contd.carried);
}

/* Counted as outstanding, with the CR, if there is one. false: it is pending, and there is no memory for that. */
static bool quick_begin(struct contd_mpi_op *op, struct contd__cr *cr, struct contd_group *group, enum contd__seen seen)
{
	if (seen == SEEN_COMPLETE)
		contd__carried_begin_complete(&op->contd.carried, quick_carried, op, group);
	else if (contd__carried_begin(&op->contd.carried, quick_carried, op, group))
		return false;
	if (cr) {
		contd__cr_registered(cr);
		if (contd__mpi->cr_changed)
			contd__mpi->cr_changed(cr);
	}
	return true;
}

/* false: it must go the long way. */
static bool attach_quick(struct contd_mpi_op *op, struct contd__cr *cr)
{
	const struct contd_mode_attr *how = op->contd.how;
	bool waits = returns_at_completion(how), inside = inside_mpi(how);
	struct contd__at_work telling;
	struct contd_group *group;
	enum contd__seen seen;

	if (!contd__mpi->quick_look || op->count != 1 || (cr && contd__cr_inactive(cr)))
		return false;
	/* A continuation that only tests of its CR run becomes a task there. */
	if (cr && inside && (cr->group->flags & CONTD_POLL_ONLY || contd__limited(cr->group)))
		return false;
	/* A callback in a handler could not give the request back, nor ask MPI of what class an error is. */
	group = cr ? cr->group : contd__mpi_loose(where(how));
	if (!group || (group->flags & CONTD_ASYNC_SIGNAL_SAFE && (!inside || how->mode == CONTD_MODE_MPIX)) ||
	    group->flags & GROUP_EXECUTOR)
		return false;
	seen = contd__mpi->quick_look(op->requests[0]);
	if (seen == SEEN_NOTHING)
		return false;
	/* An operation that its thread waits for does not count as outstanding. */
	if (!(waits && (inside || seen == SEEN_COMPLETE)) && !quick_begin(op, cr, group, seen))
		return false;
	if (seen == SEEN_PENDING) {
		op->contd.hooked = op->requests[0];
		contd__mpi->quick_hook(op->requests, quick_done, op);
		return true;
	}
	contd__telling_begin(&telling, cr ? group : NULL);
	op->contd.status =
		contd__mpi->quick_finish(op->requests, op->statuses == MPI_STATUSES_IGNORE ? NULL : op->statuses);
	contd__telling_end(&telling);
	quick_complete(op, group);
	return true;
}

/* ------------------------------------------------------------------------------------------------------ waiting --- */

static bool under_way(const void *data)
{
	return contd__load_acquire(&((const struct contd_mpi_op *)data)->contd.state) != COMPLETE;
}

static void yield(const struct contd_mpi_op *op)
{
	if (op->contd.how->yield)
		op->contd.how->yield(op->task);
	else if (!contd__lent.executor || contd_executor_run(contd__lent.executor, 1, 0) <= 0)
		contd__rest();
}

/* Does another thread look after it, so that this one may sleep until it is woken? */
static bool others_look(const struct contd_mode_attr *how)
{
	const struct contd_executor *ex = how->requests;

	/* A pool that issues it need not look at MPI afterwards. */
	if (ex && (!contd__mpi_thread_may_sig() ||
		   (ex->flags & CONTD_EXECUTOR_PROGRESS && contd__load_seq(&ex->threads) != 0)))
		return true;
	return contd__load_seq(&contd__wake.daemon_mode) && contd__mpi_source.where & WHERE_DAEMON;
}

/*
 * Operations whose threads sleep because the daemon looks, or an executor. If the daemon is stopped, or the last thread
 * of an executor leaves, these threads must look.
 */
struct sleeper {
	struct contd_mpi_op *op;
	struct sleeper *next, **link;
};

static struct {
	pthread_mutex_t lock;
	struct sleeper *first;
} sleepers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Dekker: the daemon's mode, or the executor's count of threads, was stored, then the operations' states are changed.
 * Partner: sleep_until_woken(). */
static void look_yourselves(void)
{
	pthread_mutex_lock(&sleepers.lock);
	for (struct sleeper *s = sleepers.first; s; s = s->next) {
		uint32_t now = ASLEEP;

		if (contd__cas(&s->op->contd.state, &now, UNDER_WAY))
			syscall(SYS_futex, &s->op->contd.state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&sleepers.lock);
}

static void sleeper_begin(struct sleeper *s)
{
	pthread_mutex_lock(&sleepers.lock);
	contd__daemon_on_change(look_yourselves);
	contd__executors_on_left(look_yourselves);
	s->next = sleepers.first;
	s->link = &sleepers.first;
	if (s->next)
		s->next->link = &s->next;
	sleepers.first = s;
	pthread_mutex_unlock(&sleepers.lock);
}

static void sleeper_end(struct sleeper *s)
{
	pthread_mutex_lock(&sleepers.lock);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	pthread_mutex_unlock(&sleepers.lock);
}

static void sleep_until_woken(struct contd_mpi_op *op)
{
	struct sleeper me = {.op = op};
	uint32_t now = UNDER_WAY;

	sleeper_begin(&me);
	if (contd__cas(&op->contd.state, &now, ASLEEP) || now == ASLEEP) {
		now = ASLEEP;
		if (others_look(op->contd.how))
			syscall(SYS_futex, &op->contd.state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
		else
			contd__cas(&op->contd.state, &now, UNDER_WAY);
	}
	sleeper_end(&me);
}

/*
 * A thread sleeps. One that is lent to an executor takes other work of it meanwhile: it may be the only one that could,
 * and the operation wait for it.
 */
__attribute__((noinline)) static void
sleep_through(struct contd_mpi_op *op) /* else a task that sleeps has its frame, too */
{
	struct contd__idling idling = {0};
	int64_t nap = contd__lent.executor ? LENT_NAP_NS : -1;

	contd__idle_over(&idling);
	contd__carried_release_sig(); /* in a callback: others may wait for those that were taken with it */
	while (under_way(op)) {
		if (contd__lent.executor && contd_executor_run(contd__lent.executor, 1, 0) > 0)
			contd__idle_over(&idling);
		else if (!under_way(op))
			break;
		else if (!contd__lent.executor && others_look(op->contd.how))
			sleep_until_woken(op);
		else if (contd__drive(NULL, UINT32_MAX, false, true))
			contd__idle_over(&idling);
		else if (under_way(op))
			contd__idle(&idling, under_way, op, nap);
	}
}

/* The steps of a task that waits for a word in memory. Some thread must drive MPI, if need be this one. */
static void yield_driving(const struct contd_mpi_op *op)
{
	if (!op->contd.how->yield && !others_look(op->contd.how))
		contd__drive(NULL, UINT32_MAX, false, true);
	if (under_way(op))
		yield(op);
}

/* A continuation says when it is complete. */
static int wait_for(struct contd_mpi_op *op)
{
	if (op->contd.how->mode == CONTD_MODE_YIELD_WHILE)
		while (under_way(op))
			yield_driving(op);
	else if (op->contd.how->suspend)
		op->contd.how->suspend(op->task);
	else
		sleep_through(op);
	release(op, op->contd.status);
	return failed(
		finish(op, op->contd.status == MPI_SUCCESS ? MPI_SUCCESS : contd__mpi_error_class(op->contd.status)));
}

/* ------------------------------------------------------------------------------------------------------ issuing --- */

static void issue_now(struct contd_mpi_op *op)
{
	struct contd__cr *cr;
	int rc;

	if (contd__mpi_over())
		return;
	cr = named_cr(op->contd.how);
	/* It has been freed since. */
	rc = !cr && names_cr(op->contd.how) ? MPI_ERR_REQUEST : issue(op);
	if (rc == MPI_SUCCESS && (attach_quick(op, cr) || attach(op, cr) == MPI_SUCCESS))
		return;
	contd__tells_at_once(); /* done() may wait for what it hands over, or what has been */
	contd__wake_untold_sig();
	if (rc == MPI_SUCCESS)
		rc = wait_here(op);
	if (returns_at_completion(op->contd.how))
		completed(op, rc);
	else
		finish(op, rc); /* MPI_Finalize knows what it hands over */
}

/* On a thread of the requests executor. */
static void issue_there(int status, void *data)
{
	(void)status;
	contd__task_begins();
	issue_now(data);
	contd__task_ends();
}

static int transfer(struct contd_mpi_op *op)
{
	bool waits = returns_at_completion(op->contd.how); /* others may be gone when submit() returns */
	int rc;

	contd__executors_issue_by(issue_there);
	contd_task_init(&op->contd.work, op->contd.how->requests, op->contd.how->priority, issue_there, op);
	if ((rc = hand_over(op, 0)) != 0) {
		return contd__mpi_refuse(CALL, MPI_ERR_OTHER, "the submit() of how->requests refuses it");
	}
	return waits ? wait_for(op) : MPI_SUCCESS;
}

/* The result of contd_mpi_op_run() when nothing is under way any more. */
static int over(struct contd_mpi_op *op, int status, bool waits)
{
	int rc = finish(op, status);

	return waits ? rc : MPI_SUCCESS;
}

/* The test may find other operations, too: those that wake other tasks may be run here. */
__attribute__((noinline)) static bool test_waking(struct contd_mpi_op *op, int *statusp)
{
	struct contd__taking waking;
	bool over;

	contd__taking_init(&waking, UINT32_MAX);
	contd__wakes_begin(&waking);
	over = test(op, statusp);
	contd__wakes_end();
	if (waking.count) {
		contd__taken_run(&waking, UINT32_MAX);
		contd__pickup();
	}
	return over;
}

/* Below MPI_THREAD_MULTIPLE contd itself drives MPI on one thread: another one that waits tests. */
static bool tests_here(const struct contd_mode_attr *how)
{
	return !resumes(how) && !contd__mpi_thread_may_sig();
}

static int here(struct contd_mpi_op *op, struct contd__cr *cr)
{
	const struct contd_mode_attr *how = op->contd.how;
	bool waits = returns_at_completion(how); /* `how` may go with the operation */
	int rc = issue(op);

	if (rc != MPI_SUCCESS) {
		rc = over(op, rc, waits);
		return contd__fails(CALL, rc, "op->issue() has returned this error");
	}
	if (waits && !all_handles(op))
		return over(op, contd__mpi_refuse(CALL, MPI_ERR_REQUEST, "op->requests: " CONTD_ZERO_HANDLE), waits);
	if (waits && singly(op) && (how->mode == CONTD_MODE_YIELD_WHILE || tests_here(how)))
		singly_begin(op);
	if (how->mode == CONTD_MODE_YIELD_WHILE) {
		while (!test(op, &rc))
			yield(op);
		return failed(finish(op, rc));
	}
	if (how->mode == CONTD_MODE_SUSPEND) {
		/* Tested singly some may be complete: a continuation could not be attached to all then. */
		if (!singly(op) && (resumes(how) ? test_waking(op, &rc) : test(op, &rc)))
			return failed(finish(op, rc));
		if (op->contd.status != MPI_SUCCESS || tests_here(how)) {
			while (!test(op, &rc))
				yield(op);
			return failed(finish(op, rc));
		}
	}
	rc = attach_quick(op, cr) ? MPI_SUCCESS : attach(op, cr);
	if (rc != MPI_SUCCESS)
		return over(op, wait_here(op), waits);
	return waits ? wait_for(op) : MPI_SUCCESS;
}

/* Nothing is given that the mode has no use for. */
static const char *unused(const struct contd_mode_attr *how)
{
	if (returns_at_completion(how) && names_cr(how))
		return "how->cont_req is for modes that do not return at completion";
	return how->flags && how->mode != CONTD_MODE_MPIX ? "how->flags are for CONTD_MODE_MPIX" : NULL;
}

static const char *wrong_how(const struct contd_mode_attr *how)
{
	if (how->mode < CONTD_MODE_YIELD_WHILE || how->mode > CONTD_MODE_MPIX)
		return "how->mode must be one of enum contd_mode";
	if (how->priority < CONTD_PRIORITY_LOW || how->priority > CONTD_PRIORITY_HIGH)
		return "how->priority must be one of enum contd_priority";
	if (!how->suspend != !how->resume)
		return "how->suspend and how->resume go together: set both or none";
	if (!how->completions && how->mode == CONTD_MODE_NEW_TASK)
		return "how->completions must not be NULL with CONTD_MODE_NEW_TASK";
	return unused(how);
}

static const char *wrong_op(const struct contd_mpi_op *op, const struct contd_mode_attr *how)
{
	if (op->count < 0)
		return "op->count must not be negative";
	if (op->count && !op->requests)
		return "op->requests must not be NULL unless op->count is 0";
	if (op->count && !op->statuses && op->statuses != MPI_STATUSES_IGNORE)
		return "op->statuses must not be NULL unless op->count is 0; MPI_STATUSES_IGNORE says that none are "
		       "wanted";
	if (!op->issue && how->requests)
		return "op->issue must not be NULL if how->requests is set";
	return op->done || returns_at_completion(how)
		       ? NULL
		       : "op->done must not be NULL in modes that do not return at completion";
}

/* NULL, or the text of what is wrong. */
static const char *wrong(const struct contd_mpi_op *op, const struct contd_mode_attr *how)
{
	const char *text = wrong_how(how);

	return text ? text : wrong_op(op, how);
}

/*
 * *how is used where it lies. If it comes from an older header, or from a newer one, the operation gets a copy with all
 * fields that this version knows, and *howp names that. NULL, or the text of what is wrong.
 */
static const char *known(struct contd_mpi_op *op, const struct contd_mode_attr **howp)
{
	const struct contd_mode_attr *how = *howp;
	struct contd_mode_attr *taken;

	if (!op || !how)
		return !op ? "op must not be NULL" : "how must not be NULL";
	if (__builtin_expect(how->size == sizeof(*how), 1))
		return NULL;
	*howp = taken = &op->contd.taken;
	memset(taken, 0, sizeof(*taken));
	return contd__sized_take(taken, sizeof(*taken), how, &texts_of_how) ? contd__error_text : NULL;
}

int contd_mpi_op_run(struct contd_mpi_op *op, const struct contd_mode_attr *how)
{
	struct contd__cr *cr;
	const char *text;
	int rc;

	if (__builtin_expect(!contd__load_acquire(&contd__mpi_open), 0) && !contd__mpi_start(CALL, &rc))
		return rc;
	text = known(op, &how);
	if (!text)
		text = wrong(op, how);
	if (__builtin_expect(text != NULL, 0))
		return contd__mpi_refuse(CALL, MPI_ERR_ARG, text);
	cr = named_cr(how);
	if (__builtin_expect(!cr && names_cr(how), 0))
		return contd__mpi_refuse(CALL, MPI_ERR_REQUEST, "how->cont_req is no continuation request");
	op->contd.how = how;
	op->contd.state = UNDER_WAY;
	op->contd.status = MPI_SUCCESS;
	op->contd.hooked = MPI_REQUEST_NULL;
	return how->requests ? transfer(op) : here(op, cr);
}

/* ------------------------------------------------------------------------------ tasks as continuations of MPI's --- */

void contd_mpi_task_callback(MPI_Status *statuses, void *task)
{
	(void)statuses;
	contd_task_callback(0, task);
}

int contd_mpi_task_callback_x(int rc, void *task)
{
	contd_task_callback(rc, task);
	return MPI_SUCCESS;
}
