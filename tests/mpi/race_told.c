/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A revised CR that one thread starts or tests while another one tests it: when all calls have returned it is what it
 * says it is, and one of them was told that it was complete.
 */
#include "race.h"
#ifdef OPEN_MPI
#include "mpi/ompi.h"
#endif

static MPI_Request cr;

static void begin(const char *section)
{
	check_begin(section);
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
}

/* It is inactive: what is registered waits for the start, which is not refused. */
static void end_inactive(void)
{
	struct operation op;
	MPI_Request r = operation_start(&op);

	CHECK_OK(MPI_Grequest_complete(r));
	CHECK_OK(MPIX_Continue(&r, operation_ran_revised, &op, 0, MPI_STATUS_IGNORE, cr));
	give_chances();
	CHECK_EQ(op.runs, 0);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(op.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

static void test_it(void)
{
	int flag = 0;

	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
}

static void let_side_test(void)
{
	side_do(test_it);
}

/* Open MPI 5 checks this before it starts a request. */
static void for_open_mpi_it_is(bool active)
{
	(void)active;
#ifdef OPEN_MPI
	if (check_native())
		CHECK_EQ(((struct contd__ompi_request *)(void *)cr)->state, active ? OMPI_ACTIVE : OMPI_INACTIVE);
#endif
}

static void start_it(void)
{
	for_open_mpi_it_is(false);
	CHECK_OK(MPI_Start(&cr));
	for_open_mpi_it_is(true);
}

static void let_side_test_and_start(void)
{
	side_do(test_it);
	side_do(start_it);
	side_do(test_it);
}

/* It is active, and nothing is outstanding, as soon as MPI_Start has begun. */
static void reported_in_the_start(void (*act)(void))
{
	begin("reported while MPI_Start is under way");
	point_at("cr_started", act);
	CHECK_OK(MPI_Start(&cr));
	point_off();
	for_open_mpi_it_is(false);
	end_inactive();
}

static int side_rc;

static void start_too(void)
{
	side_rc = MPI_Start(&cr);
}

static void let_side_start_too(void)
{
	side_do(start_too);
}

/* Two threads start it at the same time, which is an error for one of them. */
static void started_twice(void)
{
	int rc;

	begin("started by two threads");
	point_at("cr_start_said", let_side_start_too);
	rc = MPI_Start(&cr);
	point_off();
	CHECK(rc == MPI_SUCCESS || rc == MPI_ERR_REQUEST);
	CHECK_EQ(side_rc, rc == MPI_SUCCESS ? MPI_ERR_REQUEST : MPI_SUCCESS);
	for_open_mpi_it_is(true);
	test_it();
	for_open_mpi_it_is(false);
	end_inactive();
}

/* ----------------------------------------------------------------------------------------------- told to others --- */

enum { ANY, SOME, CALLS };
static const char *const name[] = {"Testany", "Testsome"};

/* The CR is one of those that are complete, says the call. */
static bool tells(int call)
{
	MPI_Request requests[2] = {cr, MPI_REQUEST_NULL};
	MPI_Status statuses[2];
	int flag = -1, at[2] = {-1, -1};

	if (call == ANY) {
		CHECK_OK(MPI_Testany(2, requests, &at[0], &flag, statuses));
		CHECK(flag);
		return at[0] != MPI_UNDEFINED;
	}
	CHECK_OK(MPI_Testsome(2, requests, &flag, at, statuses));
	CHECK(flag == 1 || flag == MPI_UNDEFINED);
	return flag == 1;
}

static int side_call;
static bool side_told;

static void ask(void)
{
	side_told = tells(side_call);
}

static void let_side_ask(void)
{
	side_do(ask);
}

/* Two calls find it complete. */
static void told_once(int here, int there)
{
	bool told;

	begin(name[here]);
	CHECK_OK(MPI_Start(&cr));
	side_call = there;
	point_at("report_before_inactive", let_side_ask);
	told = tells(here);
	point_off();
	CHECK_EQ(told + side_told, 1);
	CHECK(!tells(here));
	end_inactive();
}

static void draft_told_once(int here, int there)
{
	MPI_Request none = MPI_REQUEST_NULL;
	struct seen seen = {0};
	bool told;

	begin(name[here]);
	CHECK_OK(MPI_Request_free(&cr));
	cr = check_plain_cr();
	CHECK_OK(MPI_Continue(&none, see, &seen, MPI_STATUS_IGNORE, cr));
	side_call = there;
	point_at("report_draft", let_side_ask);
	told = tells(here);
	point_off();
	CHECK_EQ(told + side_told, 1);
	CHECK(!tells(here));
	CHECK_OK(MPI_Request_free(&cr));
}

/* Testall finds it complete, and so does the other thread, which reports it. Then Testall finds the other request
 * pending: it gives back what it has taken, and no more. */
static void not_given_back(void)
{
	struct operation op;
	MPI_Request requests[2];
	int flag;

	begin("Testall");
	CHECK_OK(MPI_Start(&cr));
	requests[0] = cr;
	requests[1] = operation_start(&op);
	point_at("report_before_inactive", let_side_test);
	CHECK_OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
	point_off();
	CHECK(!flag);
	CHECK_OK(MPI_Grequest_complete(op.handle));
	CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
	end_inactive();
}

/* ----------------------------------------------------------------------------------------------- taken for long --- */

static struct operation attached;

/* It has never been told of, so it is active, and not complete before what is registered has run. */
static void attach_and_ask(void)
{
	MPI_Request r = operation_start(&attached);
	int flag = 1, at;

	CHECK_OK(MPIX_Continue(&r, operation_ran_revised, &attached, 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testany(1, &cr, &at, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(MPI_Start(&cr), MPI_ERR_REQUEST);
}

static void let_side_attach_and_ask(void)
{
	side_do(attach_and_ask);
}

/* Testall has taken the CR, and gives it back; at the point meanwhile another thread acts. */
static MPI_Request taken_and_given_back(struct operation *op, const char *point, void (*act)(void))
{
	MPI_Request requests[2];
	int flag;

	CHECK_OK(MPI_Start(&cr));
	requests[0] = cr;
	requests[1] = operation_start(op);
	point_at(point, act);
	CHECK_OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
	point_off();
	CHECK(!flag);
	return requests[1];
}

static void taken_ends(struct operation *op, MPI_Request request)
{
	CHECK_OK(MPI_Grequest_complete(op->handle));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	end_inactive();
}

static void not_told_by_others(const char *point)
{
	struct operation op;
	MPI_Request request;

	begin(point);
	request = taken_and_given_back(&op, point, let_side_attach_and_ask);
	CHECK_OK(MPI_Grequest_complete(attached.handle));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(attached.runs, 1);
	taken_ends(&op, request);
}

/* Without a CR for it: it runs here, and the CR that it has waited for is inactive then. */
static void continue_with_it(void)
{
	MPI_Request r = cr;

	CHECK_OK(MPIX_Continue(&r, operation_ran_revised, &attached, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL));
	CHECK_EQ(attached.runs, 1);
}

static void let_side_continue(void)
{
	side_do(continue_with_it);
}

/* A continuation has waited for it meanwhile. */
static void awaited(const char *point)
{
	struct operation op;

	begin("awaited");
	memset(&attached, 0, sizeof(attached));
	taken_ends(&op, taken_and_given_back(&op, point, let_side_continue));
}

static void named_twice(void)
{
	MPI_Request requests[3];

	begin("named twice");
	CHECK_OK(MPI_Start(&cr));
	requests[0] = requests[1] = requests[2] = cr;
	CHECK_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
	end_inactive();
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	/* Natively Open MPI 5 refuses the start of an active CR itself, and calls this one, unless told otherwise. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	side_create();
	reported_in_the_start(let_side_test);
	reported_in_the_start(let_side_test_and_start);
	started_twice();
	for (int here = ANY; here < CALLS; here++)
		for (int there = ANY; there < CALLS; there++) {
			told_once(here, there);
			draft_told_once(here, there);
		}
	not_given_back();
	not_told_by_others("all_taken");
	not_told_by_others("report_taken");
	awaited("all_taken");
	awaited("report_taken");
	named_twice();
	side_join();
	return check_fini();
}
