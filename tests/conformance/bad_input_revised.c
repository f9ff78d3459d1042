/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 11: MPIX_Continue_get_failed. */
#include "conformance.h"

#define TAG 113

static void *const no_memory = NULL; /* so that compilers do not know of it */

CONFORMANCE_ON_REVISED(s11_get_failed_arguments, 1, single,
		       "get_failed: null pointers, a negative count, a CR that is none")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), nothing;
	void *data[2];
	int count = 2;

	memset(&nothing, 0, sizeof(nothing));
	poison(data, sizeof(data));
	CHECK_CLASS(MPIX_Continue_get_failed(cr, no_memory, data), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Continue_get_failed(cr, &count, no_memory), MPI_ERR_ARG);
	CHECK_EQ(count, 2);
	CHECK_CLASS(MPIX_Continue_get_failed(op, &count, data), MPI_ERR_REQUEST);
	CHECK_CLASS(MPIX_Continue_get_failed(MPI_REQUEST_NULL, &count, data), MPI_ERR_REQUEST);
	CHECK_CLASS(MPIX_Continue_get_failed(nothing, &count, data), MPI_ERR_REQUEST);
	CHECK_EQ(count, 2);
	count = -1;
	CHECK_CLASS(MPIX_Continue_get_failed(cr, &count, data), MPI_ERR_ARG);
	CHECK_EQ(count, -1);
	CHECK(is_poison(data, sizeof(data)));
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&op, MPI_STATUS_IGNORE));
	free_cr(&cr);
}
