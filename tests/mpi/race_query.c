/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* The calls that a query function may make: it runs inside MPI, where the call around it has taken something. */
#include "race.h"
#include "dispatch/event.h"
#include "dispatch/source.h"

static MPI_Request cr;
static int calls; /* of a query function; MPI may call it more than once */

/* The thread's own Testall has taken the CR: waiting for it would never end. */
static void wait_for_it(void)
{
	int at;

	if (calls++)
		return;
	CHECK_EQ(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	CHECK_EQ(MPI_Waitall(1, &cr, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
	CHECK_EQ(MPI_Waitany(1, &cr, &at, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
}

static void waits_for_what_is_taken(void)
{
	struct operation op;
	MPI_Request requests[2];
	int flag;

	check_begin("waits for what is taken");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	requests[0] = cr;
	requests[1] = operation_start(&op);
	op.in_query = wait_for_it;
	calls = 0;
	CHECK_OK(MPI_Grequest_complete(op.handle));
	CHECK_OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
	CHECK(flag);
	CHECK(calls > 0);
	CHECK_OK(MPI_Start(&cr)); /* it was told of, and is inactive */
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------- another source, in the midst --- */

static struct contd_event event = CONTD_EVENT_INIT;
static uint32_t under_way;
static MPI_Request other_cr;

static void progress(bool last)
{
	struct contd_event *e = &event;

	(void)last;
	if (calls) {
		under_way = 0;
		contd__events_complete_sig(&e, 1);
	}
}

static uint32_t pending(void)
{
	return under_way;
}

static void test_another(void)
{
	int flag;

	if (!calls++)
		CHECK_OK(MPI_Test(&other_cr, &flag, MPI_STATUS_IGNORE));
}

static void count(int status, void *data)
{
	(void)status;
	++*(int *)data;
}

/* A test of a CR makes progress; in that a query function tests another one, which looks at other sources, too. */
static void tests_another(void)
{
	static struct contd__source source = {
		.name = "test", .where = WHERE_THREAD, .progress = progress, .pending = pending};
	struct contd_event *e = &event;
	struct operation op, never;
	struct contd_group *group;
	MPI_Request r, other;
	int flag, ran = 0;

	check_begin("tests another one");
	cr = check_plain_cr();
	other_cr = check_plain_cr();
	other = operation_start(&never);
	CHECK_OK(MPI_Continue(&other, operation_ran, &never, MPI_STATUS_IGNORE, other_cr));
	CHECK_EQ(contd_group_create(NULL, &group), 0);
	CHECK_EQ(contd__source_register(&source), 0);
	CHECK_EQ(contd_event_continue(1, &e, count, &ran, group, NULL), 0);
	calls = 0;
	under_way = 1;
	r = operation_start(&op);
	op.in_query = test_another;
	CHECK_OK(MPI_Continue(&r, operation_ran, &op, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Grequest_complete(op.handle));
	for (double until = MPI_Wtime() + 20; (!ran || !op.runs) && MPI_Wtime() < until;)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(op.runs, 1);
	CHECK_EQ(ran, 1);
	CHECK_EQ(contd_group_outstanding(group), 0);
	CHECK_EQ(contd_group_destroy(group), 0);
	CHECK_OK(MPI_Grequest_complete(never.handle));
	CHECK_OK(MPI_Wait(&other_cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&other_cr));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	waits_for_what_is_taken();
	tests_another();
	return check_fini();
}
