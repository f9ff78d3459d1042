/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests that stand at a test point of contd's while another thread takes the other side of the race: that thread,
 * the hook, and generalized requests, which any thread can complete at any moment.
 */
#ifndef CONTD_TESTS_MPI_RACE_H
#define CONTD_TESTS_MPI_RACE_H

#include <pthread.h>

#include "check.h"
#include "base/testpoint.h"
#include "mpi/backend.h"
#include "mpi/cr.h"

/* ----------------------------------------------------------------------------------------------- the other side --- */

static pthread_t side_thread;
static void (*_Atomic side_job)(void);
static atomic_int side_end;

static void *side_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&side_end)) {
		void (*job)(void) = atomic_load(&side_job);

		if (job) {
			job();
			atomic_store(&side_job, NULL);
		}
		usleep(20);
	}
	return NULL;
}

CHECK_HELPER void side_create(void)
{
	pthread_create(&side_thread, NULL, side_main, NULL);
}

CHECK_HELPER void side_start(void (*job)(void))
{
	atomic_store(&side_job, job);
}

CHECK_HELPER void side_finish(void)
{
	while (atomic_load(&side_job))
		usleep(20);
}

CHECK_HELPER void side_do(void (*job)(void))
{
	side_start(job);
	side_finish();
}

CHECK_HELPER void side_join(void)
{
	side_finish();
	atomic_store(&side_end, 1);
	pthread_join(side_thread, NULL);
}

/* --------------------------------------------------------------------------------------------------- test point --- */

static const char *point_name;
static void (*point_act)(void);
static atomic_int point_hits;

static void point_hook(const char *name)
{
	/* The first time only, by whichever thread. */
	if (point_name && strcmp(name, point_name) == 0 && atomic_fetch_add(&point_hits, 1) == 0)
		point_act();
}

CHECK_HELPER void point_at(const char *name, void (*act)(void))
{
	point_name = name;
	point_act = act;
	atomic_store(&point_hits, 0);
	__atomic_store_n(&contd__testpoint_hook, point_hook, __ATOMIC_RELEASE);
}

CHECK_HELPER void point_off(void)
{
	CHECK(atomic_load(&point_hits) > 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------------- an operation --- */

struct operation {
	MPI_Request handle; /* for MPI_Grequest_complete: the program's own is null after attaching */
	MPI_Status status;
	int error; /* class that it ends with */
	atomic_int runs, rc, freed;
	void (*in_query)(void); /* or NULL */
};

static int operation_query(void *extra, MPI_Status *status)
{
	struct operation *o = extra;

	if (o->in_query)
		o->in_query();
	MPI_Status_set_elements(status, MPI_BYTE, 1);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	status->MPI_ERROR = o->error;
	return o->error;
}

static int operation_free(void *extra)
{
	atomic_fetch_add(&((struct operation *)extra)->freed, 1);
	return MPI_SUCCESS;
}

static int operation_cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

CHECK_HELPER MPI_Request operation_start(struct operation *o)
{
	memset(o, 0, sizeof(*o));
	CHECK_OK(MPI_Grequest_start(operation_query, operation_free, operation_cancel, o, &o->handle));
	return o->handle;
}

CHECK_HELPER void operation_ran(MPI_Status *status, void *data)
{
	(void)status;
	atomic_fetch_add(&((struct operation *)data)->runs, 1);
}

CHECK_HELPER int operation_ran_revised(int rc, void *data)
{
	struct operation *o = data;

	atomic_store(&o->rc, rc);
	atomic_fetch_add(&o->runs, 1);
	return MPI_SUCCESS;
}

static inline struct contd_group *group_of(MPI_Request cr)
{
	return contd__mpi->cr_of(cr)->group;
}

/* Comes true at once or never; makes progress meanwhile, on nothing. */
#define CHECK_SOON(condition) \
	do { \
		double soon_until = MPI_Wtime() + 20; \
		int soon_flag; \
		while (!(condition) && MPI_Wtime() < soon_until) \
			MPI_Iprobe(MPI_ANY_SOURCE, 9999, MPI_COMM_WORLD, &soon_flag, MPI_STATUS_IGNORE); \
		CHECK(condition); \
	} while (0)

/* Time for what must not come: many chances of progress. */
CHECK_HELPER void give_chances(void)
{
	int flag;

	for (int i = 0; i < 2000; i++)
		MPI_Iprobe(MPI_ANY_SOURCE, 9999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

#endif
