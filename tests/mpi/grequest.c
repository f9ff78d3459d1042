/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * Generalized requests: query_fn, the continuation, free_fn, in that order and each once, whoever completes the request
 * and whenever it was attached; waiters are woken; cancelling; contd_mpi_grequest_complete() and what it refuses.
 */
#include "check.h"

#include <pthread.h>

#define SEVERAL 300
#define ROUNDS 40

struct general {
	MPI_Request handle;
	MPI_Status status;
	atomic_int queried, ran, freed, cancelled, complete_when_cancelled;
	atomic_int queried_before, freed_before; /* when the callback ran */
	atomic_int misordered;
};

static MPI_Request cr;

static int query(void *extra, MPI_Status *status)
{
	struct general *g = extra;

	if (g->freed)
		g->misordered++;
	g->queried++;
	MPI_Status_set_elements(status, MPI_BYTE, 11);
	MPI_Status_set_cancelled(status, g->cancelled != 0);
	status->MPI_SOURCE = 5;
	status->MPI_TAG = 6;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	struct general *g = extra;

	g->freed++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	struct general *g = extra;

	g->cancelled++;
	g->complete_when_cancelled = complete != 0;
	return MPI_SUCCESS;
}

static void ran(MPI_Status *status, void *data)
{
	struct general *g = data;

	(void)status;
	g->queried_before = (int)g->queried;
	g->freed_before = (int)g->freed;
	g->ran++;
}

static MPI_Request start(struct general *g)
{
	memset(g, 0, sizeof(*g));
	status_poison(&g->status);
	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, g, &g->handle));
	return g->handle;
}

static void attach(struct general *g, MPI_Request r)
{
	CHECK_OK(MPI_Continue(&r, ran, g, &g->status, cr));
	CHECK(r == MPI_REQUEST_NULL);
}

static void is_done(struct general *g)
{
	int count = -1;

	CHECK_EQ(g->ran, 1);
	CHECK(g->queried_before >= 1);
	CHECK_EQ(g->freed_before, 0);
	CHECK_EQ(g->misordered, 0);
	MPI_Get_count(&g->status, MPI_BYTE, &count);
	CHECK_EQ(count, 11);
	CHECK_EQ(g->status.MPI_SOURCE, 5);
	CHECK_EQ(g->status.MPI_TAG, 6);
	CHECK_EQ(g->status.MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(g->freed, 1);
}

static int complete_by(int how, MPI_Request r)
{
	return how ? contd_mpi_grequest_complete(r) : MPI_Grequest_complete(r);
}

static void check_order(void)
{
	static const char *const name[] = {"attached, then complete", "complete, then attached",
					   "complete and seen, then attached"};
	struct general g;

	for (int way = 0; way < 6; way++) {
		MPI_Request r = start(&g);
		int flag = 0;

		check_begin(name[way / 2]);
		if (way / 2) {
			CHECK_OK(complete_by(way % 2, r));
			if (way / 2 == 2)
				CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
		}
		attach(&g, r);
		if (!(way / 2)) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(g.ran + g.queried + g.freed, 0);
			CHECK_OK(complete_by(way % 2, g.handle));
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		is_done(&g);
	}
}

/* Without a continuation everything is as MPI has it, and handles that come again are known anew. */
static void check_plain(void)
{
	static struct general g[SEVERAL];
	MPI_Request r[SEVERAL];

	check_begin("without continuations");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < SEVERAL; i++)
			r[i] = start(&g[i]);
		for (int i = 0; i < SEVERAL; i++)
			CHECK_OK(complete_by(i % 2, r[i]));
		CHECK_OK(MPI_Waitall(SEVERAL, r, MPI_STATUSES_IGNORE));
		for (int i = 0; i < SEVERAL; i++) {
			CHECK(g[i].queried >= 1);
			CHECK_EQ(g[i].freed, 1);
			CHECK_EQ(g[i].misordered, 0);
		}
	}
	check_begin("freed and then complete");
	r[0] = start(&g[0]);
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(contd_mpi_grequest_complete(g[0].handle));
	CHECK_EQ(g[0].freed, 1);
}

static struct general chain[SEVERAL + 1];

static void complete_next(MPI_Status *status, void *data)
{
	struct general *g = data;

	ran(status, g);
	if (g < &chain[SEVERAL])
		CHECK_OK(contd_mpi_grequest_complete(g[1].handle));
}

static void check_chain(void)
{
	check_begin("completed by another continuation");
	for (int i = 0; i <= SEVERAL; i++) {
		MPI_Request r = start(&chain[i]);

		CHECK_OK(MPI_Continue(&r, complete_next, &chain[i], &chain[i].status, cr));
	}
	CHECK_OK(contd_mpi_grequest_complete(chain[0].handle));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i <= SEVERAL; i++)
		is_done(&chain[i]);
}

/* ------------------------------------------------------------------------------------------------------- threads --- */

static struct general many[SEVERAL];
static pthread_barrier_t both;

static void *completer(void *how)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&both);
		for (int i = 0; i < SEVERAL; i++)
			CHECK_OK(complete_by(*(int *)how || i % 2, many[i].handle));
		pthread_barrier_wait(&both);
	}
	return NULL;
}

/* Attaching races with completing. */
static void check_threads(void)
{
	pthread_t thread;
	int how = 0;

	check_begin("completed by another thread");
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, completer, &how);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Request r[SEVERAL];

		for (int i = 0; i < SEVERAL; i++)
			r[i] = start(&many[i]);
		pthread_barrier_wait(&both);
		for (int i = 0; i < SEVERAL; i++)
			attach(&many[i], r[i]);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		pthread_barrier_wait(&both);
		for (int i = 0; i < SEVERAL; i++)
			is_done(&many[i]);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
}

static atomic_int about_to_wait;

static void *waiter(void *request)
{
	atomic_store(&about_to_wait, 1);
	CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE));
	return NULL;
}

static void check_woken(void)
{
	struct general g;

	check_begin("a waiting thread is woken");
	for (int how = 0; how < 4; how++) {
		MPI_Request r = start(&g);
		pthread_t thread;

		atomic_store(&about_to_wait, 0);
		if (how / 2)
			attach(&g, r);
		pthread_create(&thread, NULL, waiter, how / 2 ? &cr : &r);
		while (!atomic_load(&about_to_wait))
			sched_yield();
		usleep(2000); /* most likely it waits by now; the test is right where it does not */
		CHECK_OK(complete_by(how % 2, g.handle));
		pthread_join(thread, NULL);
		if (how / 2)
			is_done(&g);
		else
			CHECK_EQ(g.freed, 1);
	}
}

/* ------------------------------------------------------------------------------------------------- cancel, and bad --- */

static void check_cancelled(void)
{
	struct general g;

	check_begin("cancelled");
	for (int before = 0; before < 2; before++) {
		MPI_Request r = start(&g);
		int cancelled = 0;

		if (before)
			CHECK_OK(contd_mpi_grequest_complete(r));
		CHECK_OK(MPI_Cancel(&r));
		CHECK_EQ(g.cancelled, 1);
		CHECK_EQ(g.complete_when_cancelled, before);
		attach(&g, r);
		if (!before)
			CHECK_OK(contd_mpi_grequest_complete(g.handle));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		is_done(&g);
		MPI_Test_cancelled(&g.status, &cancelled);
		CHECK(cancelled);
	}
}

static int class_of(int code)
{
	int class = code;

	MPI_Error_class(code, &class);
	return class;
}

static void check_bad(void)
{
	struct general g;
	MPI_Request r;
	char byte, out = 1;

	check_begin("bad input");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK_EQ(class_of(contd_mpi_grequest_complete(MPI_REQUEST_NULL)), MPI_ERR_REQUEST);
	/* Twice. */
	r = start(&g);
	attach(&g, r);
	CHECK_OK(contd_mpi_grequest_complete(r));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	is_done(&g);
	r = start(&g);
	CHECK_OK(contd_mpi_grequest_complete(r));
	CHECK_EQ(class_of(contd_mpi_grequest_complete(r)), MPI_ERR_REQUEST);
	CHECK_EQ(class_of(MPI_Grequest_complete(r)), MPI_ERR_REQUEST);
	CHECK_EQ(g.freed, 0);
	attach(&g, r);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	is_done(&g);
	/* No generalized one. */
	MPI_Irecv(&byte, 1, MPI_BYTE, 0, 5, MPI_COMM_SELF, &r);
	CHECK(contd_mpi_grequest_complete(r) != MPI_SUCCESS);
	MPI_Send(&out, 1, MPI_BYTE, 0, 5, MPI_COMM_SELF);
	CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	for (int i = 0; i < 3; i++) {
		cr = i == 0   ? check_plain_cr()
		     : i == 1 ? check_cr("mpi_continue_poll_only", "true", NULL, NULL)
			      : check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
		check_order();
		check_plain();
		check_chain();
		check_threads();
		check_woken();
		check_cancelled();
		check_bad();
		CHECK_OK(MPI_Request_free(&cr));
	}
	return check_fini();
}
