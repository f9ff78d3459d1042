/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring as one writes it by hand, which all modes are compared with. There is one array of requests for
 * MPI_Testsome. Receives are posted before messages are passed on. A send that is complete at once, as short ones are,
 * is not tested again. Nothing is allocated on the way.
 */
#include <sched.h>
#include <stdlib.h>

#include "message_ring.h"

struct loop {
	struct worker *worker;
	MPI_Request *requests; /* receives, then sends */
	MPI_Status *statuses;
	int *indices;
	bool *sends, *arrived; /* the step's send has not completed; its receive has, before that */
	int sending;
	long ending;
};

static bool complete(MPI_Request *request)
{
	int done;

	MPI_Test(request, &done, MPI_STATUS_IGNORE);
	return done;
}

/* The slot's next step, and more while they complete at once. */
static void go_on(struct loop *l, long i)
{
	struct slot *s = &l->worker->slots[i];
	long n = l->worker->count;

	while (ring_next(s)) {
		MPI_Request requests[2];

		ring_issue(s, requests);
		if (s->receives)
			l->requests[i] = requests[0];
		if (s->sends && !complete(&requests[s->receives])) {
			l->requests[n + i] = requests[s->receives];
			l->sends[i] = true;
			l->sending++;
			return;
		}
		if (s->receives)
			return;
		ring_finished(s);
	}
	l->ending--;
}

static void received(struct loop *l, long i, const MPI_Status *status)
{
	struct slot *s = &l->worker->slots[i];

	if (status)
		s->statuses[0] = *status;
	if (l->sends[i]) {
		l->arrived[i] = true;
		return;
	}
	ring_finished(s);
	go_on(l, i);
}

static void sent(struct loop *l, long i)
{
	struct slot *s = &l->worker->slots[i];

	l->sends[i] = false;
	l->sending--;
	if (s->receives && !l->arrived[i])
		return;
	l->arrived[i] = false;
	ring_finished(s);
	go_on(l, i);
}

void testsome_work(struct worker *w)
{
	long n = w->count;
	struct loop l = {.worker = w, .ending = n};
	bool statuses = w->ring->statuses;
	int vain = 0;

	l.requests = malloc(2 * (size_t)n * sizeof(*l.requests));
	l.statuses = malloc(2 * (size_t)n * sizeof(*l.statuses));
	l.indices = malloc(2 * (size_t)n * sizeof(*l.indices));
	l.sends = calloc((size_t)n, sizeof(*l.sends));
	l.arrived = calloc((size_t)n, sizeof(*l.arrived));
	if (!l.requests || !l.statuses || !l.indices || !l.sends || !l.arrived)
		ring_die("out of memory");
	for (long i = 0; i < 2 * n; i++)
		l.requests[i] = MPI_REQUEST_NULL;
	for (long i = 0; i < n; i++)
		go_on(&l, i);
	while (l.ending) {
		int count;

		MPI_Testsome((int)(l.sending ? 2 * n : n), l.requests, &count, l.indices,
			     statuses ? l.statuses : MPI_STATUSES_IGNORE);
		if (count == MPI_UNDEFINED)
			ring_die("a slot waits for nothing");
		for (int k = 0; k < count; k++) {
			if (l.indices[k] < n)
				received(&l, l.indices[k], statuses ? &l.statuses[k] : NULL);
			else
				sent(&l, l.indices[k] - n);
		}
		vain = count ? 0 : vain + 1;
		if (vain > 1000) /* there may be more ranks than processors */
			sched_yield();
	}
	free(l.requests);
	free(l.statuses);
	free(l.indices);
	free(l.sends);
	free(l.arrived);
}
