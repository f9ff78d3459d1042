/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 1: the draft interface as it is declared. */
#include "conformance.h"

CONFORMANCE_ON_DRAFT(s1_1_draft_prototypes, 1, single,
		     "The draft's three calls and its callback have the draft's types")
{
	int (*init)(MPI_Info, MPI_Request *) = MPI_Continue_init;
	int (*one)(MPI_Request *, MPI_Continue_cb_function *, void *, MPI_Status *, MPI_Request) = MPI_Continue;
	int (*all)(int, MPI_Request[], MPI_Continue_cb_function *, void *, MPI_Status[], MPI_Request) = MPI_Continueall;
	void (*cb)(MPI_Status *, void *) = see;
	MPI_Continue_cb_function *same = cb;
	MPI_Request cr = MPI_REQUEST_NULL, op = MPI_REQUEST_NULL;
	struct seen seen = {0};

	CHECK_OK(init(MPI_INFO_NULL, &cr));
	CHECK_OK(one(&op, same, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(all(1, &op, same, &seen, MPI_STATUSES_IGNORE, cr));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 2);
	free_cr(&cr);
}
