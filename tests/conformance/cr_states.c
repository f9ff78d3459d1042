/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 2, the continuation request: its states, its completion, what may be done with it. */
#include <sched.h>

#include "../abi.h"
#include "conformance.h"

#define TAG 21

/* One continuation that complete_pending(tag) ends. */
static void register_pending(MPI_Request cr, struct seen *seen, int tag)
{
	MPI_Request op = pending(tag);

	CHECK_OK(attach(&op, see, seen, MPI_STATUS_IGNORE, cr));
}

static bool get_status(MPI_Request cr)
{
	int flag = -1;

	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	return flag;
}

/* ------------------------------------------------------------------------------------------------ 2.1, complete --- */

CONFORMANCE_BOTH(s2_1_new_cr_is_complete, 1, single, "With nothing registered a CR is complete, as often as one asks")
{
	for (int how = 0; how < hows; how++) {
		MPI_Request cr = new_cr(NULL);

		step(how_name[how]);
		for (int i = 0; i < 3; i++) {
			CHECK(get_status(cr));
			CHECK(report_by((enum how)how, &cr));
			again(&cr);
		}
		free_cr(&cr);
	}
}

CONFORMANCE_BOTH(s2_1_incomplete_after_first_registration, 1, single, "The first registration makes the CR incomplete")
{
	MPI_Request cr = new_cr(NULL);
	struct seen seen = {0};

	register_pending(cr, &seen, TAG);
	for (int i = 0; i < 20; i++) {
		CHECK(!get_status(cr));
		for (int how = by_test; how <= by_testsome; how++)
			CHECK(!report_by((enum how)how, &cr));
	}
	CHECK_EQ(seen.runs, 0);
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s2_1_complete_after_the_last_has_run, 1, single,
		 "It is complete again when the last continuation has run")
{
	enum { N = 5 };
	static const int order[N] = {3, 0, 4, 2, 1};
	MPI_Request cr = new_cr(NULL);
	struct seen seen[N];

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < N; i++)
		register_pending(cr, &seen[i], TAG + i);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 10; k++)
			CHECK(!test_cr(&cr));
		CHECK_EQ(seen[order[i]].runs, 0);
		complete_pending(TAG + order[i]);
	}
	while (!test_cr(&cr))
		;
	for (int i = 0; i < N; i++)
		CHECK_EQ(seen[i].runs, 1);
	CHECK(test_cr(&cr));
	free_cr(&cr);
}

CONFORMANCE_BOTH(s2_1_completion_keeps_the_handle, 1, single, "Completion never frees a CR, however it is reported")
{
	MPI_Request cr = new_cr(NULL), same = cr;
	struct seen seen = {0};
	int rounds = 0;

	for (int round = 0; round < 10; round++)
		for (int how = 0; how < hows; how++) {
			step(how_name[how]);
			register_pending(cr, &seen, TAG);
			complete_pending(TAG);
			while (!report_by((enum how)how, &cr))
				;
			again(&cr);
			CHECK(cr == same);
			CHECK_EQ(seen.runs, ++rounds);
		}
	free_cr(&cr);
}

static struct {
	MPI_Request cr;
	atomic_int waiting, returned, ended;
} waiter;

static void *wait_in_thread(void *arg)
{
	(void)arg;
	atomic_store(&waiter.waiting, 1);
	CHECK_OK(MPI_Wait(&waiter.cr, MPI_STATUS_IGNORE));
	atomic_store(&waiter.returned, 1);
	return NULL;
}

static pthread_t start_waiter(MPI_Request cr)
{
	pthread_t thread;

	waiter.cr = cr;
	atomic_store(&waiter.waiting, 0);
	atomic_store(&waiter.returned, 0);
	CHECK_EQ(pthread_create(&thread, NULL, wait_in_thread, NULL), 0);
	while (!atomic_load(&waiter.waiting))
		sched_yield();
	usleep(5000); /* so that it most likely waits; the rule holds where it does not */
	return thread;
}

static void slowly(MPI_Status *status, void *data)
{
	see(status, data);
	usleep(20000);
	atomic_store(&waiter.ended, 1);
}

CONFORMANCE_BOTH(s2_1_waiter_is_woken, 1, multiple,
		 "A thread in MPI_Wait on a CR returns when another one finds the end")
{
	for (int round = 0; round < 15; round++) {
		MPI_Request cr = round % 2 ? new_cr(NULL) : new_cr(POLL_ONLY, "true", NULL), op = pending(TAG);
		struct seen seen = {0};
		pthread_t thread;

		atomic_store(&waiter.ended, 0);
		CHECK_OK(attach(&op, slowly, &seen, MPI_STATUS_IGNORE, cr));
		thread = start_waiter(cr);
		CHECK(!atomic_load(&waiter.returned));
		complete_pending(TAG);
		/* This thread finds it, or the waiter does: in other calls, or in tests of the same CR. */
		while (round % 3 && !atomic_load(&waiter.returned)) {
			int flag;

			drive_once();
			if (round % 3 == 2)
				MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE);
		}
		pthread_join(thread, NULL);
		CHECK_EQ(seen.runs, 1);
		CHECK(atomic_load(&waiter.ended)); /* not while it was still running */
		free_cr(&cr);
	}
}

/* --------------------------------------------------------------------------------- 2.3, in all completion calls --- */

CONFORMANCE_BOTH(s2_3_get_status, 1, single, "MPI_Request_get_status tells of a CR, and changes nothing")
{
	MPI_Request cr = new_cr(NULL), same = cr;
	struct seen seen = {0};
	MPI_Status status;
	int flag = 1;

	register_pending(cr, &seen, TAG);
	CHECK(!get_status(cr));
	complete_pending(TAG);
	do {
		poison(&status, sizeof(status));
		CHECK_OK(MPI_Request_get_status(cr, &flag, &status));
	} while (!flag);
	CHECK_EQ(seen.runs, 1);
	CHECK(is_empty(&status));
	CHECK(get_status(cr));
	/* No call has reported the completion yet: it is still to be reported. */
	CHECK(report_by(by_waitall, &cr));
	CHECK(cr == same);
	free_cr(&cr);
}

/* Two CRs and a receive in one call, from pending to complete. */
struct beside {
	MPI_Request r[4], cr[2];
	MPI_Status status[4];
	struct seen seen[2];
};

static void beside_begin(struct beside *b)
{
	memset(b->seen, 0, sizeof(b->seen));
	for (int i = 0; i < 2; i++) {
		b->cr[i] = new_cr(NULL);
		register_pending(b->cr[i], &b->seen[i], TAG + i);
	}
	b->r[0] = b->cr[0];
	b->r[1] = pending(TAG + 2);
	b->r[2] = MPI_REQUEST_NULL;
	b->r[3] = b->cr[1];
	poison(b->status, sizeof(b->status));
}

static void beside_end(struct beside *b)
{
	CHECK(b->r[0] == b->cr[0] && b->r[3] == b->cr[1]);
	CHECK(b->r[1] == MPI_REQUEST_NULL && b->r[2] == MPI_REQUEST_NULL);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(b->seen[i].runs, 1);
		free_cr(&b->cr[i]);
	}
}

static void beside_statuses(struct beside *b)
{
	CHECK(is_empty(&b->status[0]));
	CHECK_EQ(b->status[1].MPI_TAG, TAG + 2);
	CHECK_EQ(count_of(&b->status[1]), 1);
	CHECK(is_empty(&b->status[2]));
	CHECK(is_empty(&b->status[3]));
}

CONFORMANCE_BOTH(s2_3_testall, 1, single, "MPI_Testall takes CRs beside ordinary requests")
{
	static const int order[] = {TAG, TAG + 2, TAG + 1};
	struct beside b;
	int flag = 1;

	beside_begin(&b);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 10; k++) {
			CHECK_OK(MPI_Testall(4, b.r, &flag, b.status));
			CHECK(!flag);
		}
		CHECK(b.r[0] == b.cr[0] && b.r[1] != MPI_REQUEST_NULL && b.r[3] == b.cr[1]);
		complete_pending(order[i]);
	}
	do
		CHECK_OK(MPI_Testall(4, b.r, &flag, b.status));
	while (!flag);
	beside_statuses(&b);
	beside_end(&b);
}

CONFORMANCE_BOTH(s2_3_waitall, 1, single, "MPI_Waitall takes CRs beside ordinary requests")
{
	for (int ignore = 0; ignore < 2; ignore++) {
		struct beside b;

		beside_begin(&b);
		complete_pending(TAG + 1);
		complete_pending(TAG + 2);
		complete_pending(TAG);
		CHECK_OK(MPI_Waitall(4, b.r, ignore ? MPI_STATUSES_IGNORE : b.status));
		if (!ignore)
			beside_statuses(&b);
		beside_end(&b);
	}
}

CONFORMANCE_BOTH(s2_3_testany, 1, single, "MPI_Testany takes CRs beside ordinary requests")
{
	struct beside b;
	MPI_Request only[2];
	int flag = 1, index = -1;

	beside_begin(&b);
	CHECK_OK(MPI_Testany(4, b.r, &index, &flag, &b.status[0]));
	CHECK(!flag);
	complete_pending(TAG + 2);
	do
		CHECK_OK(MPI_Testany(4, b.r, &index, &flag, &b.status[0]));
	while (!flag);
	CHECK_EQ(index, 1);
	CHECK_EQ(b.status[0].MPI_TAG, TAG + 2);
	CHECK(b.r[1] == MPI_REQUEST_NULL);
	complete_pending(TAG + 1);
	do
		CHECK_OK(MPI_Testany(4, b.r, &index, &flag, &b.status[0]));
	while (!flag);
	CHECK_EQ(index, 3);
	CHECK(is_empty(&b.status[0]));
	CHECK_EQ(b.seen[0].runs, 0);
	complete_pending(TAG);
	only[0] = MPI_REQUEST_NULL;
	only[1] = b.cr[0];
	do
		CHECK_OK(MPI_Testany(2, only, &index, &flag, &b.status[0]));
	while (!flag);
	CHECK_EQ(index, 1);
	CHECK(only[1] == b.cr[0]);
	beside_end(&b);
}

CONFORMANCE_BOTH(s2_3_waitany, 1, single, "MPI_Waitany takes CRs beside ordinary requests")
{
	struct beside b;
	MPI_Request only[2];
	int index = -1;

	beside_begin(&b);
	complete_pending(TAG + 2);
	CHECK_OK(MPI_Waitany(4, b.r, &index, &b.status[0]));
	CHECK_EQ(index, 1);
	CHECK_EQ(b.status[0].MPI_TAG, TAG + 2);
	CHECK(b.r[1] == MPI_REQUEST_NULL);
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Waitany(4, b.r, &index, &b.status[0]));
	CHECK_EQ(index, 3);
	CHECK(is_empty(&b.status[0]));
	CHECK_EQ(b.seen[0].runs, 0);
	complete_pending(TAG);
	only[0] = MPI_REQUEST_NULL;
	only[1] = b.cr[0];
	CHECK_OK(MPI_Waitany(2, only, &index, MPI_STATUS_IGNORE));
	CHECK_EQ(index, 1);
	CHECK(only[1] == b.cr[0]);
	beside_end(&b);
}

/* Each of the three is reported, and the receive once. */
static void some(bool wait)
{
	struct beside b;
	int count = -1, indices[4];
	bool reported[4] = {false};

	beside_begin(&b);
	if (!wait) {
		CHECK_OK(MPI_Testsome(4, b.r, &count, indices, b.status));
		CHECK_EQ(count, 0);
	}
	complete_pending(TAG);
	complete_pending(TAG + 2);
	complete_pending(TAG + 1);
	for (int calls = 0; !(reported[0] && reported[1] && reported[3]) && calls < 100000; calls++) {
		if (wait)
			CHECK_OK(MPI_Waitsome(4, b.r, &count, indices, b.status));
		else
			CHECK_OK(MPI_Testsome(4, b.r, &count, indices, b.status));
		if (!CHECK(count != MPI_UNDEFINED) || (wait && !CHECK(count > 0)))
			break;
		for (int i = 0; i < count; i++) {
			CHECK(indices[i] != 2);
			CHECK(indices[i] != 1 || !reported[1]);
			if (indices[i] == 1)
				CHECK_EQ(b.status[i].MPI_TAG, TAG + 2);
			else
				CHECK(is_empty(&b.status[i]));
			reported[indices[i]] = true;
		}
	}
	CHECK(reported[0] && reported[1] && reported[3]);
	beside_end(&b);
}

CONFORMANCE_BOTH(s2_3_testsome, 1, single, "MPI_Testsome takes CRs beside ordinary requests")
{
	some(false);
}

CONFORMANCE_BOTH(s2_3_waitsome, 1, single, "MPI_Waitsome takes CRs beside ordinary requests")
{
	some(true);
}

CONFORMANCE_BOTH(s2_3_many_in_one_call, 1, single,
		 "Many CRs of different kinds and many requests go into one MPI_Waitall")
{
	enum { CRS = 7, EACH = 5, OTHERS = 20 };
	static const char *const keys[] = {POLL_ONLY, ENQUEUE_COMPLETE, THREAD};
	static const char *const values[] = {"true", "true", "any"};
	MPI_Request r[CRS + OTHERS], cr[CRS];
	MPI_Status statuses[CRS + OTHERS];
	struct seen seen[CRS];

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < CRS; i++) {
		cr[i] = i % 4 == 3 ? new_cr(NULL) : new_cr(keys[i % 4], values[i % 4], NULL);
		for (int k = 0; k < EACH; k++)
			register_pending(cr[i], &seen[i], TAG + i * EACH + k);
	}
	for (int i = 0, c = 0, o = 0; i < CRS + OTHERS; i++)
		r[i] = i % 3 == 0 && c < CRS ? cr[c++] : pending(TAG + 1000 + o++);
	for (int i = 0; i < OTHERS; i++)
		complete_pending(TAG + 1000 + i);
	for (int i = CRS * EACH; i-- > 0;)
		complete_pending(TAG + i);
	CHECK_OK(MPI_Waitall(CRS + OTHERS, r, statuses));
	for (int i = 0, c = 0; i < CRS + OTHERS; i++) {
		if (i % 3 == 0 && c < CRS) {
			CHECK(r[i] == cr[c++]);
			CHECK(is_empty(&statuses[i]));
		} else {
			CHECK(r[i] == MPI_REQUEST_NULL);
			CHECK_EQ(count_of(&statuses[i]), 1);
		}
	}
	for (int i = 0; i < CRS; i++) {
		CHECK_EQ(seen[i].runs, EACH);
		free_cr(&cr[i]);
	}
}

CONFORMANCE_BOTH(s2_3_fortran_handles, 1, single, "A CR goes through a Fortran handle and back")
{
	MPI_Request cr = new_cr(NULL), other = new_cr(NULL), back;
	MPI_Fint handle = MPI_Request_c2f(cr);
	struct seen seen = {0};
	int flag = 1;

	CHECK(handle != MPI_Request_c2f(other));
	CHECK(MPI_Request_f2c(handle) == cr);
	back = MPI_Request_f2c(handle);
	register_pending(back, &seen, TAG);
	CHECK_OK(MPI_Test(&back, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&back, MPI_STATUS_IGNORE));
	CHECK(back == cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(MPI_Request_c2f(cr), handle);
	again(&cr);
	free_cr(&back);
	free_cr(&other);
}

CONFORMANCE_BOTH(s2_3_pmpi_completion_calls, 1, single, "A CR is completed by the PMPI names of Test and Wait too")
{
	MPI_Request cr = new_cr(NULL), same = cr, r[2] = {cr, MPI_REQUEST_NULL};
	const char *backend = getenv("CONTD_MPI_BACKEND");
	struct seen seen = {0};
	double end;
	int flag = 1;

	register_pending(cr, &seen, TAG);
	CHECK_OK(PMPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	for (end = MPI_Wtime() + 2; !flag && MPI_Wtime() < end;)
		CHECK_OK(PMPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	if (!flag && !(backend && strcmp(backend, "native") == 0)) {
		/* Where calls are intercepted these pass by; such a backend need not see them. */
		skip("this backend does not see calls by PMPI names");
		wait_cr(&cr);
		free_cr(&cr);
		return;
	}
	CHECK(flag);
	CHECK(cr == same);
	again(&cr);
	register_pending(cr, &seen, TAG);
	complete_pending(TAG);
	CHECK_OK(PMPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	CHECK(r[0] == same);
	CHECK_EQ(seen.runs, 2);
	CHECK_OK(PMPI_Request_free(&cr));
	CHECK(cr == MPI_REQUEST_NULL);
}

/* ------------------------------------------------------------------------------------------------- 2.4, freeing --- */

CONFORMANCE_BOTH(s2_4_free_with_outstanding, 1, single,
		 "A CR freed with continuations outstanding lives until they have run")
{
	enum { N = 5 };
	struct seen seen = {0};

	for (int round = 0; round < 3; round++) {
		MPI_Request cr = new_cr(NULL);

		for (int i = 0; i < N; i++)
			register_pending(cr, &seen, TAG + i);
		free_cr(&cr);
		for (int i = 0; i < 20; i++)
			drive_once();
		CHECK_EQ(seen.runs, N * round);
		for (int i = 0; i < N; i++)
			complete_pending(TAG + i);
		CHECK(drive_until(&seen.runs, N * (round + 1)));
		CHECK_EQ(seen.runs, N * (round + 1));
	}
}

CONFORMANCE_BOTH(s2_4_free_complete, 1, single, "CRs are freed when complete, used or not, as many as one likes")
{
	struct seen seen = {0};

	for (int round = 0; round < 5000; round++) {
		MPI_Request cr = new_cr(NULL), op = MPI_REQUEST_NULL;

		if (round % 2) {
			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
			wait_cr(&cr);
		}
		free_cr(&cr);
	}
	CHECK_EQ(seen.runs, 2500);
}

static void free_own(MPI_Status *status, void *data)
{
	(void)status;
	free_cr(data);
}

CONFORMANCE_BOTH(s2_4_free_in_own_callback, 1, single, "A continuation may free the CR that it is registered with")
{
	for (int round = 0; round < 4; round++) {
		MPI_Request cr = new_cr(NULL), kept = cr, op = round % 2 ? pending(TAG) : MPI_REQUEST_NULL;
		struct seen seen = {0};
		double end = MPI_Wtime() + 10;

		if (round >= 2)
			register_pending(cr, &seen, TAG + 1);
		CHECK_OK(attach(&op, free_own, &cr, MPI_STATUS_IGNORE, kept));
		if (round % 2)
			complete_pending(TAG);
		while (cr != MPI_REQUEST_NULL && MPI_Wtime() < end)
			drive_once();
		CHECK(cr == MPI_REQUEST_NULL);
		if (round >= 2) {
			CHECK_EQ(seen.runs, 0);
			complete_pending(TAG + 1);
			CHECK(drive_until(&seen.runs, 1));
		}
	}
}

/* --------------------------------------------------------------------------------------- 2.5, CRs as operations --- */

CONFORMANCE_BOTH(s2_5_continuation_on_a_cr, 1, single,
		 "A continuation on a CR runs when all that were registered have run")
{
	MPI_Request first = new_cr(NULL), second = new_cr(NULL), same = first;
	struct seen seen = {0}, after = {0};
	MPI_Status status;

	for (int i = 0; i < 3; i++)
		register_pending(first, &seen, TAG + i);
	poison(&status, sizeof(status));
	CHECK_OK(attach(&first, see, &after, &status, second));
	CHECK(first == same);
	CHECK(!test_cr(&second));
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 10; k++)
			CHECK(!test_cr(&second));
		CHECK_EQ(after.runs, 0);
		complete_pending(TAG + i);
	}
	wait_cr(&second);
	CHECK_EQ(seen.runs, 3);
	CHECK_EQ(after.runs, 1);
	CHECK(is_empty(&status));
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
	free_cr(&first);
	free_cr(&second);
}

CONFORMANCE_BOTH(s2_5_complete_cr_as_operation, 1, single,
		 "A complete CR given to attach counts as complete, and stays")
{
	MPI_Request first = new_cr(NULL), second = new_cr(NULL), same = first, op[3];
	struct seen seen = {0}, after = {0};
	MPI_Status status[3];

	register_pending(first, &seen, TAG);
	complete_pending(TAG);
	until_complete(first);
	CHECK_EQ(seen.runs, 1);
	poison(status, sizeof(status));
	CHECK_OK(attach(&first, see, &after, &status[0], second));
	wait_cr(&second);
	CHECK(first == same);
	CHECK_EQ(after.runs, 1);
	CHECK(is_empty(&status[0]));
	op[0] = MPI_REQUEST_NULL;
	op[1] = first;
	op[2] = pending(TAG);
	CHECK_OK(attach_all(3, op, see, &after, status, second));
	CHECK(op[1] == same && op[2] == MPI_REQUEST_NULL);
	CHECK(!test_cr(&second));
	complete_pending(TAG);
	wait_cr(&second);
	CHECK_EQ(after.runs, 2);
	CHECK(is_empty(&status[1]));
	CHECK_EQ(status[2].MPI_TAG, TAG);
	free_cr(&first);
	free_cr(&second);
}

CONFORMANCE_BOTH(s2_5_crs_among_operations, 1, single, "CRs and ordinary operations make one set; CRs make chains")
{
	MPI_Request cr[4], op[4];
	struct seen seen[4];

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 4; i++)
		cr[i] = i == 1 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);
	/* 0 and 1 have messages; 2 waits for both and one more; 3 waits for 2. */
	register_pending(cr[0], &seen[0], TAG);
	register_pending(cr[1], &seen[1], TAG + 1);
	op[0] = cr[0];
	op[1] = pending(TAG + 2);
	op[2] = cr[1];
	op[3] = MPI_REQUEST_NULL;
	CHECK_OK(attach_all(4, op, see, &seen[2], MPI_STATUSES_IGNORE, cr[2]));
	CHECK(op[0] == cr[0] && op[1] == MPI_REQUEST_NULL && op[2] == cr[1]);
	CHECK_OK(attach(&cr[2], see, &seen[3], MPI_STATUS_IGNORE, cr[3]));
	complete_pending(TAG + 2);
	complete_pending(TAG + 1);
	while (!atomic_load(&seen[1].runs)) /* poll_only: it needs a test of this CR */
		test_cr(&cr[1]);
	for (int i = 0; i < 10; i++)
		CHECK(!test_cr(&cr[3]));
	CHECK_EQ(seen[2].runs, 0);
	complete_pending(TAG);
	wait_cr(&cr[3]);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(seen[i].runs, 1);
		free_cr(&cr[i]);
	}
}

CONFORMANCE_BOTH(s2_5_cycle_is_an_error, 1, single,
		 "CRs that would wait for each other in a circle are MPI_ERR_REQUEST")
{
	MPI_Request cr[3], op[2], same;
	struct seen seen[3];
	MPI_Status status;

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 3; i++)
		cr[i] = new_cr(NULL);
	poison(&status, sizeof(status));

	step("with itself, complete");
	same = cr[0];
	CHECK_CLASS(attach(&cr[0], never, NULL, &status, same), MPI_ERR_REQUEST);
	step("with itself, incomplete");
	register_pending(cr[0], &seen[0], TAG);
	CHECK_CLASS(attach(&cr[0], never, NULL, &status, same), MPI_ERR_REQUEST);
	op[0] = MPI_REQUEST_NULL;
	op[1] = cr[0];
	CHECK_CLASS(attach_all(2, op, never, NULL, MPI_STATUSES_IGNORE, same), MPI_ERR_REQUEST);
	step("of two");
	CHECK_OK(attach(&cr[0], see, &seen[1], MPI_STATUS_IGNORE, cr[1]));
	CHECK_CLASS(attach(&cr[1], never, NULL, &status, cr[0]), MPI_ERR_REQUEST);
	op[0] = pending(TAG + 1);
	op[1] = cr[1];
	CHECK_CLASS(attach_all(2, op, never, NULL, MPI_STATUSES_IGNORE, cr[0]), MPI_ERR_REQUEST);
	CHECK(op[0] != MPI_REQUEST_NULL && op[1] == cr[1]);
	step("of three");
	CHECK_OK(attach(&cr[1], see, &seen[2], MPI_STATUS_IGNORE, cr[2]));
	CHECK_CLASS(attach(&cr[2], never, NULL, &status, cr[0]), MPI_ERR_REQUEST);
	CHECK(is_poison(&status, sizeof(status)));
	CHECK(cr[0] == same);

	step("what was attached before still runs");
	complete_pending(TAG);
	wait_cr(&cr[2]);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(seen[i].runs, 1);
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Wait(&op[0], MPI_STATUS_IGNORE));
	step("no circle any more");
	CHECK_OK(MPI_Wait(&cr[0], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&cr[1], MPI_STATUS_IGNORE));
	again(&cr[0]);
	again(&cr[1]);
	register_pending(cr[1], &seen[1], TAG);
	CHECK_OK(attach(&cr[1], see, &seen[0], MPI_STATUS_IGNORE, cr[0]));
	complete_pending(TAG);
	wait_cr(&cr[0]);
	CHECK_EQ(seen[0].runs, 2);
	for (int i = 0; i < 3; i++)
		free_cr(&cr[i]);
}

/* ------------------------------------------------------------------------------- 2.6, registering in a callback --- */

static struct {
	MPI_Request cr;
	struct seen first, second;
} next;

static void register_next(MPI_Status *status, void *data)
{
	see(status, data);
	register_pending(next.cr, &next.second, TAG + 1);
}

CONFORMANCE_BOTH(s2_6_registering_in_a_callback, 1, single,
		 "A continuation that a callback registers with its CR keeps the CR incomplete")
{
	memset(&next, 0, sizeof(next));
	for (int how = 0; how < 2; how++) {
		MPI_Request op = how ? pending(TAG) : MPI_REQUEST_NULL;

		step(how ? "pending" : "complete already");
		next.cr = new_cr(NULL);
		CHECK_OK(attach(&op, register_next, &next.first, MPI_STATUS_IGNORE, next.cr));
		if (how)
			complete_pending(TAG);
		while (atomic_load(&next.first.runs) == how)
			CHECK(!test_cr(&next.cr));
		for (int i = 0; i < 50; i++) {
			CHECK(!test_cr(&next.cr));
			CHECK(!get_status(next.cr));
		}
		CHECK_EQ(next.second.runs, how);
		complete_pending(TAG + 1);
		wait_cr(&next.cr);
		CHECK_EQ(next.first.runs, how + 1);
		CHECK_EQ(next.second.runs, how + 1);
		free_cr(&next.cr);
	}
}

CONFORMANCE_BOTH(s2_6_waiter_stays, 1, multiple,
		 "A waiter does not return between a callback and what that has registered")
{
	for (int round = 0; round < 10; round++) {
		MPI_Request op = pending(TAG);
		pthread_t thread;

		memset(&next, 0, sizeof(next));
		next.cr = round % 2 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);
		CHECK_OK(attach(&op, register_next, &next.first, MPI_STATUS_IGNORE, next.cr));
		thread = start_waiter(next.cr);
		complete_pending(TAG);
		while (!atomic_load(&next.first.runs))
			drive_once();
		usleep(5000);
		CHECK(!atomic_load(&waiter.returned));
		CHECK_EQ(next.second.runs, 0);
		complete_pending(TAG + 1);
		pthread_join(thread, NULL);
		CHECK_EQ(next.second.runs, 1);
		free_cr(&next.cr);
	}
}

static struct {
	MPI_Request recv, cr;
	MPI_Status status;
	int receives, value, sum;
} restart;

/* As the draft's example 3.21: a persistent receive that is started again in its continuation. */
static void restart_receive(MPI_Status *status, void *data)
{
	(void)status;
	CHECK(data == &restart);
	CHECK_EQ(restart.status.MPI_TAG, TAG);
	restart.sum += restart.value;
	if (++restart.receives < ranks) {
		CHECK_OK(MPI_Start(&restart.recv));
		CHECK_OK(attach(&restart.recv, restart_receive, &restart, &restart.status, restart.cr));
	}
}

CONFORMANCE_BOTH(s2_6_restarting_receive, 2, single,
		 "MPI_Wait on the CR of a receive that its callback restarts waits for all")
{
	int out = my_rank + 1;
	MPI_Request send;

	memset(&restart, 0, sizeof(restart));
	CHECK_OK(MPI_Isend(&out, 1, MPI_INT, 0, TAG, world, &send));
	if (my_rank == 0) {
		restart.cr = new_cr(NULL);
		CHECK_OK(MPI_Recv_init(&restart.value, 1, MPI_INT, MPI_ANY_SOURCE, TAG, world, &restart.recv));
		CHECK_OK(MPI_Start(&restart.recv));
		CHECK_OK(attach(&restart.recv, restart_receive, &restart, &restart.status, restart.cr));
		wait_cr(&restart.cr);
		CHECK_EQ(restart.receives, ranks);
		CHECK_EQ(restart.sum, ranks * (ranks + 1) / 2);
		CHECK_OK(MPI_Request_free(&restart.recv));
		free_cr(&restart.cr);
	}
	CHECK_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

/* ------------------------------------------------------------------------------------------- 2.7, in a callback --- */

/* State of the calls inside a continuation of `inside.own`. */
static struct {
	MPI_Request own, other[2];
	struct seen seen, seen_other[2];
	bool tests;
} inside;

static void wait_for_own(MPI_Status *status, void *data)
{
	MPI_Request cr = inside.own, r[2] = {MPI_REQUEST_NULL, inside.own}, beside[2] = {inside.own, pending(TAG + 9)};
	int index, count, indices[2];

	CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	CHECK(cr == inside.own);
	CHECK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
	CHECK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	CHECK(MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
	CHECK(r[0] == MPI_REQUEST_NULL && r[1] == inside.own);
	CHECK(MPI_Waitall(2, beside, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
	CHECK(beside[0] == inside.own && beside[1] != MPI_REQUEST_NULL);
	complete_pending(TAG + 9);
	CHECK_OK(MPI_Wait(&beside[1], MPI_STATUS_IGNORE));
	see(status, data);
}

static void test_own(MPI_Status *status, void *data)
{
	MPI_Request cr = inside.own;

	for (int i = 0; i < 3; i++)
		for (int how = by_test; how <= by_testsome; how++)
			CHECK(!report_by((enum how)how, &cr));
	see(status, data);
}

static void get_status_of_own(MPI_Status *status, void *data)
{
	CHECK(!get_status(inside.own));
	see(status, data);
}

/* On its own CR, complete when attached and not; with others of that CR outstanding and not. */
static void run_inside(callback *cb)
{
	for (int kind = 0; kind < 8; kind++) {
		MPI_Request op = kind & 1 ? pending(TAG) : MPI_REQUEST_NULL;
		struct seen others = {0};

		memset(&inside, 0, sizeof(inside));
		inside.own = kind & 2 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);
		if (kind & 4)
			register_pending(inside.own, &others, TAG + 1);
		CHECK_OK(attach(&op, cb, &inside.seen, MPI_STATUS_IGNORE, inside.own));
		if (kind & 1)
			complete_pending(TAG);
		if (kind & 4)
			complete_pending(TAG + 1);
		wait_cr(&inside.own);
		CHECK_EQ(inside.seen.runs, 1);
		CHECK_EQ(others.runs, kind & 4 ? 1 : 0);
		free_cr(&inside.own);
	}
}

CONFORMANCE_BOTH(s2_7_wait_on_own_cr, 1, single, "Waiting for a CR inside its own continuation is an error, at once")
{
	run_inside(wait_for_own);
}

CONFORMANCE_BOTH(s2_7_test_on_own_cr, 1, single, "Testing a CR inside its own continuation gives flag = false")
{
	run_inside(test_own);
}

CONFORMANCE_BOTH(s2_7_get_status_of_own_cr, 1, single,
		 "Inside its own continuation a CR is incomplete for MPI_Request_get_status too")
{
	run_inside(get_status_of_own);
}

static void complete_others(MPI_Status *status, void *data)
{
	for (int i = 0; i < 2; i++) {
		MPI_Request cr = inside.other[i];

		CHECK_EQ(inside.seen_other[i].runs, 0);
		complete_pending(TAG + 1 + i);
		if (inside.tests)
			while (!report_by(i ? by_testall : by_test, &cr))
				;
		else
			report_by(i ? by_waitall : by_wait, &cr);
		CHECK_EQ(inside.seen_other[i].runs, 1);
	}
	see(status, data);
}

CONFORMANCE_BOTH(s2_7_other_cr_in_a_callback, 1, single,
		 "A callback may test and wait for another CR, also a poll_only one")
{
	for (int kind = 0; kind < 8; kind++) {
		MPI_Request op = kind & 1 ? pending(TAG) : MPI_REQUEST_NULL;

		memset(&inside, 0, sizeof(inside));
		inside.tests = kind & 2;
		inside.own = kind & 4 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);
		inside.other[0] = new_cr(POLL_ONLY, "true", NULL);
		inside.other[1] = new_cr(NULL);
		for (int i = 0; i < 2; i++)
			register_pending(inside.other[i], &inside.seen_other[i], TAG + 1 + i);
		CHECK_OK(attach(&op, complete_others, &inside.seen, MPI_STATUS_IGNORE, inside.own));
		if (kind & 1)
			complete_pending(TAG);
		wait_cr(&inside.own);
		CHECK_EQ(inside.seen.runs, 1);
		for (int i = 0; i < 2; i++)
			free_cr(&inside.other[i]);
		free_cr(&inside.own);
	}
}

/* ---------------------------------------------------------------------------------------------- 2.8, its status --- */

CONFORMANCE_BOTH(s2_8_status_is_empty, 1, single, "The status of a CR is the empty one")
{
	MPI_Request cr = new_cr(NULL), r[2];
	struct seen seen = {0};
	MPI_Status status[2];
	int flag = 0, index, count, indices[2];

	for (int how = 0; how < hows; how++) {
		step(how_name[how]);
		register_pending(cr, &seen, TAG);
		complete_pending(TAG);
		until_complete(cr);
		poison(status, sizeof(status));
		r[0] = cr;
		r[1] = MPI_REQUEST_NULL;
		if (how == by_test)
			CHECK_OK(MPI_Test(&cr, &flag, &status[0]));
		else if (how == by_testall)
			CHECK_OK(MPI_Testall(2, r, &flag, status));
		else if (how == by_testany)
			CHECK_OK(MPI_Testany(2, r, &index, &flag, &status[0]));
		else if (how == by_testsome)
			CHECK_OK(MPI_Testsome(2, r, &count, indices, status));
		else if (how == by_wait)
			CHECK_OK(MPI_Wait(&cr, &status[0]));
		else if (how == by_waitall)
			CHECK_OK(MPI_Waitall(2, r, status));
		else if (how == by_waitany)
			CHECK_OK(MPI_Waitany(2, r, &index, &status[0]));
		else
			CHECK_OK(MPI_Waitsome(2, r, &count, indices, status));
		CHECK(is_empty(&status[0]));
		again(&cr);
	}
	CHECK_EQ(seen.runs, hows);
	free_cr(&cr);
}
