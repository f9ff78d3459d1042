/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* needs: sessions templates */
/*
 * Sessions alone, without MPI_Init: continuations work from the first session to the last, however often that is; and
 * beside MPI_Init, and after MPI_Finalize.
 */
#include <pthread.h>

#include "sessions.h"
#include "../general.h"

#ifndef LEVEL
#define LEVEL "MPI_THREAD_MULTIPLE"
#define MULTIPLE true
#endif

#define TAG 31
#define LONG (1 << 20)
#define TIMES 3

static int see_revised(int error, void *data)
{
	CHECK_EQ(error, MPI_SUCCESS);
	see(NULL, data);
	return MPI_SUCCESS;
}

static void refused_before_the_first(void)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	check_begin("before the first session");
	CHECK(MPI_Continue_init(MPI_INFO_NULL, &cr) != MPI_SUCCESS);
	CHECK(cr == MPI_REQUEST_NULL);
	CHECK_EQ(contd_mpi_thread_level(), -1);
}

static void draft(MPI_Comm comm)
{
	struct seen seen = {0};
	int in = -1, out = check_rank;
	MPI_Status statuses[2];
	MPI_Request cr, r[2];

	check_begin("draft interface");
	cr = check_plain_cr();
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r[0]);
	MPI_Isend(&out, 1, MPI_INT, check_next(), TAG, comm, &r[1]);
	CHECK_OK(MPI_Continueall(2, r, see, &seen, statuses, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in, check_previous());
	status_is_of(&statuses[0], check_previous(), TAG, sizeof(in));
	CHECK_OK(MPI_Request_free(&cr));
}

static void revised(MPI_Comm comm)
{
	struct seen seen = {0}, without = {0};
	int in = -1, out = check_rank;
	MPI_Request cr, r[2];

	check_begin("revised interface");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	for (int round = 1; round <= 3; round++) {
		CHECK_OK(MPI_Start(&cr));
		MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r[0]);
		MPI_Isend(&out, 1, MPI_INT, check_next(), TAG, comm, &r[1]);
		CHECK_OK(MPIX_Continueall(2, r, see_revised, &seen, 0, MPI_STATUSES_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round);
		CHECK_EQ(in, check_previous());
	}
	CHECK_OK(MPI_Request_free(&cr));

	check_begin("without a continuation request");
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r[0]);
	CHECK_OK(MPIX_Continue(&r[0], see_revised, &without, 0, MPI_STATUS_IGNORE, MPI_REQUEST_NULL));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	while (!atomic_load(&without.runs)) {
		int flag;

		MPI_Iprobe(MPI_ANY_SOURCE, TAG + 9, comm, &flag, MPI_STATUS_IGNORE);
		contd_poll(-1);
	}
	CHECK_EQ(without.runs, 1);
}

static int fails(int error, void *data)
{
	see_revised(error, data);
	return MPI_ERR_OTHER;
}

/* What has failed keeps contd in no session: see the end of alone(). */
static void failed_one(MPI_Comm comm)
{
	struct seen seen = {0};
	int in = -1, out = 8;
	MPI_Request cr, r;

	check_begin("a continuation that fails");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPIX_Continue(&r, fails, &seen, 0, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in, 8);
	CHECK_OK(MPI_Request_free(&cr));
}

/* Errors without an object go to the handler of the program's session. */
static void errors(void)
{
	int before = atomic_load(&sessions_errors);
	MPI_Request cr, null = MPI_REQUEST_NULL;

	check_begin("errors");
	cr = check_plain_cr();
	CHECK(MPI_Continue(&null, NULL, NULL, MPI_STATUS_IGNORE, cr) != MPI_SUCCESS);
	CHECK_EQ(sessions_errors, before + 1);
	CHECK(MPIX_Continue_init(0, -5, MPI_INFO_NULL, &null) != MPI_SUCCESS);
	CHECK_EQ(sessions_errors, before + 2);
	CHECK_OK(MPI_Request_free(&cr));
}

/* The last session is what counts. */
static void second_session(MPI_Comm comm)
{
	struct seen seen = {0};
	MPI_Request cr, r;
	MPI_Session session;
	int in = -1, out = 7;

	check_begin("a second session");
	cr = check_plain_cr();
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
	session = sessions_begin(LEVEL);
	CHECK_OK(MPI_Session_finalize(&session));
	CHECK_EQ(seen.runs, 0);
	MPI_Barrier(comm);
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in, 7);
	CHECK_OK(MPI_Request_free(&cr));
}

static void general(void)
{
	struct general g;
	MPI_Request cr, r;

	check_begin("a generalized request");
	cr = check_plain_cr();
	CHECK_OK(general_start(&g, 1));
	r = g.handle;
	CHECK_OK(MPI_Continue(&r, general_ran, &g, &g.status, cr));
	CHECK_OK(general_complete(&g));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(general_in_order(&g));
	CHECK(general_told(&g, &g.status));
	CHECK_OK(MPI_Request_free(&cr));
}

static int template_start(void *data)
{
	*(int *)data = 0;
	return MPI_SUCCESS;
}

static MPI_Request templated;

static int template_push(void *data)
{
	if (++*(int *)data == 3)
		CHECK_OK(MPIX_Mark_request_complete(templated));
	return MPI_SUCCESS;
}

static int template_complete(void *data, MPI_Status *status)
{
	(void)status;
	*(int *)data += 100;
	return MPI_SUCCESS;
}

/* A template stays a template when contd begins again. */
static void template(void)
{
	static MPIX_Gr gr = MPIX_GR_NULL;
	struct seen seen = {0};
	MPI_Request cr, r;
	int pushes = -1;

	check_begin("a request of a template");
	if (gr == MPIX_GR_NULL)
		CHECK_OK(MPIX_Gr_init(template_start, template_push, template_complete, NULL, &gr));
	cr = check_plain_cr();
	CHECK_OK(MPIX_Gr_begin(gr, &pushes, &templated));
	r = templated;
	CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(pushes, 103);
	CHECK_OK(MPI_Request_free(&cr));
}

/* The other process sends while this one calls nothing: contd's thread runs the continuation, in each of its times. */
static void low_latency(MPI_Comm comm)
{
	struct seen seen = {0};
	int in = -1, out = 5;
	MPI_Request cr, r;

	check_begin("nobody calls MPI");
	cr = check_cr("mpi_continue_async_signal_safe", "true", "mpi_continue_thread", "any");
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	for (int i = 0; i < 20000 && !atomic_load(&seen.runs); i++)
		usleep(1000);
	CHECK_EQ(seen.runs, 1);
	CHECK_EQ(in, 5);
	CHECK(contd_mpi_ring(check_next(), comm) >= 0);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static unsigned char sent[LONG], got[LONG];
static struct seen at_the_end;

/* No call waits for it: the end of the last session runs it. */
static void left_for_the_end(MPI_Comm comm)
{
	MPI_Request cr, r;

	check_begin("left for the end");
	at_the_end.runs = 0;
	cr = check_plain_cr();
	pattern_fill(sent, LONG, (unsigned)check_rank);
	MPI_Isend(sent, LONG, MPI_BYTE, check_next(), TAG, comm, &r);
	CHECK_OK(MPI_Continue(&r, see, &at_the_end, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Recv(got, LONG, MPI_BYTE, check_previous(), TAG, comm, MPI_STATUS_IGNORE);
	CHECK(pattern_holds(got, LONG, (unsigned)check_previous()));
}

static void all(MPI_Comm comm)
{
	draft(comm);
	revised(comm);
	failed_one(comm);
	errors();
	second_session(comm);
	general();
	template();
	if (MULTIPLE)
		low_latency(comm);
}

static int alone(bool last)
{
	MPI_Session session = sessions_begin(LEVEL);
	MPI_Comm comm = sessions_comm(session);
	int failed = 0;

	CHECK_EQ(contd_mpi_thread_level(), sessions_level(session));
	all(comm);
	CHECK_EQ(contd_mpi_thread_level(), sessions_level(session));
	left_for_the_end(comm);
	if (last)
		failed = sessions_sum(comm);
	MPI_Comm_free(&comm);
	check_begin("the end of the last session");
	CHECK_OK(MPI_Session_finalize(&session));
	CHECK(session == MPI_SESSION_NULL);
	CHECK_EQ(at_the_end.runs, 1);
	CHECK_EQ(contd_mpi_thread_level(), -1); /* contd rests */
	return failed;
}

static void take_long(MPI_Status *status, void *data)
{
	usleep(300000);
	see(status, data);
}

static MPI_Comm own_comm(MPI_Session session, const char *tag)
{
	MPI_Comm comm = MPI_COMM_NULL;
	MPI_Group group;

	CHECK_OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
	CHECK_OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
	MPI_Group_free(&group);
	return comm;
}

static void to_oneself(MPI_Comm comm, MPI_Continue_cb_function *cb, struct seen *seen, MPI_Request *cr)
{
	static int in[2], out;
	MPI_Request r;

	*cr = check_cr("mpi_continue_thread", "any", NULL, NULL);
	MPI_Irecv(&in[cb == take_long], 1, MPI_INT, 0, TAG, comm, &r);
	CHECK_OK(MPI_Continue(&r, cb, seen, MPI_STATUS_IGNORE, *cr));
	MPI_Send(&out, 1, MPI_INT, 0, TAG, comm);
}

static void *begin_one(void *arg)
{
	MPI_Session session;
	struct seen seen = {0};
	MPI_Request cr;
	MPI_Comm comm;

	(void)arg;
	usleep(100000);
	session = sessions_begin(LEVEL);
	comm = own_comm(session, "contd.test.two");
	for (int i = 1; i <= 100; i++) {
		to_oneself(comm, see, &seen, &cr);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, i);
		CHECK_OK(MPI_Request_free(&cr));
	}
	MPI_Comm_free(&comm);
	CHECK_OK(MPI_Session_finalize(&session));
	return NULL;
}

/* The last session waits for a callback when another thread begins the next one. */
static void one_begins_while_one_ends(void)
{
	MPI_Session session = sessions_begin(LEVEL);
	struct seen seen = {0};
	pthread_t thread;
	MPI_Request cr;
	MPI_Comm comm;

	check_begin("one begins while one ends");
	comm = own_comm(session, "contd.test.one");
	pthread_create(&thread, NULL, begin_one, NULL);
	to_oneself(comm, take_long, &seen, &cr);
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Comm_free(&comm);
	CHECK_OK(MPI_Session_finalize(&session));
	CHECK_EQ(seen.runs, 1);
	pthread_join(thread, NULL);
}

/* A session that outlives MPI_Finalize. */
static void beside_world(int *argc, char ***argv)
{
	MPI_Session session;
	MPI_Comm comm;
	int provided;

	check_begin("beside MPI_Init");
	MPI_Init_thread(argc, argv, MULTIPLE ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	draft(MPI_COMM_WORLD);
	session = sessions_begin(LEVEL);
	comm = sessions_comm(session);
	draft(comm);
	revised(MPI_COMM_WORLD);
	check_begin("MPI_Finalize beside a session");
	MPI_Finalize();
	all(comm);
	left_for_the_end(comm);
	MPI_Comm_free(&comm);
	check_begin("the end of the session that was left");
	CHECK_OK(MPI_Session_finalize(&session));
	CHECK_EQ(at_the_end.runs, 1);
	CHECK_EQ(contd_mpi_thread_level(), -1);
}

int main(int argc, char **argv)
{
	int failed = 0;

	check_watchdog();
	refused_before_the_first();
	for (int i = 0; i < TIMES && AGAIN; i++)
		failed += alone(false);
	if (MULTIPLE && AT_ONCE)
		one_begins_while_one_ends();
	if (AGAIN)
		beside_world(&argc, &argv);
	failed += alone(true);
	return failed || check_failures;
}
