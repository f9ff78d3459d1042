/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* Section 8, contd_mpi_grequest_complete(): as MPI_Grequest_complete, and where MPI must not be called. */
#include <sched.h>
#include <sys/wait.h>

#include "conformance.h"

#include "../general.h"

#define TAG 820

static MPI_Request begin(struct general *g)
{
	CHECK_OK(general_start(g, 3));
	return g->handle;
}

static int contd_complete(struct general *g)
{
	g->completed = 1;
	return contd_mpi_grequest_complete(g->handle);
}

static void is_done(struct general *g)
{
	CHECK(general_in_order(g));
	CHECK(general_told(g, &g->status));
	CHECK_EQ(g->status.MPI_ERROR, MPI_SUCCESS);
}

CONFORMANCE_BOTH(s8_1_contd_complete, 1, single,
		 "contd_mpi_grequest_complete: query_fn, the callback, free_fn, in this order, "
		 "attached before or after")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	for (int before = 0; before < 2; before++) {
		step(before ? "before attaching" : "after attaching");
		r = begin(&g);
		if (before)
			CHECK_OK(contd_complete(&g));
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		CHECK(r == MPI_REQUEST_NULL);
		if (!before) {
			CHECK(!test_cr(&cr));
			CHECK_EQ(g.runs + g.queries + g.frees, 0);
			CHECK_OK(contd_complete(&g));
		}
		wait_cr(&cr);
		is_done(&g);
	}
	step("without a continuation");
	r = begin(&g);
	CHECK_OK(contd_complete(&g));
	CHECK_OK(MPI_Wait(&r, &g.status));
	CHECK(r == MPI_REQUEST_NULL);
	CHECK(general_told(&g, &g.status));
	CHECK_EQ(g.frees, 1);
	CHECK_EQ(g.misplaced, 0);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_1_contd_complete_twice, 1, single,
		 "Completed a second time, by either call: MPI_ERR_REQUEST, and everything happens once")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int first = 0; first < 2; first++) {
		r = begin(&g);
		CHECK_OK(first ? general_complete(&g) : contd_complete(&g));
		CHECK_CLASS(contd_mpi_grequest_complete(r), MPI_ERR_REQUEST);
		CHECK_CLASS(MPI_Grequest_complete(r), MPI_ERR_REQUEST);
		CHECK_EQ(g.frees, 0);
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		wait_cr(&cr);
		is_done(&g);
	}
	free_cr(&cr);
}

CONFORMANCE_TEST(s8_1_contd_complete_of_null, 1, single, "Completing MPI_REQUEST_NULL is MPI_ERR_REQUEST")
{
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK_CLASS(contd_mpi_grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
}

CONFORMANCE_TEST(s8_1_contd_complete_of_a_receive, 1, single,
		 "Completing a request that is no generalized one is an error, and changes nothing")
{
	MPI_Request r = pending(TAG), persistent;
	int flag = 1, in = 0, out = 5;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_OK(MPI_Recv_init(&in, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF, &persistent));
	CHECK_OK(MPI_Start(&persistent));
	CHECK(contd_mpi_grequest_complete(r) != MPI_SUCCESS);
	CHECK(contd_mpi_grequest_complete(persistent) != MPI_SUCCESS);
	CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_OK(MPI_Request_get_status(persistent, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG + 1, MPI_COMM_SELF));
	CHECK_OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
	CHECK_EQ(in, out);
	CHECK_OK(MPI_Request_free(&persistent));
}

/* Which is a generalized request of MPI's on some backends. */
CONFORMANCE_BOTH(s8_1_contd_complete_of_a_cr, 1, single,
		 "Completing a CR is an error, and it stays what it is, by MPI_Grequest_complete too")
{
	MPI_Request cr = new_cr(NULL), op = pending(TAG);
	struct seen seen = {0};

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK(contd_mpi_grequest_complete(cr) != MPI_SUCCESS);
	CHECK(MPI_Grequest_complete(cr) != MPI_SUCCESS);
	CHECK(!test_cr(&cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(seen.runs, 1);
	free_cr(&cr);
}

static int start_fn(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int completes;

static int complete_fn(void *extra, MPI_Status *status)
{
	(void)extra, (void)status;
	completes++;
	return MPI_SUCCESS;
}

/* Those end by MPIX_Mark_request_complete. */
CONFORMANCE_TEST(s8_1_contd_complete_of_a_template, 1, single,
		 "Completing a request of a template is an error, by MPI_Grequest_complete too; it "
		 "still has to be marked")
{
	MPI_Request r = MPI_REQUEST_NULL;
	MPIX_Gr gr;
	int flag = 1;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_OK(MPIX_Gr_init(start_fn, NULL, complete_fn, NULL, &gr));
	CHECK_OK(MPIX_Gr_begin(gr, NULL, &r));
	CHECK(contd_mpi_grequest_complete(r) != MPI_SUCCESS);
	CHECK(MPI_Grequest_complete(r) != MPI_SUCCESS);
	CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	CHECK_EQ(completes, 0);
	CHECK_OK(MPIX_Mark_request_complete(r));
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(completes, 1);
	CHECK_OK(MPIX_Gr_free(&gr));
}

/* --------------------------------------------------------------------------------- where MPI must not be called --- */

/*
 * An async-signal-safe continuation of an event that another thread completes while this one computes, attached,
 * outside regions: the handler runs it, or a call of this thread's. `in_handler` returns what of it is to be checked.
 */
static atomic_int handled;
static struct contd_event event;
static int (*in_handler)(void);
static atomic_int in_handler_rc, on_self_calls;

static void run_in_handler(int status, void *data)
{
	(void)status, (void)data;
	atomic_store(&in_handler_rc, in_handler());
	atomic_store(&handled, 1);
}

static void *completes_event(void *arg)
{
	usleep(1000);
	CHECK_EQ(contd_event_complete(&event, 0), 0);
	return arg;
}

static void on_self(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	atomic_fetch_add(&on_self_calls, 1);
}

/* Its return value in the handler, or -1: it did not run there in ten tries. */
static int from_handler(int (*what)(void), void (*prepare)(void), void (*after)(bool there))
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct contd_event *const events[] = {&event};
	struct contd_stats before = {.size = sizeof(before)}, now = {.size = sizeof(now)};
	struct contd_group *group;
	bool there = false;

	in_handler = what;
	CHECK_EQ(contd_group_create(&attr, &group), 0);
	CHECK_EQ(contd_thread_attach(NULL), 0);
	for (int i = 0; i < 10 && !there; i++) {
		pthread_t thread;

		prepare();
		atomic_store(&handled, 0);
		contd_event_init(&event);
		CHECK(contd_event_continue(1, events, run_in_handler, NULL, group, NULL) >= 0);
		CHECK_EQ(contd_stats_get(&before), 0);
		if (pthread_create(&thread, NULL, completes_event, NULL))
			break;
		for (int ms = 0; ms < 10000 && !atomic_load(&handled); ms++)
			compute_ms(1);
		CHECK_EQ(contd_stats_get(&now), 0);
		there = now.run_handler > before.run_handler;
		after(there);
		pthread_join(thread, NULL);
	}
	CHECK_EQ(contd_thread_detach(), 0);
	CHECK_EQ(contd_group_destroy(group), 0);
	CHECK(there);
	return there ? in_handler_rc : -1;
}

static struct general general;
static MPI_Request general_cr, own;

static void begin_attached(void)
{
	own = begin(&general);
	CHECK_OK(attach(&own, general_ran, &general, &general.status, general_cr));
}

static int completes_general(void)
{
	return contd_complete(&general);
}

static void wait_general(bool there)
{
	if (there) /* nothing of MPI's was called there */
		CHECK_EQ(general.queries + general.runs + general.frees, 0);
	wait_cr(&general_cr);
	is_done(&general);
}

CONFORMANCE_BOTH(s8_1_contd_complete_in_a_handler, 1, funneled,
		 "In a handler outside regions: MPI is not called there, but by the next call that makes progress")
{
	general_cr = new_cr(NULL);
	CHECK_OK(from_handler(completes_general, begin_attached, wait_general));
	free_cr(&general_cr);
}

static void begin_alone(void)
{
	own = begin(&general);
}

static void wait_itself(bool there)
{
	(void)there;
	CHECK_OK(MPI_Wait(&own, &general.status));
	CHECK(own == MPI_REQUEST_NULL);
	CHECK(general_told(&general, &general.status));
	CHECK_EQ(general.frees, 1);
	CHECK_EQ(general.misplaced, 0);
}

CONFORMANCE_TEST(s8_1_contd_complete_in_a_handler_alone, 1, funneled,
		 "The same without a continuation: MPI_Wait for the request completes it")
{
	MPI_Request cr;

	face = face_draft;
	cr = new_cr(NULL); /* contd is there */
	CHECK_OK(from_handler(completes_general, begin_alone, wait_itself));
	free_cr(&cr);
}

static atomic_int second_rc;

static int completes_twice(void)
{
	int rc = contd_complete(&general);

	atomic_store(&second_rc, contd_mpi_grequest_complete(general.handle));
	return rc;
}

static void wait_twice(bool there)
{
	CHECK_CLASS(MPI_Grequest_complete(general.handle), MPI_ERR_REQUEST);
	if (there)
		CHECK_EQ(on_self_calls, 1);
	atomic_store(&on_self_calls, 0);
	wait_general(false);
}

static int completes_null(void)
{
	return contd_mpi_grequest_complete(MPI_REQUEST_NULL);
}

static MPI_Request a_receive;

static int completes_receive(void)
{
	return contd_mpi_grequest_complete(a_receive);
}

static void nothing(void)
{
}

static void nothing_told(bool there)
{
	if (there)
		CHECK_EQ(on_self_calls, 0);
	atomic_store(&on_self_calls, 0);
}

CONFORMANCE_TEST(s8_1_contd_complete_refused_in_a_handler, 1, funneled,
		 "In a handler: completed twice, a null request, a receive: MPI_ERR_REQUEST, and no "
		 "error handler is called")
{
	MPI_Errhandler handler;
	int flag = 1;

	face = face_draft;
	general_cr = new_cr(NULL);
	MPI_Comm_create_errhandler(on_self, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	step("twice");
	CHECK_OK(from_handler(completes_twice, begin_attached, wait_twice));
	CHECK_EQ(second_rc, MPI_ERR_REQUEST);
	step("null");
	CHECK_EQ(from_handler(completes_null, nothing, nothing_told), MPI_ERR_REQUEST);
	step("a receive");
	a_receive = pending(TAG);
	CHECK_EQ(from_handler(completes_receive, nothing, nothing_told), MPI_ERR_REQUEST);
	CHECK_OK(MPI_Request_get_status(a_receive, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag);
	complete_pending(TAG);
	CHECK_OK(MPI_Wait(&a_receive, MPI_STATUS_IGNORE));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&handler);
	free_cr(&general_cr);
}

static atomic_int go;

/* Never calls MPI. */
static void *completes_when_told(void *data)
{
	while (!atomic_load(&go))
		sched_yield();
	usleep(2000); /* most likely the other thread waits by now; the rule holds where it does not */
	CHECK_OK(contd_complete(data));
	return NULL;
}

/* By a thread that may call MPI, and by one that may not. */
static void wakes(void)
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;
	pthread_t thread;

	for (int on_cr = 0; on_cr < 2; on_cr++) {
		for (int i = 0; i < 5; i++) {
			step(on_cr ? "waits for the CR" : "waits for the request");
			r = begin(&g);
			if (on_cr)
				CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
			atomic_store(&go, 0);
			if (pthread_create(&thread, NULL, completes_when_told, &g)) {
				skip("no thread can be made");
				return;
			}
			atomic_store(&go, 1);
			if (on_cr)
				wait_cr(&cr);
			else
				CHECK_OK(MPI_Wait(&r, &g.status));
			pthread_join(thread, NULL);
			CHECK_EQ(g.runs, on_cr);
			CHECK_EQ(g.frees, 1);
			CHECK_EQ(g.misplaced, 0);
			CHECK(general_told(&g, &g.status));
		}
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_2_contd_complete_wakes_waiters, 1, multiple,
		 "contd_mpi_grequest_complete on another thread wakes threads that wait for the request or the CR")
{
	wakes();
}

CONFORMANCE_BOTH(s8_2_contd_complete_wakes_from_outside, 1, funneled, "The same from a thread that may not call MPI")
{
	wakes();
}

#define MANY 5000

static struct general many[MANY];
static atomic_int begun, completed;

/* By MPI's call and by contd's, as soon as there is one; up to so many. */
static void *completes_many(void *data)
{
	(void)data;
	for (int i = 0; i < MANY; i++) {
		while (atomic_load(&begun) <= i)
			sched_yield();
		CHECK_OK(i % 2 ? contd_complete(&many[i]) : general_complete(&many[i]));
		atomic_fetch_add(&completed, 1);
	}
	return NULL;
}

/* Open MPI's Grequest_complete lets go of the request after it has woken who waits, and whoever is the last frees. */
CONFORMANCE_BOTH(s8_1_freed_before_the_cr_is_complete, 1, multiple,
		 "Whichever thread completes it: free_fn has been called, once, when the continuation's CR is complete")
{
	MPI_Request cr = new_cr(NULL), r;
	pthread_t thread;
	int late = 0, twice = 0;

	atomic_store(&begun, 0);
	atomic_store(&completed, 0);
	if (pthread_create(&thread, NULL, completes_many, NULL)) {
		skip("no thread can be made");
		return;
	}
	for (int i = 0; i < MANY; i++) {
		r = begin(&many[i]);
		CHECK_OK(attach(&r, general_ran, &many[i], &many[i].status, cr));
		atomic_store(&begun, i + 1);
		wait_cr(&cr);
		late += !many[i].frees;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(completed, MANY);
	for (int i = 0; i < MANY; i++) {
		twice += many[i].frees > 1;
		CHECK_EQ(many[i].runs, 1);
		CHECK_EQ(many[i].frees_before, 0);
	}
	CHECK_EQ(late, 0);
	CHECK_EQ(twice, 0);
	free_cr(&cr);
}

CONFORMANCE_TEST(s8_1_contd_complete_in_a_child, 1, single, "In the child of a fork it is MPI_ERR_OTHER")
{
	MPI_Request r, cr;
	struct general g;
	int status = -1;
	pid_t pid;

	face = face_draft;
	cr = new_cr(NULL); /* contd is there */
	r = begin(&g);
	pid = fork();
	if (pid < 0) {
		skip("no process can be made");
		return;
	}
	if (pid == 0)
		_exit(contd_mpi_grequest_complete(r) == MPI_ERR_OTHER ? 0 : 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_OK(contd_complete(&g));
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(g.frees, 1);
	free_cr(&cr);
}
