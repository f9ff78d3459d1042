/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 1: the revised interface as it is declared, and continuations without a CR. */
#include "conformance.h"

#define TAG 11

static int count(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	atomic_fetch_add((atomic_int *)data, 1);
	return MPI_SUCCESS;
}

CONFORMANCE_ON_REVISED(s1_2_revised_prototypes, 1, single,
		       "The revised interface's calls and callback have their types")
{
	int (*init)(int, int, MPI_Info, MPI_Request *) = MPIX_Continue_init;
	int (*one)(MPI_Request *, MPIX_Continue_cb_function *, void *, int, MPI_Status *, MPI_Request) = MPIX_Continue;
	int (*all)(int, MPI_Request[], MPIX_Continue_cb_function *, void *, int, MPI_Status[], MPI_Request) =
		MPIX_Continueall;
	int (*get_failed)(MPI_Request, int *, void **) = MPIX_Continue_get_failed;
	MPIX_Continue_cb_function *cb = count;
	MPI_Request cr = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	atomic_int runs = 0;
	void *data[1];
	int n = 1;

	CHECK_OK(init(0, 0, MPI_INFO_NULL, &cr));
	again(&cr);
	CHECK_OK(one(&op, cb, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(all(1, &op, cb, &runs, 0, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(runs, 2);
	CHECK_OK(get_failed(cr, &n, data));
	CHECK_EQ(n, 0);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s1_2_flag_values, 1, single,
		       "The flags are preprocessor constants in parentheses: 1, 2, 4, 8, 16")
{
	/* As a client may use them; without the parentheses -FLAG and 2 * FLAG would mean something else. */
#if MPIX_CONT_REQBUF_VOLATILE != 1 || MPIX_CONT_POLL_ONLY != 4 || MPIX_CONT_DEFER_COMPLETE != 8 || \
	MPIX_CONT_INVOKE_FAILED != 16
	CHECK(!"the values are others");
#endif
	CHECK_EQ(3 * MPIX_CONT_REQBUF_VOLATILE, 3);
	CHECK_EQ(3 * MPIX_CONT_POLL_ONLY, 12);
	CHECK_EQ(3 * MPIX_CONT_DEFER_COMPLETE, 24);
	CHECK_EQ(3 * MPIX_CONT_INVOKE_FAILED, 48);
#ifdef MPIX_CONT_REQUESTS_FREE
	CHECK_EQ(3 * MPIX_CONT_REQUESTS_FREE, 6);
#else
	CHECK(!"MPIX_CONT_REQUESTS_FREE is not defined");
#endif
}

CONFORMANCE_ON_REVISED(s1_2_immediate_flag, 1, single, "MPIX_CONT_IMMEDIATE (32) is accepted as a hint")
{
	MPI_Request cr = new_cr(NULL), op = MPI_REQUEST_NULL;
	atomic_int runs = 0;

#ifdef MPIX_CONT_IMMEDIATE
	CHECK_EQ(3 * MPIX_CONT_IMMEDIATE, 96);
#endif
	CHECK_OK(MPIX_Continue(&op, count, &runs, 32, MPI_STATUS_IGNORE, cr));
	op = pending(TAG);
	CHECK_OK(MPIX_Continue(&op, count, &runs, 32, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(runs, 2);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s1_2_without_cr, 1, single,
		       "MPI_REQUEST_NULL in place of a CR: it runs in calls that make progress")
{
	MPI_Request op[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL}, none = MPI_REQUEST_NULL;
	MPI_Status status, statuses[3];
	atomic_int runs = 0;

	step("complete");
	CHECK_OK(MPIX_Continue(&none, count, &runs, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL));
	CHECK(drive_until(&runs, 1));
	CHECK_OK(MPIX_Continueall(0, NULL, count, &runs, 0, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL));
	CHECK(drive_until(&runs, 2));
	CHECK_OK(MPIX_Continue(&none, count, &runs, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, MPI_REQUEST_NULL));
	CHECK_EQ(runs, 2);
	CHECK(drive_until(&runs, 3));

	step("pending");
	op[0] = pending(TAG);
	poison(&status, sizeof(status));
	CHECK_OK(MPIX_Continue(&op[0], count, &runs, 0, &status, MPI_REQUEST_NULL));
	CHECK(op[0] == MPI_REQUEST_NULL);
	for (int i = 0; i < 20; i++)
		drive_once();
	CHECK_EQ(runs, 3);
	complete_pending(TAG);
	CHECK(drive_until(&runs, 4));
	CHECK_EQ(status.MPI_TAG, TAG);
	CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);

	step("a set");
	op[0] = pending(TAG);
	op[2] = pending(TAG + 1);
	CHECK_OK(MPIX_Continueall(3, op, count, &runs, 0, statuses, MPI_REQUEST_NULL));
	complete_pending(TAG + 1);
	for (int i = 0; i < 20; i++)
		drive_once();
	CHECK_EQ(runs, 4);
	complete_pending(TAG);
	CHECK(drive_until(&runs, 5));
	CHECK_EQ(statuses[0].MPI_TAG, TAG);
	CHECK_EQ(statuses[2].MPI_TAG, TAG + 1);
}
