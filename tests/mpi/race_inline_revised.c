/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Revised interface: continuations that run inside the call that attaches them. They count as outstanding while they
 * run; what their callbacks return is a failure of their CR's; and if another thread reports the CR complete before
 * they are counted, they wait for the next MPI_Start.
 */
#include "race.h"

static MPI_Request cr;

static void begin(const char *section)
{
	check_begin(section);
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
}

static int counts(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	(*(int *)data)++;
	return MPI_SUCCESS;
}

/* A receive that is complete, from this rank itself. */
static MPI_Request received(int *to, int tag)
{
	MPI_Request request;
	int flag = 0, out = tag;

	CHECK_OK(MPI_Irecv(to, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, tag, MPI_COMM_SELF));
	while (!flag)
		CHECK_OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
	return request;
}

/* ------------------------------------------------------------------------------------------------ while it runs --- */

static int test_flag;

static void test_it(void)
{
	CHECK_OK(MPI_Test(&cr, &test_flag, MPI_STATUS_IGNORE));
}

static int is_tested(int rc, void *data)
{
	side_do(test_it);
	CHECK_EQ(test_flag, 0);
	return counts(rc, data);
}

static void tested_while_it_runs(void)
{
	int in = 0, runs = 0;
	MPI_Status status;
	MPI_Request r;

	begin("tested while it runs");
	r = received(&in, 5);
	status_poison(&status);
	CHECK_OK(MPIX_Continue(&r, is_tested, &runs, 0, &status, cr));
	CHECK_EQ(runs, 1);
	CHECK(r == MPI_REQUEST_NULL);
	status_is_of(&status, 0, 5, sizeof(int));
	side_do(test_it);
	CHECK_EQ(test_flag, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

static int frees(int rc, void *data)
{
	CHECK_OK(MPI_Request_free(&cr));
	return counts(rc, data);
}

static void freed_while_it_runs(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int runs = 0;

	begin("freed while it runs");
	for (int i = 0; i < 100; i++) {
		CHECK_OK(MPIX_Continue(&none, frees, &runs, 0, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
		CHECK_OK(MPI_Start(&cr));
	}
	CHECK_EQ(runs, 100);
	CHECK_OK(MPI_Request_free(&cr));
}

/* ------------------------------------------------------------------------------------------- reported meanwhile --- */

static void let_side_test(void)
{
	side_do(test_it);
	CHECK_EQ(test_flag, 1);
}

static void reported_before_it_is_counted(void)
{
	int in[2] = {0}, runs = 0, flag = 0;
	MPI_Status statuses[2];
	MPI_Request r[2];

	begin("reported before it is counted");
	r[0] = received(&in[0], 6);
	r[1] = received(&in[1], 7);
	status_poison(&statuses[0]);
	status_poison(&statuses[1]);
	point_at("now_uncounted", let_side_test);
	CHECK_OK(MPIX_Continueall(2, r, counts, &runs, 0, statuses, cr));
	point_off();
	give_chances();
	CHECK_EQ(runs, 0);
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE)); /* inactive */
	CHECK_EQ(flag, 1);
	CHECK_EQ(runs, 0);
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 1);
	for (int i = 0; i < 2; i++) {
		CHECK(r[i] == MPI_REQUEST_NULL);
		status_is_of(&statuses[i], 0, 6 + i, sizeof(int));
	}
	CHECK_OK(MPI_Request_free(&cr));
}

/* ----------------------------------------------------------------------------------------------------- failures --- */

enum { MANY = 100 };
static int failures[MANY];

static int fails(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	(*(int *)data)++;
	return MPI_ERR_OTHER;
}

static void fail_many(void)
{
	int runs[MANY] = {0};

	memset(failures, 0, sizeof(failures));
	for (int i = 0; i < MANY; i++) {
		MPI_Request none = MPI_REQUEST_NULL;

		CHECK_OK(MPIX_Continue(&none, fails, &failures[i], 0, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPIX_Continue(&none, counts, &runs[i], 0, MPI_STATUS_IGNORE, cr));
		CHECK_EQ(failures[i], 1);
		CHECK_EQ(runs[i], 1);
	}
}

static void *fail_and_end(void *arg)
{
	(void)arg;
	fail_many();
	return NULL;
}

/* Each failure stands in the queue, in order; also those of a thread that has ended meanwhile. */
static void failed(bool thread)
{
	void *data[2 * MANY];
	int n = 2 * MANY, class = 0;
	pthread_t t;

	begin(thread ? "failed on a thread that ends" : "failed");
	if (thread) {
		pthread_create(&t, NULL, fail_and_end, NULL);
		pthread_join(t, NULL);
	} else {
		fail_many();
	}
	MPI_Error_class(MPI_Wait(&cr, MPI_STATUS_IGNORE), &class);
	CHECK_EQ(class, MPI_ERR_OTHER);
	CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
	CHECK_EQ(n, MANY);
	for (int i = 0; i < n; i++)
		CHECK(data[i] == &failures[i]);
	CHECK_OK(MPI_Request_free(&cr));
}

/* The failures of a CR that is freed are never asked for. */
static void failed_and_freed(void)
{
	begin("failed, and freed");
	fail_many();
	CHECK_OK(MPI_Request_free(&cr));
}

static int takes_rc(int rc, void *data)
{
	MPI_Error_class(rc, (int *)data);
	return MPI_SUCCESS;
}

/* An operation has failed when the continuation is attached: it runs only if the flag says so. This needs two ranks:
 * Open MPI does not report a truncated message that a rank sends to itself. */
static void operation_failed(void)
{
	int in[2] = {0}, out[2] = {1, 2}, class = -1, found, flag, n, partner = 1 - check_rank;
	MPI_Request r[2];
	void *data[2];

	for (int told = 0; told < 2; told++) {
		begin(told ? "operation failed, told" : "operation failed");
		r[0] = received(&in[0], 8);
		CHECK_OK(MPI_Irecv(&in[1], 1, MPI_INT, partner, 9, MPI_COMM_WORLD, &r[1]));
		CHECK_OK(MPI_Send(out, 2, MPI_INT, partner, 9, MPI_COMM_WORLD));
		for (flag = 0; !flag;)
			MPI_Request_get_status(r[1], &flag, MPI_STATUS_IGNORE);
		class = -1;
		n = 2;
		CHECK_OK(MPIX_Continueall(2, r, takes_rc, &class, told ? MPIX_CONT_INVOKE_FAILED : 0,
					  MPI_STATUSES_IGNORE, cr));
		MPI_Error_class(MPI_Wait(&cr, MPI_STATUS_IGNORE), &found);
		CHECK_EQ(found, told ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
		CHECK_OK(MPIX_Continue_get_failed(cr, &n, data));
		CHECK_EQ(n, !told);
		CHECK_EQ(class, told ? MPI_ERR_TRUNCATE : -1);
		CHECK_OK(MPI_Request_free(&cr));
	}
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	side_create();
	freed_while_it_runs();
	if (check_native()) { /* the portable backend may let another thread find what is complete */
		tested_while_it_runs();
		reported_before_it_is_counted();
	}
	failed(false);
	failed(true);
	failed_and_freed();
	operation_failed();
	side_join();
	return check_fini();
}
