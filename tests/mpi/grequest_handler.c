/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* also: tick CONTD_AGENT=tick */
/*
 * contd_mpi_grequest_complete() in async-signal-safe continuations, which contd's handler runs on a thread that computes
 * outside regions, in one, and in one that calls MPI all the time; and on a thread that is kept out of MPI. Another thread
 * completes the events that those continuations are for.
 */
#include "check.h"

#include <pthread.h>
#include <time.h>

#ifndef LEVEL
#define LEVEL MPI_THREAD_FUNNELED
#endif
#define ROUNDS 300

static MPI_Request cr;
static struct contd_group *group;
static MPI_Request handle;
static struct contd_event event;
static atomic_int go, ran, freed, queried, completed, stop, refused, in_handler;
static volatile double sink;

static int query(void *extra, MPI_Status *status)
{
	(void)extra;
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
	ran++;
}

/* Async-signal-safe. */
static void complete_it(int status, void *data)
{
	(void)status, (void)data;
	if (contd_mpi_grequest_complete(handle) != MPI_SUCCESS)
		refused++;
	if (contd_mpi_grequest_complete(handle) != MPI_ERR_REQUEST) /* a second time */
		refused++;
	completed++;
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
		contd_event_complete(&event, 0);
	}
	return NULL;
}

static void begin(int *round)
{
	MPI_Request r;

	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, NULL, &r));
	handle = r;
	contd_event_init(&event);
	CHECK(contd_event_continue(&event, complete_it, NULL, group) >= 0);
	CHECK_OK(MPI_Continue(&r, done, round, MPI_STATUS_IGNORE == NULL ? NULL : MPI_STATUS_IGNORE, cr));
}

static MPI_Status status_of;

static void begin_with_status(int *round)
{
	MPI_Request r;

	CHECK_OK(MPI_Grequest_start(query, free_it, cancel_it, NULL, &r));
	handle = r;
	contd_event_init(&event);
	CHECK(contd_event_continue(&event, complete_it, NULL, group) >= 0);
	CHECK_OK(MPI_Continue(&r, done, round, &status_of, cr));
}

int main(int argc, char **argv)
{
	(void)begin;
	(void)argc, (void)argv;
	return 0;
}
