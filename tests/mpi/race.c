/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* both processors: two threads hand over up to 40000 times, and each may have to wait for a time slice of others */
/*
 * One thread attaches while another completes, both released at the same moment: now and then the completer has looked
 * for a callback just before it was stored (src/mpi/native.c, struct op), and the continuation must run all the same.
 * No delays at test points here: the gap is a few instructions wide. One rank, so that both threads have a processor;
 * and the completer aims at the gap, later when it was too early and earlier when it was too late.
 */
#include <pthread.h>

#include "check.h"

#define RACES 20000      /* a second's work where both threads have a processor; */
#define RACES_LEAST 500  /* on a busy machine at least so many, */
#define RACES_SECONDS 15 /* and no new ones after that time */

struct cell {
	atomic_int runs;
	MPI_Status status;
};

static __thread uint32_t seed = 12345;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void arrived(MPI_Status *status, void *data)
{
	struct cell *c = data;

	(void)status;
	atomic_fetch_add(&c->runs, 1);
}

static MPI_Request racing;
static atomic_int race_go, race_seen, aim;
#define ALL_RUN (-1) /* race_go: there are no more rounds */

static int race_query(void *extra, MPI_Status *status)
{
	(void)extra;
	MPI_Status_set_elements(status, MPI_BYTE, 5);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	return MPI_SUCCESS;
}

static int race_free(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int race_cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void spin(uint32_t n)
{
	while (n-- > 0)
		__asm__ volatile("" ::: "memory");
}

static void *completer(void *arg)
{
	(void)arg;
	for (int round = 1;; round++) {
		MPI_Request r;
		int go;

		for (int i = 0; (go = atomic_load(&race_go)) != round && go != ALL_RUN; i++)
			if (i > 1000)
				sched_yield();
		if (go == ALL_RUN)
			return NULL;
		r = racing;
		atomic_store(&race_seen, round);
		spin((uint32_t)atomic_load(&aim) + random_below(50));
		MPI_Grequest_complete(r);
	}
}

static void check_race(const char *key)
{
	MPI_Request cr = check_cr(key, "true", NULL, NULL);
	double until = MPI_Wtime() + RACES_SECONDS;
	pthread_t thread;

	check_begin("attaching races with completing");
	atomic_store(&race_go, 0);
	atomic_store(&race_seen, 0);
	pthread_create(&thread, NULL, completer, NULL);
	for (int round = 1; round <= RACES && (round <= RACES_LEAST || MPI_Wtime() < until); round++) {
		struct cell cell;
		MPI_Request r;
		int count;

		memset(&cell, 0, sizeof(cell));
		MPI_Grequest_start(race_query, race_free, race_cancel, NULL, &r);
		racing = r;
		atomic_store(&race_go, round);
		for (int i = 0; atomic_load(&race_seen) != round; i++)
			if (i > 1000)
				sched_yield();
		spin(200);
		CHECK_OK(MPI_Continue(&r, arrived, &cell, &cell.status, cr));
		if (cell.runs && aim < 100000) /* run while attaching: it was complete; a poll-only CR keeps the aim */
			atomic_fetch_add(&aim, 5);
		else if (!cell.runs && !key && aim >= 5)
			atomic_fetch_sub(&aim, 5);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(cell.runs, 1);
		MPI_Get_count(&cell.status, MPI_BYTE, &count);
		CHECK_EQ(count, 5);
	}
	atomic_store(&race_go, ALL_RUN);
	pthread_join(thread, NULL);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	check_race(NULL);
	check_race("mpi_continue_poll_only");
	return check_fini();
}
