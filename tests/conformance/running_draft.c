/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 4.1: the pointer that the draft's callbacks get. */
#include "conformance.h"

#define TAG 42

CONFORMANCE_ON_DRAFT(s4_1_status_pointer, 1, single,
		     "The callback gets the pointer that was given, MPI_STATUS(ES)_IGNORE included")
{
	MPI_Status mine[2], *const given[] = {mine, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, &mine[1]};
	static const char *const keys[] = {POLL_ONLY, ENQUEUE_COMPLETE};

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = k < 2 ? new_cr(keys[k], "true", NULL) : new_cr(NULL), op[2];

		for (int g = 0; g < 4; g++)
			for (int kind = 0; kind < 6; kind++) {
				bool complete = kind & 1;
				int n = kind / 2; /* 0: MPI_Continue; 1, 2: MPI_Continueall on as many */
				struct seen seen = {0};

				if (g == 3 && n == 2)
					continue;
				poison(mine, sizeof(mine));
				op[0] = complete ? MPI_REQUEST_NULL : pending(TAG);
				op[1] = MPI_REQUEST_NULL;
				if (n)
					CHECK_OK(MPI_Continueall(n, op, see, &seen, given[g], cr));
				else
					CHECK_OK(MPI_Continue(op, see, &seen, given[g], cr));
				if (!complete)
					complete_pending(TAG);
				wait_cr(&cr);
				CHECK_EQ(seen.runs, 1);
				CHECK(seen.status == given[g]);
				if (g == 1 || g == 2)
					CHECK(is_poison(mine, sizeof(mine)));
				else
					CHECK_EQ(given[g]->MPI_ERROR, MPI_SUCCESS);
			}
		free_cr(&cr);
	}
}
