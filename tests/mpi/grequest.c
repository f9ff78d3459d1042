/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generalized requests: query_fn, the continuation, free_fn, in that order and each once, whoever completes the request
 * and whenever it was attached, by MPI_Grequest_complete or contd_mpi_grequest_complete(); several in one set; waiters
 * are woken; cancelling; what is refused.
 */
#include "check.h"

#include <pthread.h>

#include "../general.h"

#define TAG 53
#define SEVERAL 300
#define SET 40
#define ROUNDS 40

static MPI_Request cr;

static MPI_Request start(struct general *g, int number)
{
	CHECK_OK(general_start(g, number));
	return g->handle;
}

static void attach(struct general *g, MPI_Request r, bool ignore)
{
	CHECK_OK(MPI_Continue(&r, general_ran, g, ignore ? MPI_STATUS_IGNORE : &g->status, cr));
	CHECK(r == MPI_REQUEST_NULL);
}

static int complete_by(int how, struct general *g)
{
	g->completed = 1;
	return how ? contd_mpi_grequest_complete(g->handle) : MPI_Grequest_complete(g->handle);
}

/* Its continuation has run. */
static void is_done(struct general *g)
{
	CHECK(general_in_order(g));
	CHECK(general_told(g, &g->status));
	CHECK_EQ(g->status.MPI_ERROR, MPI_SUCCESS);
}

static void is_done_ignored(struct general *g)
{
	CHECK(general_in_order(g));
	CHECK(status_is_poison(&g->status));
}

static void check_order(void)
{
	static const char *const name[] = {"attached, then complete", "complete, then attached",
					   "complete and seen, then attached"};
	struct general g;

	for (int way = 0; way < 12; way++) {
		int when = way / 4, how = way / 2 % 2, ignore = way % 2, flag = 0;
		MPI_Request r = start(&g, way);

		check_begin(name[when]);
		if (when) {
			CHECK_OK(complete_by(how, &g));
			if (when == 2) {
				CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
				CHECK(flag);
			}
		}
		attach(&g, r, ignore);
		if (!when) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(g.runs + g.queries + g.frees, 0);
			CHECK_OK(complete_by(how, &g));
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		if (ignore)
			is_done_ignored(&g);
		else
			is_done(&g);
	}
}

/* Without a continuation everything is as MPI has it, and a handle that comes again is known as new. */
static void check_plain(void)
{
	static struct general g[SEVERAL];
	MPI_Request r[SEVERAL];

	check_begin("without continuations");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < SEVERAL; i++)
			r[i] = start(&g[i], i);
		for (int i = 0; i < SEVERAL; i++)
			CHECK_OK(complete_by(i % 2, &g[i]));
		CHECK_OK(MPI_Waitall(SEVERAL, r, MPI_STATUSES_IGNORE));
		for (int i = 0; i < SEVERAL; i++) {
			CHECK(g[i].queries >= 1);
			CHECK_EQ(g[i].frees, 1);
			CHECK_EQ(g[i].misplaced, 0);
		}
	}
	check_begin("freed and then complete");
	r[0] = start(&g[0], 0);
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(complete_by(1, &g[0]));
	CHECK_EQ(g[0].frees, 1);
}

/* Completed in any order, some before they are attached; one continuation for all, beside a receive. */
static void check_set(void)
{
	static struct general g[SET];
	MPI_Status status[SET + 1];
	MPI_Request r[SET + 1];
	struct seen seen = {0};
	char in = 0, out = 7;
	int flag;

	check_begin("several in one set");
	for (int round = 0; round < 4; round++) {
		bool ignore = round % 2;

		seen.runs = 0;
		for (int i = 0; i < SET; i++) {
			r[i] = start(&g[i], i);
			if (i % 3 == round % 3)
				CHECK_OK(complete_by(round / 2, &g[i]));
		}
		MPI_Irecv(&in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[SET]);
		for (int i = 0; i <= SET; i++)
			status_poison(&status[i]);
		CHECK_OK(MPI_Continueall(SET + 1, r, see, &seen, ignore ? MPI_STATUSES_IGNORE : status, cr));
		for (int i = 0; i <= SET; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		MPI_Send(&out, 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
		for (int i = SET - 1; i >= 0; i--) {
			if (i % 3 == round % 3)
				continue;
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(seen.runs, 0);
			CHECK_EQ(g[i].frees + g[i].queries, 0);
			CHECK_OK(complete_by(round / 2, &g[i]));
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		for (int i = 0; i < SET; i++) {
			CHECK(g[i].queries >= 1);
			CHECK_EQ(g[i].frees, 1);
			CHECK_EQ(g[i].misplaced, 0);
			if (ignore)
				continue;
			CHECK(general_told(&g[i], &status[i]));
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		}
		if (!ignore)
			status_is_of(&status[SET], check_previous(), TAG, 1);
	}
}

static struct general chain[SEVERAL + 1];
static int chain_how;

static void complete_next(MPI_Status *status, void *data)
{
	struct general *g = data;

	general_ran(status, g);
	if (g < &chain[SEVERAL])
		CHECK_OK(complete_by(chain_how, &g[1]));
}

static void check_chain(void)
{
	check_begin("completed in a continuation");
	for (chain_how = 0; chain_how < 2; chain_how++) {
		for (int i = 0; i <= SEVERAL; i++) {
			MPI_Request r = start(&chain[i], i);

			CHECK_OK(MPI_Continue(&r, complete_next, &chain[i], &chain[i].status, cr));
		}
		CHECK_OK(complete_by(chain_how, &chain[0]));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		for (int i = 0; i <= SEVERAL; i++)
			is_done(&chain[i]);
	}
}

/* ------------------------------------------------------------------------------------------------------ threads --- */

static struct general many[SEVERAL];
static pthread_barrier_t both;
static atomic_int attached; /* so many are */

static void *completer(void *late)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&both);
		for (int i = 0; i < SEVERAL; i++) {
			while (*(int *)late && attached <= i)
				sched_yield();
			CHECK_OK(complete_by(i % 2, &many[i]));
		}
		pthread_barrier_wait(&both);
	}
	return NULL;
}

/* Attaching races with completing; or completing with this thread's wait. */
static void check_threads(void)
{
	pthread_barrier_init(&both, NULL, 2);
	for (int late = 0; late < 2; late++) {
		pthread_t thread;

		check_begin(late ? "completed by another thread, attached before" : "completed by another thread");
		pthread_create(&thread, NULL, completer, &late);
		for (int round = 0; round < ROUNDS; round++) {
			MPI_Request r[SEVERAL];

			attached = 0;
			for (int i = 0; i < SEVERAL; i++)
				r[i] = start(&many[i], i);
			pthread_barrier_wait(&both);
			for (int i = 0; i < SEVERAL; i++) {
				attach(&many[i], r[i], false);
				attached = i + 1;
			}
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			pthread_barrier_wait(&both);
			for (int i = 0; i < SEVERAL; i++)
				is_done(&many[i]);
		}
		pthread_join(thread, NULL);
	}
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
		MPI_Request r = start(&g, how);
		pthread_t thread;

		atomic_store(&about_to_wait, 0);
		if (how / 2)
			attach(&g, r, false);
		pthread_create(&thread, NULL, waiter, how / 2 ? &cr : &r);
		while (!atomic_load(&about_to_wait))
			sched_yield();
		usleep(2000); /* most likely it waits by now; the test is right where it does not */
		CHECK_OK(complete_by(how % 2, &g));
		pthread_join(thread, NULL);
		if (how / 2)
			is_done(&g);
		else
			CHECK_EQ(g.frees, 1);
	}
}

/* ---------------------------------------------------------------------------------------------- cancel, and bad --- */

static void check_cancelled(void)
{
	struct general g;

	check_begin("cancelled");
	for (int way = 0; way < 4; way++) {
		bool before = way / 2;
		MPI_Request r = start(&g, way);

		if (before)
			CHECK_OK(complete_by(way % 2, &g));
		CHECK_OK(MPI_Cancel(&r));
		CHECK_EQ(g.cancels, 1);
		CHECK_EQ(g.complete_when_cancelled, before);
		attach(&g, r, false);
		if (!before)
			CHECK_OK(complete_by(way % 2, &g));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		is_done(&g); /* the status says so */
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
	r = start(&g, 0);
	CHECK_OK(complete_by(1, &g));
	CHECK_EQ(class_of(contd_mpi_grequest_complete(r)), MPI_ERR_REQUEST);
	CHECK_EQ(class_of(MPI_Grequest_complete(r)), MPI_ERR_REQUEST);
	CHECK_EQ(g.frees, 0);
	attach(&g, r, false);
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
		check_set();
		check_chain();
		check_threads();
		check_woken();
		check_cancelled();
		check_bad();
		CHECK_OK(MPI_Request_free(&cr));
	}
	return check_fini();
}
