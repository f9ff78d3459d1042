/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 5 in the revised interface: max_poll and flags as arguments, failed operations and failed callbacks. */
#include "failing.h"

#define TAG 55

/* A callback's arguments and return value. */
struct told {
	int runs, rc, answer;
};

static int tell(int rc, void *data)
{
	struct told *told = data;

	told->runs++;
	told->rc = rc;
	return told->answer;
}

static int must_not_run(int rc, void *data)
{
	(void)rc, (void)data;
	CHECK(!"this continuation must not run");
	return MPI_SUCCESS;
}

static void register_null(MPI_Request cr, struct told *told)
{
	MPI_Request op = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue(&op, tell, told, 0, MPI_STATUS_IGNORE, cr));
}

/* How many failed continuations there are; none is left afterwards. */
static int drain(MPI_Request cr)
{
	void *data[16];
	int count = 16;

	CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
	return count;
}

/* -------------------------------------------------------------------------------------------- 5.2, as arguments --- */

static MPI_Request cr_with(int flags, int max_poll, MPI_Info info)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue_init(flags, max_poll, info, &cr));
	CHECK_OK(MPI_Start(&cr));
	return cr;
}

CONFORMANCE_ON_REVISED(s5_2_max_poll_argument, 1, single,
		       "The argument max_poll bounds a Test; 0 and MPI_UNDEFINED: no limit")
{
	static const int limits[] = {1, 5, 0, MPI_UNDEFINED};

	for (int l = 0; l < 4; l++) {
		MPI_Request cr = cr_with(MPIX_CONT_POLL_ONLY, limits[l], MPI_INFO_NULL);
		struct told told = {0};
		bool complete = false;

		for (int i = 0; i < 33; i++)
			register_null(cr, &told);
		for (int tests = 0; !complete && tests < 1000; tests++) {
			int before = told.runs;

			complete = report_by(by_test, &cr);
			CHECK(l >= 2 || told.runs - before <= limits[l]);
			CHECK(l < 2 || complete);
		}
		CHECK_EQ(told.runs, 33);
		free_cr(&cr);
	}
}

CONFORMANCE_ON_REVISED(s5_2_negative_max_poll, 1, single, "Another negative max_poll, -1 too, is MPI_ERR_ARG")
{
	static const int bad[] = {-1, -2, -2147483647 - 1};
	MPI_Request cr;

	poison(&cr, sizeof(cr));
	for (int i = 0; i < 3; i++)
		if (bad[i] != MPI_UNDEFINED)
			CHECK_CLASS(MPIX_Continue_init(0, bad[i], MPI_INFO_NULL, &cr), MPI_ERR_ARG);
	CHECK(is_poison(&cr, sizeof(cr)));
}

CONFORMANCE_ON_REVISED(s5_2_keys_before_arguments, 1, single,
		       "An info key stands before the flag or argument that says otherwise")
{
	MPI_Info info = new_info(POLL_ONLY, "false", MAX_POLL, "2", NULL);
	MPI_Request cr = cr_with(MPIX_CONT_POLL_ONLY | MPIX_CONT_DEFER_COMPLETE, 100, info), op;
	atomic_int *runs;
	struct seen seen = {0};
	struct told told = {0};

	MPI_Info_free(&info);
	for (int i = 0; i < 10; i++)
		register_null(cr, &told);
	CHECK_EQ(told.runs, 0); /* DEFER_COMPLETE is not said otherwise */
	CHECK(!report_by(by_test, &cr));
	CHECK(told.runs <= 2);
	wait_cr(&cr);
	CHECK_EQ(told.runs, 10);
	/* Not poll_only. */
	runs = &seen.runs;
	op = pending(TAG);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	CHECK(drive_until(runs, 1));
	free_cr(&cr);
	info = new_info(POLL_ONLY, "true", MAX_POLL, "0", NULL);
	CHECK_CLASS(MPIX_Continue_init(0, 5, info, &cr), MPI_ERR_ARG);
	MPI_Info_free(&info);
}

CONFORMANCE_ON_REVISED(s5_2_flags_without_meaning, 1, single, "Flags without a meaning at a call are ignored there")
{
	static const int all = 1 | 2 | 4 | 8 | 16 | 32;
	MPI_Request cr = cr_with(all & ~(MPIX_CONT_POLL_ONLY | MPIX_CONT_DEFER_COMPLETE), 0, MPI_INFO_NULL), op;
	struct told told = {0};

	op = pending(TAG);
	CHECK_OK(MPIX_Continue(&op, tell, &told, MPIX_CONT_POLL_ONLY | MPIX_CONT_REQUESTS_FREE, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	for (double end = MPI_Wtime() + 10; told.runs < 1 && MPI_Wtime() < end;)
		drive_once(); /* POLL_ONLY means something at init only */
	CHECK_EQ(told.runs, 1);
	op = pending(TAG);
	CHECK_OK(MPIX_Continueall(1, &op, tell, &told, all, MPI_STATUSES_IGNORE, cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(told.runs, 2);
	CHECK_EQ(told.rc, MPI_SUCCESS);
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------ 5.5, operations that fail --- */

CONFORMANCE_ON_REVISED(s5_5_invoke_failed, 2, single, "With INVOKE_FAILED, which VOLATILE implies, rc says what failed")
{
	static const int flags[] = {MPIX_CONT_INVOKE_FAILED, MPIX_CONT_REQBUF_VOLATILE};
	MPI_Request cr = new_cr(NULL);

	for (int how = 0; how < truncations; how++)
		for (int f = 0; f < 2; f++) {
			struct told told = {0};
			struct truncated t;
			MPI_Status status;

			truncated_begin(&t, how, TAG);
			poison(&status, sizeof(status));
			CHECK_OK(MPIX_Continue(&t.receive, tell, &told, flags[f], &status, cr));
			CHECK(t.receive == MPI_REQUEST_NULL);
			truncated_send(&t);
			/* The callback has dealt with it: no call reports it. */
			wait_cr(&cr);
			CHECK_EQ(told.runs, 1);
			CHECK_CLASS(told.rc, MPI_ERR_TRUNCATE);
			CHECK_CLASS(status.MPI_ERROR, MPI_ERR_TRUNCATE);
			CHECK_EQ(drain(cr), 0);
			truncated_end(&t);
			MPI_Barrier(world);
		}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s5_5_unfinished_members, 2, single,
		       "It runs at the first failure; unfinished members have MPI_ERR_PENDING")
{
	MPI_Request cr = new_cr(NULL);

	for (int how = 0; how < truncations; how++) {
		MPI_Status status[4], same[4];
		struct told told = {0};
		struct truncated t;
		int in[2] = {0, 0}, out = 77;
		MPI_Request r[4], send;

		truncated_begin(&t, how, TAG);
		CHECK_OK(MPI_Irecv(&in[0], 1, MPI_INT, previous_rank(), TAG + 1, world, &r[0]));
		r[1] = t.receive;
		CHECK_OK(MPI_Irecv(&in[1], 1, MPI_INT, previous_rank(), TAG + 2, world, &r[2]));
		r[3] = MPI_REQUEST_NULL;
		/* One member has finished. */
		CHECK_OK(MPI_Isend(&out, 1, MPI_INT, next_rank(), TAG + 1, world, &send));
		until_complete(r[0]);
		CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
		poison(status, sizeof(status));
		CHECK_OK(MPIX_Continueall(4, r, tell, &told, MPIX_CONT_INVOKE_FAILED, status, cr));
		for (int i = 0; i < 4; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		truncated_send(&t);
		wait_cr(&cr); /* although a receive is pending */
		CHECK_EQ(told.runs, 1);
		CHECK_CLASS(told.rc, MPI_ERR_TRUNCATE);
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(status[0].MPI_TAG, TAG + 1);
		CHECK_CLASS(status[1].MPI_ERROR, MPI_ERR_TRUNCATE);
		CHECK_CLASS(status[2].MPI_ERROR, MPI_ERR_PENDING);
		CHECK_EQ(status[3].MPI_ERROR, MPI_SUCCESS);
		memcpy(same, status, sizeof(status));
		MPI_Barrier(world);
		/* It finishes by itself, the statuses are the program's again. */
		CHECK_OK(MPI_Isend(&out, 1, MPI_INT, next_rank(), TAG + 2, world, &send));
		for (double end = MPI_Wtime() + 10; *(volatile int *)&in[1] != 77 && MPI_Wtime() < end;)
			drive_once();
		CHECK_EQ(in[1], 77);
		CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
		for (int i = 0; i < 10; i++)
			drive_once();
		CHECK(memcmp(status, same, sizeof(status)) == 0);
		CHECK_EQ(told.runs, 1);
		truncated_end(&t);
		MPI_Barrier(world);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s5_5_not_invoked, 2, single,
		       "Without the flag a failed one does not run; get_failed has its user_data")
{
	MPI_Request cr = new_cr(NULL), same = cr;

	for (int how = 0; how < truncations; how++)
		for (int set = 0; set < 2; set++) {
			struct truncated t;
			MPI_Request r[2];
			void *data[2] = {NULL, NULL};
			int mark, count = 2;

			truncated_begin(&t, how, TAG);
			r[0] = t.receive;
			r[1] = receive_byte(previous_rank(), TAG + 1, world);
			if (set)
				CHECK_OK(MPIX_Continueall(2, r, must_not_run, &mark, 0, MPI_STATUSES_IGNORE, cr));
			else
				CHECK_OK(MPIX_Continue(&r[0], must_not_run, &mark, 0, MPI_STATUS_IGNORE, cr));
			CHECK(r[0] == MPI_REQUEST_NULL);
			truncated_send(&t);
			send_byte(next_rank(), TAG + 1, world);
			CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
			CHECK(cr == same);
			CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
			CHECK_EQ(count, 1);
			CHECK(data[0] == &mark);
			CHECK(data[1] == NULL);
			CHECK_EQ(drain(cr), 0);
			/* As new. */
			CHECK_OK(MPI_Start(&cr));
			wait_cr(&cr);
			if (!set)
				CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
			truncated_end(&t);
			MPI_Barrier(world);
		}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_8_status_carries_the_failure, 2, single,
		       "Test and Wait give a failed CR's first error, in the status too")
{
	for (int how = 0; how < hows; how++) {
		MPI_Request cr = new_cr(NULL), same = cr, r[2];
		struct truncated t;
		MPI_Status status[2];
		int flag = 0, index, count = 0, indices[2], rc;
		bool array = how == by_testall || how == by_waitall || how == by_testsome || how == by_waitsome;

		step(how_name[how]);
		truncated_begin(&t, how % truncations, TAG);
		CHECK_OK(MPIX_Continue(&t.receive, must_not_run, NULL, 0, MPI_STATUS_IGNORE, cr));
		truncated_send(&t);
		r[0] = MPI_REQUEST_NULL;
		r[1] = cr;
		do {
			poison(status, sizeof(status));
			if (how == by_test)
				rc = MPI_Test(&cr, &flag, &status[0]);
			else if (how == by_testall)
				rc = MPI_Testall(2, r, &flag, status);
			else if (how == by_testany)
				rc = MPI_Testany(2, r, &index, &flag, &status[0]);
			else if (how == by_testsome)
				rc = MPI_Testsome(2, r, &count, indices, status);
			else if (how == by_wait)
				rc = MPI_Wait(&cr, &status[0]);
			else if (how == by_waitall)
				rc = MPI_Waitall(2, r, status);
			else if (how == by_waitany)
				rc = MPI_Waitany(2, r, &index, &status[0]);
			else
				rc = MPI_Waitsome(2, r, &count, indices, status);
			if (how == by_testsome)
				flag = count != 0;
		} while (how <= by_testsome && !flag && rc == MPI_SUCCESS);
		if (how <= by_testany)
			CHECK(flag);
		/* Calls that may tell of several say MPI_ERR_IN_STATUS: MPI 4.1, 3.7.5. */
		CHECK_CLASS(rc, array ? MPI_ERR_IN_STATUS : MPI_ERR_TRUNCATE);
		CHECK_CLASS(status[how == by_testall || how == by_waitall].MPI_ERROR, MPI_ERR_TRUNCATE);
		CHECK(cr == same && r[1] == same);
		CHECK_EQ(drain(cr), 1);
		truncated_end(&t);
		free_cr(&cr);
		MPI_Barrier(world);
	}
}

CONFORMANCE_ON_REVISED(s5_5_complete_when_nothing_is_left, 2, single,
		       "A failed CR is complete, with the error, when nothing else is outstanding")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG + 1);
	struct told told = {0};
	struct truncated t;
	int flag = 0;

	CHECK_OK(MPIX_Continue(&op, tell, &told, 0, MPI_STATUS_IGNORE, cr));
	truncated_begin(&t, 1, TAG);
	CHECK_OK(MPIX_Continue(&t.receive, must_not_run, &told, 0, MPI_STATUS_IGNORE, cr));
	truncated_send(&t);
	truncated_end(&t);
	for (int i = 0; i < 50; i++) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
	}
	complete_pending(TAG + 1);
	CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	CHECK_EQ(told.runs, 1); /* the others still run */
	CHECK_EQ(drain(cr), 1);
	CHECK_OK(MPI_Start(&cr));
	op = pending(TAG + 1);
	CHECK_OK(MPIX_Continue(&op, tell, &told, 0, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG + 1);
	wait_cr(&cr);
	CHECK_EQ(told.runs, 2);
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------- 5.5, callbacks that fail --- */

CONFORMANCE_ON_REVISED(s5_5_callback_fails, 1, single, "A callback that returns an error marks its CR as failed")
{
	for (int kind = 0; kind < 4; kind++) {
		/* Run inside attach, and later; found by Test, and by Wait. */
		MPI_Request cr = kind & 1 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL), same = cr, op;
		struct told bad = {.answer = MPI_ERR_OTHER}, good = {0};
		void *data[3] = {NULL, NULL, NULL};
		MPI_Status status;
		int count = 3, flag = 0, rc = MPI_SUCCESS;

		register_null(cr, &bad);
		op = pending(TAG);
		CHECK_OK(MPIX_Continue(&op, tell, &good, 0, MPI_STATUS_IGNORE, cr));
		complete_pending(TAG);
		poison(&status, sizeof(status));
		if (kind & 2) {
			rc = MPI_Wait(&cr, &status);
		} else {
			while (!flag && rc == MPI_SUCCESS)
				rc = MPI_Test(&cr, &flag, &status);
			CHECK(flag);
		}
		CHECK_CLASS(rc, MPI_ERR_OTHER);
		CHECK_CLASS(status.MPI_ERROR, MPI_ERR_OTHER);
		CHECK(cr == same);
		CHECK_EQ(bad.runs, 1);
		CHECK_EQ(good.runs, 1);
		CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
		CHECK_EQ(count, 1);
		CHECK(data[0] == &bad && data[1] == NULL);
		CHECK_OK(MPI_Start(&cr));
		register_null(cr, &good);
		wait_cr(&cr);
		CHECK_EQ(good.runs, 2);
		free_cr(&cr);
	}
}

CONFORMANCE_ON_REVISED(s5_5_callback_passes_the_error_on, 2, single,
		       "A callback may return the rc that it got: the CR has failed then")
{
	MPI_Request cr = new_cr(NULL);
	struct told told = {.answer = MPI_ERR_TRUNCATE};
	struct truncated t;
	void *data[1] = {NULL};
	int count = 1;

	truncated_begin(&t, 1, TAG);
	CHECK_OK(MPIX_Continue(&t.receive, tell, &told, MPIX_CONT_INVOKE_FAILED, MPI_STATUS_IGNORE, cr));
	truncated_send(&t);
	CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	CHECK_EQ(told.runs, 1);
	CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
	CHECK_EQ(count, 1);
	CHECK(data[0] == &told);
	truncated_end(&t);
	free_cr(&cr);
	MPI_Barrier(world);
}

static struct {
	void *data[32];
	int count, first;
} order;

static int fail_in_order(int rc, void *data)
{
	(void)rc;
	if (order.count == 0)
		order.first = data == &order.data[3] ? MPI_ERR_ARG : MPI_ERR_OTHER;
	order.data[order.count++] = data;
	return data == &order.data[3] ? MPI_ERR_ARG : MPI_ERR_OTHER;
}

CONFORMANCE_ON_REVISED(s5_5_get_failed_drains, 1, single,
		       "get_failed gives them oldest first, as many as asked for; when empty the CR is well")
{
	static const int asked[] = {1, 2, 5, 20};
	enum { N = 10 };

	for (int a = 0; a < 4; a++) {
		MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), op = MPI_REQUEST_NULL;
		void *data[32];
		int taken = 0, count, rc;

		memset(&order, 0, sizeof(order));
		count = 5;
		CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
		CHECK_EQ(count, 0);
		for (int i = 0; i < N; i++)
			CHECK_OK(MPIX_Continue(&op, fail_in_order, &order.data[i], 0, MPI_STATUS_IGNORE, cr));
		rc = MPI_Wait(&cr, MPI_STATUS_IGNORE);
		CHECK_CLASS(rc, order.first);
		CHECK_EQ(order.count, N);
		count = 0;
		CHECK_OK(MPIX_Continue_get_failed(cr, &count, NULL));
		CHECK_EQ(count, 0);
		do {
			count = asked[a];
			poison(data, sizeof(data));
			CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
			CHECK_EQ(count, N - taken < asked[a] ? N - taken : asked[a]);
			for (int i = 0; i < count && taken + i < N; i++)
				CHECK(data[i] == order.data[taken + i]);
			CHECK(is_poison(&data[count], sizeof(data) - (size_t)count * sizeof(data[0])));
			taken += count;
		} while (count == asked[a] && taken <= N);
		CHECK_EQ(taken, N);
		CHECK_OK(MPI_Start(&cr));
		wait_cr(&cr);
		free_cr(&cr);
	}
}

CONFORMANCE_ON_REVISED(s5_5_get_failed_while_outstanding, 1, single, "get_failed works while others are outstanding")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG);
	struct told bad = {.answer = MPI_ERR_OTHER}, good = {0};
	void *data[1] = {NULL};
	int count = 1;

	CHECK_OK(MPIX_Continue(&op, tell, &good, 0, MPI_STATUS_IGNORE, cr));
	register_null(cr, &bad);
	for (double end = MPI_Wtime() + 10; !bad.runs && MPI_Wtime() < end;)
		drive_once();
	CHECK_EQ(bad.runs, 1);
	CHECK_OK(MPIX_Continue_get_failed(cr, &count, data));
	CHECK_EQ(count, 1);
	CHECK(data[0] == &bad);
	CHECK_EQ(drain(cr), 0);
	complete_pending(TAG);
	wait_cr(&cr); /* no longer marked */
	CHECK_EQ(good.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s5_5_inactive_after_failure, 1, single,
		       "Inactive again, a failed CR tests like any inactive one; its next cycle tells the error again")
{
	MPI_Request cr = new_cr(NULL);
	struct told bad = {.answer = MPI_ERR_OTHER};
	MPI_Status status;
	int flag = 0;

	register_null(cr, &bad);
	CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
	poison(&status, sizeof(status));
	CHECK_OK(MPI_Test(&cr, &flag, &status));
	CHECK(flag);
	CHECK(is_empty(&status));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Start(&cr));
	CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
	CHECK_EQ(drain(cr), 1);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s5_5_in_arrays, 1, single,
		       "In Waitall and the like a failed CR's error stands in its status, others are well")
{
	for (int how = 0; how < 2; how++) {
		MPI_Request r[3], cr = new_cr(NULL), other = new_cr(NULL);
		struct told bad = {.answer = MPI_ERR_OTHER}, good = {0};
		MPI_Status status[3];
		int flag = 0, rc;

		register_null(cr, &bad);
		register_null(other, &good);
		r[0] = other;
		r[1] = pending(TAG);
		r[2] = cr;
		complete_pending(TAG);
		poison(status, sizeof(status));
		if (how)
			rc = MPI_Waitall(3, r, status);
		else
			do
				rc = MPI_Testall(3, r, &flag, status);
			while (!flag && rc == MPI_SUCCESS);
		CHECK_CLASS(rc, MPI_ERR_IN_STATUS);
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(status[1].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(status[1].MPI_TAG, TAG);
		CHECK_CLASS(status[2].MPI_ERROR, MPI_ERR_OTHER);
		CHECK(r[0] == other && r[1] == MPI_REQUEST_NULL && r[2] == cr);
		CHECK_EQ(drain(cr), 1);
		free_cr(&cr);
		free_cr(&other);
	}
}

/* ------------------------------------------------------------------------------------------ 5.6, error handlers --- */

/* Which handler a failed operation's error goes to is MPI's affair: MPICH 4.0 takes that of MPI_COMM_WORLD. */
static struct {
	int communicator, world, self, runs_before;
	const struct told *told;
} handled;

static void handled_begin(const struct told *told)
{
	memset(&handled, 0, sizeof(handled));
	handled.told = told;
}

static void on_communicator(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled.communicator++;
	handled.runs_before = handled.told->runs;
}

static void on_world(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled.world++;
	handled.runs_before = handled.told->runs;
}

static void on_self(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled.self++;
}

static void handlers_set(MPI_Errhandler *on)
{
	CHECK_OK(MPI_Comm_create_errhandler(on_communicator, &on[0]));
	CHECK_OK(MPI_Comm_create_errhandler(on_world, &on[1]));
	CHECK_OK(MPI_Comm_create_errhandler(on_self, &on[2]));
	CHECK_OK(MPI_Comm_set_errhandler(world, on[0]));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, on[1]));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, on[2]));
}

static void handlers_unset(MPI_Errhandler *on)
{
	CHECK_OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	for (int i = 0; i < 3; i++)
		MPI_Errhandler_free(&on[i]);
}

CONFORMANCE_ON_REVISED(s5_6_handler_of_a_failed_operation, 2, single,
		       "A failed operation calls the handler that MPI itself would call, once, before the callback")
{
	MPI_Request cr = new_cr(NULL);
	MPI_Errhandler on[3];

	handlers_set(on);
	for (int how = 0; how < truncations; how++)
		for (int invoke = 0; invoke < 2; invoke++) {
			struct told told = {0};
			struct truncated t;
			int communicator;

			handled_begin(&told);
			truncated_begin(&t, how, TAG);
			truncated_send(&t);
			CHECK_CLASS(MPI_Wait(&t.receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
			truncated_end(&t);
			communicator = handled.communicator;
			CHECK_EQ(handled.communicator + handled.world, 1);
			MPI_Barrier(world);

			handled_begin(&told);
			truncated_begin(&t, how, TAG);
			CHECK_OK(MPIX_Continue(&t.receive, invoke ? tell : must_not_run, &told,
					       invoke ? MPIX_CONT_INVOKE_FAILED : 0, MPI_STATUS_IGNORE, cr));
			truncated_send(&t);
			CHECK_CLASS(MPI_Wait(&cr, MPI_STATUS_IGNORE), invoke ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
			CHECK_EQ(told.runs, invoke);
			CHECK_EQ(handled.communicator, communicator);
			CHECK_EQ(handled.world, !communicator);
			CHECK_EQ(handled.runs_before, 0);
			CHECK_EQ(handled.self, 0); /* it is not reported a second time */
			CHECK_EQ(drain(cr), !invoke);
			again(&cr);
			truncated_end(&t);
			MPI_Barrier(world);
		}
	handlers_unset(on);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s5_6_handler_of_a_failed_callback, 1, single,
		       "Where a callback failed Test and Wait call MPI_COMM_SELF's handler")
{
	MPI_Errhandler on[3];

	handlers_set(on);
	for (int how = 0; how < 2; how++) {
		MPI_Request cr = new_cr(NULL);
		struct told bad = {.answer = MPI_ERR_OTHER};
		int flag = 0, rc = MPI_SUCCESS;

		handled_begin(&bad);
		register_null(cr, &bad);
		if (how)
			rc = MPI_Wait(&cr, MPI_STATUS_IGNORE);
		else
			while (!flag && rc == MPI_SUCCESS)
				rc = MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
		CHECK_CLASS(rc, MPI_ERR_OTHER);
		CHECK_EQ(handled.self, 1);
		CHECK_EQ(handled.communicator + handled.world, 0);
		CHECK_EQ(drain(cr), 1);
		free_cr(&cr);
	}
	handlers_unset(on);
}

CONFORMANCE_ENDS(s5_6_failed_operation_is_fatal, 2, single, aborts,
		 "With MPI_ERRORS_ARE_FATAL in force for it a failed operation ends the job")
{
	struct told told = {0};
	struct truncated t;
	MPI_Request cr;

	face = face_revised;
	cr = new_cr(NULL);
	CHECK_OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)); /* see above */
	say("reached");
	truncated_begin(&t, 0, TAG);
	MPIX_Continue(&t.receive, must_not_run, &told, MPIX_CONT_INVOKE_FAILED, MPI_STATUS_IGNORE, cr);
	truncated_send(&t);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	say("survived");
}
