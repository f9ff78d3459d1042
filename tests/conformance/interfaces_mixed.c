/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 1: each interface's attach calls take the other's CRs. */
#include "conformance.h"

#define TAG 12

static int count(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	atomic_fetch_add((atomic_int *)data, 1);
	return MPI_SUCCESS;
}

CONFORMANCE_TEST(s1_3_draft_attach_to_revised_cr, 1, single,
		 "The draft's attach calls take a CR of the revised interface")
{
	MPI_Request cr = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	struct seen seen = {0};
	MPI_Status status;
	int flag = 0;

	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	op = pending(TAG);
	CHECK_OK(MPI_Continueall(1, &op, see, &seen, &status, cr));
	CHECK(op == MPI_REQUEST_NULL);
	complete_pending(TAG);
	for (int i = 0; i < 20; i++)
		drive_once();
	CHECK_EQ(seen.runs, 0); /* it is the CR that needs a start */
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 2);
	CHECK_EQ(status.MPI_TAG, TAG);
	CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(seen.runs, 2);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 3);
	free_cr(&cr);
}

CONFORMANCE_TEST(s1_3_revised_attach_to_draft_cr, 1, single,
		 "The revised attach calls take a CR of the draft interface")
{
	MPI_Request cr = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	MPI_Status status;
	atomic_int runs = 0;
	int flag = 1;

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_OK(MPIX_Continue(&op, count, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	op = pending(TAG);
	CHECK_OK(MPIX_Continueall(1, &op, count, &runs, 0, &status, cr));
	CHECK(op == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 2);
	CHECK_EQ(status.MPI_TAG, TAG);
	free_cr(&cr);
}
