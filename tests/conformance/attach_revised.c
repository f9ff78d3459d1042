/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 3.4: MPIX_CONT_DEFER_COMPLETE. */
#include "conformance.h"

#define TAG 34

static int count(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	atomic_fetch_add((atomic_int *)data, 1);
	return MPI_SUCCESS;
}

static void attach_three(MPI_Request cr, int flags, atomic_int *runs)
{
	MPI_Request op[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	CHECK_OK(MPIX_Continue(&op[0], count, runs, flags, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPIX_Continueall(0, NULL, count, runs, flags, MPI_STATUSES_IGNORE, cr));
	CHECK_OK(MPIX_Continueall(2, op, count, runs, flags, MPI_STATUSES_IGNORE, cr));
}

CONFORMANCE_ON_REVISED(s3_4_defer_complete_at_attach, 1, single,
		       "MPIX_CONT_DEFER_COMPLETE at attach: not inside that call")
{
	MPI_Request cr = new_cr(NULL), op;
	atomic_int runs = 0;

	for (int round = 0; round < 20; round++) {
		attach_three(cr, MPIX_CONT_DEFER_COMPLETE, &runs);
		CHECK_EQ(runs, 4 * round);
		CHECK(drive_until(&runs, 4 * round + 3));
		op = pending(TAG);
		complete_pending(TAG);
		until_complete(op);
		CHECK_OK(MPIX_Continue(&op, count, &runs, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cr));
		CHECK(op == MPI_REQUEST_NULL);
		CHECK_EQ(runs, 4 * round + 3);
		wait_cr(&cr);
		CHECK_EQ(runs, 4 * round + 4);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s3_4_defer_complete_at_init, 1, single,
		       "MPIX_CONT_DEFER_COMPLETE at init: not inside any attach call")
{
	MPI_Request cr = MPI_REQUEST_NULL;
	atomic_int runs = 0;

	CHECK_OK(MPIX_Continue_init(MPIX_CONT_DEFER_COMPLETE, 0, MPI_INFO_NULL, &cr));
	again(&cr);
	for (int round = 0; round < 20; round++) {
		attach_three(cr, 0, &runs);
		CHECK_EQ(runs, 3 * round);
		wait_cr(&cr);
		CHECK_EQ(runs, 3 * round + 3);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s3_4_poll_only_flag, 1, single, "MPIX_CONT_POLL_ONLY at init: only in Test or Wait on that CR")
{
	MPI_Request cr = MPI_REQUEST_NULL, op;
	atomic_int runs = 0;

	CHECK_OK(MPIX_Continue_init(MPIX_CONT_POLL_ONLY, 0, MPI_INFO_NULL, &cr));
	again(&cr);
	for (int how = 0; how < hows; how++) {
		step(how_name[how]);
		attach_three(cr, 0, &runs);
		op = pending(TAG);
		CHECK_OK(MPIX_Continue(&op, count, &runs, 0, MPI_STATUS_IGNORE, cr));
		complete_pending(TAG);
		for (int i = 0; i < 20; i++)
			drive_once();
		CHECK_EQ(runs, 4 * how);
		while (!report_by((enum how)how, &cr))
			;
		CHECK_EQ(runs, 4 * how + 4);
		again(&cr);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s3_1_request_flags, 1, single,
		       "The array may be freed at once, with VOLATILE and REQUESTS_FREE or without")
{
	enum { N = 10 };
	static const int flags[] = {0, MPIX_CONT_REQBUF_VOLATILE, MPIX_CONT_REQUESTS_FREE,
				    MPIX_CONT_REQBUF_VOLATILE | MPIX_CONT_REQUESTS_FREE};
	MPI_Request cr = new_cr(NULL);
	atomic_int runs = 0;

	for (int f = 0; f < 4; f++) {
		MPI_Request *ops = malloc(N * sizeof(*ops));

		for (int i = 0; i < N; i++)
			ops[i] = pending(TAG + i);
		CHECK_OK(MPIX_Continueall(N, ops, count, &runs, flags[f], MPI_STATUSES_IGNORE, cr));
		for (int i = 0; i < N; i++)
			CHECK(ops[i] == MPI_REQUEST_NULL);
		poison(ops, N * sizeof(*ops));
		for (int i = 0; i < N; i++)
			complete_pending(TAG + i);
		wait_cr(&cr);
		CHECK_EQ(runs, f + 1);
		CHECK(is_poison(ops, N * sizeof(*ops)));
		free(ops);
	}
	free_cr(&cr);
}
