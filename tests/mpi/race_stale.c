/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on portable: MPI_Request_get_status is intercepted there */
/* not on mpich: MPI_Request_get_status is intercepted there */
/*
 * MPI_Request_get_status reads Open MPI's own field of a CR. That it is complete is put down there by whoever empties
 * the list of CRs that may be complete without saying so (src/mpi/native.c, stale). On the way there the other side
 * completes, registers, and gives back.
 */
#include "race.h"
#include "base/atomic.h"
#include "dispatch/group.h"

static MPI_Request cr;
static struct operation op;

static bool status_says_complete(void)
{
	int flag = -1;

	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	return flag == 1;
}

static void attach_op(void)
{
	MPI_Request r = operation_start(&op);

	CHECK_OK(MPI_Continue(&r, operation_ran, &op, MPI_STATUS_IGNORE, cr));
}

static void run_op(void)
{
	CHECK_OK(MPI_Grequest_complete(op.handle));
	while (contd_group_outstanding(group_of(cr)))
		contd_poll(0);
	CHECK_EQ(op.runs, 1);
}

/* Once complete, in a call that does not empty the list: the CR is on it afterwards. */
static void begin(const char *section)
{
	check_begin(section);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	attach_op();
	CHECK(!status_says_complete());
	run_op();
}

static void end(void)
{
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static void told(void)
{
	begin("it is told of");
	CHECK_SOON(status_says_complete());
	end();
}

static void let_side_run(void)
{
	side_do(run_op);
}

/* It is taken off the list with something outstanding, and that ends between taking it off and looking at it. */
static void completes_when_taken_off(void)
{
	begin("it completes when it has been taken off");
	attach_op();
	point_at("stale_cleared", let_side_run);
	CHECK_SOON(status_says_complete());
	point_off();
	CHECK_SOON(status_says_complete());
	end();
}

static void let_side_attach(void)
{
	side_do(attach_op);
}

/* It has been found complete and put down as that; what is registered just then says so, and must not be overlooked. */
static void registered_when_looked_at(void)
{
	begin("something is registered when it has been looked at");
	point_at("cr_state_written", let_side_attach);
	give_chances();
	point_off();
	for (int i = 0; i < 100; i++)
		CHECK(!status_says_complete());
	run_op();
	CHECK_SOON(status_says_complete());
	end();
}

/* Besides that it ends when it has been looked at once more, while it is put down as complete still. */
static void attach_and_run(void)
{
	side_do(attach_op);
	point_at("cr_state_read", let_side_run);
}

static void ends_when_looked_at(void)
{
	begin("what was registered ends when it has been looked at");
	point_at("cr_state_written", attach_and_run);
	give_chances();
	point_off();
	CHECK_SOON(status_says_complete());
	end();
}

/* It is given back while it is on the list, which keeps its group: it is taken off at once. */
static void given_back_on_the_list(void)
{
	uint32_t dead;

	begin("it is given back while it is on the list");
	dead = contd__load(&contd__groups.dead_count);
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_EQ(contd__load(&contd__groups.dead_count), dead + 1);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	side_create();
	told();
	completes_when_taken_off();
	registered_when_looked_at();
	ends_when_looked_at();
	given_back_on_the_list();
	side_join();
	return check_fini();
}
