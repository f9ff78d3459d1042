/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Many threads that attach, test and wait, on separate CRs and on shared ones: every continuation runs exactly once,
 * and every waiter returns. The test point "op_hooked" lies where an operation has got our callback but may have
 * completed just before (src/mpi/native.c, op_hook): threads are delayed there at random, so that completions fall into
 * the gap; race.c aims at it.
 */
#include <pthread.h>

#include "check.h"
#include "base/testpoint.h"

#define THREADS 4
#define ROUNDS 300
#define BURST 8

static __thread uint32_t seed = 12345;
static atomic_int delays;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void delay_at(const char *point)
{
	if (strcmp(point, "op_hooked"))
		return;
	atomic_fetch_add(&delays, 1);
	switch (random_below(4)) {
	case 0:
		sched_yield();
		break;
	case 1:
		usleep(random_below(100));
		break;
	case 2:
		for (uint32_t i = random_below(2000); i > 0; i--)
			__asm__ volatile("" ::: "memory");
		break;
	default:
		break;
	}
}

/* -------------------------------------------------------------------------------------------------- the workers --- */

struct cell {
	atomic_int runs;
	int value, expected;
	MPI_Status status;
};

enum how { OWN_CR, SHARED_CR, SHARED_POLL_ONLY, SHARED_SIGNAL_SAFE, HOWS };
static const char *const how_name[HOWS] = {"a CR each", "one CR", "one poll-only CR", "one async-signal-safe CR"};

/*
 * A wait for a shared CR waits for the operations of all threads. Between ranks that would be a deadlock. So with a
 * shared CR threads either test it, or send to themselves.
 */
static MPI_Request shared;
static enum how how;
static bool waits;
static int rounds;

static void arrived(MPI_Status *status, void *data)
{
	struct cell *c = data;

	(void)status;
	atomic_fetch_add(&c->runs, 1);
}

static bool finish(MPI_Request *cr)
{
	MPI_Request r[2] = {*cr, MPI_REQUEST_NULL};
	int flag = 0, index, count, indices[2];

	switch (waits ? random_below(7) : 4 + random_below(3)) {
	case 0:
		CHECK_OK(MPI_Wait(cr, MPI_STATUS_IGNORE));
		return true;
	case 1:
		CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		return true;
	case 2:
		CHECK_OK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
		return true;
	case 3:
		CHECK_OK(MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		return true;
	case 4:
		CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
		return flag;
	case 5:
		CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
		return flag;
	default:
		CHECK_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
		return flag;
	}
}

/* To and from the same thread of a rank; then until all of one's own have run. */
static void *worker(void *arg)
{
	int me = (int)(intptr_t)arg, other = waits && how != OWN_CR ? check_rank : check_next();
	MPI_Request cr = how == OWN_CR ? check_plain_cr() : shared;

	seed = (uint32_t)(me * 7919 + check_rank + 1);
	for (int round = 0; round < rounds; round++) {
		struct cell in[BURST], out[BURST];
		MPI_Request r;
		bool done;

		memset(in, 0, sizeof(in));
		memset(out, 0, sizeof(out));
		for (int i = 0; i < BURST; i++) {
			in[i].expected = round * BURST + i;
			out[i].value = round * BURST + i;
			if (random_below(2)) {
				MPI_Isend(&out[i].value, 1, MPI_INT, other, me, MPI_COMM_WORLD, &r);
				CHECK_OK(MPI_Continue(&r, arrived, &out[i], &out[i].status, cr));
				MPI_Irecv(&in[i].value, 1, MPI_INT, other, me, MPI_COMM_WORLD, &r);
				CHECK_OK(MPI_Continue(&r, arrived, &in[i], &in[i].status, cr));
			} else {
				MPI_Request two[2];

				MPI_Irecv(&in[i].value, 1, MPI_INT, other, me, MPI_COMM_WORLD, &two[0]);
				MPI_Isend(&out[i].value, 1, MPI_INT, other, me, MPI_COMM_WORLD, &two[1]);
				CHECK_OK(MPI_Continueall(2, two, arrived, &in[i], MPI_STATUSES_IGNORE, cr));
				atomic_fetch_add(&out[i].runs, 1);
			}
		}
		do {
			bool finished = finish(&cr);

			done = true;
			for (int i = 0; i < BURST; i++)
				done = done && atomic_load(&in[i].runs) && atomic_load(&out[i].runs);
			/* Of a CR that others use too, complete means no more than that there was such a moment. */
			if (finished && how == OWN_CR)
				CHECK(done);
		} while (!done);
		for (int i = 0; i < BURST; i++) {
			CHECK_EQ(in[i].runs, 1);
			CHECK_EQ(out[i].runs, 1);
			CHECK_EQ(in[i].value, in[i].expected);
		}
	}
	if (how == OWN_CR)
		CHECK_OK(MPI_Request_free(&cr));
	return NULL;
}

static void run_workers(enum how as, bool wait)
{
	pthread_t thread[THREADS];

	check_begin(how_name[as]);
	how = as;
	waits = wait;
	if (how == SHARED_CR)
		shared = check_plain_cr();
	else if (how == SHARED_POLL_ONLY)
		shared = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	else if (how == SHARED_SIGNAL_SAFE)
		shared = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (how != OWN_CR) {
		CHECK_OK(MPI_Wait(&shared, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&shared));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---------------------------------------------------------------- waiters whose completion another thread finds --- */

static MPI_Request waited;
static atomic_int waiting, driving;

static void *waiter(void *arg)
{
	MPI_Request cr = waited;

	(void)arg;
	atomic_fetch_add(&waiting, 1);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK(cr == waited);
	return NULL;
}

/* Makes progress in other calls, and so finds what the waiters wait for. */
static void *driver(void *arg)
{
	(void)arg;
	while (atomic_load(&driving)) {
		int flag;

		MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
	return NULL;
}

static void check_waiters(bool poll_only)
{
	pthread_t thread[THREADS], drives;
	struct cell cell[4];
	char in[4], out = 0;

	check_begin(poll_only ? "several waiters, poll-only" : "several waiters");
	for (int round = 0; round < 50; round++) {
		waited = poll_only ? check_cr("mpi_continue_poll_only", "true", NULL, NULL) : check_plain_cr();
		memset(cell, 0, sizeof(cell));
		atomic_store(&waiting, 0);
		atomic_store(&driving, 1);
		for (int i = 0; i < 4; i++) {
			MPI_Request r;

			MPI_Irecv(&in[i], 1, MPI_BYTE, check_next(), 500, MPI_COMM_WORLD, &r);
			CHECK_OK(MPI_Continue(&r, arrived, &cell[i], MPI_STATUS_IGNORE, waited));
		}
		for (int i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, waiter, NULL);
		pthread_create(&drives, NULL, driver, NULL);
		while (atomic_load(&waiting) < THREADS)
			sched_yield();
		for (int i = 0; i < 4; i++)
			MPI_Send(&out, 1, MPI_BYTE, check_next(), 500, MPI_COMM_WORLD);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(cell[i].runs, 1);
		atomic_store(&driving, 0);
		pthread_join(drives, NULL);
		CHECK_OK(MPI_Request_free(&waited));
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* ----------------------------------------------------------------------------------- CRs freed while others run --- */

static atomic_int freed_runs;

static void count_freed(MPI_Status *status, void *data)
{
	(void)status;
	free(data);
	atomic_fetch_add(&freed_runs, 1);
}

static void *freer(void *arg)
{
	int me = (int)(intptr_t)arg;

	seed = (uint32_t)(me + 99);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Request cr = check_plain_cr(), r;
		int *in = malloc(sizeof(int)), *out = malloc(sizeof(int));

		*out = round;
		MPI_Irecv(in, 1, MPI_INT, check_next(), 600 + me, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, count_freed, in, MPI_STATUS_IGNORE, cr));
		MPI_Isend(out, 1, MPI_INT, check_next(), 600 + me, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, count_freed, out, MPI_STATUS_IGNORE, cr));
		if (random_below(2))
			sched_yield();
		CHECK_OK(MPI_Request_free(&cr));
	}
	return NULL;
}

static void check_freed(void)
{
	pthread_t thread[THREADS];

	check_begin("CRs freed with continuations outstanding");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, freer, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	while (atomic_load(&freed_runs) < 2 * THREADS * ROUNDS) {
		int flag;

		MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
	CHECK_EQ(freed_runs, 2 * THREADS * ROUNDS);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	if (check_size != 2) {
		fprintf(stderr, "two ranks are needed\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	contd__testpoint_hook = delay_at;
	rounds = ROUNDS;
	run_workers(OWN_CR, true);
	run_workers(SHARED_CR, false);
	run_workers(SHARED_CR, true);
	run_workers(SHARED_POLL_ONLY, false);
	run_workers(SHARED_POLL_ONLY, true);
	check_waiters(false);
	check_waiters(true);
	check_freed();
	/* Last: from here on the daemon ticks. */
	run_workers(SHARED_SIGNAL_SAFE, false);
	run_workers(SHARED_SIGNAL_SAFE, true);
	contd__testpoint_hook = NULL;
	CHECK(delays > 0);
	return check_fini();
}
