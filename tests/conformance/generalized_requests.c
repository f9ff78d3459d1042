/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 8: generalized requests, with continuations on them. */
#include "conformance.h"

#include "../general.h"

#define TAG 810

static MPI_Request begin(struct general *g)
{
	CHECK_OK(general_start(g, 2));
	return g->handle;
}

static void status_holds(struct general *g)
{
	CHECK(general_told(g, &g->status));
	CHECK_EQ(g->status.MPI_ERROR, MPI_SUCCESS);
}

CONFORMANCE_BOTH(s8_1_runs_after_grequest_complete, 1, single,
		 "A continuation on a generalized request runs after MPI_Grequest_complete, and not before")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	r = begin(&g);
	CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
	CHECK(r == MPI_REQUEST_NULL);
	CHECK(!test_cr(&cr));
	CHECK_EQ(g.runs + g.queries + g.frees, 0);
	CHECK_OK(general_complete(&g));
	wait_cr(&cr);
	CHECK_EQ(g.runs, 1);
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_1_query_fills_the_status, 1, single, "query_fn has filled the status before the callback")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	for (int before = 0; before < 2; before++) {
		r = begin(&g);
		if (before)
			CHECK_OK(general_complete(&g));
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		if (!before)
			CHECK_OK(general_complete(&g));
		wait_cr(&cr);
		CHECK_EQ(g.runs, 1);
		CHECK(g.queries_before >= 1);
		CHECK_EQ(g.misplaced, 0);
		status_holds(&g);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_1_free_comes_after_the_callback, 1, single,
		 "free_fn runs once, after the callback, whether the request was complete before attaching or not")
{
	static const char *const when[] = {"completed later", "completed before", "completed and seen before"};
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	for (int i = 0; i < 3; i++) {
		step(when[i]);
		r = begin(&g);
		if (i > 0)
			CHECK_OK(general_complete(&g));
		if (i == 2)
			until_complete(r);
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		if (i == 0)
			CHECK_OK(general_complete(&g));
		wait_cr(&cr);
		CHECK_EQ(g.runs, 1);
		CHECK_EQ(g.frees_before, 0);
		CHECK_EQ(g.frees, 1);
		for (int k = 0; k < 100; k++)
			drive_once();
		CHECK_EQ(g.frees, 1);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_1_several_in_one_set, 1, single,
		 "Generalized requests and a receive in one set: one callback, and each one's free_fn once, after it")
{
	enum { N = 5 };
	MPI_Request cr = new_cr(NULL), r[N + 1];
	MPI_Status statuses[N + 1];
	struct general g[N], all;

	memset(&all, 0, sizeof(all));
	for (int i = 0; i < N; i++) {
		r[i] = begin(&g[i]);
		if (i % 2)
			CHECK_OK(general_complete(&g[i]));
	}
	r[N] = pending(TAG);
	CHECK_OK(attach_all(N + 1, r, general_ran, &all, statuses, cr));
	complete_pending(TAG);
	for (int i = 0; i < N; i += 2) {
		CHECK(!test_cr(&cr));
		for (int k = 0; k < N; k++)
			CHECK_EQ(g[k].frees, 0);
		CHECK_OK(general_complete(&g[i]));
	}
	wait_cr(&cr);
	CHECK_EQ(all.runs, 1);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(g[i].frees, 1);
		g[i].status = statuses[i];
		status_holds(&g[i]);
	}
	free_cr(&cr);
}

static void *completes(void *g)
{
	CHECK_OK(general_complete(g));
	return NULL;
}

CONFORMANCE_BOTH(s8_1_completed_by_another_thread, 1, multiple,
		 "Whichever thread calls MPI_Grequest_complete, also while the continuation is being attached")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;
	pthread_t thread;

	for (int i = 0; i < 200; i++) {
		r = begin(&g);
		if (pthread_create(&thread, NULL, completes, &g)) {
			skip("no thread can be made");
			return;
		}
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		wait_cr(&cr);
		pthread_join(thread, NULL);
		CHECK_EQ(g.runs, 1);
		CHECK_EQ(g.frees_before, 0);
		CHECK_EQ(g.frees, 1);
		status_holds(&g);
	}
	free_cr(&cr);
}

static void ran_next(MPI_Status *status, void *data)
{
	struct general *g = data;

	general_ran(status, g);
	CHECK_OK(general_complete(&g[1]));
}

CONFORMANCE_BOTH(s8_1_completed_in_a_callback, 1, single, "A callback may complete a generalized request")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g[2];

	for (int i = 0; i < 2; i++) {
		r = begin(&g[i]);
		CHECK_OK(attach(&r, i ? general_ran : ran_next, &g[i], &g[i].status, cr));
	}
	CHECK_OK(general_complete(&g[0]));
	wait_cr(&cr);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(g[i].runs, 1);
		CHECK_EQ(g[i].frees_before, 0);
		CHECK_EQ(g[i].frees, 1);
	}
	free_cr(&cr);
}

CONFORMANCE_BOTH(s8_1_cancel, 1, single,
		 "MPI_Cancel calls cancel_fn, which is told whether the request is complete; the status tells of it")
{
	MPI_Request cr = new_cr(NULL), r;
	struct general g;

	for (int before = 0; before < 2; before++) {
		int cancelled = 0;

		r = begin(&g);
		if (before)
			CHECK_OK(general_complete(&g));
		CHECK_OK(MPI_Cancel(&r));
		CHECK_EQ(g.cancels, 1);
		CHECK_EQ(g.complete_when_cancelled, before);
		CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		if (!before)
			CHECK_OK(general_complete(&g));
		wait_cr(&cr);
		CHECK_EQ(g.runs, 1);
		MPI_Test_cancelled(&g.status, &cancelled);
		CHECK(cancelled);
	}
	free_cr(&cr);
}

static atomic_int waits;

static void *waits_for(void *request)
{
	atomic_store(&waits, 1);
	CHECK_OK(MPI_Wait(request, MPI_STATUS_IGNORE));
	return NULL;
}

CONFORMANCE_BOTH(s8_2_complete_wakes_waiters, 1, multiple,
		 "MPI_Grequest_complete wakes a thread that waits for the request, or for the CR of its continuation")
{
	MPI_Request cr = new_cr(NULL), r, *awaited;
	struct general g;
	pthread_t thread;

	for (int on_cr = 0; on_cr < 2; on_cr++) {
		r = begin(&g);
		awaited = on_cr ? &cr : &r;
		if (on_cr)
			CHECK_OK(attach(&r, general_ran, &g, &g.status, cr));
		atomic_store(&waits, 0);
		if (pthread_create(&thread, NULL, waits_for, awaited)) {
			skip("no thread can be made");
			return;
		}
		while (!atomic_load(&waits))
			compute_ms(1);
		compute_ms(3); /* most likely it waits by now */
		CHECK_OK(general_complete(&g));
		pthread_join(thread, NULL);
		CHECK_EQ(g.runs, on_cr);
	}
	again(&cr);
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------------- the tree reduction --- */

struct reduction {
	MPI_Request handle, cr;
	int value, from[2], children, parent, *result;
	atomic_int frees;
};

static int reduction_query(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_INT, 1);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int reduction_free(void *extra)
{
	((struct reduction *)extra)->frees++;
	return MPI_SUCCESS;
}

static int reduction_cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void on_sent(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_OK(MPI_Grequest_complete(((struct reduction *)data)->handle));
}

static void on_children(MPI_Status *statuses, void *data)
{
	struct reduction *t = data;
	MPI_Request r;

	(void)statuses;
	for (int i = 0; i < t->children; i++)
		t->value += t->from[i];
	if (t->parent == MPI_PROC_NULL)
		*t->result = t->value;
	CHECK_OK(MPI_Isend(&t->value, 1, MPI_INT, t->parent, TAG, world, &r));
	CHECK_OK(attach(&r, on_sent, t, MPI_STATUS_IGNORE, t->cr));
}

static void *reduce(void *data)
{
	struct reduction *t = data;
	MPI_Request r[2];

	for (int i = 0; i < t->children; i++)
		MPI_Irecv(&t->from[i], 1, MPI_INT, 2 * my_rank + 1 + i, TAG, world, &r[i]);
	MPI_Waitall(t->children, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < t->children; i++)
		t->value += t->from[i];
	if (t->parent == MPI_PROC_NULL)
		*t->result = t->value;
	MPI_Send(&t->value, 1, MPI_INT, t->parent, TAG, world);
	CHECK_OK(MPI_Grequest_complete(t->handle));
	return NULL;
}

/* A generalized request that is complete when the tree's sum has gone up; by a thread, or by continuations alone. */
static void tree(bool threads)
{
	MPI_Request cr = new_cr(NULL), r;

	for (int round = 0; round < 20; round++) {
		struct reduction t = {.value = my_rank + 1 + round, .cr = cr};
		int result = -1, sum = 0, mine = t.value;
		pthread_t thread;

		t.result = &result;
		t.parent = my_rank ? (my_rank - 1) / 2 : MPI_PROC_NULL;
		for (int i = 1; i <= 2; i++)
			t.children += 2 * my_rank + i < ranks;
		CHECK_OK(MPI_Grequest_start(reduction_query, reduction_free, reduction_cancel, &t, &r));
		t.handle = r;
		if (threads) {
			CHECK_EQ(pthread_create(&thread, NULL, reduce, &t), 0);
		} else {
			MPI_Request down[2];

			for (int i = 0; i < t.children; i++)
				MPI_Irecv(&t.from[i], 1, MPI_INT, 2 * my_rank + 1 + i, TAG, world, &down[i]);
			CHECK_OK(attach_all(t.children, down, on_children, &t, MPI_STATUSES_IGNORE, cr));
		}
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK(r == MPI_REQUEST_NULL);
		CHECK_EQ(t.frees, 1);
		if (threads)
			pthread_join(thread, NULL);
		wait_cr(&cr);
		MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, world);
		if (my_rank == 0)
			CHECK_EQ(result, sum);
	}
	free_cr(&cr);
}

CONFORMANCE_TEST(s8_3_tree_reduction_by_threads, 5, multiple,
		 "A reduction along a binary tree as a generalized request, with a thread for each")
{
	face = face_draft;
	tree(true);
}

CONFORMANCE_BOTH(s8_3_tree_reduction_by_continuations, 5, single,
		 "The same with continuations and no thread: receives, a send in the callback, then completion")
{
	tree(false);
}
