/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 2.2: the revised interface's CRs are inactive until MPI_Start and when their completion was reported. */
#include "conformance.h"

#define TAG 23

static MPI_Request inactive_cr(void)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK(cr != MPI_REQUEST_NULL);
	return cr;
}

static void drive_some(void)
{
	for (int i = 0; i < 20; i++)
		drive_once();
}

CONFORMANCE_ON_REVISED(s2_2_nothing_runs_before_start, 1, single,
		       "Continuations of an inactive CR run from MPI_Start on")
{
	MPI_Request cr = inactive_cr(), op[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	struct seen seen[4];
	int flag;

	memset(seen, 0, sizeof(seen));
	CHECK_OK(attach(&op[0], see, &seen[0], MPI_STATUS_IGNORE, cr));
	CHECK_OK(attach_all(2, op, see, &seen[1], MPI_STATUSES_IGNORE, cr));
	op[0] = pending(TAG);
	CHECK_OK(attach(&op[0], see, &seen[2], MPI_STATUS_IGNORE, cr));
	CHECK(op[0] == MPI_REQUEST_NULL);
	op[0] = pending(TAG + 1);
	CHECK_OK(attach(&op[0], see, &seen[3], MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	for (int i = 0; i < 20; i++) {
		drive_once();
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(seen[i].runs, 0);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	while (!atomic_load(&seen[2].runs)) {
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
	}
	CHECK_EQ(seen[3].runs, 0);
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(seen[i].runs, 1);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_start_with_nothing, 1, single, "A CR that is started with nothing registered is complete")
{
	MPI_Request cr = inactive_cr(), same = cr;

	for (int how = 0; how < hows; how++) {
		step(how_name[how]);
		CHECK_OK(MPI_Start(&cr));
		CHECK(report_by((enum how)how, &cr));
		CHECK(cr == same);
	}
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_test_on_inactive, 1, single,
		       "Test and Wait on an inactive CR: flag true, empty status, handle kept")
{
	MPI_Request cr = inactive_cr(), same = cr, op = pending(TAG), r[2];
	struct seen seen = {0};
	MPI_Status status[2];
	int flag, index, count, indices[2];

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	for (int ready = 0; ready < 2; ready++) {
		step(ready ? "something ready" : "something pending");
		flag = 0;
		poison(status, sizeof(status));
		CHECK_OK(MPI_Test(&cr, &flag, &status[0]));
		CHECK(flag);
		CHECK(is_empty(&status[0]));
		poison(status, sizeof(status));
		CHECK_OK(MPI_Wait(&cr, &status[0]));
		CHECK(is_empty(&status[0]));
		flag = 0;
		poison(status, sizeof(status));
		CHECK_OK(MPI_Request_get_status(cr, &flag, &status[0]));
		CHECK(flag);
		CHECK(is_empty(&status[0]));
		/* In arrays: as MPI has it for inactive persistent requests. */
		r[0] = MPI_REQUEST_NULL;
		r[1] = cr;
		flag = 0;
		poison(status, sizeof(status));
		CHECK_OK(MPI_Testall(2, r, &flag, status));
		CHECK(flag);
		CHECK(is_empty(&status[1]));
		CHECK_OK(MPI_Waitall(2, r, status));
		flag = index = 0;
		CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_EQ(index, MPI_UNDEFINED);
		index = 0;
		CHECK_OK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
		CHECK_EQ(index, MPI_UNDEFINED);
		CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		CHECK_EQ(count, MPI_UNDEFINED);
		CHECK_OK(MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		CHECK_EQ(count, MPI_UNDEFINED);
		CHECK(cr == same && r[1] == same);
		CHECK_EQ(seen.runs, 0);
		if (!ready)
			complete_pending(TAG);
	}
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_inactive_after_report, 1, single,
		       "When Test or Wait has reported completion the CR is inactive again")
{
	MPI_Request cr = inactive_cr(), op;
	struct seen seen = {0};
	int runs = 0;

	for (int how = 0; how < hows; how++) {
		step(how_name[how]);
		op = pending(TAG);
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Start(&cr));
		complete_pending(TAG);
		while (!report_by((enum how)how, &cr))
			;
		runs += how ? 2 : 1; /* and the one that was left from the round before */
		CHECK_EQ(seen.runs, runs);
		op = MPI_REQUEST_NULL;
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		drive_some();
		CHECK(report_by(by_test, &cr));
		CHECK_EQ(seen.runs, runs);
	}
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, runs + 1);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_get_status_leaves_it_active, 1, single, "Only Test and Wait make a complete CR inactive")
{
	MPI_Request cr = inactive_cr(), op = pending(TAG);
	struct seen seen = {0};
	int flag = 0;

	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	until_complete(cr);
	CHECK_CLASS(MPI_Start(&cr), MPI_ERR_REQUEST);
	op = MPI_REQUEST_NULL;
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK(drive_until(&seen.runs, 2));
	while (!flag)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_start_of_active, 1, single,
		       "MPI_Start on an active CR is MPI_ERR_REQUEST and changes nothing")
{
	MPI_Request cr = inactive_cr(), same = cr, op = pending(TAG);
	struct seen seen = {0};
	int flag = 1;

	CHECK_OK(MPI_Start(&cr));
	CHECK_CLASS(MPI_Start(&cr), MPI_ERR_REQUEST);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_CLASS(MPI_Start(&cr), MPI_ERR_REQUEST);
	CHECK(cr == same);
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_startall, 1, single, "MPI_Startall starts CRs too, beside persistent requests")
{
	MPI_Request r[3], cr[2], op;
	struct seen seen = {0};
	char in;

	for (int round = 0; round < 2; round++) {
		step(round ? "beside a receive" : "CRs alone");
		for (int i = 0; i < 2; i++) {
			cr[i] = inactive_cr();
			op = MPI_REQUEST_NULL;
			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr[i]));
		}
		r[0] = cr[0];
		r[1] = cr[1];
		CHECK_OK(MPI_Recv_init(&in, 1, MPI_BYTE, 0, TAG, self, &r[2]));
		CHECK_OK(MPI_Startall(2 + round, r));
		CHECK(r[0] == cr[0] && r[1] == cr[1]);
		if (round)
			complete_pending(TAG);
		CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
		CHECK_EQ(seen.runs, 2 * round + 2);
		CHECK_OK(MPI_Request_free(&r[2]));
		free_cr(&cr[0]);
		free_cr(&cr[1]);
	}
}

CONFORMANCE_ON_REVISED(s2_2_pmpi_start, 1, single, "A CR is started by PMPI_Start too")
{
	MPI_Request cr = inactive_cr(), op = MPI_REQUEST_NULL;
	const char *backend = getenv("CONTD_MPI_BACKEND");
	struct seen seen = {0};

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	if (PMPI_Start(&cr) != MPI_SUCCESS && !(backend && strcmp(backend, "native") == 0)) {
		skip("this backend does not see calls by PMPI names");
		CHECK_OK(MPI_Start(&cr));
	}
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	if (seen.runs == 0 && !(backend && strcmp(backend, "native") == 0)) {
		skip("this backend does not see calls by PMPI names");
		CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	}
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_ON_REVISED(s2_2_many_cycles, 1, single, "Start, complete, report: as often as one likes")
{
	MPI_Request cr = inactive_cr(), same = cr, op;
	struct seen seen = {0};

	for (int round = 0; round < 10000; round++) {
		op = round % 2 ? MPI_REQUEST_NULL : pending(TAG);
		if (round % 3)
			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Start(&cr));
		if (round % 3 == 0)
			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		if (round % 2 == 0)
			complete_pending(TAG);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK(cr == same);
		CHECK_EQ(seen.runs, round + 1);
	}
	free_cr(&cr);
}
