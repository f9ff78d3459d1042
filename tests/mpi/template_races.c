/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 */
/*
 * What another thread does to a request of a template between the return of its push_fn and the moment when the thread
 * that called it takes the lock (src/template/template.c, "push_returned"), and while push_fn runs. It is busy for
 * as long: nobody else pushes it, and whoever marks it leaves it to this thread to tell MPI, which must not overlook
 * that.
 */
#include "race.h"
#include "template.h"

static MPIX_Gr gr;
static MPI_Request cr;
static struct exchange e;
static struct seen seen;
static int push_rc;           /* what push_fn returns */
static void (*in_push)(void); /* run by the other thread, the first time that push_fn runs */
static atomic_int waits, self_class;

static int push(void *extra_state)
{
	int rc = exchange_push(extra_state);
	void (*job)(void) = in_push;

	in_push = NULL;
	if (job) {
		atomic_fetch_add(&e.inside, 1);
		side_do(job);
		atomic_fetch_sub(&e.inside, 1);
	}
	return push_rc ? push_rc : rc;
}

static int complete(void *extra_state, MPI_Status *status)
{
	CHECK_EQ(seen.runs, waits == 2); /* after the continuation, where there is one */
	return exchange_complete(extra_state, status);
}

static void on_self(MPI_Comm *comm, int *error, ...)
{
	int class;

	(void)comm;
	MPI_Error_class(*error, &class);
	atomic_store(&self_class, class);
}

/* ----------------------------------------------------------------------------------------------- the other side --- */

static bool is_complete(void)
{
	int flag = 1;

	CHECK_OK(MPI_Request_get_status(e.request, &flag, MPI_STATUS_IGNORE));
	return flag;
}

static void pushes_nothing(void)
{
	int before = e.pushes;

	for (int i = 0; i < 50; i++)
		CHECK(contd_poll(0) >= 0);
	give_chances();
	CHECK_EQ(e.pushes, before);
}

/* MPI is not told before this thread's side has gone on. */
static void marks(void)
{
	CHECK_OK(MPIX_Mark_request_complete(e.request));
	CHECK(!is_complete());
	pushes_nothing();
	CHECK_EQ(MPIX_Mark_request_complete(e.request), MPI_ERR_REQUEST);
	CHECK_EQ(self_class, MPI_ERR_REQUEST);
	self_class = MPI_SUCCESS;
	CHECK(!is_complete());
	CHECK_EQ(e.completes, 0);
}

static void marks_and_frees(void)
{
	MPI_Request handle = e.request;

	marks();
	CHECK_OK(MPI_Request_free(&handle));
	CHECK_EQ(e.completes, 0);
}

static void frees(void)
{
	MPI_Request handle = e.request;

	CHECK_OK(MPI_Request_free(&handle));
	pushes_nothing();
	CHECK_EQ(e.completes, 0);
}

static void marks_and_attaches(void)
{
	MPI_Request handle = e.request;
	int flag = 1;

	marks();
	waits = 2;
	CHECK_OK(MPI_Continue(&handle, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(seen.runs, 0);
}

static void marks_and_cancels(void)
{
	MPI_Request handle = e.request;

	CHECK_OK(MPIX_Cancel(&handle));
	CHECK_EQ(e.cancels, 1);
	marks();
	CHECK_OK(MPIX_Cancel(&handle));
	CHECK_EQ(e.cancels, 2);
}

static void marks_and_frees_template(void)
{
	marks();
	CHECK_OK(MPIX_Gr_free(&gr));
}

/* Waits already when MPI is told, so that the request may be gone while this thread is at it. */
static void marks_and_waits(void)
{
	CHECK_OK(MPIX_Mark_request_complete(e.request));
	waits = 1;
	CHECK_OK(MPI_Wait(&e.request, MPI_STATUS_IGNORE));
}

static void side_waits(void)
{
	side_start(marks_and_waits);
	while (!waits)
		usleep(20);
	usleep(100);
}

/* ---------------------------------------------------------------------------------------------------- this side --- */

static void (*job_at_point)(void);

static void at_point(void)
{
	CHECK_EQ(e.inside, 0);
	side_do(job_at_point);
}

static void begin(const char *name)
{
	check_begin(name);
	e = (struct exchange){.never_ends = true};
	seen.runs = 0;
	waits = self_class = push_rc = 0;
	if (gr == MPIX_GR_NULL)
		CHECK_OK(MPIX_Gr_init(exchange_start, push, complete, exchange_cancel, &gr));
	exchange_begin(gr, &e);
	CHECK_EQ(e.pushes, 0);
}

/* push_fn returns, and then the other thread does that; or while it runs. */
static void meet(void (*job)(void), bool inside)
{
	if (inside) {
		in_push = job;
		CHECK_SOON(!in_push);
	} else {
		job_at_point = job;
		point_at("push_returned", job == side_waits ? side_waits : at_point);
		CHECK_SOON(atomic_load(&point_hits));
		point_off();
	}
	CHECK_EQ(e.overlaps, 0);
}

/* It is complete by now; a Wait for what never is would say less. */
static void complete_with(int class)
{
	int got = -1, pushes = e.pushes, rc;

	CHECK(is_complete());
	give_chances();
	CHECK_EQ(e.pushes, pushes);
	CHECK_EQ(e.completes, 0);
	if (!is_complete())
		CHECK_OK(MPIX_Mark_request_complete(e.request));
	rc = MPI_Wait(&e.request, MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &got);
	CHECK_EQ(got, class);
	CHECK(e.request == MPI_REQUEST_NULL);
	exchange_over(&e);
	CHECK(!e.null_status);
}

static void check_marked(bool inside)
{
	begin("marked");
	meet(marks, inside);
	complete_with(MPI_SUCCESS);

	begin("marked, and push_fn fails");
	push_rc = MPI_ERR_IO;
	meet(marks, inside);
	complete_with(MPI_ERR_IO);

	begin("marked, and the template freed");
	meet(marks_and_frees_template, inside);
	complete_with(MPI_SUCCESS);

	begin("cancelled, marked, cancelled");
	meet(marks_and_cancels, inside);
	complete_with(MPI_SUCCESS);
}

/* Whether it is marked, fails, or goes on. */
static void check_freed(bool inside)
{
	begin("marked, and freed");
	meet(marks_and_frees, inside);
	CHECK(e.null_status);
	CHECK_EQ(self_class, MPI_SUCCESS);
	exchange_over(&e);

	begin("freed, and push_fn fails");
	push_rc = MPI_ERR_IO;
	meet(frees, inside);
	CHECK(e.null_status);
	CHECK_EQ(self_class, MPI_ERR_IO);
	exchange_over(&e);

	begin("freed, and marked later");
	meet(frees, inside);
	CHECK_EQ(e.completes, 0);
	CHECK_SOON(e.pushes > 2);
	CHECK_OK(MPIX_Mark_request_complete(e.request));
	CHECK(e.null_status);
	exchange_over(&e);
}

static void check_attached(bool inside)
{
	begin("marked, and attached to");
	meet(marks_and_attaches, inside);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	exchange_over(&e);
}

static void check_others(bool inside)
{
	begin("others push");
	meet(pushes_nothing, inside);
	CHECK_SOON(e.pushes > 2); /* and it goes on */
	CHECK_OK(MPIX_Mark_request_complete(e.request));
	complete_with(MPI_SUCCESS);
}

static void check_waited_for(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		begin("marked, and waited for");
		meet(side_waits, false);
		side_finish();
		CHECK(e.request == MPI_REQUEST_NULL);
		exchange_over(&e);
	}
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_create_errhandler(on_self, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_OK(MPIX_Gr_init(exchange_start, push, complete, exchange_cancel, &gr));
	cr = check_plain_cr();
	side_create();
	for (int inside = 0; inside < 2; inside++) {
		check_others(inside);
		check_marked(inside);
		check_freed(inside);
		check_attached(inside);
	}
	check_waited_for(argc > 1 ? atoi(argv[1]) : 100); /* fewer under valgrind */
	side_join();
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPIX_Gr_free(&gr));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&handler);
	return check_fini();
}
