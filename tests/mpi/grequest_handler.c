/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * contd_mpi_grequest_complete() in async-signal-safe continuations of events that another thread completes, so that
 * contd's handler runs them: on a thread that computes outside regions, in one, and calls MPI all the time; and on a
 * thread that the level keeps out of MPI. No thread but the main one may call MPI.
 */
#include "check.h"

#include <pthread.h>

#ifndef LEVEL
#define LEVEL MPI_THREAD_FUNNELED
#endif
#ifndef ROUNDS
#define ROUNDS 200
#endif

enum where { COMPUTES, REGION, CALLS_MPI, WAITS, WAITS_FOR_IT, OTHER_THREAD, WHERES };
static const char *const where_name[WHERES] = {"while it computes",
					       "in a region",
					       "while it calls MPI",
					       "while it waits for the CR",
					       "while it waits for the request",
					       "on a thread that may not call MPI"};

static MPI_Request cr, handle;
static MPI_Status status_of;
static struct contd_group *group;
static struct contd_event event;
static atomic_int go, ran, freed, queried, completed, stop, refused, directly;
static volatile double sink;

static int query(void *extra, MPI_Status *status)
{
	CHECK_EQ(freed, *(int *)extra);
	MPI_Status_set_elements(status, MPI_BYTE, 11);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 5;
	status->MPI_TAG = 6;
	queried++;
	return MPI_SUCCESS;
}

static int free_it(void *extra)
{
	(void)extra;
	freed++;
	return MPI_SUCCESS;
}

static int cancel_it(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void done(MPI_Status *status, void *data)
{
	CHECK_EQ(status->MPI_TAG, 6);
	CHECK_EQ(freed, *(int *)data);
	CHECK(queried > *(int *)data);
	ran++;
}

/* Async-signal-safe. */
static void complete_it(int status, void *data)
{
	(void)status, (void)data;
	completed++; /* before: a thread that waits for the request may look at once */
	if (contd_mpi_grequest_complete(handle) != MPI_SUCCESS)
		refused++;
}

static void *completes_events(void *data)
{
	(void)data;
	for (int seen = 0; !atomic_load(&stop);) {
		if (atomic_load(&go) == seen) {
			sched_yield();
			continue;
		}
		seen++;
		if (atomic_load(&directly))
			complete_it(0, NULL);
		else
			contd_event_complete(&event, 0);
	}
	return NULL;
}

static void compute(int rounds)
{
	double x = 1;

	for (int i = 0; i < rounds; i++)
		x = x * 1.000001 + 1e-9;
	sink = x;
}

/* Does it make the other thread complete it, and see it completed, in this way? */
static void one(enum where where, int *round)
{
	struct contd_event *events[] = {&event};
	MPI_Request r, own;
	int flag = 0;

	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, round, &r));
	handle = own = r;
	if (where != OTHER_THREAD) {
		contd_event_init(&event);
		CHECK(contd_event_continue(1, events, complete_it, NULL, group, NULL) >= 0);
	}
	if (where != WAITS_FOR_IT)
		CHECK_OK(MPI_Continue(&r, done, round, &status_of, cr));
	atomic_fetch_add(&go, 1);
	if (where == COMPUTES) {
		while (atomic_load(&completed) <= *round)
			compute(1000);
	} else if (where == REGION) {
		contd_compute_begin();
		while (atomic_load(&completed) <= *round)
			compute(1000);
		contd_compute_end();
	} else if (where == CALLS_MPI) {
		char in, out = 1;

		while (atomic_load(&ran) <= *round) {
			MPI_Sendrecv(&out, 1, MPI_BYTE, 0, 3, &in, 1, MPI_BYTE, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
			/* The portable backend looks after nothing in a call that finds at once what it wants. */
			MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
		}
	} else if (where == WAITS_FOR_IT) {
		CHECK_OK(MPI_Wait(&own, &status_of));
		CHECK_EQ(status_of.MPI_TAG, 6);
		ran++;
	}
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < 1000 && freed <= *round; i++)
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	++*round;
	CHECK_EQ(ran, *round);
	CHECK_EQ(completed, *round);
	CHECK_EQ(freed, *round);
}

int main(int argc, char **argv)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct contd_stats stats = {.size = sizeof(stats)};
	pthread_t thread;
	int round = 0;

	check_init(&argc, &argv, LEVEL);
	check_unbind();
	cr = check_plain_cr();
	CHECK_EQ(contd_thread_attach(NULL), 0);
	CHECK_EQ(contd_group_create(&attr, &group), 0);
	pthread_create(&thread, NULL, completes_events, NULL);
	for (enum where where = COMPUTES; where < WHERES; where++) {
		check_begin(where_name[where]);
		atomic_store(&directly, where == OTHER_THREAD);
		for (int i = 0; i < ROUNDS; i++)
			one(where, &round);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(refused, 0);
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK(stats.run_handler > 0);
	CHECK_EQ(contd_group_destroy(group), 0);
	CHECK_EQ(contd_thread_detach(), 0);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
