/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 5: info keys, max_poll, error handlers, cancelled operations. */
#include <limits.h>

#include "conformance.h"

#define TAG 51

/* ----------------------------------------------------------------------------------------------- 5.1, info keys --- */

/* The error class of making a CR with up to two keys; on success it is freed, on failure the handle is as before. */
static int init_with(const char *key1, const char *value1, const char *key2, const char *value2)
{
	MPI_Info info = new_info(key1, value1, key2, value2, NULL);
	MPI_Request cr;
	int rc;

	poison(&cr, sizeof(cr));
	rc = init_cr(info, &cr);
	MPI_Info_free(&info);
	if (rc == MPI_SUCCESS)
		free_cr(&cr);
	else
		CHECK(is_poison(&cr, sizeof(cr)));
	return class_of(rc);
}

static int init_key(const char *key, const char *value)
{
	return init_with(key, value, NULL, NULL);
}

CONFORMANCE_BOTH(s5_1_true_and_false, 1, single, "The flags take true and false; anything else is MPI_ERR_INFO_VALUE")
{
	static const char *const flags[] = {POLL_ONLY, ENQUEUE_COMPLETE, SIGNAL_SAFE};
	static const char *const bad[] = {"TRUE", "yes", "1", "0", "tru", "truee", "true,false", "maybe", "truefalse"};

	for (int i = 0; i < 3; i++) {
		step(flags[i]);
		CHECK_EQ(init_key(flags[i], "true"), MPI_SUCCESS);
		CHECK_EQ(init_key(flags[i], "false"), MPI_SUCCESS);
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
			CHECK_EQ(init_key(flags[i], bad[k]), MPI_ERR_INFO_VALUE);
	}
}

CONFORMANCE_BOTH(s5_1_max_poll_values, 1, single,
		 "max_poll takes integers from -1 on; anything else is MPI_ERR_INFO_VALUE")
{
	static const char *const good[] = {"-1", "0", "1", "17", "2147483647"};
	static const char *const bad[] = {"abc",          "-2",  "5x", "1.5", "0x10", "99999999999",
					  "-99999999999", "--1", "-",  "1 2", "true", "99999999999999999999999999"};

	for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++)
		CHECK_EQ(init_key(MAX_POLL, good[k]), MPI_SUCCESS);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
		CHECK_EQ(init_key(MAX_POLL, bad[k]), MPI_ERR_INFO_VALUE);
}

CONFORMANCE_BOTH(s5_1_thread_values, 1, single,
		 "mpi_continue_thread takes application, any and all; else MPI_ERR_INFO_VALUE")
{
	static const char *const good[] = {"application", "any", "all"};
	static const char *const bad[] = {"Any", "none", "applications", "any,application", "true"};
	char longest[MPI_MAX_INFO_VAL];

	for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++)
		CHECK_EQ(init_key(THREAD, good[k]), MPI_SUCCESS);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
		CHECK_EQ(init_key(THREAD, bad[k]), MPI_ERR_INFO_VALUE);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	CHECK_EQ(init_key(THREAD, longest), MPI_ERR_INFO_VALUE);
}

CONFORMANCE_BOTH(s5_1_erroneous_pair, 1, single, "poll_only with max_poll 0 is MPI_ERR_ARG: nothing would ever run")
{
	CHECK_EQ(init_with(POLL_ONLY, "true", MAX_POLL, "0"), MPI_ERR_ARG);
	CHECK_EQ(init_with(MAX_POLL, "0", POLL_ONLY, "true"), MPI_ERR_ARG);
	CHECK_EQ(init_with(POLL_ONLY, "false", MAX_POLL, "0"), MPI_SUCCESS);
	CHECK_EQ(init_with(POLL_ONLY, "true", MAX_POLL, "1"), MPI_SUCCESS);
	CHECK_EQ(init_with(POLL_ONLY, "true", MAX_POLL, "-1"), MPI_SUCCESS);
	CHECK_EQ(init_with(ENQUEUE_COMPLETE, "true", MAX_POLL, "0"), MPI_SUCCESS);
}

CONFORMANCE_BOTH(s5_1_unknown_keys, 1, single, "Unknown keys are ignored, whatever their values")
{
	MPI_Request cr, op = MPI_REQUEST_NULL;
	struct seen seen = {0};

	CHECK_EQ(init_with("mpi_continue_nothing", "of the kind", "another", "key"), MPI_SUCCESS);
	CHECK_EQ(init_with("mpi_continue_poll_onl", "maybe", "mpi_continue_max_polls", "many"), MPI_SUCCESS);
	cr = new_cr("mpi_continue_nothing", "true", POLL_ONLY, "true", "another", "key", NULL);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 10; i++)
		drive_once();
	CHECK_EQ(seen.runs, 0); /* the known key beside them is honoured */
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s5_1_info_is_copied, 1, single, "The info object may be changed and freed when init returns")
{
	MPI_Info info = new_info(POLL_ONLY, "true", NULL);
	MPI_Request cr = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	struct seen seen = {0};
	char value[16];
	int flag = 0;

	CHECK_OK(init_cr(info, &cr));
	CHECK_OK(MPI_Info_get(info, POLL_ONLY, 15, value, &flag));
	CHECK(flag && strcmp(value, "true") == 0);
	CHECK_OK(MPI_Info_set(info, POLL_ONLY, "false"));
	CHECK_OK(MPI_Info_free(&info));
	again(&cr);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	for (int i = 0; i < 10; i++)
		drive_once();
	CHECK_EQ(seen.runs, 0);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s5_1_defaults, 1, single, "A key with its default value is as no key at all")
{
	MPI_Request cr = new_cr(POLL_ONLY, "false", ENQUEUE_COMPLETE, "false", MAX_POLL, "-1", THREAD, "application",
				SIGNAL_SAFE, "false", NULL);
	MPI_Request op;
	struct seen seen = {0};

	op = pending(TAG);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	CHECK(drive_until(&seen.runs, 1));
	for (int i = 0; i < 1000; i++) {
		op = pending(TAG + i);
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	}
	for (int i = 0; i < 1000; i++)
		complete_pending(TAG + i);
	while (!test_cr(&cr))
		;
	CHECK_EQ(seen.runs, 1001);
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------------------ 5.2, max_poll --- */

static MPI_Request limited_cr(int limit, const char *key)
{
	char value[16];

	snprintf(value, sizeof(value), "%d", limit);
	return new_cr(MAX_POLL, value, key, "true", NULL);
}

static void add_ready(MPI_Request cr, struct seen *seen, int n)
{
	for (int i = 0; i < n; i++) {
		MPI_Request op = MPI_REQUEST_NULL;

		CHECK_OK(attach(&op, see, seen, MPI_STATUS_IGNORE, cr));
	}
}

CONFORMANCE_BOTH(s5_2_max_poll_bounds_a_test, 1, single,
		 "One Test runs max_poll continuations of the CR at most; others are not charged")
{
	static const char *const keys[] = {POLL_ONLY, ENQUEUE_COMPLETE};
	static const int limits[] = {1, 2, 7, 100};

	for (int k = 0; k < 2; k++)
		for (int l = 0; l < 4; l++) {
			MPI_Request cr = limited_cr(limits[l], keys[k]), other = new_cr(ENQUEUE_COMPLETE, "true", NULL);
			struct seen seen_other = {0};

			for (int how = by_test; how <= by_testsome; how++) {
				int total = 3 * limits[l] + limits[l] / 2, before, tests = 0;
				struct seen seen = {0};
				bool complete;

				step(how_name[how]);
				add_ready(cr, &seen, total);
				add_ready(other, &seen_other, 10);
				CHECK_EQ(seen.runs, 0);
				do {
					before = atomic_load(&seen.runs);
					complete = report_by((enum how)how, &cr);
					CHECK(seen.runs - before <= limits[l]);
					CHECK_EQ(complete, seen.runs == total);
				} while (!complete && ++tests < 10000);
				CHECK_EQ(seen.runs, total);
				again(&cr);
			}
			wait_cr(&other);
			CHECK_EQ(seen_other.runs, 40);
			free_cr(&cr);
			free_cr(&other);
		}
}

CONFORMANCE_BOTH(s5_2_each_cr_has_its_own_bound, 1, single, "In one Testall each CR's max_poll holds for that CR")
{
	MPI_Request r[3];
	struct seen seen[3];
	int flag, before[3];

	memset(seen, 0, sizeof(seen));
	r[0] = limited_cr(3, POLL_ONLY);
	r[1] = limited_cr(1, POLL_ONLY);
	r[2] = limited_cr(5, ENQUEUE_COMPLETE);
	for (int i = 0; i < 3; i++)
		add_ready(r[i], &seen[i], 20);
	for (int n = 0; n < 3; n++) {
		for (int i = 0; i < 3; i++)
			before[i] = atomic_load(&seen[i].runs);
		CHECK_OK(MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE));
		CHECK(!flag);
		CHECK(seen[0].runs - before[0] <= 3);
		CHECK(seen[1].runs - before[1] <= 1);
		CHECK(seen[2].runs - before[2] <= 5);
	}
	CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(seen[i].runs, 20);
		free_cr(&r[i]);
	}
}

CONFORMANCE_BOTH(s5_2_wait_is_not_bounded, 1, single, "max_poll bounds tests: Wait goes on until everything has run")
{
	for (int how = by_wait; how < hows; how++) {
		MPI_Request cr = limited_cr(1, POLL_ONLY);
		struct seen seen = {0};

		step(how_name[how]);
		add_ready(cr, &seen, 100);
		CHECK(report_by((enum how)how, &cr));
		CHECK_EQ(seen.runs, 100);
		free_cr(&cr);
	}
}

static struct {
	MPI_Request cr;
	struct seen seen;
	int left;
} endless;

static void attach_another(MPI_Status *status, void *data)
{
	see(status, data);
	if (endless.left-- > 0) {
		MPI_Request op = MPI_REQUEST_NULL;

		CHECK_OK(attach(&op, attach_another, data, MPI_STATUS_IGNORE, endless.cr));
	}
}

CONFORMANCE_BOTH(s5_2_callbacks_stay_within_the_bound, 1, single,
		 "Continuations that callbacks register for complete operations count for max_poll too")
{
	MPI_Request op = MPI_REQUEST_NULL;

	memset(&endless, 0, sizeof(endless));
	endless.cr = limited_cr(3, POLL_ONLY);
	endless.left = 30;
	CHECK_OK(attach(&op, attach_another, &endless.seen, MPI_STATUS_IGNORE, endless.cr));
	for (int tests = 0, complete = 0; !complete && tests < 1000; tests++) {
		int before = atomic_load(&endless.seen.runs);

		complete = test_cr(&endless.cr);
		CHECK(endless.seen.runs - before <= 3);
		CHECK_EQ(complete, endless.seen.runs == 31);
	}
	CHECK_EQ(endless.seen.runs, 31);
	free_cr(&endless.cr);
}

CONFORMANCE_BOTH(s5_2_max_poll_zero_key, 1, single,
		 "max_poll 0 as a key: no Test of that CR runs any, other calls and Wait do")
{
	MPI_Request cr = limited_cr(0, ENQUEUE_COMPLETE);
	struct seen seen = {0};

	add_ready(cr, &seen, 10);
	for (int i = 0; i < 20; i++)
		CHECK(!report_by((enum how)(i % 4), &cr));
	CHECK_EQ(seen.runs, 0);
	CHECK(drive_until(&seen.runs, 10));
	CHECK(test_cr(&cr));
	add_ready(cr, &seen, 10);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 20);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s5_2_no_limit, 1, single, "Without max_poll, and with -1, one Test runs everything that is ready")
{
	for (int key = 0; key < 2; key++) {
		MPI_Request cr = key ? limited_cr(-1, POLL_ONLY) : new_cr(POLL_ONLY, "true", NULL);
		struct seen seen = {0};

		add_ready(cr, &seen, 5000);
		CHECK(test_cr(&cr));
		CHECK_EQ(seen.runs, 5000);
		free_cr(&cr);
	}
}

/* ------------------------------------------------------------------------------------------ 5.6, error handlers --- */

static struct {
	int self, code, others;
} handled;

static void on_self(MPI_Comm *comm, int *code, ...)
{
	int same = MPI_UNEQUAL;

	MPI_Comm_compare(*comm, MPI_COMM_SELF, &same);
	CHECK_EQ(same, MPI_IDENT);
	handled.self++;
	handled.code = *code;
}

static void on_others(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	handled.others++;
}

static void told_self(int rc, int class, int line)
{
	check_class(rc, class, "the call", __FILE__, line);
	check_equal(handled.self, 1, "calls of the handler of MPI_COMM_SELF", __FILE__, line);
	check_equal(class_of(handled.code), class, "the class that it was told", __FILE__, line);
	check_equal(handled.others, 0, "calls of other handlers", __FILE__, line);
	memset(&handled, 0, sizeof(handled));
}
#define TOLD_SELF(call, class) told_self((call), (class), __LINE__)

CONFORMANCE_BOTH(s5_6_errors_of_the_interface, 1, single,
		 "Errors of these calls go to MPI_COMM_SELF's handler, once each")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), persistent, r[2];
	MPI_Info info = new_info(POLL_ONLY, "perhaps", NULL);
	MPI_Errhandler self_handler, other_handler;
	struct seen seen = {0};
	char in;

	CHECK_OK(MPI_Comm_create_errhandler(on_self, &self_handler));
	CHECK_OK(MPI_Comm_create_errhandler(on_others, &other_handler));
	CHECK_OK(MPI_Recv_init(&in, 1, MPI_BYTE, 0, TAG + 1, self, &persistent));
	CHECK_OK(MPI_Start(&persistent));
	CHECK_OK(attach(&persistent, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, self_handler));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, other_handler));
	CHECK_OK(MPI_Comm_set_errhandler(self, other_handler));
	memset(&handled, 0, sizeof(handled));
	TOLD_SELF(init_cr(MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	TOLD_SELF(init_cr(info, &r[0]), MPI_ERR_INFO_VALUE);
	TOLD_SELF(attach(NULL, never, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG);
	TOLD_SELF(attach(&op, NULL, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_ARG);
	TOLD_SELF(attach(&op, never, NULL, MPI_STATUS_IGNORE, persistent), MPI_ERR_REQUEST);
	TOLD_SELF(attach(&persistent, never, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST);
	TOLD_SELF(attach(&cr, never, NULL, MPI_STATUS_IGNORE, cr), MPI_ERR_REQUEST);
	TOLD_SELF(attach_all(-1, &op, never, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_COUNT);
	r[0] = op;
	r[1] = cr;
	TOLD_SELF(attach_all(2, r, never, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_REQUEST);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
	MPI_Errhandler_free(&self_handler);
	MPI_Errhandler_free(&other_handler);
	MPI_Info_free(&info);
	complete_pending(TAG + 1);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&op, MPI_STATUS_IGNORE));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPI_Request_free(&persistent));
	free_cr(&cr);
}

static void wait_inside(MPI_Status *status, void *data)
{
	MPI_Request cr = *(MPI_Request *)data;

	(void)status;
	CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	CHECK(cr == *(MPI_Request *)data);
}

CONFORMANCE_BOTH(s5_6_errors_of_waiting, 1, single, "An error of MPI_Wait on a CR goes to MPI_COMM_SELF's handler too")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), op = MPI_REQUEST_NULL;
	MPI_Errhandler self_handler, other_handler;

	CHECK_OK(MPI_Comm_create_errhandler(on_self, &self_handler));
	CHECK_OK(MPI_Comm_create_errhandler(on_others, &other_handler));
	CHECK_OK(attach(&op, wait_inside, &cr, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, self_handler));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, other_handler));
	memset(&handled, 0, sizeof(handled));
	wait_cr(&cr);
	CHECK_EQ(handled.self, 1);
	CHECK_EQ(handled.others, 0);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MPI_Errhandler_free(&self_handler);
	MPI_Errhandler_free(&other_handler);
	free_cr(&cr);
}

static void fatal_error(enum face f)
{
	MPI_Request cr, op = MPI_REQUEST_NULL;

	face = f;
	cr = new_cr(NULL);
	CHECK_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
	say("reached");
	attach(&op, NULL, NULL, MPI_STATUS_IGNORE, cr);
	say("survived");
}

CONFORMANCE_ENDS(s5_6_errors_are_fatal, 1, single, aborts,
		 "With MPI_ERRORS_ARE_FATAL on MPI_COMM_SELF an error ends the job")
{
	fatal_error(CONFORMANCE_DRAFT ? face_draft : face_revised);
}

/* ---------------------------------------------------------------------------------------------- 5.7, cancelling --- */

CONFORMANCE_BOTH(s5_7_cancelled_before, 1, single,
		 "An operation that was cancelled completes its continuation, its status says so")
{
	MPI_Request cr = new_cr(NULL), op[2];
	struct seen seen = {0};
	MPI_Status status[2];

	for (int set = 0; set < 2; set++) {
		op[0] = pending(TAG);
		op[1] = pending(TAG + 1);
		CHECK_OK(MPI_Cancel(&op[0]));
		poison(status, sizeof(status));
		if (set)
			CHECK_OK(attach_all(2, op, see, &seen, status, cr));
		else
			CHECK_OK(attach(&op[0], see, &seen, &status[0], cr));
		CHECK(op[0] == MPI_REQUEST_NULL);
		complete_pending(TAG + 1);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, set + 1);
		CHECK(was_cancelled(&status[0]));
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		if (set)
			CHECK(!was_cancelled(&status[1]));
		else
			CHECK_OK(MPI_Wait(&op[1], MPI_STATUS_IGNORE));
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s5_7_cancelled_with_continuation, 1, single,
		 "A persistent receive is cancelled with its continuation attached")
{
	MPI_Request cr = new_cr(NULL), op;
	struct seen seen = {0};
	MPI_Status status;
	char in;

	CHECK_OK(MPI_Recv_init(&in, 1, MPI_BYTE, 0, TAG, self, &op));
	for (int round = 0; round < 4; round++) {
		CHECK_OK(MPI_Start(&op));
		poison(&status, sizeof(status));
		CHECK_OK(attach(&op, see, &seen, &status, cr));
		CHECK(!test_cr(&cr));
		if (round % 2)
			complete_pending(TAG);
		else
			CHECK_OK(MPI_Cancel(&op));
		wait_cr(&cr);
		CHECK_EQ(seen.runs, round + 1);
		CHECK_EQ(was_cancelled(&status), round % 2 == 0);
	}
	CHECK_OK(MPI_Request_free(&op));
	free_cr(&cr);
}

static struct {
	MPI_Request recv, cr;
	MPI_Status status;
	int messages, cancelled;
	char in;
} listener;

/* As the draft's example 3.22: goes on until it is cancelled. */
static void listen_again(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	if (was_cancelled(&listener.status)) {
		listener.cancelled++;
		CHECK_OK(MPI_Request_free(&listener.recv));
		return;
	}
	listener.messages++;
	CHECK_OK(MPI_Start(&listener.recv));
	CHECK_OK(attach(&listener.recv, listen_again, NULL, &listener.status, listener.cr));
}

CONFORMANCE_BOTH(s5_7_listening_until_cancelled, 2, single,
		 "A receive that restarts itself, ends by MPI_Cancel and frees itself")
{
	enum { MESSAGES = 20 };

	memset(&listener, 0, sizeof(listener));
	listener.cr = new_cr(NULL);
	CHECK_OK(MPI_Recv_init(&listener.in, 1, MPI_BYTE, MPI_ANY_SOURCE, TAG, world, &listener.recv));
	CHECK_OK(MPI_Start(&listener.recv));
	CHECK_OK(attach(&listener.recv, listen_again, NULL, &listener.status, listener.cr));
	for (int i = 0; i < MESSAGES; i++) {
		send_byte(next_rank(), TAG, world);
		CHECK(!test_cr(&listener.cr));
	}
	while (listener.messages < MESSAGES)
		CHECK(!test_cr(&listener.cr));
	CHECK_OK(MPI_Cancel(&listener.recv));
	wait_cr(&listener.cr);
	CHECK_EQ(listener.cancelled, 1);
	CHECK_EQ(listener.messages, MESSAGES);
	CHECK(listener.recv == MPI_REQUEST_NULL);
	free_cr(&listener.cr);
	MPI_Barrier(world);
}
