/* SPDX-License-Identifier: BSD-3-Clause */
/* Section 4, running: how often, with what, on which thread, inside which calls, and what a callback may do. */
#include <sched.h>

#include "conformance.h"

#define TAG 41

/* ------------------------------------------------------------------------------------------ 4.1, once, with all --- */

struct message {
	struct seen seen;
	MPI_Status status;
	int data, expected;
};

/* Receives in the order of tags, sends in another; each alone, or in sets of four. */
static void many_messages(MPI_Request cr, bool sets)
{
	enum { N = 2000 };
	struct message *recv = calloc(N, sizeof(*recv)), *send = calloc(N, sizeof(*send));
	MPI_Request r[4];
	MPI_Status statuses[4];

	for (int i = 0; i < N; i++) {
		CHECK_OK(MPI_Irecv(&recv[i].data, 1, MPI_INT, previous_rank(), i, world, &r[i % 4]));
		if (!sets)
			CHECK_OK(attach(&r[i % 4], see, &recv[i].seen, &recv[i].status, cr));
		else if (i % 4 == 3)
			CHECK_OK(attach_all(4, r, see, &recv[i].seen, MPI_STATUSES_IGNORE, cr));
	}
	for (int n = 0; n < N; n++) {
		int i = n * 1237 % N; /* 1237 has no divisor in common with N */

		send[i].data = 10000 * my_rank + i;
		CHECK_OK(MPI_Isend(&send[i].data, 1, MPI_INT, next_rank(), i, world, &r[n % 4]));
		if (!sets)
			CHECK_OK(attach(&r[n % 4], see, &send[i].seen, &send[i].status, cr));
		else if (n % 4 == 3)
			CHECK_OK(attach_all(4, r, see, &send[n].seen, statuses, cr));
	}
	wait_cr(&cr);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(recv[i].seen.runs, !sets || i % 4 == 3);
		CHECK_EQ(send[i].seen.runs, !sets || i % 4 == 3);
		CHECK_EQ(recv[i].data, 10000 * previous_rank() + i);
		if (!sets)
			CHECK_EQ(recv[i].status.MPI_TAG, i);
	}
	free(recv);
	free(send);
	MPI_Barrier(world);
}

CONFORMANCE_BOTH(s4_1_exactly_once, 2, single, "Each continuation runs exactly once, in whatever order operations end")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL);

		step(k ? keys[k] : "no key");
		many_messages(cr, false);
		many_messages(cr, true);
		free_cr(&cr);
	}
}

#define THREADS 4
#define ROUNDS 60
#define BURST 8

static struct {
	MPI_Request shared;
	bool is_shared, waits;
	pthread_barrier_t together;
} workers;

/* Messages to themselves; each with a separate CR, or all with one. */
static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;
	MPI_Request cr = workers.is_shared ? workers.shared : new_cr(NULL);
	unsigned seed = (unsigned)me * 7919u + 1u;

	for (int round = 0; round < ROUNDS; round++) {
		struct message in[BURST], out[BURST];
		bool done;

		memset(in, 0, sizeof(in));
		memset(out, 0, sizeof(out));
		for (int i = 0; i < BURST; i++) {
			MPI_Request r[2];

			out[i].data = in[i].expected = me * 100000 + round * BURST + i;
			CHECK_OK(MPI_Irecv(&in[i].data, 1, MPI_INT, 0, me * BURST + i, self, &r[0]));
			if (rand_r(&seed) % 2) {
				CHECK_OK(attach(&r[0], see, &in[i].seen, &in[i].status, cr));
				CHECK_OK(MPI_Isend(&out[i].data, 1, MPI_INT, 0, me * BURST + i, self, &r[1]));
				CHECK_OK(attach(&r[1], see, &out[i].seen, &out[i].status, cr));
			} else {
				CHECK_OK(MPI_Isend(&out[i].data, 1, MPI_INT, 0, me * BURST + i, self, &r[1]));
				CHECK_OK(attach_all(2, r, see, &in[i].seen, MPI_STATUSES_IGNORE, cr));
				atomic_fetch_add(&out[i].seen.runs, 1);
			}
		}
		do {
			bool complete = false;

			/*
			 * A CR that others use too may be complete for a moment only. It is never started again here:
			 * to start what another thread waits for is the program's affair, not the rule's.
			 */
			if (!workers.is_shared)
				complete = workers.waits || rand_r(&seed) % 2 ? (wait_cr(&cr), true) : test_cr(&cr);
			else if (workers.waits && face == face_draft)
				CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			else if (face == face_draft)
				test_cr(&cr);
			else
				drive_once();
			done = true;
			for (int i = 0; i < BURST; i++)
				done = done && atomic_load(&in[i].seen.runs) && atomic_load(&out[i].seen.runs);
			if (complete)
				CHECK(done);
		} while (!done);
		for (int i = 0; i < BURST; i++) {
			CHECK_EQ(in[i].seen.runs, 1);
			CHECK_EQ(out[i].seen.runs, 1);
			CHECK_EQ(in[i].data, in[i].expected);
		}
	}
	if (!workers.is_shared)
		free_cr(&cr);
	return NULL;
}

static void run_workers(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

CONFORMANCE_BOTH(s4_1_threads_with_own_crs, 1, multiple,
		 "Threads that attach, test and wait at once, each on its own CR")
{
	workers.is_shared = false;
	for (int waits = 0; waits < 2; waits++) {
		workers.waits = waits;
		run_workers();
	}
}

CONFORMANCE_BOTH(s4_1_threads_with_one_cr, 1, multiple, "Threads that attach, test and wait at once on one CR")
{
	workers.is_shared = true;
	for (int waits = 0; waits < 2; waits++) {
		workers.waits = waits;
		workers.shared = new_cr(NULL);
		run_workers();
		wait_cr(&workers.shared);
		free_cr(&workers.shared);
	}
}

static struct {
	MPI_Request cr;
	atomic_int runs, left;
} testers;

static void *test_shared(void *arg)
{
	MPI_Request cr = testers.cr;
	int flag = 0;

	(void)arg;
	while (atomic_load(&testers.runs) < atomic_load(&testers.left))
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	return NULL;
}

static void count_run(MPI_Status *status, void *data)
{
	(void)status;
	see(NULL, data);
	atomic_fetch_add(&testers.runs, 1);
}

CONFORMANCE_BOTH(s4_1_tested_by_all_threads, 1, multiple,
		 "Several threads test at once: each continuation still runs once")
{
	enum { N = 300 };
	static struct seen seen[N];
	pthread_t thread[THREADS];

	for (int round = 0; round < 3; round++) {
		memset(seen, 0, sizeof(seen));
		testers.cr = round % 2 ? new_cr(NULL) : new_cr(POLL_ONLY, "true", NULL);
		atomic_store(&testers.runs, 0);
		atomic_store(&testers.left, N);
		for (int i = 0; i < N; i++) {
			MPI_Request op = pending(TAG + i);

			CHECK_OK(attach(&op, count_run, &seen[i], MPI_STATUS_IGNORE, testers.cr));
		}
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&thread[i], NULL, test_shared, NULL), 0);
		for (int i = 0; i < N; i++)
			complete_pending(TAG + i);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < N; i++)
			CHECK_EQ(seen[i].runs, 1);
		CHECK_OK(MPI_Wait(&testers.cr, MPI_STATUS_IGNORE));
		free_cr(&testers.cr);
	}
}

static struct {
	MPI_Status status[3];
	int n, ran;
} statuses_seen;

/* They are there before the callback, not only when the CR is complete. */
static void look_at_statuses(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	for (int i = 0; i < statuses_seen.n; i++) {
		CHECK_EQ(statuses_seen.status[i].MPI_SOURCE, previous_rank());
		CHECK_EQ(statuses_seen.status[i].MPI_TAG, TAG + i);
		CHECK_EQ(statuses_seen.status[i].MPI_ERROR, MPI_SUCCESS);
		CHECK_EQ(count_of(&statuses_seen.status[i]), 10 * i);
		CHECK(!was_cancelled(&statuses_seen.status[i]));
	}
	statuses_seen.ran++;
}

CONFORMANCE_BOTH(s4_1_statuses_before_the_callback, 2, single,
		 "Statuses are complete, MPI_ERROR too, before the callback")
{
	MPI_Request cr = new_cr(NULL), r[3];
	char in[3][30], out[30] = {0};

	statuses_seen.ran = 0;
	for (int round = 0; round < 12; round++) {
		/* Alone and in sets, complete before it is attached and after, from any source and from a known one. */
		bool before = round & 1, all = round & 2, any = round >= 4;

		statuses_seen.n = all ? 3 : 1;
		poison(statuses_seen.status, sizeof(statuses_seen.status));
		for (int i = 0; i < 3; i++)
			CHECK_OK(MPI_Irecv(in[i], 30, MPI_BYTE, any ? MPI_ANY_SOURCE : previous_rank(), TAG + i, world,
					   &r[i]));
		for (int turn = 0; turn < 2; turn++) {
			if ((turn == 0) != before) {
				if (all)
					CHECK_OK(attach_all(3, r, look_at_statuses, NULL, statuses_seen.status, cr));
				else
					CHECK_OK(attach(&r[0], look_at_statuses, NULL, &statuses_seen.status[0], cr));
				continue;
			}
			for (int i = 0; i < 3; i++)
				CHECK_OK(MPI_Send(out, 10 * i, MPI_BYTE, next_rank(), TAG + i, world));
			for (int i = 0; i < 3 && before; i++)
				until_complete(r[i]);
		}
		wait_cr(&cr);
		CHECK_EQ(statuses_seen.ran, round + 1);
		CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
		MPI_Barrier(world);
	}
	free_cr(&cr);
}

static void see_data(MPI_Status *status, void *data)
{
	static int expected;

	(void)status;
	CHECK(data == (expected % 3 == 0 ? NULL : (void *)(intptr_t)expected));
	expected++;
}

CONFORMANCE_BOTH(s4_1_user_data, 1, single, "The callback gets the user_data that was given, NULL too")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), op;
	static int given;

	for (int i = 0; i < 9; i++, given++) {
		op = MPI_REQUEST_NULL;
		CHECK_OK(attach(&op, see_data, given % 3 == 0 ? NULL : (void *)(intptr_t)given, MPI_STATUS_IGNORE, cr));
		wait_cr(&cr);
	}
	free_cr(&cr);
}

/* -------------------------------------------------------------------------------------------- 4.2, which thread --- */

static struct {
	MPI_Request cr;
	struct seen seen;
	atomic_int stop;
} other_thread;

static void *test_in_thread(void *arg)
{
	int flag;

	(void)arg;
	while (!atomic_load(&other_thread.stop))
		CHECK_OK(MPI_Test(&other_thread.cr, &flag, MPI_STATUS_IGNORE));
	return NULL;
}

/*
 * On an implementation with internal threads: contd's daemon runs with async-signal-safe CRs.
 * Then messages arrive while this thread computes.
 */
static void compute_while_messages_arrive(MPI_Request cr, bool application)
{
	struct seen seen = {0};

	for (int round = 0; round < 10; round++) {
		MPI_Request op = receive_byte(previous_rank(), TAG, world);

		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		send_byte(next_rank(), TAG, world);
		compute_ms(5);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, round + 1);
		if (application)
			CHECK(pthread_equal(seen.thread, pthread_self()));
	}
}

CONFORMANCE_BOTH(s4_2_thread_application, 2, multiple,
		 "By default continuations run on threads of the application only")
{
	MPI_Request low_latency = new_cr(SIGNAL_SAFE, "true", NULL), cr[3];

	cr[0] = new_cr(NULL);
	cr[1] = new_cr(THREAD, "application", NULL);
	cr[2] = new_cr(ENQUEUE_COMPLETE, "true", NULL);
	compute_while_messages_arrive(low_latency, true);
	for (int i = 0; i < 3; i++) {
		compute_while_messages_arrive(cr[i], true);
		free_cr(&cr[i]);
	}
	free_cr(&low_latency);
}

CONFORMANCE_BOTH(s4_2_thread_any, 2, multiple, "With mpi_continue_thread = any they may run elsewhere, still once")
{
	static const char *const values[] = {"any", "all"};

	for (int i = 0; i < 2; i++) {
		MPI_Request cr = new_cr(THREAD, values[i], NULL);

		compute_while_messages_arrive(cr, false);
		free_cr(&cr);
	}
}

static struct {
	pthread_mutex_t lock;
	MPI_Request cr;
	struct seen seen;
	int rounds;
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Both threads do the same, never at the same time. */
static void *take_turns(void *arg)
{
	for (int i = 0; i < turns.rounds; i++) {
		MPI_Request op;

		pthread_mutex_lock(&turns.lock);
		op = pending(TAG);
		CHECK_OK(attach(&op, see, &turns.seen, MPI_STATUS_IGNORE, turns.cr));
		pthread_mutex_unlock(&turns.lock);
		sched_yield();
		pthread_mutex_lock(&turns.lock);
		complete_pending(TAG);
		test_cr(&turns.cr);
		pthread_mutex_unlock(&turns.lock);
	}
	return arg;
}

CONFORMANCE_BOTH(s4_2_serialized, 1, serialized, "With MPI_THREAD_SERIALIZED threads use one CR in turns")
{
	pthread_t thread;

	memset(&turns.seen, 0, sizeof(turns.seen));
	turns.rounds = 500;
	turns.cr = new_cr(NULL);
	CHECK_EQ(pthread_create(&thread, NULL, take_turns, NULL), 0);
	take_turns(NULL);
	pthread_join(thread, NULL);
	wait_cr(&turns.cr);
	CHECK_EQ(turns.seen.runs, 2 * turns.rounds);
	free_cr(&turns.cr);
}

static void *compute_in_thread(void *arg)
{
	while (!atomic_load((atomic_int *)arg))
		compute_ms(1);
	return NULL;
}

CONFORMANCE_BOTH(s4_2_funneled, 1, funneled, "With MPI_THREAD_FUNNELED they run on the main thread")
{
	MPI_Request cr = new_cr(NULL);
	struct seen seen = {0};
	atomic_int stop = 0;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, compute_in_thread, &stop), 0);
	for (int i = 0; i < 100; i++) {
		MPI_Request op = pending(TAG);

		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(seen.runs, i + 1);
		CHECK(pthread_equal(seen.thread, pthread_self()));
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	free_cr(&cr);
}

/* ------------------------------------------------------------------------------------------ 4.3, in which calls --- */

CONFORMANCE_BOTH(s4_3_runs_in_other_calls, 1, single,
		 "Not poll_only: it runs without a test of its CR, in calls that make progress")
{
	static const char *const keys[] = {NULL, ENQUEUE_COMPLETE};

	for (int k = 0; k < 2; k++) {
		MPI_Request cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL), other = new_cr(NULL), last;
		struct seen seen = {0}, seen_last = {0};

		/* The other CR is incomplete: a test of one that is complete need not make progress. */
		last = pending(TAG + 1);
		CHECK_OK(attach(&last, see, &seen_last, MPI_STATUS_IGNORE, other));
		for (int i = 0; i < 50; i++) {
			MPI_Request op = i % 2 ? pending(TAG) : MPI_REQUEST_NULL;

			CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
			if (i % 2)
				complete_pending(TAG);
			if (i % 4 < 2)
				CHECK(drive_until(&seen.runs, i + 1));
			else
				for (int n = 0; n < 100000 && atomic_load(&seen.runs) <= i; n++)
					CHECK(!test_cr(&other));
			CHECK_EQ(seen.runs, i + 1);
		}
		complete_pending(TAG + 1);
		wait_cr(&other);
		CHECK_EQ(seen_last.runs, 1);
		free_cr(&cr);
		free_cr(&other);
	}
}

/* Calls that make progress, none of which is Test or Wait on the CR in question. */
static void all_kinds_of_calls(MPI_Request *other)
{
	static char in[2], out;
	struct seen seen = {0};
	MPI_Request r[2], op;
	int flag, index, count, indices[2];

	for (int i = 0; i < 5; i++) {
		CHECK_OK(MPI_Irecv(&in[0], 1, MPI_BYTE, 0, TAG + 8, self, &r[0]));
		CHECK_OK(MPI_Isend(&out, 1, MPI_BYTE, 0, TAG + 8, self, &r[1]));
		CHECK_OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
		CHECK_OK(MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE));
		CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		CHECK_OK(MPI_Irecv(&in[0], 1, MPI_BYTE, 0, TAG + 8, self, &r[0]));
		r[1] = MPI_REQUEST_NULL;
		CHECK_OK(MPI_Sendrecv(&out, 1, MPI_BYTE, 0, TAG + 8, &in[1], 1, MPI_BYTE, MPI_PROC_NULL, TAG, self,
				      MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, TAG + 9, self, &flag, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Barrier(world));
		CHECK_OK(MPI_Ibarrier(world, &op));
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, *other));
		wait_cr(other);
		CHECK(test_cr(other));
		drive_once();
	}
	CHECK_EQ(seen.runs, 5);
}

CONFORMANCE_BOTH(s4_3_poll_only_nowhere_else, 1, single, "poll_only: no call but Test or Wait on that CR runs it")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), other = new_cr(NULL), third = new_cr(POLL_ONLY, "true", NULL),
		    op;
	struct seen seen = {0};

	op = pending(TAG);
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
	complete_pending(TAG);
	all_kinds_of_calls(&other);
	all_kinds_of_calls(&third);
	CHECK_EQ(seen.runs, 0);
	CHECK(test_cr(&cr));
	CHECK_EQ(seen.runs, 2);
	free_cr(&cr);
	free_cr(&other);
	free_cr(&third);
}

CONFORMANCE_BOTH(s4_3_poll_only_in_each_call, 1, single,
		 "poll_only: each of the eight calls runs it, also beside others")
{
	MPI_Request cr = new_cr(POLL_ONLY, "true", NULL), second = new_cr(POLL_ONLY, "true", NULL);
	struct seen seen = {0}, seen_second = {0};

	for (int how = 0; how < hows; how++) {
		MPI_Request op = pending(TAG), r[4];
		int flag = 0, index, count, indices[4];

		step(how_name[how]);
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(attach(&op, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(attach(&op, see, &seen_second, MPI_STATUS_IGNORE, second));
		complete_pending(TAG);
		CHECK_EQ(seen.runs, 2 * how);
		/* An ordinary receive and another poll_only CR are in the same call. */
		r[0] = MPI_REQUEST_NULL;
		r[1] = how == by_waitall ? MPI_REQUEST_NULL : pending(TAG + 1);
		r[2] = cr;
		r[3] = second;
		while (atomic_load(&seen.runs) < 2 * how + 2) {
			if (how == by_test)
				CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
			else if (how == by_testall)
				CHECK_OK(MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE));
			else if (how == by_testany)
				CHECK_OK(MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE));
			else if (how == by_testsome)
				CHECK_OK(MPI_Testsome(4, r, &count, indices, MPI_STATUSES_IGNORE));
			else if (how == by_wait)
				CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			else if (how == by_waitall)
				CHECK_OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
			else if (how == by_waitany)
				CHECK_OK(MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE));
			else
				CHECK_OK(MPI_Waitsome(4, r, &count, indices, MPI_STATUSES_IGNORE));
		}
		CHECK_EQ(seen.runs, 2 * how + 2);
		if (how == by_waitall)
			CHECK_EQ(seen_second.runs, how + 1);
		CHECK(r[2] == cr && r[3] == second);
		/* In the revised interface a reported CR is inactive; a new CR is the same for all of them. */
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
		CHECK_EQ(seen_second.runs, how + 1);
		again(&cr);
		again(&second);
		if (how != by_waitall) {
			complete_pending(TAG + 1);
			CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
		}
	}
	free_cr(&cr);
	free_cr(&second);
}

CONFORMANCE_BOTH(s4_3_poll_only_by_any_thread, 1, multiple, "poll_only: it runs on whichever thread tests that CR")
{
	MPI_Request op;
	pthread_t thread;

	memset(&other_thread, 0, sizeof(other_thread));
	other_thread.cr = new_cr(POLL_ONLY, "true", NULL);
	op = pending(TAG);
	CHECK_OK(attach(&op, see, &other_thread.seen, MPI_STATUS_IGNORE, other_thread.cr));
	CHECK_EQ(pthread_create(&thread, NULL, test_in_thread, NULL), 0);
	complete_pending(TAG);
	CHECK(drive_until(&other_thread.seen.runs, 1));
	CHECK(pthread_equal(other_thread.seen.thread, thread));
	atomic_store(&other_thread.stop, 1);
	pthread_join(thread, NULL);
	CHECK_OK(MPI_Wait(&other_thread.cr, MPI_STATUS_IGNORE));
	free_cr(&other_thread.cr);
}

/* --------------------------------------------------------------------------------------- 4.4, locks and nesting --- */

static struct {
	pthread_mutex_t lock;
	atomic_int stop, runs;
} locking;

static void lock_in_callback(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	pthread_mutex_lock(&locking.lock);
	atomic_fetch_add(&locking.runs, 1);
	pthread_mutex_unlock(&locking.lock);
}

static void *mpi_under_lock(void *arg)
{
	(void)arg;
	while (!atomic_load(&locking.stop)) {
		pthread_mutex_lock(&locking.lock);
		drive_once();
		CHECK_OK(MPI_Sendrecv(&(char){0}, 1, MPI_BYTE, 0, TAG + 1, &(char){0}, 1, MPI_BYTE, 0, TAG + 1, self,
				      MPI_STATUS_IGNORE));
		pthread_mutex_unlock(&locking.lock);
		sched_yield();
	}
	return NULL;
}

/*
 * A lock of the program's is held in MPI calls by one thread and taken in callbacks by the other: were a lock of MPI's
 * or of the library's held around callbacks, both would wait for ever. It is recursive: callbacks may run in either.
 */
CONFORMANCE_BOTH(s4_4_no_lock_is_held, 1, multiple, "No callback runs with a lock of MPI's or of the library's held")
{
	pthread_mutexattr_t recursive;

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	for (int poll_only = 0; poll_only < 2; poll_only++) {
		MPI_Request cr = poll_only ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL), op;
		pthread_t thread;

		pthread_mutex_init(&locking.lock, &recursive);
		atomic_store(&locking.stop, 0);
		atomic_store(&locking.runs, 0);
		CHECK_EQ(pthread_create(&thread, NULL, mpi_under_lock, NULL), 0);
		for (int i = 0; i < 500; i++) {
			op = i % 2 ? pending(TAG) : MPI_REQUEST_NULL;
			CHECK_OK(attach(&op, lock_in_callback, NULL, MPI_STATUS_IGNORE, cr));
			if (i % 2)
				complete_pending(TAG);
			wait_cr(&cr);
			CHECK_EQ(locking.runs, i + 1);
		}
		atomic_store(&locking.stop, 1);
		pthread_join(thread, NULL);
		pthread_mutex_destroy(&locking.lock);
		free_cr(&cr);
	}
	pthread_mutexattr_destroy(&recursive);
}

static struct {
	int depth, runs;
} nesting;

static void call_mpi(MPI_Status *status, void *data)
{
	MPI_Request r[2];
	char in, out = 0;
	int flag;

	(void)status, (void)data;
	CHECK_EQ(++nesting.depth, 1);
	drive_once();
	CHECK_OK(MPI_Irecv(&in, 1, MPI_BYTE, 0, TAG + 100, self, &r[0]));
	CHECK_OK(MPI_Isend(&out, 1, MPI_BYTE, 0, TAG + 100, self, &r[1]));
	CHECK_OK(MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Barrier(self));
	nesting.depth--;
	nesting.runs++;
}

CONFORMANCE_BOTH(s4_4_not_nested, 1, single, "No callback runs inside another, whatever MPI calls that one makes")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};
	enum { N = 50 };

	for (int k = 0; k < 3; k++) {
		MPI_Request cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL), op;

		step(k ? keys[k] : "no key");
		memset(&nesting, 0, sizeof(nesting));
		for (int i = 0; i < N; i++) {
			op = i % 3 ? pending(TAG + i) : MPI_REQUEST_NULL;
			CHECK_OK(attach(&op, call_mpi, NULL, MPI_STATUS_IGNORE, cr));
		}
		for (int i = 0; i < N; i++)
			if (i % 3)
				complete_pending(TAG + i);
		wait_cr(&cr);
		CHECK_EQ(nesting.runs, N);
		free_cr(&cr);
	}
}

/* ---------------------------------------------------------------------------------- 4.5, what a callback may do --- */

static struct {
	struct seen seen, inner;
	MPI_Request made;
} doing;

/* Only where both ranks run it at the same time: it exchanges messages with the peer and waits for them. */
static void do_everything(MPI_Status *status, void *data)
{
	int out = my_rank, in = -1, sum = 0, peer = next_rank();
	MPI_Request cr, op;
	MPI_Status probed;
	MPI_Comm copy;
	MPI_Win win;
	int *memory;

	step("messages in a callback");
	CHECK_OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, TAG + 1, &in, 1, MPI_INT, peer, TAG + 1, world,
			      MPI_STATUS_IGNORE));
	CHECK_EQ(in, peer);
	CHECK_OK(MPI_Isend(&out, 1, MPI_INT, peer, TAG + 2, world, &op));
	CHECK_OK(MPI_Probe(peer, TAG + 2, world, &probed));
	CHECK_OK(MPI_Recv(&in, 1, MPI_INT, peer, TAG + 2, world, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Wait(&op, MPI_STATUS_IGNORE));
	step("collectives in a callback");
	CHECK_OK(MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, world));
	CHECK_EQ(sum, 1);
	CHECK_OK(MPI_Comm_dup(world, &copy));
	CHECK_OK(MPI_Barrier(copy));
	CHECK_OK(MPI_Comm_free(&copy));
	step("a window in a callback");
	CHECK_OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, world, &memory, &win));
	CHECK_OK(MPI_Win_fence(0, win));
	CHECK_OK(MPI_Win_free(&win));
	step("a CR in a callback");
	cr = new_cr(NULL);
	op = receive_byte(peer, TAG + 3, world);
	CHECK_OK(attach(&op, see, &doing.inner, MPI_STATUS_IGNORE, cr));
	send_byte(peer, TAG + 3, world);
	wait_cr(&cr);
	CHECK_EQ(doing.inner.runs, 1);
	free_cr(&cr);
	doing.made = new_cr(NULL);
	op = receive_byte(peer, TAG + 4, world);
	CHECK_OK(attach(&op, see, &doing.inner, MPI_STATUS_IGNORE, doing.made));
	see(status, data);
}

CONFORMANCE_BOTH(s4_5_callback_may_call_mpi, 2, single,
		 "A callback may call any MPI function, create and free CRs, and block")
{
	for (int round = 0; round < 4; round++) {
		MPI_Request cr = round & 2 ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL), op = MPI_REQUEST_NULL;

		memset(&doing, 0, sizeof(doing));
		if (round & 1)
			op = pending(TAG);
		CHECK_OK(attach(&op, do_everything, &doing.seen, MPI_STATUS_IGNORE, cr));
		if (round & 1)
			complete_pending(TAG);
		wait_cr(&cr);
		CHECK_EQ(doing.seen.runs, 1);
		/* A CR that a callback has made, with something outstanding, is like any other. */
		send_byte(next_rank(), TAG + 4, world);
		wait_cr(&doing.made);
		CHECK_EQ(doing.inner.runs, 2);
		free_cr(&doing.made);
		free_cr(&cr);
		MPI_Barrier(world);
	}
}

static void block_for_peer(MPI_Status *status, void *data)
{
	if (my_rank == 0)
		usleep(100000);
	send_byte(next_rank(), TAG + 1, world);
	CHECK_OK(MPI_Recv(&(char){0}, 1, MPI_BYTE, previous_rank(), TAG + 1, world, MPI_STATUS_IGNORE));
	see(status, data);
}

CONFORMANCE_BOTH(s4_5_callback_may_block, 2, single, "A callback that blocks costs time, and nothing else is lost")
{
	enum { N = 20 };
	MPI_Request cr = new_cr(NULL), op, send[N];
	struct seen seen = {0}, blocked = {0};
	static const char out = 0;

	/* Everything is sent before anything can block: so the peer's callback gets what it waits for. */
	for (int i = 0; i < N; i++)
		CHECK_OK(MPI_Isend(&out, 1, MPI_BYTE, next_rank(), TAG + 10 + i, world, &send[i]));
	for (int i = 0; i < N; i++) {
		op = receive_byte(previous_rank(), TAG + 10 + i, world);
		CHECK_OK(attach(&op, i == N / 2 ? block_for_peer : see, i == N / 2 ? &blocked : &seen,
				MPI_STATUS_IGNORE, cr));
	}
	wait_cr(&cr);
	CHECK_EQ(seen.runs, N - 1);
	CHECK_EQ(blocked.runs, 1);
	CHECK_OK(MPI_Waitall(N, send, MPI_STATUSES_IGNORE));
	free_cr(&cr);
	MPI_Barrier(world);
}

/* ----------------------------------------------------------------------------------------------- 4.6, the stack --- */

static struct {
	MPI_Request cr, inactive;
	long left, runs;
	uintptr_t lowest, highest;
	int kind;
} chain;

static void link_of_chain(MPI_Status *status, void *data)
{
	char local;
	MPI_Request op = MPI_REQUEST_NULL;
	uintptr_t here = (uintptr_t)&local;
	int rc;

	(void)status;
	chain.lowest = here < chain.lowest ? here : chain.lowest;
	chain.highest = here > chain.highest ? here : chain.highest;
	chain.runs++;
	if (chain.left-- <= 0)
		return;
	if (chain.kind == 1)
		rc = attach_all(0, NULL, link_of_chain, data, MPI_STATUSES_IGNORE, chain.cr);
	else {
		if (chain.kind == 2)
			op = chain.inactive;
		else if (chain.kind == 3) {
			op = pending(TAG);
			complete_pending(TAG);
		} else if (chain.kind == 4)
			op = pending(TAG);
		rc = attach(&op, link_of_chain, data, MPI_STATUS_IGNORE, chain.cr);
		if (chain.kind == 4)
			complete_pending(TAG);
	}
	if (rc != MPI_SUCCESS)
		CHECK_OK(rc);
}

/* A long chain may take as much as a short one. */
static void run_chain(int kind, long links)
{
	uintptr_t span[2];

	chain.kind = kind;
	for (int longer = 0; longer < 2; longer++) {
		MPI_Request op = MPI_REQUEST_NULL;

		chain.left = longer ? links : 100;
		chain.runs = 0;
		chain.lowest = UINTPTR_MAX;
		chain.highest = 0;
		CHECK_OK(attach(&op, link_of_chain, NULL, MPI_STATUS_IGNORE, chain.cr));
		wait_cr(&chain.cr);
		CHECK_EQ(chain.runs, (longer ? links : 100) + 1);
		span[longer] = chain.highest - chain.lowest;
	}
	CHECK(span[1] <= span[0] + 4096);
}

CONFORMANCE_BOTH(s4_6_stack_of_complete_chains, 1, single,
		 "A chain of a million continuations on complete requests: constant stack")
{
	static const char *const keys[] = {NULL, POLL_ONLY, ENQUEUE_COMPLETE};
	static const char *const kinds[] = {"null requests", "no requests", "inactive requests"};
	char in;

	CHECK_OK(MPI_Recv_init(&in, 1, MPI_BYTE, 0, TAG, self, &chain.inactive));
	for (int k = 0; k < 3; k++)
		for (int kind = 0; kind < 3; kind++) {
			step(kinds[kind]);
			chain.cr = k ? new_cr(keys[k], "true", NULL) : new_cr(NULL);
			run_chain(kind, kind == 0 && k == 0 ? 1000000 : 50000);
			free_cr(&chain.cr);
		}
	CHECK_OK(MPI_Request_free(&chain.inactive));
}

CONFORMANCE_BOTH(s4_6_stack_of_message_chains, 1, single, "A chain of continuations on messages: constant stack")
{
	static const char *const kinds[] = {"there before they are attached", "arriving afterwards"};

	for (int k = 0; k < 2; k++)
		for (int kind = 3; kind < 5; kind++) {
			step(kinds[kind - 3]);
			chain.cr = k ? new_cr(POLL_ONLY, "true", NULL) : new_cr(NULL);
			run_chain(kind, 50000);
			free_cr(&chain.cr);
		}
}
