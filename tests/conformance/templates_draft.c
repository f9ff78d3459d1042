/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* Section 9: templates of generalized requests, which come with contd's draft interface, and with no mpi-ext.h. */
#include <sched.h>

#include "conformance.h"

#define TAG 90

static void *const no_memory = NULL; /* so that compilers do not know of it */

/* --------------------------------------------------------------------------------------------------- operations --- */

/* An operation, and what its functions have seen. It ends by itself with the push number `ends_after`; 0: never. */
struct op {
	MPI_Request request;
	int ends_after;
	int start_rc, push_rc, complete_rc, cancel_rc;
	int count;         /* that complete_fn puts into the status */
	bool is_cancelled; /* and whether it was cancelled */
	atomic_int starts, pushes, completes, cancels;
	atomic_int inside; /* push_fn: how many are in there */
	bool overlapped;   /* two were; or one began after the end */
	bool marks_in_start;
	bool handle_in_start; /* start_fn found the handle in `request` */
	bool status_was_null, status_was_untouched;
	int cancel_complete;   /* what cancel_fn was told */
	atomic_int *ran_first; /* complete_fn: how many continuations had run */
	int ran_before;
	void (*in_push)(struct op *op);
};

/* The status before complete_fn. */
static bool is_untouched(const MPI_Status *status)
{
	return status->MPI_SOURCE == MPI_UNDEFINED && status->MPI_TAG == MPI_UNDEFINED && count_of(status) == 0 &&
	       !was_cancelled(status);
}

static int start_fn(void *extra_state)
{
	struct op *op = extra_state;
	int flag = 1;

	atomic_fetch_add(&op->starts, 1);
	op->handle_in_start = op->request != MPI_REQUEST_NULL;
	if (op->handle_in_start && !op->start_rc) {
		CHECK_OK(MPI_Request_get_status(op->request, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
	}
	if (op->marks_in_start)
		CHECK_OK(MPIX_Mark_request_complete(op->request));
	return op->start_rc;
}

static int push_fn(void *extra_state)
{
	struct op *op = extra_state;
	int n = atomic_fetch_add(&op->pushes, 1) + 1;

	if (atomic_fetch_add(&op->inside, 1) != 0 || op->completes)
		op->overlapped = true;
	if (op->in_push)
		op->in_push(op);
	if (op->ends_after && n == op->ends_after)
		CHECK_OK(MPIX_Mark_request_complete(op->request));
	if (op->ends_after && n > op->ends_after)
		op->overlapped = true;
	atomic_fetch_sub(&op->inside, 1);
	return op->push_rc;
}

static int complete_fn(void *extra_state, MPI_Status *status)
{
	struct op *op = extra_state;

	if (op->inside)
		op->overlapped = true;
	if (op->ran_first)
		op->ran_before = *op->ran_first;
	op->status_was_null = !status;
	if (status) {
		op->status_was_untouched = is_untouched(status);
		CHECK_OK(MPI_Status_set_elements(status, MPI_BYTE, op->count));
		CHECK_OK(MPI_Status_set_cancelled(status, op->is_cancelled));
	}
	atomic_fetch_add(&op->completes, 1);
	return op->complete_rc;
}

static int cancel_fn(void *extra_state, int complete)
{
	struct op *op = extra_state;

	atomic_fetch_add(&op->cancels, 1);
	op->cancel_complete = complete;
	return op->cancel_rc;
}

static MPIX_Gr template(void)
{
	MPIX_Gr gr = MPIX_GR_NULL;

	CHECK_OK(MPIX_Gr_init(start_fn, push_fn, complete_fn, cancel_fn, &gr));
	CHECK(gr != MPIX_GR_NULL);
	return gr;
}

static void begin(MPIX_Gr gr, struct op *op)
{
	op->request = MPI_REQUEST_NULL;
	CHECK_OK(MPIX_Gr_begin(gr, op, &op->request));
	CHECK(op->request != MPI_REQUEST_NULL);
	CHECK_EQ(op->starts, 1);
	CHECK_EQ(op->completes, 0);
}

static void mark(struct op *op)
{
	CHECK_OK(MPIX_Mark_request_complete(op->request));
}

/* It has gone through all its steps. */
static void is_over(const struct op *op)
{
	CHECK_EQ(op->starts, 1);
	CHECK_EQ(op->completes, 1);
	CHECK_EQ(op->inside, 0);
	CHECK(!op->overlapped);
	if (op->ends_after)
		CHECK_EQ(op->pushes, op->ends_after);
}

static void wait_over(struct op *op)
{
	CHECK_OK(MPI_Wait(&op->request, MPI_STATUS_IGNORE));
	CHECK(op->request == MPI_REQUEST_NULL);
	is_over(op);
}

static void free_template(MPIX_Gr *gr)
{
	CHECK_OK(MPIX_Gr_free(gr));
	CHECK(*gr == MPIX_GR_NULL);
}

/* ---------------------------------------------------------------------------------------- 9.1 starting, pushing --- */

CONFORMANCE_TEST(s9_1_prototypes, 1, single, "The calls of templates and their PMPIX names have their types")
{
	int (*init[])(MPIX_Gr_start_function *, MPIX_Gr_push_function *, MPIX_Gr_complete_function *,
		      MPIX_Gr_cancel_function *, MPIX_Gr *) = {MPIX_Gr_init, PMPIX_Gr_init};
	int (*to_begin[])(MPIX_Gr, void *, MPI_Request *) = {MPIX_Gr_begin, PMPIX_Gr_begin};
	int (*to_mark[])(MPI_Request) = {MPIX_Mark_request_complete, PMPIX_Mark_request_complete};
	int (*to_free[])(MPIX_Gr *) = {MPIX_Gr_free, PMPIX_Gr_free};
	int (*cancel[])(MPI_Request *) = {MPIX_Cancel, PMPIX_Cancel};

	for (int i = 0; i < 2; i++) {
		struct op op = {0};
		MPIX_Gr gr = MPIX_GR_NULL;

		CHECK_OK(init[i](start_fn, push_fn, complete_fn, cancel_fn, &gr));
		CHECK_OK(to_begin[i](gr, &op, &op.request));
		CHECK_OK(cancel[i](&op.request));
		CHECK_OK(to_mark[i](op.request));
		wait_over(&op);
		CHECK_EQ(op.cancels, 1);
		CHECK_OK(to_free[i](&gr));
		CHECK(gr == MPIX_GR_NULL);
	}
}

CONFORMANCE_TEST(s9_1_start_inside_begin, 1, single, "start_fn runs once, inside begin, with the handle in its place")
{
	MPIX_Gr gr = template();

	for (int i = 0; i < 10; i++) {
		struct op op = {.ends_after = 3};

		begin(gr, &op);
		CHECK(op.handle_in_start);
		wait_over(&op);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_many_of_one_template, 1, single,
		 "A template is started as often as wanted, each with its own state")
{
	enum { MANY = 3000 };
	static struct op ops[MANY];
	static MPI_Request requests[MANY];
	static MPI_Status statuses[MANY];
	MPIX_Gr gr = template();

	for (int i = 0; i < MANY; i++) {
		ops[i] = (struct op){.ends_after = 1 + i % 5, .count = i};
		begin(gr, &ops[i]);
		requests[i] = ops[i].request;
	}
	CHECK_OK(MPI_Waitall(MANY, requests, statuses));
	for (int i = 0; i < MANY; i++) {
		CHECK(requests[i] == MPI_REQUEST_NULL);
		is_over(&ops[i]);
		CHECK_EQ(count_of(&statuses[i]), i);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_pushed_by_its_own_wait, 1, single, "MPI_Wait on the request itself pushes it until it is marked")
{
	MPIX_Gr gr = template();
	struct op op = {.ends_after = 1000};

	begin(gr, &op);
	wait_over(&op);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_pushed_by_other_waits, 1, single, "MPI_Wait on another request pushes it, be it what it may")
{
	MPIX_Gr gr = template();
	struct op op = {.ends_after = 0}, other = {.ends_after = 500};

	begin(gr, &op);
	begin(gr, &other);
	wait_over(&other);
	CHECK(op.pushes > 0);
	mark(&op);
	wait_over(&op);
	free_template(&gr);
}

static MPI_Request sent;

/* Not blocking: the receive that this thread is in may not be posted yet. */
static void send_in_push(struct op *op)
{
	static char out;

	if (op->pushes == 100)
		CHECK_OK(MPI_Isend(&out, 1, MPI_BYTE, 0, TAG, self, &sent));
}

CONFORMANCE_TEST(s9_1_pushed_by_a_receive, 1, single,
		 "MPI_Wait and MPI_Recv of messages push; push_fn may send and receive")
{
	MPIX_Gr gr = template();

	for (int blocking = 0; blocking < 2; blocking++) {
		struct op op = {.ends_after = 150, .in_push = send_in_push};
		MPI_Request r = MPI_REQUEST_NULL;
		char in;

		begin(gr, &op);
		if (blocking) {
			CHECK_OK(MPI_Recv(&in, 1, MPI_BYTE, 0, TAG, self, MPI_STATUS_IGNORE));
		} else {
			r = pending(TAG);
			CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		}
		CHECK(op.pushes >= 100);
		CHECK_OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
		wait_over(&op);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_pushed_by_tests, 1, single, "Test, Request_get_status and other calls that make progress push")
{
	MPIX_Gr gr = template();
	MPI_Request r = pending(TAG);
	struct op op = {.ends_after = 20};
	int flag = 0;

	begin(gr, &op);
	for (int i = 0; i < 1000000 && op.pushes < 5; i++)
		CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	CHECK(op.pushes >= 5);
	for (int i = 0; i < 1000000 && op.pushes < 10; i++)
		CHECK_OK(MPI_Request_get_status(op.request, &flag, MPI_STATUS_IGNORE));
	CHECK(op.pushes >= 10);
	for (int i = 0; i < 1000000 && op.pushes < 15; i++)
		CHECK_OK(MPI_Iprobe(0, TAG + 1, self, &flag, MPI_STATUS_IGNORE));
	CHECK(op.pushes >= 15);
	for (int i = 0; i < 1000000 && op.pushes < 20; i++)
		CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
	wait_over(&op);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	free_template(&gr);
}

static MPI_Request tested;

static void test_inside(struct op *op)
{
	int flag = 1;

	CHECK_OK(MPI_Test(&tested, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(op->inside, 1);
}

CONFORMANCE_TEST(s9_1_not_inside_itself, 1, single, "push_fn does not run inside a push_fn, nor do continuations")
{
	MPIX_Gr gr = template();
	MPI_Request cr = new_cr(ENQUEUE_COMPLETE, "true", NULL), done = MPI_REQUEST_NULL;
	struct op ops[3] = {{.ends_after = 50, .in_push = test_inside},
			    {.ends_after = 60, .in_push = test_inside},
			    {.ends_after = 70}};
	struct seen seen = {0};

	tested = pending(TAG);
	for (int i = 0; i < 3; i++)
		begin(gr, &ops[i]);
	CHECK_OK(attach(&done, see, &seen, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 3; i++)
		wait_over(&ops[i]);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&tested, MPI_STATUS_IGNORE));
	free_cr(&cr);
	free_template(&gr);
}

#define THREADS 4
#define EACH 50

static MPIX_Gr shared_template;
static struct op of_threads[THREADS][EACH];

static void *thread_body(void *arg)
{
	struct op *ops = arg;

	for (int i = 0; i < EACH; i++) {
		ops[i] = (struct op){.ends_after = 20 + i, .count = i};
		begin(shared_template, &ops[i]);
	}
	for (int i = EACH; i-- > 0;) {
		MPI_Status status;

		CHECK_OK(MPI_Wait(&ops[i].request, &status));
		CHECK_EQ(count_of(&status), i);
		is_over(&ops[i]);
	}
	return NULL;
}

CONFORMANCE_TEST(s9_1_several_threads, 1, multiple, "Threads push each other's requests, each request on one at a time")
{
	pthread_t threads[THREADS];

	shared_template = template();
	for (int t = 0; t < THREADS; t++)
		pthread_create(&threads[t], NULL, thread_body, of_threads[t]);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	free_template(&shared_template);
}

CONFORMANCE_TEST(s9_1_without_push, 1, single, "push_fn and cancel_fn may be missing")
{
	struct op op = {0};
	MPIX_Gr gr;

	CHECK_OK(MPIX_Gr_init(start_fn, NULL, complete_fn, NULL, &gr));
	begin(gr, &op);
	drive_once();
	CHECK_OK(MPI_Cancel(&op.request));
	mark(&op);
	wait_over(&op);
	CHECK_EQ(op.pushes, 0);
	CHECK_EQ(op.cancels, 0);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_start_fails, 1, single, "Where start_fn fails, begin does, and there is no request")
{
	MPIX_Gr gr = template();

	for (int marks = 0; marks < 2; marks++) {
		struct op op = {.start_rc = MPI_ERR_IO, .marks_in_start = marks != 0};

		CHECK_CLASS(MPIX_Gr_begin(gr, &op, &op.request), MPI_ERR_IO);
		CHECK(op.request == (MPI_Request)0); /* as it was */
		drive_once();
		CHECK_EQ(op.starts, 1);
		CHECK_EQ(op.pushes, 0);
		CHECK_EQ(op.completes, 0);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_1_push_fails, 1, single, "Where push_fn fails, the request is over, and fails")
{
	MPIX_Gr gr = template();
	struct op op = {.push_rc = MPI_ERR_IO};
	MPI_Status status = {0};

	begin(gr, &op);
	CHECK_CLASS(MPI_Wait(&op.request, &status), MPI_ERR_IO);
	CHECK_EQ(op.pushes, 1);
	CHECK_EQ(op.completes, 1);
	CHECK(!op.overlapped);
	free_template(&gr);
}

/* -------------------------------------------------------------------------------------- 9.2 marking, completing --- */

CONFORMANCE_TEST(s9_2_mark_only_marks, 1, single, "A marked request is active, and complete_fn waits for Test or Wait")
{
	MPIX_Gr gr = template();
	struct op op = {.count = 17};
	MPI_Status status;
	int flag = 0;

	begin(gr, &op);
	mark(&op);
	for (int i = 0; i < 20; i++)
		drive_once();
	CHECK_EQ(op.completes, 0);
	CHECK(op.request != MPI_REQUEST_NULL);
	poison(&status, sizeof(status));
	CHECK_OK(MPI_Test(&op.request, &flag, &status));
	CHECK(flag);
	CHECK(op.request == MPI_REQUEST_NULL);
	CHECK_EQ(op.completes, 1);
	CHECK(op.status_was_untouched);
	CHECK_EQ(count_of(&status), 17);
	CHECK(!was_cancelled(&status));
	is_over(&op);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_2_mark_in_start, 1, single, "start_fn may mark the request")
{
	MPIX_Gr gr = template();
	struct op op = {.marks_in_start = true};

	begin(gr, &op);
	wait_over(&op);
	CHECK_EQ(op.pushes, 0);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_2_get_status_does_not_complete, 1, single,
		 "MPI_Request_get_status tells of the mark, and completes nothing")
{
	MPIX_Gr gr = template();
	struct op op = {.count = 5};
	MPI_Status status;
	int flag = 1, index = -1, found = -1;

	begin(gr, &op);
	CHECK_OK(MPI_Request_get_status(op.request, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	mark(&op);
	for (int i = 0; i < 5; i++) {
		poison(&status, sizeof(status));
		CHECK_OK(MPI_Request_get_status(op.request, &flag, i % 2 ? MPI_STATUS_IGNORE : &status));
		CHECK(flag);
		if (i % 2 == 0)
			CHECK(is_untouched(&status));
	}
	poison(&status, sizeof(status));
	CHECK_OK(MPIX_Request_get_status_all(1, &op.request, &flag, &status));
	CHECK(flag && is_untouched(&status));
	CHECK_OK(MPIX_Request_get_status_any(1, &op.request, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag && index == 0);
	CHECK_OK(MPIX_Request_get_status_some(1, &op.request, &found, &index, &status));
	CHECK_EQ(found, 1);
	CHECK_EQ(op.completes, 0);
	CHECK_OK(MPI_Wait(&op.request, &status));
	CHECK_EQ(count_of(&status), 5);
	is_over(&op);
	free_template(&gr);
}

/* The request among null ones; where it is completed its status has this count, and it is null. */
static bool complete_by(enum how how, MPI_Request *request, int count)
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, *request, MPI_REQUEST_NULL};
	int flag = 1, index = 1, found = 1, indices[3] = {1, 1, 1};
	MPI_Status statuses[3], *of = &statuses[0];

	switch (how) {
	case by_test:
		CHECK_OK(MPI_Test(&r[1], &flag, of));
		break;
	case by_testall:
		CHECK_OK(MPI_Testall(3, r, &flag, statuses));
		of = &statuses[1];
		break;
	case by_testany:
		CHECK_OK(MPI_Testany(3, r, &index, &flag, of));
		break;
	case by_testsome:
		CHECK_OK(MPI_Testsome(3, r, &found, indices, statuses));
		flag = found != 0;
		break;
	case by_wait:
		CHECK_OK(MPI_Wait(&r[1], of));
		break;
	case by_waitall:
		CHECK_OK(MPI_Waitall(3, r, statuses));
		of = &statuses[1];
		break;
	case by_waitany:
		CHECK_OK(MPI_Waitany(3, r, &index, of));
		break;
	default:
		CHECK_OK(MPI_Waitsome(3, r, &found, indices, statuses));
		break;
	}
	CHECK_EQ(r[1] == MPI_REQUEST_NULL, flag);
	*request = r[1];
	if (!flag)
		return false;
	CHECK_EQ(index, 1);
	CHECK_EQ(found, 1);
	CHECK_EQ(indices[0], 1);
	CHECK_EQ(count_of(of), count);
	return true;
}

CONFORMANCE_TEST(s9_2_every_completion_call, 1, single, "All Test and Wait calls call complete_fn before they return")
{
	MPIX_Gr gr = template();

	for (int how = 0; how < hows; how++) {
		struct op op = {.count = 3};

		step(how_name[how]);
		begin(gr, &op);
		if (how < by_wait)
			CHECK(!complete_by((enum how)how, &op.request, 0));
		CHECK_EQ(op.completes, 0);
		mark(&op);
		CHECK(complete_by((enum how)how, &op.request, 3));
		is_over(&op);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_2_among_others, 1, single, "Beside receives and CRs in arrays each status is the right one")
{
	MPIX_Gr gr = template();
	MPI_Request cr = new_cr(NULL), null = MPI_REQUEST_NULL, r[4];
	struct op ops[2] = {{.ends_after = 30, .count = 11}, {.ends_after = 10, .count = 22, .is_cancelled = true}};
	struct seen seen = {0};
	MPI_Status statuses[4];

	CHECK_OK(attach(&null, see, &seen, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 2; i++)
		begin(gr, &ops[i]);
	r[0] = ops[0].request;
	r[1] = pending(TAG);
	r[2] = cr;
	r[3] = ops[1].request;
	complete_pending(TAG);
	CHECK_OK(MPI_Waitall(4, r, statuses));
	for (int i = 0; i < 2; i++)
		is_over(&ops[i]);
	CHECK_EQ(count_of(&statuses[0]), 11);
	CHECK_EQ(statuses[1].MPI_TAG, TAG);
	CHECK(is_empty(&statuses[2]));
	CHECK_EQ(count_of(&statuses[3]), 22);
	CHECK(was_cancelled(&statuses[3]) && !was_cancelled(&statuses[0]));
	free_cr(&cr);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_2_complete_fails, 1, single, "An error of complete_fn is the request's")
{
	MPIX_Gr gr = template();
	struct op op = {.complete_rc = MPI_ERR_IO, .ends_after = 2}, other = {.complete_rc = MPI_ERR_IO};
	MPI_Request r[2];
	MPI_Status statuses[2];

	begin(gr, &op);
	CHECK_CLASS(MPI_Wait(&op.request, MPI_STATUS_IGNORE), MPI_ERR_IO);
	is_over(&op);
	begin(gr, &other);
	mark(&other);
	r[0] = other.request;
	r[1] = pending(TAG);
	complete_pending(TAG);
	CHECK_CLASS(MPI_Waitall(2, r, statuses), MPI_ERR_IN_STATUS);
	/* MPICH (4.0) makes one class of all errors of query functions here. */
	CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_IO || class_of(statuses[0].MPI_ERROR) == MPI_ERR_OTHER);
	is_over(&other);
	free_template(&gr);
}

static int query_fn(void *extra_state, MPI_Status *status)
{
	(void)extra_state;
	CHECK_OK(MPI_Status_set_elements(status, MPI_BYTE, 0));
	return MPI_Status_set_cancelled(status, 0);
}

static int free_fn(void *extra_state)
{
	(void)extra_state;
	return MPI_SUCCESS;
}

CONFORMANCE_TEST(s9_2_mark_something_else, 1, single, "Marking what is no request of a template is MPI_ERR_REQUEST")
{
	MPIX_Gr gr = template();
	MPI_Request r = pending(TAG), general, cr = new_cr(NULL), zero, gone;
	struct op op = {0};
	int flag = 1;

	memset(&zero, 0, sizeof(zero));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(MPI_Grequest_start(query_fn, free_fn, cancel_fn, &op, &general));
		CHECK_CLASS(MPIX_Mark_request_complete(r), MPI_ERR_REQUEST);
		CHECK_CLASS(MPIX_Mark_request_complete(general), MPI_ERR_REQUEST);
		CHECK_CLASS(MPIX_Mark_request_complete(cr), MPI_ERR_REQUEST);
		CHECK_CLASS(MPIX_Mark_request_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
		CHECK_CLASS(MPIX_Mark_request_complete(zero), MPI_ERR_REQUEST);
		CHECK_OK(MPI_Test(&general, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		CHECK_OK(MPI_Grequest_complete(general));
		CHECK_OK(MPI_Wait(&general, MPI_STATUS_IGNORE));
		if (i == 0) /* and once more while there is one */
			begin(gr, &op);
	}
	CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	gone = op.request;
	mark(&op);
	CHECK_CLASS(MPIX_Mark_request_complete(op.request), MPI_ERR_REQUEST); /* twice */
	wait_over(&op);
	CHECK_CLASS(MPIX_Mark_request_complete(gone), MPI_ERR_REQUEST);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	free_cr(&cr);
	free_template(&gr);
}

static void *marks_later(void *arg)
{
	struct op *op = arg;

	compute_ms(30);
	mark(op);
	return NULL;
}

CONFORMANCE_TEST(s9_2_mark_wakes_waiter, 1, multiple, "A thread in MPI_Wait returns when another one marks the request")
{
	MPIX_Gr with_push = template(), without;

	CHECK_OK(MPIX_Gr_init(start_fn, NULL, complete_fn, cancel_fn, &without));
	for (int i = 0; i < 6; i++) {
		struct op op = {0};
		MPI_Request handle;
		pthread_t thread;

		begin(i % 2 ? with_push : without, &op);
		handle = op.request;
		pthread_create(&thread, NULL, marks_later, &op);
		CHECK_OK(MPI_Wait(&handle, MPI_STATUS_IGNORE));
		pthread_join(thread, NULL);
		CHECK(handle == MPI_REQUEST_NULL);
		is_over(&op);
	}
	free_template(&with_push);
	free_template(&without);
}

/* -------------------------------------------------------------------------------------------- 9.3 continuations --- */

struct order {
	atomic_int ran;
	struct op *op;
	int completes_before;
	MPI_Status *status;
};

static void note_order(MPI_Status *status, void *data)
{
	struct order *order = data;

	order->completes_before = order->op->completes;
	order->status = status;
	atomic_fetch_add(&order->ran, 1);
}

enum moment { MARKED_AFTER, MARKED_BEFORE, MARKED_AND_SEEN, MARKED_BY_PUSH, moments };

static void check_order(MPIX_Gr gr, MPI_Request *cr, enum moment moment)
{
	struct op op = {.ends_after = moment == MARKED_BY_PUSH ? 10 : 0, .count = 9};
	struct order order = {.op = &op};
	MPI_Status status;
	MPI_Request handle;
	int flag = 0;

	op.ran_first = &order.ran;
	begin(gr, &op);
	handle = op.request;
	if (moment == MARKED_BEFORE || moment == MARKED_AND_SEEN)
		mark(&op);
	if (moment == MARKED_AND_SEEN)
		CHECK_OK(MPI_Request_get_status(handle, &flag, MPI_STATUS_IGNORE));
	poison(&status, sizeof(status));
	CHECK_OK(attach(&handle, note_order, &order, &status, *cr));
	CHECK(handle == MPI_REQUEST_NULL);
	if (moment == MARKED_AFTER) {
		for (int i = 0; i < 10; i++)
			drive_once();
		CHECK_EQ(order.ran, 0);
		mark(&op);
	}
	wait_cr(cr);
	CHECK_EQ(order.ran, 1);
	CHECK_EQ(order.completes_before, 0);
	CHECK_EQ(op.ran_before, 1);
	CHECK(order.status == &status);
	CHECK(is_untouched(&status));
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
	CHECK(!op.status_was_null);
	is_over(&op);
}

CONFORMANCE_BOTH(s9_3_continuation_first, 1, single,
		 "The continuation comes first, complete_fn second, and before the CR is complete")
{
	const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};
	MPIX_Gr gr = template();

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = new_cr(keys[k], "true", NULL);

		for (int m = 0; m < moments; m++)
			for (int i = 0; i < 5; i++)
				check_order(gr, &cr, (enum moment)m);
		free_cr(&cr);
	}
	free_template(&gr);
}

CONFORMANCE_BOTH(s9_3_continuation_for_a_set, 1, single,
		 "One continuation for requests of templates and messages: complete_fn after it, once")
{
	enum { N = 20 };
	MPIX_Gr gr = template();
	MPI_Request cr = new_cr(NULL), r[2 * N];
	MPI_Status statuses[2 * N];
	struct op ops[N];
	atomic_int *ran;
	struct seen seen = {0};

	ran = &seen.runs;
	for (int i = 0; i < N; i++) {
		ops[i] = (struct op){.ends_after = i % 3 ? 5 * i : 0, .count = i, .ran_first = ran};
		begin(gr, &ops[i]);
		r[2 * i] = ops[i].request;
		r[2 * i + 1] = pending(TAG + i);
		if (i % 6 == 0)
			mark(&ops[i]);
	}
	CHECK_OK(attach_all(2 * N, r, see, &seen, statuses, cr));
	for (int i = 0; i < N; i++) {
		complete_pending(TAG + i);
		if (i % 6 == 3)
			mark(&ops[i]);
	}
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	for (int i = 0; i < N; i++) {
		is_over(&ops[i]);
		CHECK_EQ(ops[i].ran_before, 1);
		CHECK(is_untouched(&statuses[2 * i]));
		CHECK_EQ(statuses[2 * i + 1].MPI_TAG, TAG + i);
	}
	free_cr(&cr);
	free_template(&gr);
}

CONFORMANCE_BOTH(s9_3_push_fails_with_continuation, 1, single,
		 "Where push_fn fails, the status of the continuation says so")
{
	MPIX_Gr gr = template();
	MPI_Request cr = new_cr(NULL);
	struct op op = {.push_rc = MPI_ERR_IO};
	struct order order = {.op = &op};
	MPI_Request handle;
	MPI_Status status;

	if (face == face_revised) {
		free_cr(&cr); /* that such a continuation does not run is the revised interface's, section 5 */
		free_template(&gr);
		return;
	}
	begin(gr, &op);
	handle = op.request;
	CHECK_OK(attach(&handle, note_order, &order, &status, cr));
	wait_cr(&cr);
	CHECK_EQ(order.ran, 1);
	CHECK_EQ(order.completes_before, 0);
	CHECK_EQ(class_of(status.MPI_ERROR), MPI_ERR_IO);
	CHECK_EQ(op.completes, 1);
	CHECK(!op.overlapped);
	free_cr(&cr);
	free_template(&gr);
}

static struct {
	MPIX_Gr gr;
	MPI_Request *cr;
	struct op op[10];
	atomic_int ran;
} chain;

/* Each waits for the operation that it has begun; only this call knows it. */
static void wait_inside(MPI_Status *status, void *data)
{
	struct op inner = {.ends_after = 25};

	(void)status, (void)data;
	begin(chain.gr, &inner);
	wait_over(&inner);
	atomic_fetch_add(&chain.ran, 1);
}

CONFORMANCE_BOTH(s9_3_begun_in_a_callback, 1, single,
		 "A continuation may begin requests of templates, and wait for them")
{
	MPI_Request cr = new_cr(NULL), handle;
	struct op op = {.ends_after = 5};

	chain.gr = template();
	chain.ran = 0;
	begin(chain.gr, &op);
	handle = op.request;
	CHECK_OK(attach(&handle, wait_inside, NULL, MPI_STATUS_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(chain.ran, 1);
	is_over(&op);
	free_cr(&cr);
	free_template(&chain.gr);
}

/* -------------------------------------------------------------------------------------------------- 9.4 freeing --- */

CONFORMANCE_TEST(s9_4_template_freed, 1, single, "A template may be freed while its requests are outstanding")
{
	enum { N = 100 };
	struct op ops[N];
	MPIX_Gr gr = template(), copy = gr;
	struct op late = {0};

	for (int i = 0; i < N; i++) {
		ops[i] = (struct op){.ends_after = 1 + i};
		begin(gr, &ops[i]);
	}
	free_template(&gr);
	CHECK_CLASS(MPIX_Gr_begin(copy, &late, &late.request), MPI_ERR_ARG);
	CHECK_EQ(late.starts, 0);
	for (int i = 0; i < N; i++)
		wait_over(&ops[i]);
}

CONFORMANCE_TEST(s9_4_request_freed, 1, single,
		 "A freed request goes on until it is marked; then complete_fn runs with a null status")
{
	MPIX_Gr gr = template();

	for (int i = 0; i < 20; i++) {
		struct op op = {.ends_after = i % 2 ? 10 : 0};
		MPI_Request handle;

		begin(gr, &op);
		handle = op.request;
		CHECK_OK(MPI_Request_free(&handle));
		CHECK(handle == MPI_REQUEST_NULL);
		CHECK_EQ(op.completes, 0);
		if (!op.ends_after) {
			for (int k = 0; k < 10; k++)
				drive_once();
			CHECK(op.pushes > 0);
			CHECK_EQ(op.completes, 0);
			mark(&op);
		} else {
			CHECK(drive_until(&op.completes, 1));
		}
		CHECK(op.status_was_null);
		is_over(&op);
		CHECK_CLASS(MPIX_Mark_request_complete(op.request), MPI_ERR_REQUEST);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_4_marked_request_freed, 1, single, "Freeing a marked request calls complete_fn with a null status")
{
	MPIX_Gr gr = template();

	for (int i = 0; i < 20; i++) {
		struct op op = {0};

		begin(gr, &op);
		mark(&op);
		CHECK_EQ(op.completes, 0);
		CHECK_OK(MPI_Request_free(&op.request));
		CHECK(op.request == MPI_REQUEST_NULL);
		CHECK(op.status_was_null);
		is_over(&op);
	}
	free_template(&gr);
}

/* ----------------------------------------------------------------------------------------------- 9.5 cancelling --- */

CONFORMANCE_TEST(s9_5_cancel, 1, single,
		 "Cancelling calls cancel_fn, and the request still has to be marked and completed")
{
	MPIX_Gr gr = template();

	for (int late = 0; late < 2; late++) {
		struct op op = {.is_cancelled = !late};
		MPI_Status status;
		int flag = 1;

		begin(gr, &op);
		if (late)
			mark(&op);
		CHECK_OK(late ? MPIX_Cancel(&op.request) : MPI_Cancel(&op.request));
		CHECK(op.request != MPI_REQUEST_NULL);
		CHECK_EQ(op.cancels, 1);
		CHECK_EQ(op.cancel_complete != 0, late);
		CHECK_EQ(op.completes, 0);
		if (!late) {
			CHECK_OK(MPI_Test(&op.request, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			mark(&op);
		}
		CHECK_OK(MPI_Wait(&op.request, &status));
		CHECK_EQ(was_cancelled(&status), !late);
		CHECK_EQ(op.cancels, 1);
		is_over(&op);
	}
	free_template(&gr);
}

CONFORMANCE_TEST(s9_5_cancel_fails, 1, single, "An error of cancel_fn is MPI_Cancel's")
{
	MPIX_Gr gr = template();
	struct op op = {.cancel_rc = MPI_ERR_IO};

	begin(gr, &op);
	CHECK_CLASS(MPI_Cancel(&op.request), MPI_ERR_IO);
	mark(&op);
	wait_over(&op);
	free_template(&gr);
}

CONFORMANCE_TEST(s9_5_cancel_null, 1, single, "MPIX_Cancel accepts MPI_REQUEST_NULL, and cancels what MPI_Cancel does")
{
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Status status;

	CHECK_OK(MPIX_Cancel(&r));
	CHECK(r == MPI_REQUEST_NULL);
	/* MPI's own call answers in the same way if contd is not there (contd/mpi.h says why). */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_CLASS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	r = pending(TAG);
	CHECK_OK(MPIX_Cancel(&r));
	CHECK(r != MPI_REQUEST_NULL);
	CHECK_OK(MPI_Wait(&r, &status));
	CHECK(was_cancelled(&status));
}

/* --------------------------------------------------------------------------------------- the end, and bad input --- */

static struct op left_over[3];

static void nothing_more(void)
{
	CHECK_EQ(left_over[0].completes + left_over[1].completes + left_over[2].completes, 0);
	CHECK_CLASS(MPIX_Mark_request_complete(left_over[0].request), MPI_ERR_OTHER);
}

CONFORMANCE_TEST(s6_template_requests_left, 1, single, "MPI_Finalize with requests of templates that were never marked")
{
	MPIX_Gr gr = template();
	MPI_Request handle;

	for (int i = 0; i < 3; i++)
		begin(gr, &left_over[i]);
	handle = left_over[1].request;
	CHECK_OK(MPI_Request_free(&handle));
	after_finalize = nothing_more;
}

static void outside(void)
{
	struct op op = {0};
	MPIX_Gr gr = MPIX_GR_NULL;
	MPI_Request r = MPI_REQUEST_NULL, before = r;

	CHECK_EQ(MPIX_Gr_init(start_fn, push_fn, complete_fn, cancel_fn, &gr), MPI_ERR_OTHER);
	CHECK(gr == MPIX_GR_NULL);
	CHECK_EQ(MPIX_Gr_begin(gr, &op, &r), MPI_ERR_OTHER);
	CHECK_EQ(MPIX_Mark_request_complete(r), MPI_ERR_OTHER);
	CHECK_EQ(MPIX_Gr_free(&gr), MPI_ERR_OTHER);
	CHECK_EQ(MPIX_Cancel(&r), MPI_ERR_OTHER);
	CHECK(r == before);
	CHECK_EQ(op.starts, 0);
}

CONFORMANCE_TEST(s11_templates_outside, 1, none,
		 "Calls of templates before MPI_Init and after MPI_Finalize: MPI_ERR_OTHER")
{
	outside();
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	outside();
}

CONFORMANCE_TEST(s11_template_arguments, 1, single,
		 "Templates: null pointers, handles that are none, and nothing changes")
{
	MPIX_Gr gr = MPIX_GR_NULL, null = MPIX_GR_NULL, none = (MPIX_Gr)(uintptr_t)0x12345678, live = template(), gone;
	struct op op = {0};

	CHECK_CLASS(MPIX_Gr_init(NULL, push_fn, complete_fn, cancel_fn, &gr), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_init(start_fn, push_fn, NULL, cancel_fn, &gr), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_init(start_fn, push_fn, complete_fn, cancel_fn, no_memory), MPI_ERR_ARG);
	CHECK(gr == MPIX_GR_NULL);
	op.request = MPI_REQUEST_NULL;
	CHECK_CLASS(MPIX_Gr_begin(MPIX_GR_NULL, &op, &op.request), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_begin(none, &op, &op.request), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_begin((MPIX_Gr)(void *)&op, &op, &op.request), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_begin(live, &op, no_memory), MPI_ERR_ARG);
	CHECK(op.request == MPI_REQUEST_NULL);
	CHECK_EQ(op.starts, 0);
	CHECK_CLASS(MPIX_Gr_free(no_memory), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_free(&null), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Gr_free(&none), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Cancel(no_memory), MPI_ERR_ARG);
	gone = live;
	free_template(&live);
	CHECK_CLASS(MPIX_Gr_free(&gone), MPI_ERR_ARG);
	/* The place is taken again, and the old handle stays invalid. */
	live = template();
	CHECK(live != gone);
	CHECK_CLASS(MPIX_Gr_begin(gone, &op, &op.request), MPI_ERR_ARG);
	free_template(&live);
}
