/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 3, attaching: handles, requests that are complete already, second continuations, errors. */
#include "conformance.h"

#define TAG 31

/* --------------------------------------------------------------------------------------------- 3.1, the handles --- */

CONFORMANCE_BOTH(s3_1_handle_is_null_on_return, 1, single,
		 "A handle that is not persistent is null when attach returns")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};
	enum { N = 6 };

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL), op[N];
		struct seen seen = {0};

		step(k ? keys[k] : "no key");
		for (int complete = 0; complete < 2; complete++) {
			op[0] = pending(TAG);
			if (complete) {
				complete_pending(TAG);
				until_complete(op[0]);
			}
			CHECK_OK(attach(&op[0], see, &seen, MPI_STATUS_IGNORE, cr));
			CHECK(op[0] == MPI_REQUEST_NULL);
			if (!complete)
				complete_pending(TAG);
		}
		for (int i = 0; i < N; i++)
			op[i] = pending(TAG + i);
		for (int i = 0; i < N; i += 2) {
			complete_pending(TAG + i);
			until_complete(op[i]);
		}
		CHECK_OK(attach_all(N, op, see, &seen, MPI_STATUSES_IGNORE, cr));
		for (int i = 0; i < N; i++)
			CHECK(op[i] == MPI_REQUEST_NULL);
		for (int i = 1; i < N; i += 2)
			complete_pending(TAG + i);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 3);
		free_cr(&cr);
	}
}

CONFORMANCE_BOTH(s3_1_array_is_not_touched_later, 1, single,
		 "The array of handles may be freed or used again when attach returns")
{
	enum { N = 50 };
	MPI_Request cr = new_cr(NULL), one;
	struct seen seen = {0};
	MPI_Status statuses[N];

	for (int how = 0; how < 2; how++) {
		MPI_Request *ops = malloc(N * sizeof(*ops));

		step(how ? "freed" : "overwritten");
		for (int i = 0; i < N; i++)
			ops[i] = pending(TAG + i);
		CHECK_OK(attach_all(N, ops, see, &seen, statuses, cr));
		poison(ops, N * sizeof(*ops));
		if (how)
			free(ops);
		one = pending(TAG + N);
		CHECK_OK(attach(&one, see, &seen, MPI_STATUS_IGNORE, cr));
		poison(&one, sizeof(one));
		for (int i = 0; i <= N; i++)
			complete_pending(TAG + i);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 2 * how + 2);
		CHECK(is_poison(&one, sizeof(one)));
		for (int i = 0; i < N; i++)
			CHECK_EQ(statuses[i].MPI_TAG, TAG + i);
		if (!how) {
			CHECK(is_poison(ops, N * sizeof(*ops)));
			free(ops);
		}
	}
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------- 3.2, persistent requests --- */

static struct {
	MPI_Request op, same, cr;
	MPI_Status status;
	struct seen seen;
	char in;
	int left;
} again_and_again;

static void persistent_start(MPI_Request cr, bool start)
{
	memset(&again_and_again, 0, sizeof(again_and_again));
	again_and_again.cr = cr;
	CHECK_OK(MPI_Recv_init(&again_and_again.in, 1, MPI_BYTE, 0, TAG, self, &again_and_again.op));
	again_and_again.same = again_and_again.op;
	if (start)
		CHECK_OK(MPI_Start(&again_and_again.op));
}

CONFORMANCE_BOTH(s3_2_persistent_handle_stays, 1, single,
		 "A persistent handle stays, pending or complete, alone or in a set")
{
	MPI_Request cr = new_cr(NULL), r[2];
	struct seen seen = {0};
	MPI_Status status[2];

	persistent_start(cr, false);
	for (int kind = 0; kind < 4; kind++) {
		MPI_Request *op = &again_and_again.op;

		CHECK_OK(MPI_Start(op));
		if (kind & 1) {
			complete_pending(TAG);
			until_complete(*op);
		}
		poison(status, sizeof(status));
		r[0] = *op;
		r[1] = MPI_REQUEST_NULL;
		if (kind & 2)
			CHECK_OK(attach_all(2, r, see, &seen, status, cr));
		else
			CHECK_OK(attach(&r[0], see, &seen, &status[0], cr));
		CHECK(r[0] == again_and_again.same);
		if (!(kind & 1))
			complete_pending(TAG);
		wait_cr(&cr);
		CHECK(r[0] == again_and_again.same);
		CHECK_EQ(seen.runs, kind + 1);
		CHECK_EQ(status[0].MPI_TAG, TAG);
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
	}
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	free_cr(&cr);
}

/* Inactive: Test gives true with the empty status, Testany knows nothing of it. */
static void look_whether_inactive(MPI_Status *status, void *data)
{
	int flag = 0, index = 0;
	MPI_Status empty;

	poison(&empty, sizeof(empty));
	CHECK_OK(MPI_Test(&again_and_again.op, &flag, &empty));
	CHECK(flag);
	CHECK(is_empty(&empty));
	flag = 0;
	CHECK_OK(MPI_Testany(1, &again_and_again.op, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(index, MPI_UNDEFINED);
	CHECK(again_and_again.op == again_and_again.same);
	see(status, data);
}

CONFORMANCE_BOTH(s3_2_inactive_in_the_callback, 1, single,
		 "A persistent request is inactive when its continuation runs")
{
	for (int kind = 0; kind < 4; kind++) {
		MPI_Request cr = kind & 2 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);

		persistent_start(cr, true);
		if (kind & 1) {
			complete_pending(TAG);
			until_complete(again_and_again.op);
		}
		CHECK_OK(attach(&again_and_again.op, look_whether_inactive, &again_and_again.seen, MPI_STATUS_IGNORE,
				cr));
		if (!(kind & 1))
			complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(again_and_again.seen.runs, 1);
		CHECK_OK(MPI_Request_free(&again_and_again.op));
		free_cr(&cr);
	}
}

static void start_again(MPI_Status *status, void *data)
{
	see(status, data);
	CHECK_EQ(again_and_again.status.MPI_TAG, TAG);
	CHECK_EQ(again_and_again.status.MPI_ERROR, MPI_SUCCESS);
	if (--again_and_again.left == 0)
		return;
	poison(&again_and_again.status, sizeof(again_and_again.status));
	CHECK_OK(MPI_Start(&again_and_again.op));
	CHECK_OK(attach(&again_and_again.op, start_again, data, &again_and_again.status, again_and_again.cr));
	CHECK(again_and_again.op == again_and_again.same);
}

CONFORMANCE_BOTH(s3_2_started_in_the_callback, 1, single,
		 "A persistent request may be started and attached again in its callback")
{
	enum { ROUNDS = 300 };

	for (int k = 0; k < 2; k++) {
		MPI_Request cr = k ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL), send[ROUNDS];
		static char out;

		persistent_start(cr, true);
		again_and_again.left = ROUNDS;
		CHECK_OK(attach(&again_and_again.op, start_again, &again_and_again.seen, &again_and_again.status, cr));
		/* Some messages before and some while it waits. */
		for (int i = 0; i < ROUNDS; i++)
			CHECK_OK(MPI_Isend(&out, 1, MPI_BYTE, 0, TAG, self, &send[i]));
		wait_cr(&cr);
		CHECK_EQ(again_and_again.seen.runs, ROUNDS);
		CHECK_OK(MPI_Waitall(ROUNDS, send, MPI_STATUSES_IGNORE));
		CHECK_OK(MPI_Request_free(&again_and_again.op));
		free_cr(&cr);
	}
}

static void free_it(MPI_Status *status, void *data)
{
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	CHECK(again_and_again.op == MPI_REQUEST_NULL);
	see(status, data);
}

CONFORMANCE_BOTH(s3_2_freed_in_the_callback, 1, single, "A persistent request may be freed in its callback")
{
	for (int kind = 0; kind < 4; kind++) {
		MPI_Request cr = kind & 2 ? new_cr(ENQUEUE_COMPLETE, "true", NULL) : new_cr(NULL), op;

		persistent_start(cr, true);
		if (kind & 1) {
			complete_pending(TAG);
			until_complete(again_and_again.op);
		}
		op = again_and_again.op;
		CHECK_OK(attach(&op, free_it, &again_and_again.seen, MPI_STATUS_IGNORE, cr));
		if (!(kind & 1))
			complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(again_and_again.seen.runs, 1);
		free_cr(&cr);
	}
}

CONFORMANCE_BOTH(s3_2_inactive_counts_as_complete, 1, single,
		 "An inactive persistent request is complete, with the empty status")
{
	MPI_Request cr = new_cr(NULL), r[4];
	struct seen seen = {0};
	MPI_Status status[4];

	persistent_start(cr, false);
	poison(status, sizeof(status));
	CHECK_OK(attach(&again_and_again.op, see, &seen, &status[0], cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK(again_and_again.op == again_and_again.same);
	CHECK(is_empty(&status[0]));
	CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
	/* Twice in a set, and beside one that is pending. */
	poison(status, sizeof(status));
	r[0] = r[2] = again_and_again.op;
	r[1] = pending(TAG + 1);
	r[3] = MPI_REQUEST_NULL;
	CHECK_OK(attach_all(4, r, see, &seen, status, cr));
	CHECK(!test_cr(&cr));
	complete_pending(TAG + 1);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 2);
	CHECK(is_empty(&status[0]) && is_empty(&status[2]) && is_empty(&status[3]));
	CHECK_EQ(status[1].MPI_TAG, TAG + 1);
	/* It still is what it was. */
	CHECK_OK(MPI_Start(&again_and_again.op));
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&again_and_again.op, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_2_sets_started_again, 2, single, "MPI_Startall and a set, with the same handles again and again")
{
	enum { N = 4, ROUNDS = 20, INTS = 20000 };
	static int in[N][INTS], out[N][INTS];
	MPI_Request cr = new_cr(NULL), r[2 * N], same[2 * N];
	struct seen seen = {0};
	MPI_Status status[2 * N];

	for (int i = 0; i < N; i++) {
		int n = i % 2 ? INTS : 4; /* eager and rendezvous */

		CHECK_OK(MPI_Recv_init(in[i], n, MPI_INT, previous_rank(), TAG + i, world, &r[i]));
		CHECK_OK(MPI_Send_init(out[i], n, MPI_INT, next_rank(), TAG + i, world, &r[N + i]));
	}
	memcpy(same, r, sizeof(r));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++)
			out[i][3] = 1000 * my_rank + 10 * round + i;
		poison(status, sizeof(status));
		CHECK_OK(MPI_Startall(2 * N, r));
		CHECK_OK(attach_all(2 * N, r, see, &seen, status, cr));
		CHECK(memcmp(r, same, sizeof(r)) == 0);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, round + 1);
		for (int i = 0; i < N; i++) {
			CHECK_EQ(in[i][3], 1000 * previous_rank() + 10 * round + i);
			CHECK_EQ(status[i].MPI_TAG, TAG + i);
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
			CHECK_EQ(status[N + i].MPI_ERROR, MPI_SUCCESS);
		}
	}
	for (int i = 0; i < 2 * N; i++)
		CHECK_OK(MPI_Request_free(&r[i]));
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------------- 3.3, nothing to do --- */

CONFORMANCE_BOTH(s3_3_null_request_counts_as_complete, 1, single, "MPI_REQUEST_NULL is complete, with the empty status")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL), r[3];
		struct seen seen = {0};
		MPI_Status status[3];

		step(k ? keys[k] : "no key");
		r[0] = r[1] = r[2] = MPI_REQUEST_NULL;
		poison(status, sizeof(status));
		CHECK_OK(attach(&r[0], see, &seen, &status[0], cr));
		CHECK(r[0] == MPI_REQUEST_NULL);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 1);
		CHECK(is_empty(&status[0]));
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		poison(status, sizeof(status));
		CHECK_OK(attach_all(3, r, see, &seen, status, cr));
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 2);
		for (int i = 0; i < 3; i++) {
			CHECK(is_empty(&status[i]));
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		}
		r[1] = pending(TAG);
		poison(status, sizeof(status));
		CHECK_OK(attach_all(3, r, see, &seen, status, cr));
		CHECK(!test_cr(&cr));
		complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 3);
		CHECK(is_empty(&status[0]) && is_empty(&status[2]));
		CHECK_EQ(status[1].MPI_TAG, TAG);
		free_cr(&cr);
	}
}

CONFORMANCE_BOTH(s3_3_count_zero, 1, single, "A set of no requests is complete; its array is not looked at")
{
	MPI_Request cr = new_cr(NULL), poisoned[1];
	struct seen seen = {0};
	MPI_Status status;

	poison(poisoned, sizeof(poisoned));
	poison(&status, sizeof(status));
	CHECK_OK(attach_all(0, NULL, see, &seen, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(attach_all(0, poisoned, see, &seen, &status, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 2);
	CHECK(is_poison(poisoned, sizeof(poisoned)));
	CHECK(is_poison(&status, sizeof(status)));
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_3_operation_on_proc_null, 1, single,
		 "Operations with MPI_PROC_NULL are complete, with the status of MPI_Wait")
{
	MPI_Request cr = new_cr(NULL), r[3];
	struct seen seen = {0};
	MPI_Status status[3], expected;
	char byte[3] = {0};

	CHECK_OK(MPI_Irecv(&byte[0], 1, MPI_BYTE, MPI_PROC_NULL, TAG, self, &r[0]));
	CHECK_OK(MPI_Wait(&r[0], &expected));
	for (int round = 0; round < 3; round++) {
		CHECK_OK(MPI_Irecv(&byte[0], 1, MPI_BYTE, MPI_PROC_NULL, TAG, self, &r[0]));
		CHECK_OK(MPI_Isend(&byte[1], 1, MPI_BYTE, MPI_PROC_NULL, TAG, self, &r[1]));
		CHECK_OK(MPI_Irecv(&byte[2], 1, MPI_BYTE, MPI_PROC_NULL, TAG, self, &r[2]));
		poison(status, sizeof(status));
		if (round == 0) {
			for (int i = 0; i < 3; i++)
				CHECK_OK(attach(&r[i], see, &seen, &status[i], cr));
			atomic_fetch_sub(&seen.runs, 2);
		} else {
			CHECK_OK(attach_all(3, r, see, &seen, status, cr));
		}
		wait_cr(&cr);
		CHECK_EQ(seen.runs, round + 1);
		for (int i = 0; i < 3; i++) {
			CHECK(r[i] == MPI_REQUEST_NULL);
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		}
		for (int i = 0; i < 3; i += 2) {
			CHECK_EQ(status[i].MPI_SOURCE, expected.MPI_SOURCE);
			CHECK_EQ(status[i].MPI_TAG, expected.MPI_TAG);
			CHECK_EQ(count_of(&status[i]), 0);
		}
	}
	free_cr(&cr);
}

/* ---------------------------------------------------------------------------------------- 3.4, complete already --- */

static void attach_complete(MPI_Request cr, struct seen *seen, int kind)
{
	MPI_Request op[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	switch (kind) {
	case 0:
		CHECK_OK(attach(&op[0], see, seen, MPI_STATUS_IGNORE, cr));
		break;
	case 1:
		CHECK_OK(attach_all(0, NULL, see, seen, MPI_STATUSES_IGNORE, cr));
		break;
	case 2:
		CHECK_OK(attach_all(2, op, see, seen, MPI_STATUSES_IGNORE, cr));
		break;
	default:
		op[0] = pending(TAG);
		complete_pending(TAG);
		until_complete(op[0]);
		CHECK_OK(attach(&op[0], see, seen, MPI_STATUS_IGNORE, cr));
	}
}

CONFORMANCE_BOTH(s3_4_complete_already, 1, single, "All complete at attach: it runs in attach or later, once")
{
	MPI_Request cr = new_cr(NULL);

	for (int kind = 0; kind < 4; kind++) {
		struct seen seen = {0};

		attach_complete(cr, &seen, kind);
		CHECK(seen.runs <= 1);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, 1);
		for (int i = 0; i < 5; i++) {
			drive_once();
			CHECK(test_cr(&cr));
		}
		CHECK_EQ(seen.runs, 1);
	}
	free_cr(&cr);
}

/* With the key nothing runs in the call that attaches. */
static void never_in_attach(const char *key, bool poll_only)
{
	MPI_Request cr = new_cr(key, "true", NULL);
	struct seen seen = {0};
	int runs = 0;

	for (int round = 0; round < 20; round++) {
		for (int kind = 0; kind < 3; kind++) {
			attach_complete(cr, &seen, kind);
			CHECK_EQ(seen.runs, runs);
		}
		runs += 3;
		if (poll_only)
			CHECK(test_cr(&cr));
		else
			CHECK(drive_until(&seen.runs, runs));
		CHECK_EQ(seen.runs, runs);
		/* A message needs calls that make progress, which may run others; so this one is alone. */
		attach_complete(cr, &seen, 3);
		CHECK_EQ(seen.runs, runs);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, ++runs);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s3_4_enqueue_complete, 1, single, "mpi_continue_enqueue_complete: never inside the call that attaches")
{
	never_in_attach(ENQUEUE_COMPLETE, false);
}

CONFORMANCE_BOTH(s3_4_poll_only, 1, single, "mpi_continue_poll_only: never inside the call that attaches")
{
	never_in_attach(POLL_ONLY, true);
}

static struct {
	MPI_Request cr;
	struct seen seen;
	int depth, left;
} nested;

static void attach_more(MPI_Status *status, void *data)
{
	MPI_Request op = MPI_REQUEST_NULL;

	CHECK_EQ(++nested.depth, 1);
	see(status, data);
	for (int i = 0; i < 2 && nested.left > 0; i++) {
		nested.left--;
		CHECK_OK(attach(&op, attach_more, data, MPI_STATUS_IGNORE, nested.cr));
	}
	nested.depth--;
}

CONFORMANCE_BOTH(s3_4_never_recursive, 1, single,
		 "A continuation of complete operations does not run inside another one")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};

	for (int k = 0; k < 3; k++) {
		MPI_Request op = MPI_REQUEST_NULL;

		step(k ? keys[k] : "no key");
		memset(&nested, 0, sizeof(nested));
		nested.cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL);
		nested.left = 200;
		CHECK_OK(attach(&op, attach_more, &nested.seen, MPI_STATUS_IGNORE, nested.cr));
		wait_cr(&nested.cr);
		CHECK_EQ(nested.seen.runs, 201);
		CHECK_EQ(nested.depth, 0);
		free_cr(&nested.cr);
	}
}

/* --------------------------------------------------------------------------- 3.5, one continuation an operation --- */

CONFORMANCE_BOTH(s3_5_second_attach, 1, single, "A second attach to the same active request is MPI_ERR_REQUEST")
{
	MPI_Request cr = new_cr(NULL), other = new_cr(NULL), r[3], same[3];
	struct seen seen = {0};
	MPI_Status status[3];

	poison(status, sizeof(status));
	persistent_start(cr, true);
	CHECK_OK(attach(&again_and_again.op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_CLASS(attach(&again_and_again.op, never, NULL, &status[0], cr), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&again_and_again.op, never, NULL, &status[0], other), MPI_ERR_REQUEST);
	r[0] = pending(TAG + 1);
	r[1] = again_and_again.op;
	r[2] = MPI_REQUEST_NULL;
	memcpy(same, r, sizeof(r));
	CHECK_CLASS(attach_all(3, r, never, NULL, status, other), MPI_ERR_REQUEST);
	CHECK(memcmp(r, same, sizeof(r)) == 0);
	CHECK(again_and_again.op == again_and_again.same);
	CHECK(is_poison(status, sizeof(status)));
	CHECK(test_cr(&other));
	CHECK(!test_cr(&cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	/* The receive that was in the refused set, and the persistent one, are as before. */
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Start(&again_and_again.op));
	CHECK_OK(attach(&again_and_again.op, see, &seen, MPI_STATUS_IGNORE, other));
	complete_pending(TAG);
	wait_cr(&other);
	CHECK_EQ(seen.runs, 2);
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	free_cr(&cr);
	free_cr(&other);
}

CONFORMANCE_BOTH(s3_5_second_attach_to_a_cr, 1, single, "A second attach to the same incomplete CR is MPI_ERR_REQUEST")
{
	MPI_Request first = new_cr(NULL), second = new_cr(NULL), third = new_cr(NULL), op = pending(TAG), same = first;
	struct seen seen = {0}, after = {0};

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, first));
	CHECK_OK(attach(&first, see, &after, MPI_STATUS_IGNORE, second));
	CHECK_CLASS(attach(&first, never, NULL, MPI_STATUS_IGNORE, second), MPI_ERR_REQUEST);
	CHECK_CLASS(attach(&first, never, NULL, MPI_STATUS_IGNORE, third), MPI_ERR_REQUEST);
	CHECK(first == same);
	CHECK(test_cr(&third));
	complete_pending(TAG);
	wait_cr(&second);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(after.runs, 1);
	free_cr(&first);
	free_cr(&second);
	free_cr(&third);
}

CONFORMANCE_BOTH(s3_5_named_twice, 1, single, "An active request named twice in a set is MPI_ERR_REQUEST")
{
	enum { N = 20 };
	MPI_Request cr = new_cr(NULL), r[N], same[N];
	struct seen seen = {0};
	MPI_Status status[N];

	for (int complete = 0; complete < 2; complete++)
		for (int n = 2; n <= N; n += n < 4 ? 1 : 16) {
			step(complete ? "complete" : "pending");
			for (int i = 0; i < n; i++)
				r[i] = MPI_REQUEST_NULL;
			r[0] = pending(TAG);
			if (complete) {
				complete_pending(TAG);
				until_complete(r[0]);
			}
			r[n - 1] = r[0];
			memcpy(same, r, sizeof(r));
			poison(status, sizeof(status));
			CHECK_CLASS(attach_all(n, r, never, NULL, status, cr), MPI_ERR_REQUEST);
			CHECK(memcmp(r, same, (size_t)n * sizeof(r[0])) == 0);
			CHECK(is_poison(status, sizeof(status)));
			CHECK(test_cr(&cr));
			if (!complete)
				complete_pending(TAG);
			CHECK_OK(attach(&r[0], see, &seen, MPI_STATUS_IGNORE, cr));
			wait_cr(&cr);
		}
	CHECK_EQ(seen.runs, 2 * 4);
	persistent_start(cr, true);
	r[0] = r[1] = again_and_again.op;
	CHECK_CLASS(attach_all(2, r, never, NULL, MPI_STATUSES_IGNORE, cr), MPI_ERR_REQUEST);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&again_and_again.op, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------------ 3.6, after an error --- */

CONFORMANCE_BOTH(s3_6_nothing_changed_after_an_error, 1, single,
		 "On any error nothing is attached and no handle has changed")
{
	enum { N = 5 };
	MPI_Request cr = new_cr(NULL), r[N], same[N], complete;
	MPI_Status status[N], got[N];
	struct seen seen = {0};

	/* Pending, complete, null, inactive; and last what is wrong. */
	r[0] = pending(TAG + 1);
	r[1] = complete = pending(TAG + 2);
	complete_pending(TAG + 2);
	until_complete(complete);
	r[2] = MPI_REQUEST_NULL;
	persistent_start(cr, false);
	r[3] = again_and_again.op;
	poison(status, sizeof(status));
	for (int wrong = 0; wrong < 4; wrong++) {
		int rc;

		r[4] = wrong == 0 ? cr : wrong == 1 ? r[0] : MPI_REQUEST_NULL;
		memcpy(same, r, sizeof(r));
		if (wrong < 2)
			rc = attach_all(N, r, never, NULL, status, cr);
		else
			rc = attach_all(N, r, wrong == 2 ? NULL : never, NULL, status,
					wrong == 2 ? cr : again_and_again.op);
		CHECK_CLASS(rc, wrong == 2 ? MPI_ERR_ARG : MPI_ERR_REQUEST);
		CHECK(memcmp(r, same, sizeof(r)) == 0);
		CHECK(is_poison(status, sizeof(status)));
		CHECK(test_cr(&cr));
	}
	/* They can still be completed in the ordinary way, and with continuations. */
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Waitall(3, r, got));
	CHECK_EQ(got[0].MPI_TAG, TAG + 1);
	CHECK_EQ(got[1].MPI_TAG, TAG + 2);
	CHECK_OK(MPI_Start(&again_and_again.op));
	CHECK_OK(attach(&again_and_again.op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPI_Request_free(&again_and_again.op));
	free_cr(&cr);
}
