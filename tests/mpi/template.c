/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 2 */
/* Which thread pushes the requests of templates while the main thread, alone in MPI, does this or that. */
#include "template.h"

#define MANY 200

static MPIX_Gr gr;
static volatile double sink;

static double some_work(double x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 1.000001 + 1e-9;
	return x;
}

static void check_region(void)
{
	CHECK_EQ(contd_thread_attach(NULL), 0);
	for (int round = 0; round < 5; round++) {
		struct exchange e = {.tag = 1 + round, .pieces = 3};
		double x = 1;

		exchange_begin(gr, &e);
		contd_compute_begin();
		while (!atomic_load(&e.marked))
			x = some_work(x);
		contd_compute_end();
		sink = x;
		CHECK_EQ(e.completes, 0);
		exchange_wait(&e);
	}
	CHECK_EQ(contd_thread_detach(), 0);
}

static void check_checkpoint(void)
{
	struct exchange e = {.tag = 10, .pieces = 3};

	CHECK_EQ(contd_thread_attach(NULL), 0);
	exchange_begin(gr, &e);
	contd_compute_begin();
	while (!atomic_load(&e.marked))
		contd_checkpoint();
	contd_compute_end();
	exchange_wait(&e);
	CHECK_EQ(contd_thread_detach(), 0);
}

static void check_poll(void)
{
	struct exchange e = {.tag = 11, .pieces = 3};

	exchange_begin(gr, &e);
	while (!atomic_load(&e.marked))
		CHECK(contd_poll(0) >= 0);
	exchange_wait(&e);
}

static struct contd_event event;

static int completes_event(void *extra_state)
{
	int rc = exchange_push(extra_state);

	if (((struct exchange *)extra_state)->marked)
		contd_event_complete(&event, 0);
	return rc;
}

static void nothing(int status, void *data)
{
	(void)status, (void)data;
}

static void check_group(void)
{
	struct contd_event *const events[] = {&event};
	struct exchange e = {.tag = 12, .pieces = 3};
	struct contd_group *group;
	MPIX_Gr with_event;

	CHECK_OK(MPIX_Gr_init(exchange_start, completes_event, exchange_complete, exchange_cancel, &with_event));
	CHECK_EQ(contd_group_create(NULL, &group), 0);
	contd_event_init(&event);
	CHECK(contd_event_continue(1, events, nothing, NULL, group, NULL) >= 0);
	exchange_begin(with_event, &e);
	CHECK_EQ(contd_group_wait(group, -1), 0);
	exchange_wait(&e);
	CHECK_OK(MPIX_Gr_free(&with_event));
	CHECK_EQ(contd_group_destroy(group), 0);
}

/* Calls about other things: a message that comes when all is over here and there. */
static void check_other_calls(void)
{
	static struct exchange e[MANY];
	char in, out = 0;
	MPI_Request r;

	for (int how = 0; how < 3; how++) {
		memset(e, 0, sizeof(e));
		for (int i = 0; i < MANY; i++) {
			e[i].tag = 100 + i;
			e[i].pieces = 2;
			exchange_begin(gr, &e[i]);
		}
		MPI_Irecv(&in, 1, MPI_BYTE, check_previous(), 20, MPI_COMM_WORLD, &r);
		for (int i = 0; i < MANY; i++) {
			int flag;

			while (!atomic_load(&e[i].marked))
				CHECK_OK(how == 0   ? MPI_Test(&r, &flag, MPI_STATUS_IGNORE)
					 : how == 1 ? MPI_Iprobe(0, 21, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)
						    : MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
		}
		MPI_Send(&out, 1, MPI_BYTE, check_next(), 20, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int i = 0; i < MANY; i++)
			exchange_wait(&e[i]);
	}
}

static void check_cr_wait(bool async_signal_safe)
{
	static struct exchange e[MANY];
	struct seen seen[MANY] = {0};
	MPI_Request cr =
		async_signal_safe ? check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL) : check_plain_cr();
	double x = 1;

	memset(e, 0, sizeof(e));
	for (int i = 0; i < MANY; i++) {
		e[i].tag = 300 + i;
		e[i].pieces = 1 + i % 3;
		exchange_begin(gr, &e[i]);
		/* By another copy of the handle, for push_fn needs one to mark. */
		MPI_Request handle = e[i].request;

		CHECK_OK(MPI_Continue(&handle, see, &seen[i], MPI_STATUS_IGNORE, cr));
	}
	for (int i = 0; i < 200; i++)
		x = some_work(x);
	sink = x;
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < 1000000 && e[MANY - 1].completes == 0; i++) /* put off by a handler, maybe */
		contd_poll(0);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(seen[i].runs, 1);
		exchange_over(&e[i]);
	}
	CHECK_OK(MPI_Request_free(&cr));
}

static int ran(int rc, void *data)
{
	struct exchange *e = data;

	CHECK_EQ(rc, MPI_SUCCESS);
	CHECK_EQ(e->completes, 0);
	atomic_fetch_add(&e->cancels, 1);
	return MPI_SUCCESS;
}

static void check_revised(void)
{
	MPI_Request cr;
	void *failed[1];
	int count = 1;

	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	for (int i = 0; i < 50; i++) {
		struct exchange e = {.tag = 600 + i, .pieces = 2};
		MPI_Request handle;

		exchange_begin(gr, &e);
		handle = e.request;
		CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPIX_Continue(&handle, ran, &e, 0, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(e.cancels, 1);
		exchange_over(&e);
	}
	CHECK_OK(MPIX_Continue_get_failed(cr, &count, failed));
	CHECK_EQ(count, 0);
	CHECK_OK(MPI_Request_free(&cr));
}

/* start_fn gives its request away, and fails. */
static MPI_Request given, to_cr;
static MPI_Status given_status;
static int given_class, given_ran, given_completed;
static enum { ATTACHES, ATTACHES_REVISED, FREES } gives;
static bool marks_first;

static void given_seen(MPI_Status *status, void *data)
{
	(void)data;
	given_ran++;
	MPI_Error_class(status->MPI_ERROR, &given_class);
}

static int given_seen_rc(int rc, void *data)
{
	(void)data;
	given_ran++;
	given_class = rc;
	return MPI_SUCCESS;
}

static int give_and_fail(void *extra_state)
{
	(void)extra_state;
	if (marks_first)
		CHECK_OK(MPIX_Mark_request_complete(given));
	if (gives == ATTACHES)
		CHECK_OK(MPI_Continue(&given, given_seen, NULL, &given_status, to_cr));
	else if (gives == ATTACHES_REVISED)
		CHECK_OK(MPIX_Continue(&given, given_seen_rc, NULL, MPIX_CONT_INVOKE_FAILED, &given_status, to_cr));
	else
		CHECK_OK(MPI_Request_free(&given));
	return MPI_ERR_BUFFER;
}

static int given_complete(void *extra_state, MPI_Status *status)
{
	(void)extra_state, (void)status;
	given_completed++;
	return MPI_SUCCESS;
}

static void check_start_gives_away(void)
{
	MPIX_Gr failing;
	int class;

	to_cr = check_plain_cr();
	CHECK_OK(MPIX_Gr_init(give_and_fail, NULL, given_complete, NULL, &failing));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH tells this one */
	for (int how = 0; how < 60; how++) {
		gives = how % 3;
		marks_first = how / 3 % 2 == 1;
		given_ran = 0;
		given_class = -1;
		given = MPI_REQUEST_NULL;
		MPI_Error_class(MPIX_Gr_begin(failing, NULL, &given), &class);
		CHECK_EQ(class, MPI_ERR_BUFFER);
		CHECK(given == MPI_REQUEST_NULL);
		CHECK_OK(MPI_Wait(&to_cr, MPI_STATUS_IGNORE));
		CHECK_EQ(given_ran, gives != FREES);
		if (gives != FREES)
			CHECK_EQ(given_class, MPI_ERR_BUFFER);
		CHECK_EQ(given_completed, 0);
	}
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	CHECK_OK(MPIX_Gr_free(&failing));
	CHECK_OK(MPI_Request_free(&to_cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	gr = exchange_template();
	check_begin("a compute region");
	check_region();
	check_begin("checkpoints");
	check_checkpoint();
	check_begin("contd_poll");
	check_poll();
	check_begin("contd_group_wait");
	check_group();
	check_begin("calls about something else");
	check_other_calls();
	check_begin("MPI_Wait on a CR");
	check_cr_wait(false);
	check_begin("an async-signal-safe CR");
	check_cr_wait(true);
	check_begin("the revised interface");
	check_revised();
	check_begin("a start_fn that gives its request away, and fails");
	check_start_gives_away();
	CHECK_OK(MPIX_Gr_free(&gr));
	return check_fini();
}
