/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 1 2 */
/* also: funneled MODES_LEVEL=funneled */
/*
 * The completion modes on the one thread that there is, below MPI_THREAD_MULTIPLE: there the native backend has a short
 * way for operations of one request. It must do the same as the long way: so everything here is done with one
 * request and with several, complete at once and later, with all kinds of continuation requests, with and without
 * executors.
 */
#include <errno.h>

#include <contd/modes.h>

#include "base/memory.h"
#include "check.h"
#include "dispatch/thread.h"
#include "rcu/table.h"

#define MODES 5
#define MANY 3
#define CHAIN 100000
#define STACK_MOST 65536
#define LONG_INTS 100000 /* a message that takes several steps */

static const char *const mode_name[MODES] = {"yield-while", "suspend", "new task", "continuation", "mpix"};

static int partner, tags = 1;
static MPI_Comm comm; /* errors return */

static bool waits(int mode)
{
	return mode <= CONTD_MODE_SUSPEND;
}

/* The flags that a mode uses: the others refuse them. */
CHECK_HELPER int mode_flags(int mode)
{
	return mode == CONTD_MODE_MPIX ? MPIX_CONT_INVOKE_FAILED : 0;
}

static MPI_Request mode_cr(int mode, MPI_Request cr)
{
	return waits(mode) ? (MPI_Request)0 : cr;
}

/* ------------------------------------------------------------------------------------------------- an operation --- */

struct one {
	struct contd_mpi_op op;
	MPI_Request requests[MANY];
	MPI_Status statuses[MANY];
	int in[MANY][2];
	int count, tag;
	int done, status;
	MPI_Comm comm;
	struct contd_group *group; /* outstanding for it while done() runs */
	int issued;
};

static void one_done(struct contd_mpi_op *op, int status)
{
	struct one *x = op->data;

	x->status = status;
	x->done++;
	if (x->group)
		CHECK(contd_group_outstanding(x->group) > 0);
	for (int i = 0; i < x->count; i++)
		CHECK(x->requests[i] == MPI_REQUEST_NULL);
}

static int one_issue(struct contd_mpi_op *op)
{
	struct one *x = op->data;

	x->issued++;
	for (int i = 0; i < x->count; i++)
		CHECK_OK(MPI_Irecv(x->in[i], 1, MPI_INT, partner, x->tag + i, x->comm, &x->requests[i]));
	return MPI_SUCCESS;
}

static void one_prepare(struct one *x, int count, bool ignore)
{
	memset(x, 0, sizeof(*x));
	memset(x->statuses, POISON, sizeof(x->statuses));
	memset(&x->op, POISON, sizeof(x->op)); /* contd's own fields may hold anything */
	x->count = count;
	x->tag = tags;
	x->comm = comm;
	tags = (tags + MANY) % 30000;
	x->op.count = count;
	x->op.requests = x->requests;
	x->op.statuses = ignore ? MPI_STATUSES_IGNORE : x->statuses;
	x->op.issue = one_issue;
	x->op.done = one_done;
	x->op.data = x;
	x->op.task = NULL;
}

/* Send the message that the partner receives; it has arrived when this returns. */
static void one_send(const struct one *x)
{
	for (int i = 0; i < x->count; i++) {
		int out = 100 * x->tag + i;

		MPI_Send(&out, 1, MPI_INT, partner, x->tag + i, comm);
	}
}

/* The partner's messages are here: receives complete at once. */
static void one_arrived(const struct one *x)
{
	for (int i = 0, flag; i < x->count; i++)
		do
			MPI_Iprobe(partner, x->tag + i, comm, &flag, MPI_STATUS_IGNORE);
		while (!flag);
}

static void one_check(struct one *x)
{
	CHECK_EQ(x->done, 1);
	CHECK_EQ(x->status, MPI_SUCCESS);
	for (int i = 0; i < x->count; i++) {
		CHECK_EQ(x->in[i][0], 100 * x->tag + i);
		if (x->op.statuses != MPI_STATUSES_IGNORE)
			status_is_of(&x->statuses[i], partner, x->tag + i, sizeof(int));
		else
			CHECK(status_is_poison(&x->statuses[i]));
	}
}

static void meet(void)
{
	MPI_Barrier(comm);
}

static void poll_until(const int *done, int n)
{
	while (*done < n)
		contd_poll(0);
}

/* ---------------------------------------------------------------------------------------------- kinds of CRs --- */

enum kind {
	NONE,
	NULL_CR,
	PLAIN,
	POLL_ONLY,
	ENQUEUES,
	LIMITED,
	LIMITED_0,
	HIGH,
	SAFE,
	REVISED,
	REVISED_POLL_ONLY,
	KINDS
};
static const char *const kind_name[KINDS] = {"none",
					     "null",
					     "plain",
					     "poll-only",
					     "enqueues",
					     "max_poll 1",
					     "max_poll 0",
					     "high",
					     "async-signal-safe",
					     "revised",
					     "revised, poll-only"};

static bool revised(enum kind kind)
{
	return kind >= REVISED;
}

static MPI_Request cr_of_kind(enum kind kind)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	switch (kind) {
	case PLAIN:
		return check_plain_cr();
	case POLL_ONLY:
		return check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	case ENQUEUES:
		return check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	case LIMITED:
		return check_cr("mpi_continue_max_poll", "1", NULL, NULL);
	case LIMITED_0:
		return check_cr("mpi_continue_max_poll", "0", NULL, NULL);
	case HIGH:
		return check_cr("contd_priority", "high", NULL, NULL);
	case SAFE:
		return check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	case REVISED:
	case REVISED_POLL_ONLY:
		CHECK_OK(MPIX_Continue_init(kind == REVISED ? 0 : MPIX_CONT_POLL_ONLY, kind == REVISED ? 0 : 2,
					    MPI_INFO_NULL, &cr));
		break;
	default:
		return kind == NONE ? (MPI_Request)0 : MPI_REQUEST_NULL;
	}
	return cr;
}

static bool has_cr(enum kind kind)
{
	return kind >= PLAIN;
}

/* ------------------------------------------------------------------------------------------------- combinations --- */

struct waiting {
	struct one *x;
	int yields, suspends, resumes;
	bool sent;
};

static void waiting_send(struct waiting *w)
{
	if (!w->sent)
		one_send(w->x);
	w->sent = true;
}

/* Messages are sent when the operation is under way already. */
static void count_yield(void *task)
{
	struct waiting *w = task;

	w->yields++;
	waiting_send(w);
}

static void suspend(void *task)
{
	struct waiting *w = task;

	w->suspends++;
	waiting_send(w);
	while (!w->resumes)
		contd_poll(0);
}

static void resume(void *task)
{
	((struct waiting *)task)->resumes++;
}

static void returns_at_completion(int mode, int count, bool at_once, bool ignore)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = mode};
	struct one x;
	struct waiting w = {.x = &x};

	one_prepare(&x, count, ignore);
	x.op.task = &w;
	meet();
	if (at_once) {
		waiting_send(&w);
		one_arrived(&x);
	} else if (mode == CONTD_MODE_YIELD_WHILE) {
		how.yield = count_yield;
	} else {
		how.suspend = suspend;
		how.resume = resume;
	}
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	waiting_send(&w); /* the partner may have been first */
	one_check(&x);
	if (!at_once && check_size == 1)
		CHECK_EQ(mode == CONTD_MODE_YIELD_WHILE ? w.yields > 0 : w.suspends, 1);
	CHECK_EQ(w.suspends, w.resumes);
	CHECK(w.resumes <= 1);
	/* Without done(). */
	if (at_once && count) {
		int out = 5, in = 0;

		MPI_Send(&out, 1, MPI_INT, partner, 0, comm);
		MPI_Irecv(&in, 1, MPI_INT, partner, 0, comm, &x.requests[0]);
		x.op.count = 1;
		x.op.done = NULL;
		x.op.issue = NULL;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		CHECK_EQ(in, 5);
	}
}

static void calls_done(int mode, enum kind kind, int count, bool at_once, bool ignore)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = mode, .flags = mode_flags(mode)};
	MPI_Request cr = cr_of_kind(kind), same = cr;
	struct one x;
	int flag = 1;

	how.cont_req = cr;
	one_prepare(&x, count, ignore);
	x.group = has_cr(kind) && !at_once ? contd_mpi_group(cr) : NULL;
	if (revised(kind))
		CHECK_OK(MPI_Start(&cr));
	if (at_once) {
		one_send(&x);
		one_arrived(&x);
	}
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	for (int i = 0; i < count; i++)
		CHECK(x.requests[i] == MPI_REQUEST_NULL);
	if (!at_once) {
		CHECK_EQ(x.done, 0);
		if (has_cr(kind)) {
			CHECK_EQ(contd_group_outstanding(x.group), 1);
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
		}
		CHECK_EQ(x.done, 0);
		meet();
		one_send(&x);
	}
	if (at_once && (kind == POLL_ONLY || kind == REVISED_POLL_ONLY || kind == ENQUEUES || kind == LIMITED_0))
		CHECK_EQ(x.done, 0); /* never inside the call */
	if (kind == POLL_ONLY || kind == REVISED_POLL_ONLY) {
		for (int i = 0; i < 20; i++)
			contd_poll(0);
		meet();
		contd_poll(0);
		CHECK_EQ(x.done, 0);
	}
	if (has_cr(kind)) {
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK(cr == same);
		CHECK_EQ(x.done, 1);
		CHECK_EQ(contd_group_outstanding(contd_mpi_group(cr)), 0);
		x.group = NULL;
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_OK(MPI_Request_free(&cr));
	} else {
		poll_until(&x.done, 1);
	}
	one_check(&x);
	meet();
}

static void combinations(void)
{
	for (int count = 0; count <= MANY; count++)
		for (int n = 0; n < 4; n++)
			for (int mode = 0; mode < MODES; mode++) {
				check_begin(mode_name[mode]);
				if (waits(mode)) {
					if (count)
						returns_at_completion(mode, count, n & 1, n & 2);
					continue;
				}
				for (enum kind kind = NONE; kind < KINDS && mode != CONTD_MODE_NEW_TASK; kind++) {
					check_begin(kind_name[kind]);
					calls_done(mode, kind, count, n & 1 || !count, n & 2);
				}
			}
}

/* A thread that sleeps by itself: there is no other one, so that it makes progress. Long messages come in steps. */
static void alone_it_waits(void)
{
	static int out[LONG_INTS], in[LONG_INTS];
	MPI_Request send, receive;

	check_begin("long messages");
	for (int mode = 0; mode < MODES; mode++) {
		struct contd_mode_attr how = {.size = sizeof(how), .mode = mode, .flags = mode_flags(mode)};
		struct one x;

		if (mode == CONTD_MODE_NEW_TASK)
			continue;
		one_prepare(&x, 0, false);
		for (int i = 0; i < LONG_INTS; i++)
			out[i] = i * (mode + 1), in[i] = -1;
		MPI_Isend(out, LONG_INTS, MPI_INT, partner, 3, comm, &send);
		MPI_Irecv(in, LONG_INTS, MPI_INT, partner, 3, comm, &receive);
		x.op.issue = NULL;
		x.op.count = 1;
		x.op.requests = &receive;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		if (waits(mode))
			CHECK_EQ(x.done, 1);
		poll_until(&x.done, 1);
		CHECK_EQ(x.status, MPI_SUCCESS);
		CHECK(receive == MPI_REQUEST_NULL);
		CHECK(memcmp(in, out, sizeof(in)) == 0);
		status_is_of(&x.statuses[0], partner, 3, sizeof(in));
		CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
	}
}

/* -------------------------------------------------------------------------------------------- kinds of requests --- */

static void run_and_wait(struct one *x, int mode, MPI_Request cr)
{
	struct contd_mode_attr how = {
		.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr), .flags = mode_flags(mode)};

	x->op.issue = NULL;
	CHECK_OK(contd_mpi_op_run(&x->op, &how));
	if (cr != (MPI_Request)0)
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	else
		poll_until(&x->done, 1);
	CHECK_EQ(x->done, 1);
}

static void one_kind(int mode, MPI_Request cr)
{
	MPI_Request kept;
	struct one x;
	int value;

	check_begin("MPI_REQUEST_NULL");
	one_prepare(&x, 1, false);
	x.requests[0] = MPI_REQUEST_NULL;
	run_and_wait(&x, mode, cr);
	CHECK_EQ(x.status, MPI_SUCCESS);
	CHECK(status_is_empty(&x.statuses[0]));

#ifdef OPEN_MPI
	for (int count = 1; count <= MANY; count += MANY - 1) {
		struct contd_mode_attr how = {.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr)};

		check_begin("no handle");
		one_prepare(&x, count, false);
		for (int i = 0; i < count; i++)
			x.requests[i] = i < count - 1 ? MPI_REQUEST_NULL : (MPI_Request)0;
		x.count = 0; /* done() is not to see null handles */
		x.op.issue = NULL;
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* contd finds it, not Open MPI */
		CHECK_EQ(contd_mpi_op_run(&x.op, &how), waits(mode) ? MPI_ERR_REQUEST : MPI_SUCCESS);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
		CHECK_EQ(x.done, 1);
		CHECK_EQ(x.status, MPI_ERR_REQUEST);
	}
#endif

	check_begin("MPI_PROC_NULL");
	one_prepare(&x, 1, false);
	MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &x.requests[0]);
	run_and_wait(&x, mode, cr);
	CHECK_EQ(x.status, MPI_SUCCESS);
#ifdef OPEN_MPI
	CHECK_EQ(x.statuses[0].MPI_SOURCE, MPI_PROC_NULL); /* of nonblocking ones MPICH 4.0 says 0 */
#endif
	one_prepare(&x, 1, true);
	MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &x.requests[0]);
	run_and_wait(&x, mode, cr);
	CHECK_EQ(x.status, MPI_SUCCESS);

	check_begin("empty, from any rank");
	for (int late = 0; late < 2; late++) {
		struct contd_mode_attr how = {
			.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr), .flags = mode_flags(mode)};
		MPI_Request send;

		one_prepare(&x, 1, false);
		meet();
		if (!late || waits(mode))
			MPI_Isend(NULL, 0, MPI_INT, partner, x.tag, comm, &send);
		MPI_Irecv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &x.requests[0]);
		x.op.issue = NULL;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		if (late && !waits(mode)) {
			CHECK_EQ(x.done, 0);
			meet();
			MPI_Isend(NULL, 0, MPI_INT, partner, x.tag, comm, &send);
		}
		poll_until(&x.done, 1);
		status_is_of(&x.statuses[0], partner, x.tag, 0);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		meet();
	}

	check_begin("a collective operation");
	one_prepare(&x, 1, false);
	MPI_Ibarrier(comm, &x.requests[0]);
	run_and_wait(&x, mode, cr);
	CHECK_EQ(x.status, MPI_SUCCESS);

	check_begin("sends, buffered and synchronous");
	one_prepare(&x, 2, true);
	value = 7;
	MPI_Issend(&value, 1, MPI_INT, partner, x.tag, comm, &x.requests[0]);
	MPI_Irecv(x.in[0], 1, MPI_INT, partner, x.tag, comm, &x.requests[1]);
	run_and_wait(&x, mode, cr);
	CHECK_EQ(x.in[0][0], 7);

	check_begin("persistent requests");
	one_prepare(&x, 1, false);
	MPI_Recv_init(x.in[0], 1, MPI_INT, partner, x.tag, comm, &kept);
	for (int round = 0; round < 3; round++) {
		struct contd_mode_attr how = {
			.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr), .flags = mode_flags(mode)};
		MPI_Request send;

		value = round;
		x.requests[0] = kept;
		x.count = 0; /* done() is not to see null handles */
		meet();
		if (round % 2 || waits(mode))
			MPI_Isend(&value, 1, MPI_INT, partner, x.tag, comm, &send);
		MPI_Start(&x.requests[0]);
		x.op.issue = NULL;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		if (round % 2 == 0 && !waits(mode)) {
			CHECK_EQ(x.done, round);
			meet();
			MPI_Isend(&value, 1, MPI_INT, partner, x.tag, comm, &send);
		}
		poll_until(&x.done, round + 1);
		CHECK(x.requests[0] == kept);
		CHECK_EQ(x.in[0][0], round);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
	/* Inactive: complete, with the empty status. */
	x.done = 0;
	run_and_wait(&x, mode, cr);
	CHECK(status_is_empty(&x.statuses[0]));
	CHECK_OK(MPI_Request_free(&kept));

	check_begin("a receive that is cancelled");
	for (int late = 0; late < (waits(mode) ? 1 : 2); late++) {
		struct contd_mode_attr how = {
			.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr), .flags = mode_flags(mode)};
		int cancelled = 0;

		one_prepare(&x, 1, false);
		MPI_Irecv(x.in[0], 1, MPI_INT, partner, x.tag, comm, &x.requests[0]);
		kept = x.requests[0];
		if (!late)
			CHECK_OK(MPI_Cancel(&kept));
		x.op.issue = NULL;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		if (late) {
			CHECK_EQ(x.done, 0);
			CHECK_OK(MPI_Cancel(&kept)); /* nothing else can have completed it */
		}
		poll_until(&x.done, 1);
		CHECK_EQ(x.status, MPI_SUCCESS);
		MPI_Test_cancelled(&x.statuses[0], &cancelled);
		CHECK(cancelled);
		CHECK_EQ(x.statuses[0].MPI_ERROR, MPI_SUCCESS);
	}
}

static void kinds_of_requests(void)
{
	MPI_Request cr = check_plain_cr();

	for (int mode = 0; mode < MODES; mode++) {
		if (mode == CONTD_MODE_NEW_TASK)
			continue;
		one_kind(mode, (MPI_Request)0);
		if (!waits(mode))
			one_kind(mode, cr);
	}
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------------------------------- errors --- */

static int told, told_class, told_when_done;
static struct one *failing;

static void handler(MPI_Comm *c, int *code, ...)
{
	told++;
	MPI_Error_class(*code, &told_class);
	if (failing)
		told_when_done += failing->done;
	CHECK(*c == comm || *c == MPI_COMM_WORLD);
}

/* A message that is longer than what receives it. */
static void truncated(int mode, int count, bool late, MPI_Request cr)
{
	struct contd_mode_attr how = {
		.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr), .flags = mode_flags(mode)};
	int two[2] = {1, 2};
	struct one x;
	struct waiting w = {.x = &x};
	MPI_Request sends[MANY];

	if (late && check_size == 1)
		return; /* Open MPI 4.1 does not report a short expected one to oneself */
	one_prepare(&x, count, false);
	told = told_class = told_when_done = 0;
	failing = &x;
	meet();
	/* The last of them fails. */
	if (!late || waits(mode)) {
		for (int i = 0; i < count; i++)
			MPI_Isend(two, 1 + (i == count - 1), MPI_INT, partner, x.tag + i, comm, &sends[i]);
		if (!late)
			one_arrived(&x);
	}
	one_issue(&x.op);
	x.op.issue = NULL;
	x.op.task = &w;
	CHECK_EQ(contd_mpi_op_run(&x.op, &how), waits(mode) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	if (late && !waits(mode)) {
		CHECK_EQ(x.done, 0);
		meet();
		for (int i = 0; i < count; i++)
			MPI_Isend(two, 1 + (i == count - 1), MPI_INT, partner, x.tag + i, comm, &sends[i]);
	}
	if (cr != (MPI_Request)0)
		MPI_Wait(&cr, MPI_STATUS_IGNORE);
	else
		poll_until(&x.done, 1);
	CHECK_EQ(x.done, 1);
	CHECK_EQ(x.status, MPI_ERR_TRUNCATE);
	CHECK_EQ(told, 1);
#ifdef OPEN_MPI
	CHECK_EQ(told_class, MPI_ERR_TRUNCATE);
#else
	CHECK(told_class == MPI_ERR_TRUNCATE || told_class == MPI_ERR_IN_STATUS); /* of MPI_Waitall's */
#endif
	CHECK_EQ(told_when_done, 0);
	if (count > 1 || !waits(mode)) { /* of a single one's status the error is left alone by MPI_Test */
		int class = -1;

		MPI_Error_class(x.statuses[count - 1].MPI_ERROR, &class);
		CHECK_EQ(class, MPI_ERR_TRUNCATE);
	}
	for (int i = 0; i < count - 1; i++)
		CHECK_EQ(x.statuses[i].MPI_ERROR, MPI_SUCCESS);
	MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
	failing = NULL;
}

static int issue_nothing(struct contd_mpi_op *op)
{
	(void)op;
	return MPI_ERR_TAG;
}

static void errors(void)
{
	MPI_Request cr = check_plain_cr();
	MPI_Errhandler own;

	check_begin("errors");
	MPI_Comm_create_errhandler(handler, &own);
	MPI_Comm_set_errhandler(comm, own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, own); /* MPICH 4.0 calls that one */
	for (int mode = 0; mode < MODES; mode++) {
		if (mode == CONTD_MODE_NEW_TASK)
			continue;
		check_begin(mode_name[mode]);
		for (int count = 1; count <= MANY; count++)
			for (int late = 0; late < 2; late++) {
				truncated(mode, count, late, (MPI_Request)0);
				if (!waits(mode))
					truncated(mode, count, late, cr);
			}
	}
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&own);
	check_begin("an error of issue()");
	for (int mode = 0; mode < MODES; mode++) {
		struct contd_mode_attr how = {.size = sizeof(how), .mode = mode, .cont_req = mode_cr(mode, cr)};
		struct one x;

		if (mode == CONTD_MODE_NEW_TASK)
			continue;
		one_prepare(&x, 1, false);
		x.requests[0] = MPI_REQUEST_NULL;
		x.op.issue = issue_nothing;
		CHECK_EQ(contd_mpi_op_run(&x.op, &how), waits(mode) ? MPI_ERR_TAG : MPI_SUCCESS);
		CHECK_EQ(x.done, 1);
		CHECK_EQ(x.status, MPI_ERR_TAG);
		CHECK_EQ(contd_group_outstanding(contd_mpi_group(cr)), 0);
	}
	CHECK_OK(MPI_Request_free(&cr));
}

/* The MPIX interface's own rules: what fails does not call done() unless that is asked for; the CR is told. */
static void mpix_fails(int count, bool late, enum kind kind, int flags)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_MPIX, .flags = flags};
	bool invoked = flags & (MPIX_CONT_INVOKE_FAILED | MPIX_CONT_REQBUF_VOLATILE);
	MPI_Request sends[MANY], cr = cr_of_kind(kind);
	int two[2] = {1, 2}, number = 2, class = -1, rc;
	void *failed[2] = {NULL, NULL};
	struct one x;

	if (late && check_size == 1)
		return; /* as above */
	how.cont_req = cr;
	one_prepare(&x, count, false);
	if (revised(kind))
		CHECK_OK(MPI_Start(&cr));
	told = told_class = 0;
	meet();
	for (int i = 0; i < count && !late; i++)
		MPI_Isend(two, 1 + (i == count - 1), MPI_INT, partner, x.tag + i, comm, &sends[i]);
	if (!late)
		one_arrived(&x);
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	CHECK(x.requests[0] == MPI_REQUEST_NULL);
	if (late || flags & MPIX_CONT_DEFER_COMPLETE)
		CHECK_EQ(x.done, 0);
	meet();
	for (int i = 0; i < count && late; i++)
		MPI_Isend(two, 1 + (i == count - 1), MPI_INT, partner, x.tag + i, comm, &sends[i]);
	if (has_cr(kind)) {
		rc = MPI_Wait(&cr, MPI_STATUS_IGNORE);
		MPI_Error_class(rc, &class);
		CHECK_EQ(class, invoked ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
		CHECK_OK(MPIX_Continue_get_failed(cr, &number, failed));
		CHECK_EQ(number, invoked ? 0 : 1);
		CHECK(failed[0] == (invoked ? NULL : (void *)&x.op));
		number = 2;
		CHECK_OK(MPIX_Continue_get_failed(cr, &number, failed));
		CHECK_EQ(number, 0);
		if (revised(kind))
			CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&cr));
	} else {
		while (!(invoked ? x.done : told))
			contd_poll(0);
		contd_poll(0);
	}
	CHECK_EQ(x.done, invoked);
	CHECK_EQ(told, 1);
	if (invoked)
		CHECK_EQ(x.status, MPI_ERR_TRUNCATE);
	for (int i = 0; i < count - 1; i++)
		CHECK_EQ(x.statuses[i].MPI_ERROR, MPI_SUCCESS);
	MPI_Error_class(x.statuses[count - 1].MPI_ERROR, &class);
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
}

static void mpix_rules(void)
{
	static const enum kind kinds[] = {NONE, PLAIN, REVISED, REVISED_POLL_ONLY};
	static const int flags[] = {0, MPIX_CONT_INVOKE_FAILED, MPIX_CONT_REQBUF_VOLATILE, MPIX_CONT_DEFER_COMPLETE,
				    MPIX_CONT_DEFER_COMPLETE | MPIX_CONT_INVOKE_FAILED};
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_MPIX, .flags = MPIX_CONT_DEFER_COMPLETE};
	MPI_Errhandler own;
	struct one x;

	MPI_Comm_create_errhandler(handler, &own);
	MPI_Comm_set_errhandler(comm, own);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, own); /* MPICH 4.0 calls that one */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int n = 0; n < 5 * 4 * 2 * 2; n++) {
		check_begin(kind_name[kinds[n / 5 % 4]]);
		mpix_fails(1 + n / 40, n / 20 % 2, kinds[n / 5 % 4], flags[n % 5]);
	}
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&own);
	check_begin("not in the call");
	for (int count = 0; count <= MANY; count++) {
		one_prepare(&x, count, false);
		one_send(&x);
		one_arrived(&x);
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		CHECK_EQ(x.done, 0);
		poll_until(&x.done, 1);
		one_check(&x);
	}
}

/* ------------------------------------------------------------------------------------------------------- chains --- */

struct link {
	struct contd_mpi_op op;
	struct contd_mode_attr how;
	MPI_Request request;
	int out, in, left, pending, depth, deepest;
	char *low, *high;
};

/* Complete at once, or completed by a send that follows: in done() itself, while it runs. */
static int link_issue(struct contd_mpi_op *op)
{
	struct link *l = op->data;
	MPI_Request send;

	l->out = l->left;
	if (l->pending) {
		MPI_Irecv(&l->in, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &l->request);
		return MPI_SUCCESS;
	}
	MPI_Isend(&l->out, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &send);
	MPI_Irecv(&l->in, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &l->request);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	return MPI_SUCCESS;
}

static void link_run(struct link *l)
{
	CHECK_OK(contd_mpi_op_run(&l->op, &l->how));
	if (l->pending)
		MPI_Send(&l->out, 1, MPI_INT, 0, 9, MPI_COMM_SELF);
}

static void link_done(struct contd_mpi_op *op, int status)
{
	struct link *l = op->data;
	char *here = __builtin_frame_address(0);

	CHECK_OK(status);
	CHECK_EQ(l->in, l->left);
	l->low = !l->low || here < l->low ? here : l->low;
	l->high = here > l->high ? here : l->high;
	if (++l->depth > l->deepest)
		l->deepest = l->depth;
	/* Where it is not constant: told, and not by a crash. */
	if (l->deepest > 100)
		l->left = 1;
	if (--l->left)
		link_run(l);
	l->depth--;
}

static void link_begin(struct link *l, MPI_Request cr, int mode, struct contd_executor *completions, bool pending)
{
	memset(l, 0, sizeof(*l));
	l->how = (struct contd_mode_attr){.size = sizeof(l->how),
					  .mode = mode,
					  .cont_req = cr,
					  .completions = completions,
					  .flags = mode_flags(mode)};
	l->op = (struct contd_mpi_op){.count = 1,
				      .requests = &l->request,
				      .statuses = MPI_STATUSES_IGNORE,
				      .issue = link_issue,
				      .done = link_done,
				      .data = l};
	l->left = CHAIN;
	l->pending = pending;
	link_run(l);
}

static void link_end(struct link *l)
{
	CHECK_EQ(l->left, 0);
	CHECK(l->high - l->low < STACK_MOST);
	CHECK_EQ(l->deepest, 1); /* never one inside another */
}

/* Resident, from proc(5). */
static long kilobytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%*s %ld", &pages) == 1);
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void chains(void)
{
	MPI_Request cr = check_plain_cr();
	struct link l;

	for (int pending = 0; pending < 2; pending++) {
		long before = kilobytes();

		check_begin("a chain");
		link_begin(&l, (MPI_Request)0, CONTD_MODE_CONTINUATION, NULL, pending);
		while (l.left)
			contd_poll(0);
		link_end(&l);
#ifdef __SANITIZE_ADDRESS__
		before = kilobytes(); /* which keeps what was freed */
#endif
		CHECK(kilobytes() - before < 16384); /* requests go back to MPI */
		check_begin("a chain of a CR's");
		link_begin(&l, cr, CONTD_MODE_CONTINUATION, NULL, pending);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		link_end(&l);
		check_begin("a chain by MPIX_Continue");
		link_begin(&l, cr, CONTD_MODE_MPIX, NULL, pending);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		link_end(&l);
	}
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------------------- what done() may do --- */

struct short_lived {
	struct contd_mpi_op op;
	struct contd_mode_attr how;
	MPI_Request request, cr;
	MPI_Status status;
	int in, tag;
	int *done;
};

static int short_lived_issue(struct contd_mpi_op *op)
{
	struct short_lived *s = op->data;

	return MPI_Irecv(&s->in, 1, MPI_INT, partner, s->tag, comm, &s->request);
}

/* The memory is the program's: contd does not read it any more. */
static void short_lived_done(struct contd_mpi_op *op, int status)
{
	struct short_lived *s = op->data;

	CHECK_OK(status);
	CHECK_EQ(s->in, s->tag);
	CHECK_EQ(s->status.MPI_TAG, s->tag);
	CHECK_EQ(s->status.MPI_ERROR, MPI_SUCCESS);
	++*s->done;
	if (s->cr != (MPI_Request)0 && s->cr != MPI_REQUEST_NULL) {
		CHECK_OK(MPI_Request_free(&s->cr));
		CHECK(s->cr == MPI_REQUEST_NULL);
	}
	memset(s, 0xee, sizeof(*s));
	__asm__ volatile("" : : "r"(s) : "memory"); /* the compiler must not know that it is not read again */
	free(s);
}

static void frees(int mode, enum kind kind, bool at_once, struct contd_executor *requests,
		  struct contd_executor *completions, void (*drive)(void))
{
	struct short_lived *s = calloc(1, sizeof(*s));
	int done = 0, out = tags;
	MPI_Request send;

	s->tag = tags++;
	s->cr = cr_of_kind(kind);
	s->done = &done;
	s->how = (struct contd_mode_attr){.size = sizeof(s->how),
					  .mode = mode,
					  .cont_req = s->cr,
					  .requests = requests,
					  .completions = completions,
					  .flags = mode_flags(mode)};
	s->op = (struct contd_mpi_op){.count = 1,
				      .requests = &s->request,
				      .statuses = &s->status,
				      .issue = short_lived_issue,
				      .done = short_lived_done,
				      .data = s};
	if (revised(kind))
		CHECK_OK(MPI_Start(&s->cr));
	meet();
	if (at_once) {
		struct one here = {.tag = out, .count = 1};

		MPI_Isend(&out, 1, MPI_INT, partner, out, comm, &send);
		one_arrived(&here);
	}
	CHECK_OK(contd_mpi_op_run(&s->op, &s->how));
	if (!at_once) {
		meet();
		MPI_Isend(&out, 1, MPI_INT, partner, out, comm, &send);
	}
	while (!done)
		drive();
	MPI_Wait(&send, MPI_STATUS_IGNORE);
}

static void poll_once(void)
{
	contd_poll(0);
}

static void frees_all(void)
{
	check_begin("done() frees its operation and its CR");
	for (int at_once = 0; at_once < 2; at_once++)
		for (enum kind kind = NONE; kind < KINDS; kind++) {
			if (kind == POLL_ONLY || kind == REVISED_POLL_ONLY)
				continue; /* those are not run by contd_poll() */
			check_begin(kind_name[kind]);
			frees(CONTD_MODE_CONTINUATION, kind, at_once, NULL, NULL, poll_once);
			frees(CONTD_MODE_MPIX, kind, at_once, NULL, NULL, poll_once);
		}
}

/* ------------------------------------------------------------------------------------------------------ nesting --- */

static struct nested {
	struct one outer, inner[4];
	MPI_Request cr, cr_inner;
	int how;
} nest;

enum { POLLS, WAITS_CR, TESTS_CR, WAITS_PLAIN, WAITS_OWN, TESTS_OWN, WAITALL_CR, GROUP_WAITS, NESTS };
static const char *const nest_name[NESTS] = {"polls",
					     "waits for another CR",
					     "tests another CR",
					     "waits for a request",
					     "waits for its own CR",
					     "tests its own CR",
					     "waits for both",
					     "waits for a group"};

static void nest_done(struct contd_mpi_op *op, int status)
{
	int flag = 0, value = -1;
	MPI_Request r, both[2];

	one_done(op, status);
	switch (nest.how) {
	case POLLS:
		for (int i = 0; i < 4; i++)
			poll_until(&nest.inner[i].done, 1);
		break;
	case WAITS_CR:
		CHECK_OK(MPI_Wait(&nest.cr_inner, MPI_STATUS_IGNORE));
		break;
	case TESTS_CR:
		while (!flag)
			CHECK_OK(MPI_Test(&nest.cr_inner, &flag, MPI_STATUS_IGNORE));
		break;
	case WAITS_PLAIN:
		MPI_Irecv(&value, 1, MPI_INT, 0, 8, MPI_COMM_SELF, &r);
		MPI_Send(&tags, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK_EQ(value, tags);
		return;
	case WAITS_OWN:
		CHECK_EQ(MPI_Wait(&nest.cr, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
		return;
	case TESTS_OWN:
		for (int i = 0; i < 10; i++) {
			flag = 1;
			CHECK_OK(MPI_Test(&nest.cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
		}
		return;
	case WAITALL_CR:
		MPI_Irecv(&value, 1, MPI_INT, 0, 8, MPI_COMM_SELF, &both[0]);
		both[1] = nest.cr_inner;
		MPI_Send(&tags, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
		CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
		CHECK_EQ(value, tags);
		break;
	case GROUP_WAITS:
		CHECK_EQ(contd_group_wait(contd_mpi_group(nest.cr_inner), -1), 0);
		break;
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(nest.inner[i].done, 1);
}

/*
 * All of them arrive at the same time: the outer one is complete before the others (where: 0), after two (1), after all
 * of them (2), and is of one request or of two, which go another way.
 */
static void nested(int how, int where, int count, bool by_cr)
{
	struct contd_mode_attr outer = {.size = sizeof(outer), .mode = CONTD_MODE_CONTINUATION, .cont_req = nest.cr};
	struct contd_mode_attr inner = {
		.size = sizeof(inner), .mode = CONTD_MODE_CONTINUATION, .cont_req = nest.cr_inner};

	check_begin(nest_name[how]);
	nest.how = how;
	one_prepare(&nest.outer, count, false);
	nest.outer.op.done = nest_done;
	CHECK_OK(contd_mpi_op_run(&nest.outer.op, &outer));
	for (int i = 0; i < 4; i++) {
		one_prepare(&nest.inner[i], 1, false);
		CHECK_OK(contd_mpi_op_run(&nest.inner[i].op, &inner));
	}
	meet();
	for (int i = 0; i <= 4; i++) {
		if (i == 2 * where)
			one_send(&nest.outer);
		if (i < 4)
			one_send(&nest.inner[i]);
	}
	usleep(2000); /* so that one look finds them all, mostly */
	if (by_cr)
		CHECK_OK(MPI_Wait(&nest.cr, MPI_STATUS_IGNORE));
	poll_until(&nest.outer.done, 1);
	for (int i = 0; i < 4; i++)
		poll_until(&nest.inner[i].done, 1);
	one_check(&nest.outer);
	for (int i = 0; i < 4; i++)
		one_check(&nest.inner[i]);
	CHECK_EQ(contd_group_outstanding(contd_mpi_group(nest.cr)), 0);
	CHECK_EQ(contd_group_outstanding(contd_mpi_group(nest.cr_inner)), 0);
}

static void nesting(void)
{
	nest.cr = check_plain_cr();
	nest.cr_inner = check_plain_cr();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int n = 0; n < NESTS * 3 * 2 * 2 * 2; n++)
		nested(n % NESTS, n / NESTS % 3, 1 + n / NESTS / 3 % 2, n / NESTS / 6 % 2);
	CHECK_OK(MPI_Request_free(&nest.cr));
	CHECK_OK(MPI_Request_free(&nest.cr_inner));
}

/* ------------------------------------------------------------------------------------------------ turn by turn --- */

#define BATCH 10

static struct {
	struct one first[BATCH], second[BATCH];
	MPI_Request cr, cr_second;
	struct contd_mode_attr how, how_second;
} turn;

static void turn_done(struct contd_mpi_op *op, int status)
{
	ptrdiff_t i = (struct one *)op->data - turn.first;

	one_done(op, status);
	CHECK_OK(contd_mpi_op_run(&turn.second[i].op, &turn.how_second));
}

/* Callbacks of one CR that run together register with another one, or with the same: each counts where it belongs. */
static void turns(bool same)
{
	check_begin("callbacks that register");
	turn.cr = check_plain_cr();
	turn.cr_second = same ? turn.cr : check_plain_cr();
	turn.how = (struct contd_mode_attr){
		.size = sizeof(turn.how), .mode = CONTD_MODE_CONTINUATION, .cont_req = turn.cr};
	turn.how_second = turn.how;
	turn.how_second.cont_req = turn.cr_second;
	for (int i = 0; i < BATCH; i++) {
		one_prepare(&turn.first[i], 1, false);
		one_prepare(&turn.second[i], 1, false);
		turn.first[i].op.done = turn_done;
		CHECK_OK(contd_mpi_op_run(&turn.first[i].op, &turn.how));
	}
	meet();
	for (int i = 0; i < BATCH; i++)
		one_send(&turn.first[i]);
	usleep(2000); /* so that one look finds them all, mostly */
	for (int i = 0; i < BATCH; i++)
		poll_until(&turn.first[i].done, 1);
	CHECK_EQ(contd_group_outstanding(contd_mpi_group(turn.cr_second)), BATCH);
	if (!same)
		CHECK_EQ(contd_group_outstanding(contd_mpi_group(turn.cr)), 0);
	meet();
	for (int i = 0; i < BATCH; i++)
		one_send(&turn.second[i]);
	CHECK_OK(MPI_Wait(&turn.cr_second, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&turn.cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < BATCH; i++) {
		one_check(&turn.first[i]);
		one_check(&turn.second[i]);
	}
	CHECK_OK(MPI_Request_free(&turn.cr));
	if (!same)
		CHECK_OK(MPI_Request_free(&turn.cr_second));
	meet();
}

static struct one awaited;

static int endless_issue(struct contd_mpi_op *op)
{
	return MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm, op->requests);
}

/* Complete at once, again and again, without progress: until something else is done. */
static void endless_done(struct contd_mpi_op *op, int status)
{
	struct one *x = op->data;

	CHECK_OK(status);
	if (awaited.done)
		x->done++;
	else
		CHECK_OK(contd_mpi_op_run(op, x->op.contd.how));
}

static void alone_done(struct contd_mpi_op *op, int status)
{
	struct one *x = op->data;

	CHECK_OK(status);
	x->done++;
	if (!check_native()) /* no short way: the call that has no memory calls done() itself */
		return;
	CHECK(contd__in_continuation_sig());
	CHECK_EQ(contd_group_outstanding(x->group), CHUNK_FIRST - TABLE_RESERVE + 1);
}

/* There is no memory for one more slot of the CR. An operation that is complete at once needs none: its done() is a
 * continuation as any other. */
static void without_memory(void)
{
	enum { PENDING = CHUNK_FIRST - TABLE_RESERVE };
	MPI_Request cr = check_plain_cr(), pending[PENDING];
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_CONTINUATION, .cont_req = cr};
	static int in[PENDING], out;
	struct seen seen[PENDING] = {0};
	struct one x;

	check_begin("no memory for another slot");
	for (int i = 0; i < PENDING; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &pending[i]);
		CHECK_OK(MPI_Continue(&pending[i], see, &seen[i], MPI_STATUS_IGNORE, cr));
	}
	one_prepare(&x, 1, true);
	x.op.issue = endless_issue;
	x.op.done = alone_done;
	x.group = contd_mpi_group(cr);
	contd__alloc_budget = 0;
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	contd__alloc_budget = -1;
	CHECK_EQ(x.done, 1);
	for (int i = 0; i < PENDING; i++)
		MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static void others_have_their_turn(MPI_Request cr)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_CONTINUATION, .cont_req = cr};
	struct one x;

	check_begin("a chain that does not end by itself");
	one_prepare(&awaited, 1, false);
	CHECK_OK(contd_mpi_op_run(&awaited.op, &how));
	meet();
	if (check_size > 1) /* or it is complete in the call */
		one_send(&awaited);
	one_prepare(&x, 1, true);
	x.op.issue = endless_issue;
	x.op.done = endless_done;
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	if (check_size == 1) {
		CHECK_EQ(x.done, 0); /* it returns nevertheless */
		one_send(&awaited);
	}
	if (cr != (MPI_Request)0)
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	poll_until(&x.done, 1);
	one_check(&awaited);
	meet();
}

static void turn_by_turn(void)
{
	MPI_Request cr = check_plain_cr();

	for (int n = 0; n < 10; n++)
		turns(n % 2);
	others_have_their_turn((MPI_Request)0);
	others_have_their_turn(cr);
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------------------- CRs in MPI's calls --- */

#define SEVERAL 10

static struct one several[SEVERAL];

static void begin_several(MPI_Request cr)
{
	static struct contd_mode_attr how; /* outlives the operations */

	how = (struct contd_mode_attr){.size = sizeof(how), .mode = CONTD_MODE_CONTINUATION, .cont_req = cr};
	for (int i = 0; i < SEVERAL; i++) {
		one_prepare(&several[i], 1, false);
		CHECK_OK(contd_mpi_op_run(&several[i].op, &how));
	}
	meet();
}

static int several_done(void)
{
	int n = 0;

	for (int i = 0; i < SEVERAL; i++)
		n += several[i].done;
	return n;
}

static void end_several(void)
{
	while (several_done() < SEVERAL)
		contd_poll(0);
	for (int i = 0; i < SEVERAL; i++)
		one_check(&several[i]);
	meet();
}

/* All messages are here, and what they complete is ready, but for what is only ready in tests. */
static void send_several(void)
{
	for (int i = 0; i < SEVERAL; i++)
		one_send(&several[i]);
	meet();
	usleep(1000);
}

static void crs(void)
{
	MPI_Request cr, r[3];
	int flag, index, outcount, indices[3], value = -1, out = 3;
	struct contd_group *group;

	check_begin("tests of a CR");
	cr = check_plain_cr();
	group = contd_mpi_group(cr);
	begin_several(cr);
	CHECK_EQ(contd_group_outstanding(group), SEVERAL);
	for (int i = 0; i < SEVERAL; i++) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		CHECK_EQ(several_done(), i);
		CHECK_EQ(contd_group_outstanding(group), SEVERAL - i);
		meet();
		one_send(&several[i]);
		while (several_done() == i) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag || several_done() == SEVERAL);
		}
		meet();
	}
	flag = 0;
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	end_several();

	check_begin("a CR among others");
	begin_several(cr);
	MPI_Irecv(&value, 1, MPI_INT, partner, 0, comm, &r[0]);
	r[1] = cr;
	r[2] = MPI_REQUEST_NULL;
	CHECK_OK(MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testsome(3, r, &outcount, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, 0);
	meet();
	send_several();
	CHECK_OK(MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE));
	CHECK_EQ(index, 1);
	CHECK_EQ(several_done(), SEVERAL);
	meet();
	MPI_Send(&out, 1, MPI_INT, partner, 0, comm);
	CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
	CHECK_EQ(value, 3);
	end_several();

	check_begin("a CR that is freed while operations are outstanding");
	begin_several(cr);
	CHECK_OK(MPI_Request_free(&cr));
	CHECK(cr == MPI_REQUEST_NULL);
	send_several();
	end_several();

	check_begin("a CR that waits for a CR");
	{
		MPI_Request waited, outer = check_plain_cr();
		struct seen seen = {0};

		cr = check_plain_cr();
		begin_several(cr);
		waited = cr;
		CHECK_OK(MPI_Continue(&waited, see, &seen, MPI_STATUS_IGNORE, outer));
		send_several();
		CHECK_OK(MPI_Wait(&outer, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_EQ(several_done(), SEVERAL);
		CHECK_OK(MPI_Request_free(&outer));
		end_several();
		CHECK_OK(MPI_Request_free(&cr));
	}

	check_begin("max_poll");
	cr = check_cr("mpi_continue_max_poll", "3", NULL, NULL);
	begin_several(cr);
	send_several();
	for (int before = several_done(); before < SEVERAL;) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(several_done() <= before + 3);
		CHECK(!flag || several_done() == SEVERAL);
		before = several_done();
	}
	end_several();
	begin_several(cr);
	send_several();
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE)); /* max_poll is for tests */
	end_several();
	CHECK_OK(MPI_Request_free(&cr));

	check_begin("poll-only and max_poll");
	cr = check_cr("mpi_continue_max_poll", "1", "mpi_continue_poll_only", "true");
	begin_several(cr);
	send_several();
	contd_poll(0);
	CHECK_EQ(several_done(), 0);
	for (int before = 0; before < SEVERAL; before = several_done()) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(several_done() <= before + 1);
	}
	end_several();
	begin_several(cr);
	send_several();
	CHECK_OK(MPI_Request_free(&cr)); /* as if it were not, then */
	end_several();
}

/* A revised CR that is not started: nothing runs. */
static void inactive(void)
{
	MPI_Request cr;

	check_begin("an inactive CR");
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	begin_several(cr);
	send_several();
	for (int i = 0; i < 10; i++)
		contd_poll(0);
	CHECK_EQ(several_done(), 0);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(several_done(), SEVERAL);
	end_several();
	CHECK_OK(MPI_Request_free(&cr));
}

/* ---------------------------------------------------------------------------------------------------- executors --- */

static struct {
	struct contd_work *work[1024];
	int priority[1024];
	int count, refuse, submitted;
	bool at_once;
} queue;

static int queue_submit(void *pool, struct contd_work *work, int priority)
{
	(void)pool;
	queue.submitted++;
	if (queue.refuse) {
		queue.refuse -= queue.refuse > 0;
		return -EAGAIN;
	}
	CHECK_EQ(contd_work_priority(work), priority);
	if (queue.at_once) {
		contd_work_run(work);
		return 0;
	}
	queue.priority[queue.count] = priority;
	queue.work[queue.count++] = work;
	return 0;
}

static void queue_run(void)
{
	while (queue.count)
		contd_work_run(queue.work[--queue.count]);
}

static struct contd_executor *pull, *push;

static void drive_all(void)
{
	contd_poll(0);
	contd_executor_run(pull, 0, 0);
	queue_run();
}

static void drive_yield(void *task)
{
	(void)task;
	drive_all();
}

static void drive_suspended(void *task)
{
	struct waiting *w = task;

	w->suspends++;
	while (!w->resumes)
		drive_all();
}

static void transferred(int mode, enum kind kind, struct contd_executor *requests, struct contd_executor *completions,
			int count, bool at_once)
{
	struct contd_mode_attr how = {.size = sizeof(how),
				      .mode = mode,
				      .priority = count % 3 - 1,
				      .requests = requests,
				      .completions = completions,
				      .flags = mode_flags(mode)};
	MPI_Request cr = waits(mode) ? (MPI_Request)0 : cr_of_kind(kind);
	struct one x;
	struct waiting w = {.x = &x};
	int flag;

	one_prepare(&x, count, false);
	x.op.task = &w;
	if (mode == CONTD_MODE_YIELD_WHILE)
		how.yield = drive_yield;
	if (mode == CONTD_MODE_SUSPEND) {
		how.suspend = drive_suspended;
		how.resume = resume;
	}
	how.cont_req = cr;
	if (!waits(mode) && revised(kind))
		CHECK_OK(MPI_Start(&cr));
	meet();
	if (at_once || waits(mode)) {
		one_send(&x);
		if (at_once)
			one_arrived(&x);
	}
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	if (requests == pull && !waits(mode)) {
		CHECK_EQ(x.issued, 0);
		CHECK_EQ(contd_executor_run(pull, 1, 0), 1);
	}
	if (requests == push && !waits(mode) && !queue.at_once) {
		CHECK_EQ(x.issued, 0);
		CHECK_EQ(queue.count, 1);
		queue_run();
	}
	CHECK_EQ(x.issued, 1);
	if (!at_once && !waits(mode)) {
		CHECK_EQ(x.done, 0);
		if (cr != (MPI_Request)0)
			CHECK_EQ(contd_group_outstanding(contd_mpi_group(cr)), 1);
		meet();
		one_send(&x);
	}
	if (completions && kind == POLL_ONLY && !waits(mode)) {
		/* The continuation is to run in tests of the CR only, and so it becomes a task there only. */
		meet();
		for (int i = 0; i < 10; i++)
			drive_all();
		CHECK_EQ(x.done, 0);
	}
	if (completions == pull && cr != (MPI_Request)0 && !requests) {
		/* It is outstanding until the task has run. */
		CHECK_EQ(x.done, 0);
		for (int i = 0; i < 10; i++) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
		}
		CHECK_EQ(x.done, 0);
	}
	while (!x.done) {
		if (cr != (MPI_Request)0)
			MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
		drive_all();
	}
	one_check(&x);
	if (cr != (MPI_Request)0) {
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(contd_group_outstanding(contd_mpi_group(cr)), 0);
		CHECK_OK(MPI_Request_free(&cr));
	}
	CHECK_EQ(x.done, 1);
}

static void executors(void)
{
	static const enum kind kinds[] = {NONE, PLAIN, POLL_ONLY, ENQUEUES, LIMITED, REVISED};
	struct contd_executor *const places[] = {NULL, pull, push};

	for (int at_once = 0; at_once < 2; at_once++) {
		queue.at_once = at_once; /* a pool that runs what it is given in submit() */
		for (int n = 0; n < MODES * 9 * 4; n++) {
			int mode = n % MODES, count = 1 + n / MODES / 9 % 2;
			struct contd_executor *requests = places[n / MODES % 3],
					      *completions = places[n / MODES / 3 % 3];

			if (!requests && !completions)
				continue;
			if (mode == CONTD_MODE_NEW_TASK && !completions)
				continue;
			for (unsigned k = 0; k < (waits(mode) ? 1 : sizeof(kinds) / sizeof(kinds[0])); k++) {
				check_begin(mode_name[mode]);
				transferred(mode, kinds[k], requests, completions, count, n / MODES / 18);
			}
		}
	}
	queue.at_once = false;
}

/* done() has freed it when contd_mpi_op_run() is about to return. */
static void executors_free(void)
{
	check_begin("done() frees its operation, transferred");
	for (int n = 0; n < 2 * 2 * 3 * 3; n++) {
		struct contd_executor *const places[] = {NULL, pull, push};
		struct contd_executor *requests = places[n / 4 % 3], *completions = places[n / 12];

		queue.at_once = n & 2;
		frees(CONTD_MODE_CONTINUATION, n & 1 ? PLAIN : NONE, true, requests, completions, drive_all);
		frees(CONTD_MODE_CONTINUATION, n & 1 ? PLAIN : NONE, false, requests, completions, drive_all);
		frees(CONTD_MODE_MPIX, n & 1 ? PLAIN : NONE, true, requests, completions, drive_all);
		if (completions)
			frees(CONTD_MODE_NEW_TASK, n & 1 ? PLAIN : NONE, true, requests, completions, drive_all);
	}
	queue.at_once = false;
}

/* The pool wants nothing: it is done here; or of requests: said. */
static void executors_refuse(void)
{
	check_begin("an executor that refuses");
	for (int n = 0; n < 2 * 2 * 3 * 2; n++) {
		int mode = n / 4 % 3 + CONTD_MODE_NEW_TASK, count = 1 + n / 12;
		MPI_Request cr = n & 1 && mode != CONTD_MODE_MPIX ? check_plain_cr() : (MPI_Request)0;
		struct contd_mode_attr how = {.size = sizeof(how),
					      .mode = mode,
					      .cont_req = cr,
					      .completions = push,
					      .flags = mode_flags(mode)};
		struct one x;

		one_prepare(&x, count, false);
		meet();
		if (n & 2) {
			one_send(&x);
			one_arrived(&x);
		}
		queue.refuse = -1;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		if (!(n & 2)) {
			meet();
			one_send(&x);
		}
		poll_until(&x.done, 1);
		one_check(&x);
		CHECK_EQ(queue.count, 0);
		queue.refuse = 0;
		if (cr != (MPI_Request)0) {
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Request_free(&cr));
		}
		/* Of requests. */
		one_prepare(&x, count, false);
		how.cont_req = (MPI_Request)0;
		how.requests = push;
		queue.refuse = -1;
		CHECK_EQ(contd_mpi_op_run(&x.op, &how), MPI_ERR_OTHER);
		queue.refuse = 0;
		CHECK_EQ(x.issued, 0);
		CHECK_EQ(x.done, 0);
	}
}

static int order[8], ordered;

static void order_done(struct contd_mpi_op *op, int status)
{
	struct one *x = op->data;

	CHECK_OK(status);
	order[ordered++] = x->op.contd.how->priority;
	x->done++;
}

/* Tasks of high priority before those of normal ones, before low ones: but now and then low ones begin. */
static void executors_order(void)
{
	struct contd_mode_attr how[6];
	struct one x[6];
	int in_order = 0;

	check_begin("priorities of tasks");
	for (int round = 0; round < 16; round++) {
		bool sorted = true;

		ordered = 0;
		meet();
		for (int i = 0; i < 6; i++) {
			how[i] = (struct contd_mode_attr){.size = sizeof(how[0]),
							  .mode = i < 3 ? CONTD_MODE_NEW_TASK : CONTD_MODE_CONTINUATION,
							  .priority = i % 3 - 1,
							  .completions = pull};
			one_prepare(&x[i], 1, true);
			x[i].op.done = order_done;
			if (round % 2) {
				one_send(&x[i]);
				one_arrived(&x[i]);
			}
			CHECK_OK(contd_mpi_op_run(&x[i].op, &how[i]));
		}
		if (round % 2 == 0) {
			meet();
			for (int i = 0; i < 6; i++)
				one_send(&x[i]);
			meet();
			usleep(1000);
		}
		for (int i = 0; i < 20; i++)
			contd_poll(0);
		CHECK_EQ(ordered, 0); /* they are the executor's */
		while (ordered < 6)
			contd_executor_run(pull, 0, 0);
		for (int i = 0; i < 6; i++)
			sorted &= order[i] == 1 - i / 2;
		in_order += sorted;
	}
	CHECK(in_order >= 8);
}

/* The CR's group has an executor: what is registered with the CR is run by that. */
static void group_of_executor(void)
{
	MPI_Request cr = check_plain_cr();
	int flag;

	check_begin("a CR whose group has an executor");
	CHECK_EQ(contd_group_set_executor(contd_mpi_group(cr), pull), 0);
	begin_several(cr);
	send_several();
	for (int i = 0; i < 10; i++) {
		contd_poll(0);
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
	}
	CHECK_EQ(several_done(), 0);
	while (several_done() < SEVERAL)
		CHECK(contd_executor_run(pull, 1, 0) >= 0);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	end_several();
	CHECK_EQ(contd_group_set_executor(contd_mpi_group(cr), NULL), 0);
	begin_several(cr);
	send_several();
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	end_several();
	CHECK_OK(MPI_Request_free(&cr));
}

/* When the program has given back all that names it: no other call of MPI comes in between. */
static void executor_of_freed_crs(void)
{
	check_begin("an executor that ends after its CRs");
	for (int n = 0; n < 2; n++) {
		MPI_Request cr = check_plain_cr();
		struct contd_executor *own;

		CHECK_EQ(contd_executor_create(NULL, &own), 0);
		CHECK_EQ(contd_group_set_executor(contd_mpi_group(cr), own), 0);
		begin_several(cr);
		send_several();
		if (n)
			CHECK_OK(MPI_Request_free(&cr));
		while (several_done() < SEVERAL) {
			contd_poll(0);
			CHECK(contd_executor_run(own, 1, 0) >= 0);
		}
		if (!n) {
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Request_free(&cr));
		}
		CHECK_EQ(contd_executor_drain(own), 0);
		CHECK_EQ(contd_executor_destroy(own), 0);
		end_several();
	}
}

static void executors_chains(void)
{
	struct link l;

	for (int n = 0; n < 8; n++) {
		struct contd_executor *completions = n & 4 ? push : pull;

		check_begin("a chain of tasks");
		queue.at_once = n & 2;
		if (!(n & 4) && n & 2)
			continue;
		link_begin(&l, (MPI_Request)0, CONTD_MODE_NEW_TASK, completions, n & 1);
		while (l.left)
			drive_all();
		link_end(&l);
	}
	queue.at_once = false;
}

/* ------------------------------------------------------------------------------------------------------ regions --- */

static volatile int reacted;

static void region_done(struct contd_mpi_op *op, int status)
{
	one_done(op, status);
	reacted++;
}

/* The thread computes, and is interrupted: with a CR and without, one request and several. */
static void regions(void)
{
	MPI_Request cr = check_plain_cr();

	check_begin("a compute region");
	CHECK_EQ(contd_thread_attach(NULL), 0);
	for (int n = 0; n < 8; n++) {
		struct contd_mode_attr how = {.size = sizeof(how),
					      .mode = n & 4 ? CONTD_MODE_MPIX : CONTD_MODE_CONTINUATION,
					      .cont_req = n & 1 ? cr : (MPI_Request)0,
					      .flags = n & 4 ? MPIX_CONT_INVOKE_FAILED : 0};
		struct one x;

		one_prepare(&x, n & 2 ? MANY : 1, false);
		x.op.done = region_done;
		reacted = 0;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		meet();
		one_send(&x);
		contd_compute_begin();
		while (!reacted)
			;
		contd_compute_end();
		one_check(&x);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	}
	CHECK_EQ(contd_thread_detach(), 0);
	CHECK_OK(MPI_Request_free(&cr));
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static struct one never[2];

/* No process sends to these: MPI_Finalize ends them, and done() is not called. */
static void left_over(void)
{
	static const struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_CONTINUATION};

	check_begin("left over at MPI_Finalize");
	for (int i = 0; i < 2; i++) {
		one_prepare(&never[i], 1, false);
		never[i].comm = MPI_COMM_WORLD;
		never[i].op.statuses = MPI_STATUSES_IGNORE;
		CHECK_OK(contd_mpi_op_run(&never[i].op, &how));
	}
}

/* -------------------------------------------------------------------------------- a callback waits for a task --- */

/*
 * A task sleeps until `message` has come, and then completes `event`. Another one tests its own request; in that a
 * callback runs which sends the message, and waits for what comes of it.
 */
struct sleeper {
	struct contd_mpi_op op;
	MPI_Request request;
	int resumed;
};

static struct sleeper first_task, second_task;
static struct contd_event awakes = CONTD_EVENT_INIT;
static struct contd_group *awake;

static void sleeper_resume(void *task)
{
	((struct sleeper *)task)->resumed++;
	if (task == &first_task)
		CHECK_EQ(contd_event_complete(&awakes, 0), 0);
}

static int sleeper_issue(struct contd_mpi_op *op)
{
	return MPI_Irecv(NULL, 0, MPI_INT, 0, op->task == &first_task ? 1 : 2, MPI_COMM_SELF, op->requests);
}

static void sleeper_suspend(void *task);

static void sleeper_run(struct sleeper *s)
{
	static const struct contd_mode_attr how = {
		.size = sizeof(how), .mode = CONTD_MODE_SUSPEND, .suspend = sleeper_suspend, .resume = sleeper_resume};

	*s = (struct sleeper){.op = {.count = 1,
				     .requests = &s->request,
				     .statuses = MPI_STATUSES_IGNORE,
				     .issue = sleeper_issue,
				     .task = s}};
	CHECK_OK(contd_mpi_op_run(&s->op, &how));
}

static void nothing(int status, void *data)
{
	(void)status, (void)data;
}

static void wake_and_wait(int status, void *data)
{
	(void)status, (void)data;
	CHECK_OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_SELF));
	CHECK_EQ(contd_group_wait(awake, 20000000000), 0);
}

/* Here the other tasks of this thread run. */
static void sleeper_suspend(void *task)
{
	struct sleeper *s = task;

	if (s == &first_task) {
		struct contd_group_attr attr = CONTD_GROUP_ATTR_INIT;
		struct contd_group *later;

		attr.flags = CONTD_ENQUEUE_COMPLETE;
		CHECK_EQ(contd_group_create(&attr, &later), 0);
		CHECK_EQ(contd_event_continue(0, NULL, wake_and_wait, NULL, later, NULL), 0);
		sleeper_run(&second_task);
		CHECK_EQ(contd_group_destroy(later), 0);
	} else {
		CHECK_EQ(first_task.resumed, 1);
		CHECK_OK(MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_SELF));
	}
	poll_until(&s->resumed, 1);
}

static void waits_for_a_task(void)
{
	struct contd_event *e = &awakes;

	check_begin("a callback waits for a task");
	CHECK_EQ(contd_group_create(NULL, &awake), 0);
	CHECK_EQ(contd_event_continue(1, &e, nothing, NULL, awake, NULL), 0);
	sleeper_run(&first_task);
	CHECK_EQ(contd_group_outstanding(awake), 0);
	CHECK_EQ(contd_group_destroy(awake), 0);
}

int main(int argc, char **argv)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .submit = queue_submit};
	struct contd_executor_attr queued = {.size = sizeof(queued), .ops = &ops, .pool = &queue};
	const char *level = getenv("MODES_LEVEL");
	int rc;

	check_init(&argc, &argv, level && strcmp(level, "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE);
	partner = check_size - 1 - check_rank;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	combinations();
	alone_it_waits();
	kinds_of_requests();
	errors();
	mpix_rules();
	chains();
	frees_all();
	nesting();
	turn_by_turn();
	without_memory();
	crs();
	inactive();
	CHECK_EQ(contd_executor_create(NULL, &pull), 0);
	CHECK_EQ(contd_executor_create(&queued, &push), 0);
	executors();
	executors_free();
	executors_refuse();
	executors_order();
	group_of_executor();
	executor_of_freed_crs();
	executors_chains();
	check_begin("executors end");
	CHECK_EQ(contd_executor_drain(pull), 0);
	CHECK_EQ(contd_executor_drain(push), 0);
	CHECK_EQ(contd_executor_destroy(pull), 0);
	CHECK_EQ(contd_executor_destroy(push), 0);
	regions();
	waits_for_a_task();
	MPI_Comm_free(&comm);
	left_over();
	rc = check_fini();
	if (never[0].done || never[1].done) {
		fprintf(stderr, "rank %d: done() was called by MPI_Finalize\n", check_rank);
		rc = 1;
	}
	return rc;
}
