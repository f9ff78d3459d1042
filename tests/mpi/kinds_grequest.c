/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations on generalized requests, completed before and after attaching, in continuations and by other threads. */
#include "check.h"

#include <pthread.h>

#define TAG 53
#define SEVERAL 40

static MPI_Request cr;

/* One generalized request, and what has been done with it. */
struct general {
	MPI_Request handle; /* for MPI_Grequest_complete: the program's own is null after attaching */
	MPI_Status status;
	int number;
	atomic_int completed, queried, freed, cancelled, ran;
	atomic_int queried_before; /* when the callback ran */
};

static int query(void *extra, MPI_Status *status)
{
	struct general *g = extra;

	CHECK_EQ(g->completed, 1);
	CHECK_EQ(g->freed, 0);
	g->queried++;
	MPI_Status_set_elements(status, MPI_BYTE, 77 + g->number);
	MPI_Status_set_cancelled(status, g->cancelled != 0);
	status->MPI_SOURCE = 3;
	status->MPI_TAG = 4 + g->number;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	struct general *g = extra;

	CHECK(g->queried >= 1);
	g->freed++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	struct general *g = extra;

	CHECK_EQ(complete != 0, g->completed != 0);
	g->cancelled++;
	return MPI_SUCCESS;
}

static void ran(MPI_Status *status, void *data)
{
	struct general *g = data;

	(void)status;
	g->ran++;
	g->queried_before = (int)g->queried;
}

static void start(struct general *g, int number, MPI_Request *r)
{
	memset(g, 0, sizeof(*g));
	g->number = number;
	status_poison(&g->status);
	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, g, &g->handle));
	*r = g->handle;
}

static void complete(struct general *g)
{
	g->completed = 1;
	CHECK_OK(MPI_Grequest_complete(g->handle));
}

/* Its continuation has run. */
static void is_done(struct general *g, MPI_Status *status)
{
	int count = -1, cancelled = -1;

	CHECK_EQ(g->ran, 1);
	CHECK(g->queried_before >= 1);
	CHECK_EQ(g->freed, 1);
	if (!status)
		return;
	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK_EQ(count, 77 + g->number);
	CHECK_EQ(status->MPI_SOURCE, 3);
	CHECK_EQ(status->MPI_TAG, 4 + g->number);
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
	MPI_Test_cancelled(status, &cancelled);
	CHECK_EQ(cancelled != 0, g->cancelled != 0);
}

static void check_single(void)
{
	static const char *const name[] = {"complete after attaching", "complete before attaching",
					   "complete and seen before attaching"};
	struct general g;
	MPI_Request r;

	for (int way = 0; way < 6; way++) {
		int when = way / 2, ignore = way % 2, flag = 0;

		check_begin(name[when]);
		start(&g, way, &r);
		if (when)
			complete(&g);
		if (when == 2) {
			CHECK_OK(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
			CHECK(flag);
		}
		CHECK_OK(MPI_Continue(&r, ran, &g, ignore ? MPI_STATUS_IGNORE : &g.status, cr));
		CHECK(r == MPI_REQUEST_NULL);
		if (!when) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(g.ran, 0);
			CHECK_EQ(g.queried, 0);
			complete(&g);
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		is_done(&g, ignore ? NULL : &g.status);
		CHECK(!ignore || status_is_poison(&g.status));
	}
}

/* Completed in any order, some before they are attached; one continuation for all, beside a receive. */
static void check_set(void)
{
	static struct general g[SEVERAL];
	MPI_Status status[SEVERAL + 1];
	MPI_Request r[SEVERAL + 1];
	struct seen seen = {0};
	char in = 0, out = 7;
	int flag;

	check_begin("several in one set");
	for (int round = 0; round < 4; round++) {
		bool ignore = round % 2;

		seen.runs = 0;
		for (int i = 0; i < SEVERAL; i++) {
			start(&g[i], i, &r[i]);
			if (i % 3 == round % 3)
				complete(&g[i]);
		}
		MPI_Irecv(&in, 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[SEVERAL]);
		for (int i = 0; i <= SEVERAL; i++)
			status_poison(&status[i]);
		CHECK_OK(MPI_Continueall(SEVERAL + 1, r, see, &seen, ignore ? MPI_STATUSES_IGNORE : status, cr));
		for (int i = 0; i <= SEVERAL; i++)
			CHECK(r[i] == MPI_REQUEST_NULL);
		MPI_Send(&out, 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
		for (int i = SEVERAL - 1; i >= 0; i--) {
			if (i % 3 == round % 3)
				continue;
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(seen.runs, 0);
			complete(&g[i]);
		}
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		for (int i = 0; i < SEVERAL; i++) {
			g[i].ran = g[i].queried_before = 1; /* one callback for all of them */
			is_done(&g[i], ignore ? NULL : &status[i]);
		}
		if (!ignore)
			status_is_of(&status[SEVERAL], check_previous(), TAG, 1);
	}
}

static void check_cancelled(void)
{
	struct general g;
	MPI_Request r;

	check_begin("cancelled");
	for (int before = 0; before < 2; before++) {
		start(&g, before, &r);
		CHECK_OK(MPI_Cancel(&r));
		CHECK_EQ(g.cancelled, 1);
		if (before)
			complete(&g);
		CHECK_OK(MPI_Continue(&r, ran, &g, &g.status, cr));
		if (!before)
			complete(&g);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		is_done(&g, &g.status);
	}
}

/* Each continuation completes the next request. */
static struct general chain[SEVERAL + 1];

static void complete_next(MPI_Status *status, void *data)
{
	struct general *g = data;

	ran(status, g);
	if (g < &chain[SEVERAL])
		complete(g + 1);
}

static void check_chain(void)
{
	MPI_Request r;

	check_begin("completed in a continuation");
	for (int i = 0; i <= SEVERAL; i++) {
		start(&chain[i], i, &r);
		CHECK_OK(MPI_Continue(&r, complete_next, &chain[i], &chain[i].status, cr));
	}
	complete(&chain[0]);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i <= SEVERAL; i++)
		is_done(&chain[i], &chain[i].status);
}

/* The other thread completes them while this one waits for the CR, or attaches. */
static struct general others[SEVERAL];
static atomic_int attached;

static void *completer(void *arg)
{
	int late = *(int *)arg;

	for (int i = 0; i < SEVERAL; i++) {
		while (late && attached <= i)
			sched_yield();
		complete(&others[i]);
	}
	return NULL;
}

static void check_other_thread(void)
{
	for (int late = 0; late < 2; late++) {
		MPI_Request r[SEVERAL];
		pthread_t thread;

		check_begin(late ? "completed by another thread, attached before" : "completed by another thread");
		for (int round = 0; round < 20; round++) {
			attached = 0;
			for (int i = 0; i < SEVERAL; i++)
				start(&others[i], i, &r[i]);
			pthread_create(&thread, NULL, completer, &late);
			for (int i = 0; i < SEVERAL; i++) {
				CHECK_OK(MPI_Continue(&r[i], ran, &others[i], &others[i].status, cr));
				attached = i + 1;
			}
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			pthread_join(thread, NULL);
			for (int i = 0; i < SEVERAL; i++)
				is_done(&others[i], &others[i].status);
		}
	}
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	for (int i = 0; i < 3; i++) {
		cr = i == 0   ? check_plain_cr()
		     : i == 1 ? check_cr("mpi_continue_poll_only", "true", NULL, NULL)
			      : check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
		check_single();
		check_set();
		check_cancelled();
		check_chain();
		check_other_thread();
		CHECK_OK(MPI_Request_free(&cr));
	}
	return check_fini();
}
