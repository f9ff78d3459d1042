/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on portable: nothing is looked at again there */
/* not on mpich: nothing is looked at again there */
/*
 * The recheck of hooked operations looks at a pending slot's set (src/mpi/native.c, recheck_slot). Meanwhile the slot
 * counts one event more, SLOT_LOOKED_AT, and a failure does not end the waiting early: or the continuation would run,
 * and the set be freed, under the looker's hands. The end of the look makes up for both.
 */
#include "race.h"

#include "mpi/ompi.h"

static MPI_Request cr;
static struct operation first, second;

static void end_first(void)
{
	int flag = -1;

	CHECK_OK(MPI_Grequest_complete(first.handle));
	for (int i = 0; i < 50; i++)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
	CHECK_EQ(first.runs, 0);
}

/* The looker stands between finding the set and using it. */
static void let_first_end(void)
{
	side_do(end_first);
	CHECK_EQ(first.runs, 0);
}

static void complete_while_looked_at(void)
{
	MPI_Request r;

	check_begin("the last operation completes while it is looked at");
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	r = operation_start(&first);
	CHECK_OK(MPI_Continue(&r, operation_ran, &first, MPI_STATUS_IGNORE, cr));
	point_at("recheck_looking", let_first_end);
	CHECK_SOON(atomic_load(&point_hits));
	CHECK_SOON(first.runs == 1);
	point_off();
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(first.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

/* Of two operations one fails: the continuation is to run at once, but for the looker. */
static void fail_while_looked_at(void)
{
	MPI_Request r[2];
	MPI_Status status[2];

	check_begin("an operation fails while another one is waited for and looked at");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	r[0] = operation_start(&first);
	r[1] = operation_start(&second);
	first.error = MPI_ERR_OTHER;
	CHECK_OK(MPIX_Continueall(2, r, operation_ran_revised, &first, MPIX_CONT_INVOKE_FAILED, status, cr));
	point_at("recheck_looking", let_first_end);
	CHECK_SOON(atomic_load(&point_hits));
	CHECK_SOON(first.runs == 1); /* the second is pending still */
	point_off();
	CHECK_EQ(first.rc, MPI_ERR_OTHER);
	CHECK_EQ(status[0].MPI_ERROR, MPI_ERR_OTHER);
	CHECK_EQ(status[1].MPI_ERROR, MPI_ERR_PENDING);
	CHECK_OK(MPI_Grequest_complete(second.handle));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	give_chances();
	CHECK_EQ(first.runs, 1);
	CHECK_EQ(first.freed, 1);
	CHECK_EQ(second.freed, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

/*
 * The callback of an operation is missed whose continuation has failed before: as if the completer had looked for a
 * callback before it was stored. Nothing else tells of it, and it is not waited for for ever.
 */
static void miss_after_failure(void)
{
	MPI_Request r[2];

	check_begin("the callback of an operation is missed, of a continuation that has failed");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	r[0] = operation_start(&first);
	r[1] = operation_start(&second);
	first.error = MPI_ERR_OTHER;
	CHECK_OK(MPIX_Continueall(2, r, operation_ran_revised, &first, MPIX_CONT_INVOKE_FAILED, MPI_STATUSES_IGNORE,
				  cr));
	CHECK_OK(MPI_Grequest_complete(first.handle));
	CHECK_SOON(first.runs == 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(contd__mpi->pending(), 1);
	((struct contd__ompi_request *)(void *)second.handle)->complete_cb = NULL;
	CHECK_OK(MPI_Grequest_complete(second.handle));
	CHECK_EQ(contd__mpi->pending(), 1);
	CHECK_SOON(contd__mpi->pending() == 0);
	CHECK_SOON(second.freed);
	CHECK_EQ(second.freed, 1);
	CHECK_EQ(first.freed, 1);
	CHECK_EQ(first.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

static void make_cr(void)
{
	MPI_Request made;

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &made));
	CHECK_OK(MPI_Request_free(&made));
}

/* Looking again may call the program's query_fn, which may call everything. */
static void make_cr_in_query(void)
{
	MPI_Request r;

	check_begin("a query_fn makes and frees a CR");
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	r = operation_start(&first);
	first.in_query = make_cr;
	CHECK_OK(MPI_Continue(&r, operation_ran, &first, MPI_STATUS_IGNORE, cr));
	((struct contd__ompi_request *)(void *)first.handle)->complete_cb = NULL;
	CHECK_OK(MPI_Grequest_complete(first.handle));
	CHECK_SOON(first.runs == 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	side_create();
	complete_while_looked_at();
	fail_while_looked_at();
	miss_after_failure();
	make_cr_in_query();
	side_join();
	return check_fini();
}
