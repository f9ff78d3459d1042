/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * While a continuation runs inside the call that attaches it, its CR is not complete on other threads. A wait on
 * another thread also waits for what the callback registers.
 */
#include "race.h"

static MPI_Request cr;
static struct contd_group *group;
static struct operation later;
static atomic_int waited;

/* ------------------------------------------------------------------------------------------------------- asking --- */

/* Each way to ask, on the other thread. */
static int expected;

static void ask(void)
{
	MPI_Request two[2] = {cr, MPI_REQUEST_NULL};
	int flag, index, count, indices[2];

	flag = !expected;
	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, expected);
	flag = !expected;
	CHECK_OK(PMPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, expected);
	flag = !expected;
	CHECK_OK(MPIX_Request_get_status_all(2, two, &flag, MPI_STATUSES_IGNORE));
	CHECK_EQ(flag, expected);
	if (expected) {
		flag = 0;
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		return;
	}
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testany(2, two, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Testsome(2, two, &count, indices, MPI_STATUSES_IGNORE));
	CHECK_EQ(count, 0);
	CHECK(contd_group_test(group, &flag) >= 0);
	CHECK(!flag);
}

static void asked_meanwhile(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
	side_do(ask);
}

static void ask_while_it_runs(void)
{
	MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, request;
	int runs = 0;

	check_begin("asked while it runs");
	for (int again = 0; again < 3; again++) {
		expected = 0;
		CHECK_OK(MPI_Continueall(2, none, asked_meanwhile, &runs, MPI_STATUSES_IGNORE, cr));
		CHECK_EQ(runs, 2 * again + 1);
		expected = 1;
		side_do(ask);
		expected = 0;
		request = operation_start(&later);
		CHECK_OK(MPI_Grequest_complete(request));
		CHECK_OK(MPI_Continue(&request, asked_meanwhile, &runs, MPI_STATUS_IGNORE, cr));
		CHECK_EQ(runs, 2 * again + 2);
		expected = 1;
		side_do(ask);
	}
}

/* ------------------------------------------------------------------------------------------------------ waiting --- */

static void wait_for_it(void)
{
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(later.runs, 1);
	atomic_store(&waited, 1);
}

static void waited_for(MPI_Status *status, void *data)
{
	MPI_Request request;

	(void)status, (void)data;
	side_start(wait_for_it);
	give_chances();
	CHECK(!atomic_load(&waited));
	request = operation_start(&later);
	CHECK_OK(MPI_Continue(&request, operation_ran, &later, MPI_STATUS_IGNORE, cr));
	give_chances();
}

static void wait_while_it_runs(void)
{
	MPI_Request none = MPI_REQUEST_NULL;

	check_begin("waited for while it runs");
	CHECK_OK(MPI_Continue(&none, waited_for, NULL, MPI_STATUS_IGNORE, cr));
	give_chances();
	CHECK(!atomic_load(&waited));
	CHECK_OK(MPI_Grequest_complete(later.handle));
	side_finish();
	CHECK(atomic_load(&waited));
}

/* ------------------------------------------------------------------------------------------------------ awaited --- */

static MPI_Request after;
static struct seen ran_after;

static void awaited(MPI_Status *status, void *data)
{
	MPI_Request operation = cr;
	int flag;

	(void)status, (void)data;
	CHECK_OK(MPI_Continue(&operation, see, &ran_after, MPI_STATUS_IGNORE, after));
	CHECK_OK(MPI_Test(&after, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(ran_after.runs, 0);
}

static void await_while_it_runs(void)
{
	MPI_Request none = MPI_REQUEST_NULL;

	check_begin("another continuation waits for it");
	after = check_plain_cr();
	CHECK_OK(MPI_Continue(&none, awaited, NULL, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&after, MPI_STATUS_IGNORE));
	CHECK_EQ(ran_after.runs, 1);
	CHECK_OK(MPI_Request_free(&after));
}

/* ------------------------------------------------------------------------------------------------------ freeing --- */

static void free_it(void)
{
	CHECK_OK(MPI_Request_free(&cr));
	CHECK(cr == MPI_REQUEST_NULL);
}

static void freed_beside(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
	side_do(free_it);
}

static void freed_here(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
	free_it();
}

static void free_while_it_runs(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int runs = 0;

	check_begin("freed while it runs");
	CHECK_OK(MPI_Continue(&none, freed_beside, &runs, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(runs, 1);
	cr = check_plain_cr();
	CHECK_OK(MPI_Continue(&none, freed_here, &runs, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(runs, 2);
}

/* Nothing keeps what was given back: so many at a time there may be (contd_group_create). */
static void free_many(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	struct seen seen = {0};

	check_begin("many");
	for (int i = 0; i < 5000; i++) {
		cr = check_plain_cr();
		CHECK_OK(MPI_Continue(&none, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Request_free(&cr));
	}
	CHECK_EQ(seen.runs, 5000);
}

/* ------------------------------------------------------------------------------------------------- MPI_Finalize --- */

/* A callback may call any function of MPI's. MPI_Finalize does not report it as one that never ran. */
static void finalizes(MPI_Status *status, void *data)
{
	(void)status;
	*(int *)data = check_finalize_inside();
}

static int finalize_in_it(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int failed = -1;

	cr = check_plain_cr();
	CHECK_OK(MPI_Continue(&none, finalizes, &failed, MPI_STATUS_IGNORE, cr));
	return failed || atomic_load(&check_failures);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	side_create();
	cr = check_plain_cr();
	group = contd_mpi_group(cr);
	ask_while_it_runs();
	wait_while_it_runs();
	await_while_it_runs();
	free_while_it_runs();
	free_many();
	side_join();
	return finalize_in_it();
}
