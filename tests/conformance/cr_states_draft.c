/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 2.2: the draft's CRs have no start. */
#include "conformance.h"

#define TAG 22

CONFORMANCE_ON_DRAFT(s2_2_draft_needs_no_start, 1, single,
		     "A CR of the draft needs no start; MPI_Start on it is MPI_ERR_REQUEST")
{
	MPI_Request cr = MPI_REQUEST_NULL, same, op;
	struct seen seen = {0};

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	same = cr;
	for (int round = 0; round < 3; round++) {
		op = pending(TAG);
		CHECK_OK(MPI_Continue(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_CLASS(MPI_Start(&cr), MPI_ERR_REQUEST);
		complete_pending(TAG);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round + 1);
		CHECK_CLASS(MPI_Start(&cr), MPI_ERR_REQUEST);
		CHECK(cr == same);
	}
	free_cr(&cr);
}
