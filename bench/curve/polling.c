/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways without contd. A few receives are pending, and each that has completed is posted again for the next message.
 * That suits Testsome best, because its cost is in proportion to the number of requests.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "curve.h"

#define WINDOW 8

static const struct curve_mode *mode;
static MPI_Request requests[WINDOW];
static unsigned arrival_of[WINDOW]; /* which message each is for */
static unsigned posted, received;

static void post_one(unsigned i)
{
	arrival_of[i] = posted;
	MPI_Irecv(&curve_arrivals[posted++].message, sizeof(struct curve_message), MPI_BYTE, 1, CURVE_TAG_DATA,
		  MPI_COMM_WORLD, &requests[i]);
}

static void post_window(void)
{
	posted = received = 0;
	for (unsigned i = 0; i < WINDOW; i++) {
		requests[i] = MPI_REQUEST_NULL;
		if (posted < curve_arrival_count)
			post_one(i);
	}
}

static bool look_once(void)
{
	int n, index[WINDOW];
	uint64_t now;

	MPI_Testsome(WINDOW, requests, &n, index, MPI_STATUSES_IGNORE);
	if (n <= 0) /* none, or MPI_UNDEFINED */
		return false;
	now = bench_now();
	for (int i = 0; i < n; i++) {
		curve_arrivals[arrival_of[index[i]]].seen = now;
		received++;
		if (posted < curve_arrival_count)
			post_one((unsigned)index[i]);
	}
	return true;
}

static void look(void)
{
	look_once();
}

/*
 * Open MPI's Testsome makes progress only if it has found nothing complete, and then does not look again: what has come
 * since the last call is found by the next one. So a single call finds a message an interval or two late; this finds
 * all.
 */
static void look_twice(void)
{
	bool before = true, found;

	for (;; before = found) {
		found = look_once();
		if (!found && !before)
			return;
	}
}

static double no_interval(void)
{
	return 0;
}

static void nothing(void)
{
}

/* -------------------------------------------------------------- a loop that looks itself --- */

static void loop_start(const struct curve_mode *m)
{
	mode = m;
}

static uint64_t loop_compute(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end)
{
	return curve_compute_looking(kernel, chunk, end, mode->every, mode->twice ? look_twice : look);
}

static void loop_finish(void)
{
	while (received < curve_arrival_count)
		look();
}

/* ------------------------------------------------------------------------- a thread that does --- */

/* The thread sleeps while nothing is posted, so that slices without messages are without it, too. */
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { IDLE, WORK, END } state;

static void set_state(int s)
{
	pthread_mutex_lock(&lock);
	state = s;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *progress(void *arg)
{
	const struct timespec nap = {(time_t)(mode->sleep_ns / 1000000000), (long)(mode->sleep_ns % 1000000000)};

	prctl(PR_SET_TIMERSLACK, 1ul);
	for (;;) {
		bool end;

		pthread_mutex_lock(&lock);
		while (state == IDLE)
			pthread_cond_wait(&changed, &lock);
		end = state == END;
		pthread_mutex_unlock(&lock);
		if (end)
			return arg;
		while (received < curve_arrival_count) {
			if (mode->sleep_ns) {
				look_twice();
				nanosleep(&nap, NULL);
			} else {
				look();
			}
		}
		set_state(IDLE);
	}
}

static void thread_start(const struct curve_mode *m)
{
	mode = m;
	if (pthread_create(&thread, NULL, progress, NULL)) {
		fputs("curve: cannot create a thread\n", stderr);
		exit(1);
	}
}

static void thread_post(void)
{
	post_window();
	set_state(WORK);
}

static void thread_finish(void)
{
	pthread_mutex_lock(&lock);
	while (state == WORK)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void thread_stop(void)
{
	set_state(END);
	pthread_join(thread, NULL);
}

const struct curve_way *curve_way_polling(const struct curve_mode *m)
{
	static const struct curve_way loop = {loop_start, post_window, loop_compute, no_interval, loop_finish, nothing};
	static const struct curve_way beside = {thread_start, thread_post,   curve_compute,
						no_interval,  thread_finish, thread_stop};

	if (m->how == CURVE_LOOP)
		return &loop;
	return m->how == CURVE_THREAD ? &beside : NULL;
}
