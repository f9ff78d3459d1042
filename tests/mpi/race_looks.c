/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Attaching to a revised CR counts first and then looks whether the CR is active; reporting it complete makes it
 * inactive and then looks at the count (src/mpi/cr.h). At every point between these the other side runs. Whatever comes
 * of it: a CR is not reported complete with something outstanding that may run; what is registered with an inactive one
 * does not run before it is started; and nothing waits for a start that has been.
 */
#include "race.h"
#include "base/testpoint.h"

static MPI_Request cr;
static struct operation op;
static atomic_int flag, seen;

static void complete_op(void)
{
	CHECK_OK(MPI_Grequest_complete(op.handle));
}

static void attach_op(void)
{
	MPI_Request r = operation_start(&op);

	CHECK_OK(MPIX_Continue(&r, operation_ran_revised, &op, 0, MPI_STATUS_IGNORE, cr));
}

static void test_cr(void)
{
	int f = -1;

	CHECK_OK(MPI_Test(&cr, &f, MPI_STATUS_IGNORE));
	flag = f;
}

static void start_cr(void)
{
	CHECK_OK(MPI_Start(&cr));
}

static void begin(const char *section, bool active)
{
	check_begin(section);
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	flag = -1;
	if (active)
		start_cr();
}

/* It is active and waits for the operation. */
static void end_active(void)
{
	CHECK_EQ(op.runs, 0);
	complete_op();
	CHECK_SOON(op.runs == 1);
	/* Inactive already: it would return at once. */
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(op.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

/* It is inactive, and holds the continuation until it is started. */
static void end_inactive(void)
{
	complete_op();
	give_chances();
	CHECK_EQ(op.runs, 0);
	start_cr();
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(op.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

static void let_side_attach(void)
{
	side_do(attach_op);
}

/* The reporter has found nothing outstanding; attached before it says so. */
static void attached_before_it_is_inactive(void)
{
	begin("attached before it is inactive", true);
	point_at("report_before_inactive", let_side_attach);
	test_cr();
	point_off();
	CHECK_EQ(flag, 0);
	end_active();
}

static void side_holds(const char *name)
{
	if (strcmp(name, "report_taken") == 0 && atomic_fetch_add(&point_hits, 1) == 0) {
		side_start(attach_op);
		/* It has counted, has seen the CR inactive, and goes for the lock that this thread holds. */
		while (!seen)
			usleep(20);
		usleep(2000);
	} else if (strcmp(name, "hold_inactive") == 0) {
		seen = 1;
	}
}

/* The reporter has said that it is inactive and has not looked again. */
static void attached_while_it_is_inactive(void)
{
	begin("attached while the report has made it inactive", true);
	seen = 0;
	atomic_store(&point_hits, 0);
	__atomic_store_n(&contd__testpoint_hook, side_holds, __ATOMIC_RELEASE);
	test_cr();
	side_finish();
	point_off();
	CHECK_EQ(flag, 0);
	end_active();
}

static void let_side_start(void)
{
	side_do(start_cr);
}

/* Attaching has seen it inactive, and has not put the continuation on the list that the start takes. */
static void started_before_it_is_held(void)
{
	begin("started before it is held", false);
	point_at("hold_inactive", let_side_start);
	attach_op();
	point_off();
	end_active();
}

static void let_side_test(void)
{
	side_do(test_cr);
}

/* Reported complete before attaching has counted, and so before it looks. */
static void reported_before_it_is_counted(void)
{
	begin("reported before it is counted", true);
	point_at("attach_before_publish", let_side_test);
	attach_op();
	point_off();
	CHECK_EQ(flag, 1);
	end_inactive();
}

/* Counted, and attaching has not looked yet: no report. */
static void tested_when_it_is_counted(void)
{
	begin("tested when it is counted", true);
	point_at("publish_pending", let_side_test);
	attach_op();
	point_off();
	CHECK_EQ(flag, 0);
	end_active();
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	side_create();
	attached_before_it_is_inactive();
	attached_while_it_is_inactive();
	started_before_it_is_held();
	reported_before_it_is_counted();
	tested_when_it_is_counted();
	side_join();
	return check_fini();
}
