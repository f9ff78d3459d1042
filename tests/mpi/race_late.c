/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * An operation of the revised interface that fails ends the waiting for the others: those that complete later count
 * nothing, whatever has become of the continuation's slot. And one that fails while MPI_Start releases what its CR has
 * held.
 */
#include "race.h"

static MPI_Request cr;
static struct operation first, second;
static MPI_Status status[2];

static void two_operations(void)
{
	MPI_Request r[2];

	r[0] = operation_start(&first);
	r[1] = operation_start(&second);
	first.error = MPI_ERR_OTHER;
	CHECK_OK(MPIX_Continueall(2, r, operation_ran_revised, &first, MPIX_CONT_INVOKE_FAILED, status, cr));
}

static void first_has_failed(void)
{
	int class;

	CHECK_EQ(first.rc, MPI_ERR_OTHER);
	CHECK_OK(MPI_Error_class(status[0].MPI_ERROR, &class));
	CHECK_EQ(class, MPI_ERR_OTHER);
	CHECK_EQ(status[1].MPI_ERROR, MPI_ERR_PENDING);
}

/* --------------------------------------------------------------------------------------- the slot is used again --- */

/* The generation's bits that fit in an event's word. */
#define GENERATIONS (1u << 20)

static unsigned ran;

static void count_run(int result, void *data)
{
	(void)result;
	(void)data;
	ran++;
}

static void late_for_another(void)
{
	struct contd_group *group;
	struct contd_event event = CONTD_EVENT_INIT, *es[] = {&event};
	struct contd_handle after, waits;
	int flag;

	check_begin("late for another continuation in the same slot");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	two_operations();
	CHECK_OK(MPI_Grequest_complete(first.handle));
	CHECK_SOON(first.runs == 1);
	first_has_failed();
	/* So many continuations later its slot has the same generation, but for bits that an event's word does not
	 * have. */
	group = contd_mpi_group(cr);
	CHECK_EQ(contd_event_continue(0, NULL, count_run, NULL, group, &after), 0);
	for (unsigned i = 0; i < GENERATIONS - 2; i++)
		contd_event_continue(0, NULL, count_run, NULL, group, NULL);
	CHECK_EQ(ran, GENERATIONS - 1);
	CHECK_EQ(contd_event_continue(1, es, count_run, NULL, group, &waits), 0);
	CHECK(waits.slot == after.slot);
	CHECK_EQ(waits.generation - after.generation, GENERATIONS - 1);
	CHECK_OK(MPI_Grequest_complete(second.handle));
	for (int i = 0; i < 50; i++)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(ran, GENERATIONS - 1);
	CHECK_EQ(contd_event_complete(&event, 0), 0);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, GENERATIONS);
	CHECK_EQ(first.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------------------------- at the start --- */

static void end_both(void)
{
	int flag;

	CHECK_OK(MPI_Grequest_complete(first.handle));
	CHECK_OK(MPI_Grequest_complete(second.handle));
	for (int i = 0; i < 50; i++)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
}

/* MPI_Start stands between taking what was held and counting the start: until it has, nothing runs, and the set
 * stays. */
static void let_them_end(void)
{
	side_do(end_both);
	CHECK_EQ(first.runs, 0);
}

static void fail_at_the_start(void)
{
	check_begin("an operation fails while its CR is started");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	two_operations();
	point_at("start_releases", let_them_end);
	CHECK_OK(MPI_Start(&cr));
	point_off();
	CHECK_SOON(first.runs == 1);
	CHECK_EQ(first.rc, MPI_ERR_OTHER);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	give_chances();
	CHECK_EQ(first.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	side_create();
	late_for_another();
	fail_at_the_start();
	side_join();
	return check_fini();
}
