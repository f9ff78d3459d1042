/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 5.4: the draft's callbacks always run; the statuses say what failed. */
#include "failing.h"

#define TAG 54

CONFORMANCE_ON_DRAFT(s5_4_callback_runs_after_failure, 2, single,
		     "Where an operation fails the callback runs, and its status says so")
{
	MPI_Request cr = new_cr(NULL);
	struct seen seen = {0};

	for (int how = 0; how < truncations; how++) {
		struct truncated t;
		MPI_Status status;

		truncated_begin(&t, how, TAG);
		poison(&status, sizeof(status));
		CHECK_OK(MPI_Continue(&t.receive, see, &seen, &status, cr));
		CHECK(t.receive == MPI_REQUEST_NULL);
		truncated_send(&t);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK(cr != MPI_REQUEST_NULL);
		CHECK_EQ(seen.runs, how + 1);
		CHECK_CLASS(status.MPI_ERROR, MPI_ERR_TRUNCATE);
		truncated_end(&t);
		MPI_Barrier(world);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_DRAFT(s5_4_failure_in_a_set, 2, single,
		     "In a set the others end first; each status has its own MPI_ERROR")
{
	MPI_Request cr = new_cr(NULL);

	for (int how = 0; how < truncations; how++) {
		struct truncated t;
		struct seen seen = {0};
		MPI_Request r[4];
		MPI_Status status[4];

		truncated_begin(&t, how, TAG);
		r[0] = receive_byte(previous_rank(), TAG + 1, world);
		r[1] = t.receive;
		r[2] = MPI_REQUEST_NULL;
		r[3] = receive_byte(previous_rank(), TAG + 2, world);
		poison(status, sizeof(status));
		CHECK_OK(MPI_Continueall(4, r, see, &seen, status, cr));
		for (int i = 0; i < 4; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		truncated_send(&t);
		send_byte(next_rank(), TAG + 1, world);
		for (int i = 0; i < 10; i++)
			CHECK(!test_cr(&cr));
		CHECK_EQ(seen.runs, 0);
		MPI_Barrier(world);
		send_byte(next_rank(), TAG + 2, world);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_CLASS(status[1].MPI_ERROR, MPI_ERR_TRUNCATE);
		for (int i = 0; i < 4; i++)
			if (i != 1)
				CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(status[3].MPI_TAG, TAG + 2);
		truncated_end(&t);
		MPI_Barrier(world);
	}
	free_cr(&cr);
}
