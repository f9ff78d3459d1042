/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 11: in the draft a continuation needs a CR. */
#include "conformance.h"

#define TAG 112

CONFORMANCE_ON_DRAFT(s11_null_cr, 1, single, "In the draft interface MPI_REQUEST_NULL is no CR: MPI_ERR_REQUEST")
{
	MPI_Request op = pending(TAG), same = op, none = MPI_REQUEST_NULL;

	CHECK_CLASS(MPI_Continue(&op, never, NULL, MPI_STATUS_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Continueall(1, &op, never, NULL, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Continue(&none, never, NULL, MPI_STATUS_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	CHECK_CLASS(MPI_Continueall(0, NULL, never, NULL, MPI_STATUSES_IGNORE, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	CHECK(op == same);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&op, MPI_STATUS_IGNORE));
}
