/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A revised CR that becomes active again while Testall, Testany or Testsome is about to report it: another thread
 * registers a continuation between their look at the count and the report. As MPI_Test they say that it is not
 * complete; the continuation then runs without another start. And Testall, which takes a CR before it asks MPI about
 * the others, leaves it active where one of them is not complete.
 */
#include "race.h"

enum { ALL, ANY, SOME };
static const char *const name[] = {"Testall", "Testany", "Testsome"};

static MPI_Request cr, other;
static struct operation op, other_op;

static void attach_op(void)
{
	MPI_Request r = operation_start(&op);

	CHECK_OK(MPIX_Continue(&r, operation_ran_revised, &op, 0, MPI_STATUS_IGNORE, cr));
}

static void let_side_attach(void)
{
	side_do(attach_op);
}

/* The call's answer: how many of these are complete. */
static int test(int call, int count, MPI_Request requests[])
{
	MPI_Status statuses[2];
	int flag = -1, at[2];

	switch (call) {
	case ALL:
		CHECK_OK(MPI_Testall(count, requests, &flag, statuses));
		return flag ? count : 0;
	case ANY:
		CHECK_OK(MPI_Testany(count, requests, &at[0], &flag, statuses));
		return flag && at[0] != MPI_UNDEFINED;
	default:
		CHECK_OK(MPI_Testsome(count, requests, &flag, at, statuses));
		return flag;
	}
}

static void begin(const char *section)
{
	check_begin(section);
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
}

/* It is active, and runs what was registered. */
static void end(void)
{
	CHECK_EQ(op.runs, 0);
	CHECK_OK(MPI_Grequest_complete(op.handle));
	CHECK_SOON(op.runs == 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

/* With null and other requests beside it: `beside` that are complete, whose handles stay where Testall says no. */
static void attached_before_the_report(int call, int beside)
{
	MPI_Request requests[2];

	begin(name[call]);
	requests[0] = cr;
	if (beside) {
		requests[1] = operation_start(&other_op);
		CHECK_OK(MPI_Grequest_complete(other_op.handle));
	}
	point_at("report_before_inactive", let_side_attach);
	if (beside && call != ALL) {
		/* The other one is reported, and the CR is not. */
		CHECK_EQ(test(call, 2, requests), 1);
		CHECK(requests[1] == MPI_REQUEST_NULL);
		if (point_hits == 0)
			CHECK_EQ(test(call, 1, requests), 0);
	} else {
		CHECK_EQ(test(call, 1 + beside, requests), 0);
		if (beside) {
			CHECK(requests[1] != MPI_REQUEST_NULL);
			CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
		}
	}
	point_off();
	end();
}

/* Testall has taken the CR and asks for one that is not complete: what is attached meanwhile does not wait for a
 * start. */
static void attached_to_one_that_was_taken(bool before)
{
	MPI_Request requests[2];

	begin("attached while Testall has it");
	requests[0] = cr;
	requests[1] = other = operation_start(&other_op);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(test(ALL, 2, requests), 0);
	CHECK_EQ(MPI_Start(&cr), MPI_ERR_REQUEST); /* it is active */
	if (before) {
		attach_op();
	} else {
		point_at("all_taken", let_side_attach);
		CHECK_EQ(test(ALL, 2, requests), 0);
		point_off();
	}
	CHECK_EQ(test(ALL, 2, requests), 0);
	CHECK_OK(MPI_Grequest_complete(op.handle));
	CHECK_SOON(op.runs == 1);
	CHECK_OK(MPI_Grequest_complete(other));
	while (test(ALL, 2, requests) == 0)
		;
	CHECK(requests[1] == MPI_REQUEST_NULL);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

/* The same of a draft CR: it still has something to report afterwards, once. */
static void draft_beside_a_pending_one(void)
{
	MPI_Request requests[2], none = MPI_REQUEST_NULL;
	struct seen seen = {0};
	int flag, at;

	check_begin("a draft CR beside one that is pending");
	cr = check_plain_cr();
	CHECK_OK(MPI_Continue(&none, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(seen.runs, 1);
	requests[0] = cr;
	requests[1] = operation_start(&other_op);
	CHECK_EQ(test(ALL, 2, requests), 0);
	CHECK_OK(MPI_Testany(2, requests, &at, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(at, 0);
	CHECK_OK(MPI_Grequest_complete(other_op.handle));
	CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
	/* Its MPI_Start refuses an active CR before the native backend sees it, by this handler. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#endif
	side_create();
	for (int call = ALL; call <= SOME; call++)
		for (int beside = 0; beside < 2; beside++)
			attached_before_the_report(call, beside);
	attached_to_one_that_was_taken(false);
	attached_to_one_that_was_taken(true);
	draft_beside_a_pending_one();
	side_join();
	return check_fini();
}
