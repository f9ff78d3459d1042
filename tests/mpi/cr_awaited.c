/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * CRs given to MPI_Continue: when the callback runs a CR of the revised interface is inactive, and may be started and
 * used again, whether it was waited for, alone or beside an operation, or was complete.
 */
#include "check.h"

#define TAG 97

static int in, inner_runs, runs, starts_failed;
static MPI_Request inner;

static int count(int rc, void *data)
{
	(void)data;
	inner_runs += rc == MPI_SUCCESS;
	return MPI_SUCCESS;
}

static void start_again(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
	starts_failed += MPI_Start(&inner) != MPI_SUCCESS;
}

static int start_again_revised(int rc, void *data)
{
	(void)rc;
	start_again(NULL, data);
	return MPI_SUCCESS;
}

static void attach(int n, MPI_Request r[], bool revised, MPI_Request outer)
{
	if (revised)
		CHECK_OK(MPIX_Continueall(n, r, start_again_revised, NULL, 0, MPI_STATUSES_IGNORE, outer));
	else
		CHECK_OK(MPI_Continueall(n, r, start_again, NULL, MPI_STATUSES_IGNORE, outer));
}

static void send_to_self(int tag)
{
	int out = 1;

	CHECK_OK(MPI_Send(&out, 1, MPI_INT, check_rank, tag, MPI_COMM_WORLD));
}

/* `awaited`: something is outstanding at the inner CR; `beside`: and the outer one waits for an operation, too. */
static void one(bool revised, bool awaited, bool beside)
{
	MPI_Request r[2], outer;
	static int other;

	inner_runs = runs = starts_failed = 0;
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &inner));
	CHECK_OK(MPI_Start(&inner));
	if (revised) {
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &outer));
		CHECK_OK(MPI_Start(&outer));
	} else {
		outer = check_plain_cr();
	}
	for (int round = 0; round < 2; round++) {
		if (awaited) {
			MPI_Irecv(&in, 1, MPI_INT, check_rank, TAG, MPI_COMM_WORLD, &r[0]);
			CHECK_OK(MPIX_Continue(&r[0], count, NULL, 0, MPI_STATUS_IGNORE, inner));
		}
		r[0] = inner;
		if (beside)
			MPI_Irecv(&other, 1, MPI_INT, check_rank, TAG + 1, MPI_COMM_WORLD, &r[1]);
		attach(beside ? 2 : 1, r, revised, outer);
		if (beside)
			send_to_self(TAG + 1);
		if (awaited)
			send_to_self(TAG);
		CHECK_OK(MPI_Wait(&outer, MPI_STATUS_IGNORE));
		if (revised)
			CHECK_OK(MPI_Start(&outer));
		CHECK_EQ(runs, round + 1);
		CHECK_EQ(inner_runs, awaited ? round + 1 : 0);
		CHECK_EQ(starts_failed, 0);
	}
	CHECK_OK(MPI_Request_free(&outer));
	CHECK_OK(MPI_Request_free(&inner));
}

/* A CR that the program frees meanwhile. */
static void freed(void)
{
	MPI_Request r, outer = check_plain_cr();

	inner_runs = runs = starts_failed = 0;
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &inner));
	CHECK_OK(MPI_Start(&inner));
	MPI_Irecv(&in, 1, MPI_INT, check_rank, TAG, MPI_COMM_WORLD, &r);
	CHECK_OK(MPIX_Continue(&r, count, NULL, 0, MPI_STATUS_IGNORE, inner));
	r = inner;
	attach(1, &r, false, outer);
	CHECK_OK(MPI_Request_free(&inner));
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &inner)); /* what the callback starts */
	send_to_self(TAG);
	CHECK_OK(MPI_Wait(&outer, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	CHECK_EQ(starts_failed, 0);
	CHECK_OK(MPI_Request_free(&outer));
	CHECK_OK(MPI_Request_free(&inner));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int revised = 0; revised < 2; revised++) {
		check_begin(revised ? "revised: complete" : "draft: complete");
		one(revised, false, false);
		check_begin(revised ? "revised: complete, beside" : "draft: complete, beside");
		one(revised, false, true);
		check_begin(revised ? "revised: awaited" : "draft: awaited");
		one(revised, true, false);
		check_begin(revised ? "revised: awaited, beside" : "draft: awaited, beside");
		one(revised, true, true);
	}
	check_begin("freed meanwhile");
	freed();
	return check_fini();
}
