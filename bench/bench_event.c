/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a user event: attach a continuation to it, complete it, run it.
 *
 * The baseline is what one would write by hand for the same purpose: a mutex, a list of callbacks that wait and a queue
 * of those that are ready. Attaching links an entry that the caller provides, completing moves it to the queue, polling
 * takes the queue over and calls. One thread, so no lock is ever contended. It does less than contd: no handler may
 * touch it, nothing can be cancelled, nothing sleeps on it, nothing is counted.
 */
#include <pthread.h>
#include <stdlib.h>

#include <contd/contd.h>

#include "bench.h"

#define ROUNDS 512u /* a batch: some 50 µs, short against a time slice */

static uint64_t ran;

static void callback(int status, void *data)
{
	ran += (uint64_t)(status == 0 && data != NULL);
}

/* ----------------------------------------------------------------------------- by hand --- */

struct entry {
	struct entry *next, **link; /* of the list of those that wait */
	contd_callback *cb;
	void *data;
	int status;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *waiting, *ready;

static __attribute__((noinline)) void hand_attach(struct entry *e, contd_callback *cb, void *data)
{
	e->cb = cb;
	e->data = data;
	pthread_mutex_lock(&lock);
	e->next = waiting;
	e->link = &waiting;
	if (waiting)
		waiting->link = &e->next;
	waiting = e;
	pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) void hand_complete(struct entry *e, int status)
{
	pthread_mutex_lock(&lock);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	e->status = status;
	e->next = ready;
	ready = e;
	pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) int hand_poll(void)
{
	struct entry *e;
	int n = 0;

	pthread_mutex_lock(&lock);
	e = ready;
	ready = NULL;
	pthread_mutex_unlock(&lock);
	for (; e; n++) {
		struct entry *next = e->next;

		e->cb(e->status, e->data);
		e = next;
	}
	return n;
}

/* ---------------------------------------------------------------------------- measuring --- */

static struct contd_group *group;
static struct contd_event events[ROUNDS];
static struct entry entries[ROUNDS];

/* ns a round: `width` are attached, then completed, then run with one poll */
static double batch_contd(unsigned width)
{
	uint64_t begin = bench_now();

	for (unsigned r = 0; r < ROUNDS; r += width) {
		for (unsigned i = 0; i < width; i++) {
			struct contd_event *e = &events[i];

			contd_event_init(e);
			contd_event_continue(1, &e, callback, e, group, NULL);
		}
		for (unsigned i = 0; i < width; i++)
			contd_event_complete(&events[i], 0);
		contd_poll(0);
	}
	return (double)(bench_now() - begin) / ROUNDS;
}

static double batch_hand(unsigned width)
{
	uint64_t begin = bench_now();

	for (unsigned r = 0; r < ROUNDS; r += width) {
		for (unsigned i = 0; i < width; i++)
			hand_attach(&entries[i], callback, &entries[i]);
		for (unsigned i = 0; i < width; i++)
			hand_complete(&entries[i], 0);
		hand_poll();
	}
	return (double)(bench_now() - begin) / ROUNDS;
}

static void *nothing(void *arg)
{
	return arg;
}

static void compare(unsigned width, bool quick)
{
	unsigned pairs = quick ? 500 : 20000;
	struct bench_pairs p;
	struct bench_line line = {
		.bench = "bench_event", .name = width == 1 ? "one" : "many", .unit = "ratio", .direction = "max"};

	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs; i++) {
		double a = batch_contd(width);

		bench_pairs_add(&p, a, batch_hand(width));
	}
	line.figure = bench_pairs_ratio(&p);
	bench_print(&line, "\"contd_ns\":%.1f,\"by_hand_ns\":%.1f,\"width\":%u", bench_pairs_a(&p), bench_pairs_b(&p),
		    width);
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	pthread_t thread;

	/* libc takes a cheaper path through a mutex while the process has never had a second thread. */
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		return 1;
	bench_check(contd_init(NULL), "contd_init");
	bench_check(contd_group_create(NULL, &group), "contd_group_create");
	compare(1, o.quick);
	compare(64, o.quick);
	contd_group_destroy(group);
	contd_fini();
	return ran == 0;
}
