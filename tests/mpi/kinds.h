/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of request in every way of attaching. A program describes kinds (struct kind); kinds_run takes each of
 * them through rounds that differ in
 *   one continuation for each request of the round, or one for all of them
 *   statuses, or none
 *   attached at once; attached while one of the ranks holds back and begins later; attached after completion, which the
 *   status queries of several requests have told before, more than once
 *   CRs of three sorts: plain, poll_only, enqueue_complete
 * and then all of them together, in one set. Public calls only: the programs are the same for each MPI and each
 * backend.
 */
#ifndef CONTD_TESTS_MPI_KINDS_H
#define CONTD_TESTS_MPI_KINDS_H

#include "check.h"

#define KIND_REQUESTS 4 /* the most that one kind starts in a round */

struct kind {
	const char *name;
	int count;
	bool persistent;   /* begin starts again what is in r (null at first); end frees it */
	bool keeps_status; /* this MPI reports its last status again when it is inactive */
	bool waits;        /* begin itself needs the other ranks: none may hold back */
	bool unseen;       /* MPI_Request_get_status does not see it complete in every MPI */
	bool unaskable;    /* MPI_Request_get_status frees it: docs/requests.md, note 8 */
	bool all_needed;   /* complete on no rank before all have begun */
	const void *how;   /* the kind's own */
	void (*begin)(const struct kind *k, int round, MPI_Request r[]);
	/* In the continuation, for request i; status is NULL where it is ignored. MPI_ERROR has been looked at. */
	void (*check)(const struct kind *k, int round, int i, MPI_Status *status);
	/* When the round's continuations have run here; may be NULL, and may be collective. */
	void (*after)(const struct kind *k, int round);
	void (*end)(const struct kind *k, MPI_Request r[]); /* NULL: the persistent requests are freed */
};

enum when { AT_ONCE, HELD_BACK, COMPLETE, WHENS };

struct kind_set {
	const struct kind *kind;
	int round;
	int first; /* of the kind's requests */
};

/* The operations of one continuation. */
struct kind_attached {
	int count;
	const struct kind_set *of; /* one an operation */
	const MPI_Request *requests;
	MPI_Status *expected;
	bool ignore;
	int runs;
};

static MPI_Comm kinds_side; /* for what this file itself exchanges */
static char kinds_section[160];

CHECK_HELPER void kinds_ran(MPI_Status *status, void *data)
{
	struct kind_attached *a = data;

	a->runs++;
	CHECK(status == a->expected);
	for (int i = 0; i < a->count; i++) {
		const struct kind_set *of = &a->of[i];
		MPI_Status *s = a->ignore ? NULL : &status[i];

		if (s)
			CHECK_EQ(s->MPI_ERROR, MPI_SUCCESS);
		if (of->kind->persistent) {
			MPI_Request r = a->requests[i];
			MPI_Status empty;
			int flag = 0;

			/* Inactive by now. */
			CHECK_OK(MPI_Test(&r, &flag, &empty));
			CHECK(flag);
			CHECK(of->kind->keeps_status || status_is_empty(&empty));
			CHECK(r == a->requests[i]);
		}
		of->kind->check(of->kind, of->round, of->first, s);
	}
}

/* Completion without a completion call: the request is still there when a continuation is attached. */
CHECK_HELPER void kinds_complete(const struct kind *k, MPI_Request r)
{
	double start = MPI_Wtime();
	int rc = MPI_SUCCESS;

	for (int flag = 0; !flag && rc == MPI_SUCCESS && !(k->unseen && MPI_Wtime() - start > 0.002);)
		if (!k->unaskable)
			rc = MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
	CHECK_OK(rc);
}

/* Asked as often as one likes, and together: nothing is completed, no handle changes, and the answer is the same. */
CHECK_HELPER void kinds_ask(const struct kind *k, const MPI_Request same[])
{
	MPI_Request r[KIND_REQUESTS];
	MPI_Status all[KIND_REQUESTS], again[KIND_REQUESTS], some[KIND_REQUESTS];
	int indices[KIND_REQUESTS], count = 0, flag = 0, index = -1;

	if (k->unaskable)
		return;
	memcpy(r, same, sizeof(r));
	CHECK_OK(MPIX_Request_get_status_all(k->count, r, &flag, all));
	CHECK(flag || k->unseen);
	if (!flag)
		return;
	CHECK_OK(MPIX_Request_get_status_all(k->count, r, &flag, again));
	CHECK(flag);
	CHECK_OK(MPIX_Request_get_status_some(k->count, r, &count, indices, some));
	CHECK_OK(MPIX_Request_get_status_any(k->count, r, &index, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(index == MPI_UNDEFINED, count == MPI_UNDEFINED);
	for (int i = 0; i < k->count; i++) {
		CHECK(r[i] == same[i]);
		CHECK_EQ(all[i].MPI_SOURCE, again[i].MPI_SOURCE);
		CHECK_EQ(all[i].MPI_TAG, again[i].MPI_TAG);
		CHECK_EQ(all[i].MPI_ERROR, MPI_SUCCESS);
	}
	for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
		CHECK_EQ(some[i].MPI_SOURCE, all[indices[i]].MPI_SOURCE);
		CHECK_EQ(some[i].MPI_TAG, all[indices[i]].MPI_TAG);
		CHECK_EQ(some[i].MPI_ERROR, MPI_SUCCESS);
	}
}

/* Attach to n requests: one continuation for each, or one for all. */
CHECK_HELPER void kinds_attach(int n, const struct kind_set *of, MPI_Request r[], const MPI_Request same[],
			       MPI_Status status[], bool ignore, bool all, struct kind_attached a[], MPI_Request cr)
{
	for (int i = 0; i < n; i++) {
		status_poison(&status[i]);
		a[i] = (struct kind_attached){.count = 1, .of = &of[i], .requests = &same[i], .ignore = ignore};
		a[i].expected = ignore ? MPI_STATUS_IGNORE : &status[i];
	}
	if (all) {
		a[0].count = n;
		a[0].expected = ignore ? MPI_STATUSES_IGNORE : status;
		CHECK_OK(MPI_Continueall(n, r, kinds_ran, &a[0], a[0].expected, cr));
	} else {
		for (int i = 0; i < n; i++)
			CHECK_OK(MPI_Continue(&r[i], kinds_ran, &a[i], a[i].expected, cr));
	}
	for (int i = 0; i < n; i++) {
		CHECK(r[i] == (of[i].kind->persistent ? same[i] : MPI_REQUEST_NULL));
		if (!of[i].kind->persistent)
			memset(&r[i], POISON, sizeof(r[i])); /* the handle is the program's again */
	}
}

CHECK_HELPER void kinds_wait(int n, const MPI_Status status[], bool ignore, bool all, const struct kind_attached a[],
			     MPI_Request cr)
{
	MPI_Request same = cr;

	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(cr == same);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(a[i].runs, all && i > 0 ? 0 : 1);
		if (ignore)
			CHECK(status_is_poison(&status[i]));
	}
}

CHECK_HELPER void kinds_round(const struct kind *k, int round, MPI_Request r[], MPI_Request cr, enum when when,
			      bool all, bool ignore)
{
	struct kind_attached a[KIND_REQUESTS];
	struct kind_set of[KIND_REQUESTS];
	MPI_Request same[KIND_REQUESTS];
	MPI_Status status[KIND_REQUESTS];
	bool late = when == HELD_BACK && check_rank == round % check_size;

	if (late)
		MPI_Barrier(kinds_side);
	k->begin(k, round, r);
	memcpy(same, r, sizeof(same));
	for (int i = 0; i < k->count; i++) {
		of[i] = (struct kind_set){k, round, i};
		if (when == COMPLETE)
			kinds_complete(k, r[i]);
	}
	if (when == COMPLETE)
		kinds_ask(k, r);
	kinds_attach(k->count, of, r, same, status, ignore, all, a, cr);
	if (when == HELD_BACK && !late) {
		int flag = 1;

		if (k->all_needed) {
			CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			CHECK(!flag);
			CHECK_EQ(a[0].runs, 0);
		}
		MPI_Barrier(kinds_side);
	}
	kinds_wait(k->count, status, ignore, all, a, cr);
	if (k->after)
		k->after(k, round);
}

/* One continuation on the requests of all kinds, which their MPI calls have in no particular relation. */
CHECK_HELPER void kinds_together(const struct kind kinds[], int n, int round, MPI_Request r[][KIND_REQUESTS],
				 MPI_Request cr, bool ignore)
{
	size_t most = (size_t)n * KIND_REQUESTS;
	struct kind_attached *a = calloc(most, sizeof(*a));
	struct kind_set *of = calloc(most, sizeof(*of));
	MPI_Request *set = calloc(most, sizeof(*set)), *same = calloc(most, sizeof(*same));
	MPI_Status *status = calloc(most, sizeof(*status));
	int total = 0;

	for (int k = 0; k < n; k++) {
		kinds[k].begin(&kinds[k], round, r[k]);
		for (int i = 0; i < kinds[k].count; i++) {
			of[total] = (struct kind_set){&kinds[k], round, i};
			set[total] = same[total] = r[k][i];
			total++;
		}
	}
	kinds_attach(total, of, set, same, status, ignore, true, a, cr);
	free(set); /* never touched afterwards */
	kinds_wait(total, status, ignore, true, a, cr);
	for (int k = 0; k < n; k++)
		if (kinds[k].after)
			kinds[k].after(&kinds[k], round);
	free(a);
	free(of);
	free(same);
	free(status);
}

CHECK_HELPER void kinds_end(const struct kind *k, MPI_Request r[])
{
	if (k->end) {
		k->end(k, r);
		return;
	}
	for (int i = 0; k->persistent && i < k->count; i++) {
		CHECK_OK(MPI_Request_free(&r[i]));
		CHECK(r[i] == MPI_REQUEST_NULL);
	}
}

static inline void kinds_name(const char *name, const char *suffix, const char *how)
{
	snprintf(kinds_section, sizeof(kinds_section), "%s%s%s%s", name, suffix, *how ? ": " : "", how);
	check_begin(kinds_section);
}

/* Where an MPI can't do all kinds at a time, together says so. */
CHECK_HELPER void kinds_run(const struct kind kinds[], int n, const char *suffix, bool together)
{
	static const char *const when_name[WHENS] = {"attached at once", "a rank holds back", "complete before"};
	MPI_Request(*r)[KIND_REQUESTS] = calloc((size_t)n, sizeof(*r));

	MPI_Comm_dup(MPI_COMM_WORLD, &kinds_side);
	for (int sort = 0; sort < 3; sort++) {
		MPI_Request cr = sort == 0   ? check_plain_cr()
				 : sort == 1 ? check_cr("mpi_continue_poll_only", "true", NULL, NULL)
					     : check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);

		for (int k = 0; k < n; k++) {
			int round = 0;

			for (int i = 0; i < KIND_REQUESTS; i++)
				r[k][i] = MPI_REQUEST_NULL;
			for (int when = 0; when < WHENS; when++) {
				kinds_name(kinds[k].name, suffix, when_name[when]);
				/* All ways with a plain CR; with the others alternately, to save time. */
				for (int way = 0; way < 4 && !(when == HELD_BACK && kinds[k].waits); way++)
					if (sort == 0 || way == when % 2 || way == 3 - when % 2)
						kinds_round(&kinds[k], round++, r[k], cr, (enum when)when, way & 1,
							    way & 2);
			}
			kinds_end(&kinds[k], r[k]);
			MPI_Barrier(kinds_side);
		}
		kinds_name("all kinds in one set", suffix, "");
		for (int k = 0; k < n; k++)
			for (int i = 0; i < KIND_REQUESTS; i++)
				r[k][i] = MPI_REQUEST_NULL;
		for (int round = 0; round < 4 && together; round++)
			kinds_together(kinds, n, round, r, cr, round & 1);
		for (int k = 0; k < n && together; k++)
			kinds_end(&kinds[k], r[k]);
		MPI_Barrier(kinds_side);
		CHECK_OK(MPI_Request_free(&cr));
		CHECK(cr == MPI_REQUEST_NULL);
	}
	MPI_Comm_free(&kinds_side);
	free(r);
}

#endif
