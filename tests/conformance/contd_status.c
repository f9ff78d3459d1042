/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* Section 7, status queries of several requests. */
#include "conformance.h"

#define TAG 121
#define SOME 40

static MPI_Request persistent_receive(int *to, int tag)
{
	MPI_Request r;

	CHECK_OK(MPI_Recv_init(to, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &r));
	return r;
}

/* All three, asked until they say that all of it is complete, say the same twice. */
static void all_say(int count, MPI_Request r[], const bool active[])
{
	MPI_Status all[SOME], some[SOME], any;
	MPI_Request before[SOME];
	int indices[SOME], flag = 0, outcount, index, expected = 0, named[SOME] = {0};

	for (int i = 0; i < count; i++) {
		before[i] = r[i];
		expected += active[i];
	}
	for (int tries = 0; tries < 1000000 && !flag; tries++)
		CHECK_OK(MPIX_Request_get_status_all(count, r, &flag, all));
	CHECK(flag);
	for (int again = 0; again < 2; again++) {
		CHECK_OK(MPIX_Request_get_status_some(count, r, &outcount, indices, some));
		CHECK_EQ(outcount, expected ? expected : MPI_UNDEFINED);
		for (int i = 0, n = 0; i < count; i++) {
			if (!active[i]) {
				CHECK(is_empty(&all[i]));
				continue;
			}
			CHECK_EQ(indices[n], i);
			CHECK_EQ(some[n].MPI_SOURCE, all[i].MPI_SOURCE);
			CHECK_EQ(some[n].MPI_TAG, all[i].MPI_TAG);
			CHECK_EQ(some[n].MPI_ERROR, MPI_SUCCESS);
			CHECK_EQ(all[i].MPI_ERROR, MPI_SUCCESS);
			n++;
		}
		for (int k = 0; k < 4 * count; k++) {
			CHECK_OK(MPIX_Request_get_status_any(count, r, &index, &flag, &any));
			CHECK(flag);
			if (index != MPI_UNDEFINED)
				named[index]++;
			CHECK(index == MPI_UNDEFINED ? !expected : active[index]);
		}
		CHECK_OK(MPIX_Request_get_status_all(count, r, &flag, MPI_STATUSES_IGNORE));
		CHECK(flag);
	}
	for (int i = 0; i < count; i++) {
		CHECK(r[i] == before[i]);
		CHECK(!active[i] || named[i]); /* any: each has its turn */
	}
}

CONFORMANCE_TEST(s7_1_nothing_changes, 1, single,
		 "Nothing is freed, no handle changes, asking again gives the same answer")
{
	enum { N = 6 };
	MPI_Request r[N];
	bool active[N] = {true, true, true, true, false, false};
	MPI_Status status[N];
	int value = 0, sent = 5;

	CHECK_OK(MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r[0]));
	CHECK_OK(MPI_Isend(&sent, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r[1]));
	CHECK_OK(MPI_Ibarrier(MPI_COMM_WORLD, &r[2]));
	r[3] = pending(TAG + 1);
	complete_pending(TAG + 1);
	r[4] = MPI_REQUEST_NULL;
	r[5] = persistent_receive(&value, TAG + 2);
	all_say(N, r, active);
	CHECK_OK(MPI_Waitall(N, r, status));
	CHECK_EQ(value, 5);
	CHECK_EQ(status[0].MPI_TAG, TAG);
	for (int i = 0; i < 5; i++)
		CHECK(r[i] == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Request_free(&r[5]));
}

CONFORMANCE_TEST(s7_1_persistent, 1, single,
		 "A persistent request's status is told as often as it is asked for, then by Wait")
{
	int value = 0, sent = 7;
	MPI_Request r[2];
	MPI_Status status[2];
	bool active[2] = {true, true};

	r[0] = persistent_receive(&value, TAG);
	CHECK_OK(MPI_Send_init(&sent, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &r[1]));
	for (int round = 0; round < 3; round++) {
		bool none[2] = {false, false};

		step(round ? "again" : "first");
		all_say(2, r, none);
		CHECK_OK(MPI_Startall(2, r));
		all_say(2, r, active);
		CHECK_OK(MPI_Waitall(2, r, status));
		CHECK_EQ(status[0].MPI_SOURCE, 0);
		CHECK_EQ(status[0].MPI_TAG, TAG);
		CHECK_EQ(count_of(&status[0]), (int)sizeof(int));
	}
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(MPI_Request_free(&r[1]));
}

CONFORMANCE_TEST(s7_2_any, 1, single,
		 "any: skips what is null or inactive; without anything active it is true and names none")
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status status;
	int index = 0, flag = 0, value;

	poison(&status, sizeof(status));
	CHECK_OK(MPIX_Request_get_status_any(3, r, &index, &flag, &status));
	CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
	flag = index = 0;
	CHECK_OK(MPIX_Request_get_status_any(0, NULL, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag && index == MPI_UNDEFINED);
	r[0] = persistent_receive(&value, TAG);
	r[1] = pending(TAG);
	CHECK_OK(MPIX_Request_get_status_any(3, r, &index, &flag, &status));
	CHECK(!flag && index == MPI_UNDEFINED);
	complete_pending(TAG);
	for (flag = 0; !flag;)
		CHECK_OK(MPIX_Request_get_status_any(3, r, &index, &flag, &status));
	CHECK_EQ(index, 1);
	CHECK_EQ(status.MPI_TAG, TAG);
	CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&r[0]));
}

/* All are complete, all the time. */
CONFORMANCE_TEST(s7_2_any_in_turn, 1, single,
		 "any: each entry has its turn, also where several arrays are asked in turn")
{
	enum { ARRAYS = 4, N = 6 };
	MPI_Request r[ARRAYS][N];

	for (int a = 0; a < ARRAYS; a++)
		for (int i = 0; i < N; i++) {
			r[a][i] = pending(TAG + N * a + i);
			complete_pending(TAG + N * a + i);
			until_complete(r[a][i]);
		}
	for (int arrays = 1; arrays <= ARRAYS; arrays++)
		for (int n = 1; n <= N; n++) {
			int named[ARRAYS][N] = {{0}}, index, flag;

			step(arrays > 1 ? "several arrays" : "one array");
			for (int k = 0; k < 20 * N; k++)
				for (int a = 0; a < arrays; a++) {
					CHECK_OK(
						MPIX_Request_get_status_any(n, r[a], &index, &flag, MPI_STATUS_IGNORE));
					CHECK(flag && index >= 0 && index < n);
					if (index >= 0 && index < n)
						named[a][index]++;
				}
			for (int a = 0; a < arrays; a++)
				for (int i = 0; i < n; i++)
					CHECK(named[a][i] > 0);
		}
	CHECK_OK(MPI_Waitall(ARRAYS * N, r[0], MPI_STATUSES_IGNORE));
}

CONFORMANCE_TEST(s7_3_all, 1, single, "all: true when all are complete, and for inactive ones at once")
{
	MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status status[3];
	int flag = 0;

	CHECK_OK(MPIX_Request_get_status_all(3, r, &flag, status));
	CHECK(flag);
	CHECK_OK(MPIX_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE));
	CHECK(flag);
	r[0] = pending(TAG);
	r[2] = pending(TAG + 1);
	CHECK_OK(MPIX_Request_get_status_all(3, r, &flag, status));
	CHECK(!flag);
	complete_pending(TAG);
	until_complete(r[0]);
	CHECK_OK(MPIX_Request_get_status_all(3, r, &flag, status));
	CHECK(!flag);
	complete_pending(TAG + 1);
	while (!flag)
		CHECK_OK(MPIX_Request_get_status_all(3, r, &flag, status));
	CHECK_EQ(status[0].MPI_TAG, TAG);
	CHECK_EQ(status[2].MPI_TAG, TAG + 1);
	CHECK(is_empty(&status[1]));
	CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
}

CONFORMANCE_TEST(s7_4_some, 1, single, "some: those that are complete, in order; MPI_UNDEFINED where none is active")
{
	MPI_Request r[SOME];
	MPI_Status status[SOME];
	int indices[SOME], outcount = 0;

	CHECK_OK(MPIX_Request_get_status_some(0, NULL, &outcount, NULL, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, MPI_UNDEFINED);
	for (int i = 0; i < SOME; i++)
		r[i] = i % 4 ? pending(TAG + i) : MPI_REQUEST_NULL;
	CHECK_OK(MPIX_Request_get_status_some(SOME, r, &outcount, indices, status));
	CHECK_EQ(outcount, 0);
	for (int i = 2; i < SOME; i += 4) {
		complete_pending(TAG + i);
		until_complete(r[i]);
	}
	CHECK_OK(MPIX_Request_get_status_some(SOME, r, &outcount, indices, status));
	CHECK_EQ(outcount, SOME / 4);
	for (int n = 0; n < outcount && n < SOME / 4; n++) {
		CHECK_EQ(indices[n], 4 * n + 2);
		CHECK_EQ(status[n].MPI_TAG, TAG + indices[n]);
	}
	for (int i = 0; i < SOME; i++)
		if (i % 4 == 1 || i % 4 == 3)
			complete_pending(TAG + i);
	CHECK_OK(MPI_Waitall(SOME, r, MPI_STATUSES_IGNORE));
}

/* ----------------------------------------------------------------------------------------------------- progress --- */

#define LONG (1 << 20)

/* One entry is complete all the time, the other is a long message, which comes only with the receiver's progress. */
static void beside_one_complete(int (*arrived)(MPI_Request r[2], int which))
{
	static char memory[LONG];
	MPI_Request r[2];
	int value = 1, received, rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1) {
		CHECK_OK(MPI_Send(memory, LONG, MPI_BYTE, 0, TAG, MPI_COMM_WORLD));
		return;
	}
	CHECK_OK(MPI_Isend(&value, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &r[0]));
	CHECK_OK(MPI_Recv(&received, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
	until_complete(r[0]);
	CHECK_OK(MPI_Irecv(memory, LONG, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[1]));
	for (double end = MPI_Wtime() + 30; !arrived(r, 1);)
		if (MPI_Wtime() > end) {
			CHECK(!"it came in 30 s");
			break;
		}
	CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
}

static int arrived_any(MPI_Request r[2], int which)
{
	int index = MPI_UNDEFINED, flag = 0;

	CHECK_OK(MPIX_Request_get_status_any(2, r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	return index == which;
}

static int arrived_some(MPI_Request r[2], int which)
{
	int outcount, indices[2];

	(void)which;
	CHECK_OK(MPIX_Request_get_status_some(2, r, &outcount, indices, MPI_STATUSES_IGNORE));
	CHECK(outcount >= 1);
	return outcount == 2;
}

static int arrived_all(MPI_Request r[2], int which)
{
	int flag = 0;

	(void)which;
	CHECK_OK(MPIX_Request_get_status_all(2, r, &flag, MPI_STATUSES_IGNORE));
	return flag;
}

CONFORMANCE_TEST(s7_5_any_makes_progress, 2, single, "any attempts progress also where an entry is complete already")
{
	beside_one_complete(arrived_any);
}

CONFORMANCE_TEST(s7_5_some_makes_progress, 2, single, "some attempts progress also where an entry is complete already")
{
	beside_one_complete(arrived_some);
}

CONFORMANCE_TEST(s7_5_all_makes_progress, 2, single, "all attempts progress also where an entry is complete already")
{
	beside_one_complete(arrived_all);
}

/* Nothing but the query is called: what it is asked about is complete, and a continuation of something else waits. */
CONFORMANCE_BOTH(s7_5_drives_continuations, 1, single, "Queries make the progress that continuations wait for")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), null = MPI_REQUEST_NULL;
	struct seen seen = {0};
	int flag;

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	for (int i = 0; i < 1000000 && !seen.runs; i++)
		CHECK_OK(MPIX_Request_get_status_all(1, &null, &flag, MPI_STATUSES_IGNORE));
	CHECK_EQ(seen.runs, 1);
	wait_cr(&cr);
	free_cr(&cr);
}

/* The queried request may depend on the continuation of another one. */
CONFORMANCE_BOTH(s7_single_query_drives, 1, single,
		 "MPI_Request_get_status of one request makes others' continuations run")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), other = pending(TAG + 1);
	struct seen seen = {0};
	int flag = 0;

	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	for (int i = 0; i < 1000000 && !seen.runs; i++)
		CHECK_OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK(!flag);
	complete_pending(TAG + 1);
	CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	wait_cr(&cr);
	free_cr(&cr);
}

struct pushed {
	MPI_Request request;
	int left;
};

static int pushed_start(void *data)
{
	(void)data;
	return MPI_SUCCESS;
}

static int pushed_push(void *data)
{
	struct pushed *p = data;

	return --p->left ? MPI_SUCCESS : MPIX_Mark_request_complete(p->request);
}

static int pushed_complete(void *data, MPI_Status *status)
{
	(void)data, (void)status;
	return MPI_SUCCESS;
}

/* Open MPI's own makes no progress then. */
CONFORMANCE_BOTH(s7_single_query_of_complete_drives, 1, single,
		 "MPI_Request_get_status of one that is complete makes others' continuations run, and templates pushed")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG), other = pending(TAG + 1);
	struct pushed pushed = {.left = 1000};
	struct seen seen = {0};
	int flag = 0;
	MPIX_Gr gr;

	complete_pending(TAG + 1);
	while (!flag)
		CHECK_OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	for (int i = 0; i < 1000000 && !seen.runs; i++)
		CHECK_OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPIX_Gr_init(pushed_start, pushed_push, pushed_complete, NULL, &gr));
	CHECK_OK(MPIX_Gr_begin(gr, &pushed, &pushed.request));
	for (int i = 0; i < 1000000 && pushed.left; i++)
		CHECK_OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(pushed.left, 0);
	CHECK_OK(MPI_Wait(&pushed.request, MPI_STATUS_IGNORE));
	CHECK_OK(MPIX_Gr_free(&gr));
	CHECK(flag);
	CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	wait_cr(&cr);
	free_cr(&cr);
}

/* Its status is empty but for that. */
CONFORMANCE_TEST(s7_cancelled, 1, single, "An operation that was cancelled is complete, not inactive")
{
	MPI_Request r = pending(TAG);
	MPI_Status status;
	int outcount = 0, index = -1, cancelled = 0;

	CHECK_OK(MPI_Cancel(&r));
	for (int i = 0; i < 1000000 && outcount == 0; i++)
		CHECK_OK(MPIX_Request_get_status_some(1, &r, &outcount, &index, &status));
	CHECK_EQ(outcount, 1);
	CHECK_EQ(index, 0);
	CHECK_OK(MPI_Test_cancelled(&status, &cancelled));
	CHECK(cancelled);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/* ---------------------------------------------------------------------------------------- continuation requests --- */

CONFORMANCE_BOTH(s7_crs_among_them, 1, single,
		 "CRs among the requests: inactive, pending, complete; they stay what they are")
{
	MPI_Request r[2] = {new_cr(NULL), MPI_REQUEST_NULL}, op;
	struct seen seen = {0};
	int flag = 0, outcount, indices[2], index;

	op = pending(TAG);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, r[0]));
	CHECK_OK(MPIX_Request_get_status_all(2, r, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPIX_Request_get_status_some(2, r, &outcount, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, 0);
	complete_pending(TAG);
	for (int i = 0; i < 1000000 && !flag; i++)
		CHECK_OK(MPIX_Request_get_status_any(2, r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(index, 0);
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPIX_Request_get_status_some(2, r, &outcount, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, 1);
	CHECK_OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	CHECK_OK(MPIX_Request_get_status_some(2, r, &outcount, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, MPI_UNDEFINED);
	free_cr(&r[0]);
}

CONFORMANCE_BOTH(s7_hooked_persistent, 1, single,
		 "A persistent operation whose continuation is outstanding is not complete")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), r;
	struct seen seen = {0};
	int value = 0, sent = 3, flag = 1, outcount;

	r = persistent_receive(&value, TAG);
	CHECK_OK(MPI_Start(&r));
	CHECK_OK(attach(&r, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPIX_Request_get_status_all(1, &r, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Send(&sent, 1, MPI_INT, 0, TAG, MPI_COMM_SELF));
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPIX_Request_get_status_some(1, &r, &outcount, &flag, MPI_STATUSES_IGNORE));
	CHECK_EQ(outcount, MPI_UNDEFINED);
	CHECK_OK(MPI_Request_free(&r));
	free_cr(&cr);
}

/* --------------------------------------------------------------------------------------------- names, bad input --- */

CONFORMANCE_TEST(s7_names, 1, single, "The queries stand under MPI's names and as MPIX_, with PMPI names")
{
	MPI_Request r = MPI_REQUEST_NULL;
	int flag = 0, index = 0;

	CHECK_OK(MPI_Request_get_status_all(1, &r, &flag, MPI_STATUSES_IGNORE));
	CHECK(flag);
	CHECK_OK(PMPI_Request_get_status_any(1, &r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(index, MPI_UNDEFINED);
	index = 0;
	CHECK_OK(PMPIX_Request_get_status_some(1, &r, &index, &flag, MPI_STATUSES_IGNORE));
	CHECK_EQ(index, MPI_UNDEFINED);
}

CONFORMANCE_TEST(s7_bad_input, 1, single, "A negative count, null pointers: an error class, and nothing changes")
{
	MPI_Request r = pending(TAG);
	int flag = 42, index = 42;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK_CLASS(MPIX_Request_get_status_all(-1, &r, &flag, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
	CHECK_CLASS(MPIX_Request_get_status_any(-1, &r, &index, &flag, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
	CHECK_CLASS(MPIX_Request_get_status_some(-1, &r, &index, &flag, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
	CHECK_CLASS(MPIX_Request_get_status_all(1, NULL, &flag, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Request_get_status_all(1, &r, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Request_get_status_any(1, &r, NULL, &flag, MPI_STATUS_IGNORE), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Request_get_status_any(1, &r, &index, NULL, MPI_STATUS_IGNORE), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Request_get_status_some(1, &r, NULL, &flag, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
	CHECK_CLASS(MPIX_Request_get_status_some(1, &r, &index, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
	CHECK(flag == 42 && index == 42);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void outside(void)
{
	MPI_Request r[1] = {MPI_REQUEST_NULL};
	int flag = 42, index = 42;

	CHECK_EQ(MPIX_Request_get_status_all(1, r, &flag, MPI_STATUSES_IGNORE), MPI_ERR_OTHER);
	CHECK_EQ(MPIX_Request_get_status_any(1, r, &index, &flag, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
	CHECK_EQ(MPIX_Request_get_status_some(1, r, &flag, &index, MPI_STATUSES_IGNORE), MPI_ERR_OTHER);
	CHECK_EQ(MPI_Request_get_status_all(-1, NULL, &flag, NULL), MPI_ERR_OTHER);
	CHECK(flag == 42 && index == 42);
	CHECK(r[0] == MPI_REQUEST_NULL);
}

CONFORMANCE_TEST(s7_outside, 1, none,
		 "Queries before MPI_Init and after MPI_Finalize: MPI_ERR_OTHER, and nothing changes")
{
	outside();
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	outside();
}
