/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that computes, with one continuation pending and with a million, in turns: what is pending must cost
 * nothing.
 *
 * notify  an event of the group is completed on another thread: time until its continuation runs on the computing one
 * tick    a memory word that never changes is watched, so that ticks come: time in the handler, each
 * word    a watched word is changed: time until a tick finds it
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <contd/contd.h>

#include "bench.h"

#define MILLION 1000000u
#define PAUSE_NS 250000.0

#define TICKS 5u /* stretches of a phase in which ticks are counted */

enum { NOTIFY, TICK, WORD, WHATS };

#define PHASE_NS 2000000000u /* at most, for each of notify and word, on a busy machine */
#define MOST_NS 15000000000u /* after that no other round */
#define ROUNDS 9u

struct figures {
	double *v[WHATS];
	size_t n[WHATS];
	double median[WHATS][ROUNDS];
};

static struct contd_group *group;
static uint64_t arrived; /* clock reading in the callback; 0: not there yet */
static bool attached, stop;

static void callback(int status, void *data)
{
	(void)status;
	(void)data;
	__atomic_store_n(&arrived, bench_now(), __ATOMIC_RELEASE);
}

static void *compute(void *arg)
{
	volatile uint64_t x = 1;

	bench_check(contd_thread_attach(NULL), "contd_thread_attach");
	__atomic_store_n(&attached, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		x = x * 6364136223846793005u + 1;
	bench_check(contd_thread_detach(), "contd_thread_detach");
	return arg;
}

static void pause_a_while(uint64_t *seed)
{
	uint64_t until = bench_now() + (uint64_t)((0.5 + bench_random(seed)) * PAUSE_NS);

	while (bench_now() < until)
		;
}

static double await(uint64_t begin, const char *what)
{
	uint64_t t;

	while ((t = __atomic_load_n(&arrived, __ATOMIC_ACQUIRE)) == 0) {
		if (bench_now() - begin > 30000000000) {
			struct contd_stats s = {.size = sizeof(s)};
			int ran = contd_poll(0);

			contd_stats_get(&s);
			fprintf(stderr,
				"bench_pending: no %s in 30 s; %d found ready by a poll, %" PRIu64
				" notifications (%" PRIu64 " failed), %" PRIu64 " ticks\n",
				what, ran, s.notifications, s.notify_failed, s.ticks);
			exit(1);
		}
	}
	return t > begin ? (double)(t - begin) : 0;
}

static double notify_once(uint64_t *seed)
{
	static struct contd_event event;
	struct contd_event *e = &event;
	uint64_t begin;

	contd_event_init(e);
	bench_check(contd_event_continue(1, &e, callback, NULL, group, NULL), "contd_event_continue");
	__atomic_store_n(&arrived, 0, __ATOMIC_RELEASE);
	pause_a_while(seed);
	begin = bench_now();
	contd_event_complete(e, 0);
	return await(begin, "notification");
}

static double word_once(uint64_t *seed)
{
	static volatile uint64_t value;
	struct contd_word word = {.address = &value, .value = 1, .op = CONTD_WORD_EQ};
	uint64_t begin;

	value = 0;
	__atomic_store_n(&arrived, 0, __ATOMIC_RELEASE);
	bench_check(contd_word_continue(&word, callback, NULL, group, NULL), "contd_word_continue");
	pause_a_while(seed);
	begin = bench_now();
	__atomic_store_n(&value, 1, __ATOMIC_RELEASE);
	return await(begin, "word");
}

/* Time in the handler, a tick, while ticks find nothing. */
static double tick_cost(uint64_t ns)
{
	static const uint64_t never;
	struct contd_word word = {.address = &never, .value = 1, .op = CONTD_WORD_EQ};
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	struct contd_handle handle;
	uint64_t until;

	bench_check(contd_word_continue(&word, callback, NULL, group, &handle), "contd_word_continue");
	until = bench_now() + ns / 10;
	while (bench_now() < until)
		;
	bench_check(contd_stats_get(&before), "contd_stats_get");
	until = bench_now() + ns;
	while (bench_now() < until)
		;
	bench_check(contd_stats_get(&after), "contd_stats_get");
	bench_check(contd_cancel(handle), "contd_cancel");
	return after.ticks > before.ticks
		       ? (double)(after.handler_ns - before.handler_ns) / (double)(after.ticks - before.ticks)
		       : 0;
}

static void add(struct figures *f, unsigned what, double v)
{
	f->v[what][f->n[what]++] = v;
}

static void phase(struct figures *f, unsigned round, unsigned samples, uint64_t *seed)
{
	size_t from[WHATS];
	uint64_t end = bench_now() + PHASE_NS;

	memcpy(from, f->n, sizeof(from));
	for (unsigned i = 0; i < samples && bench_now() < end; i++)
		add(f, NOTIFY, notify_once(seed));
	end = bench_now() + PHASE_NS;
	for (unsigned i = 0; i < samples && bench_now() < end; i++)
		add(f, WORD, word_once(seed));
	for (unsigned i = 0; i < TICKS; i++)
		add(f, TICK, tick_cost(20000000));
	for (unsigned w = 0; w < WHATS; w++)
		f->median[w][round] = bench_median(f->v[w] + from[w], f->n[w] - from[w]);
}

static void figures_init(struct figures *f, unsigned rounds, unsigned samples)
{
	memset(f, 0, sizeof(*f));
	for (unsigned w = 0; w < WHATS; w++) {
		f->v[w] = malloc(rounds * (samples > TICKS ? samples : TICKS) * sizeof(double));
		if (!f->v[w])
			exit(1);
	}
}

static void figures_fini(struct figures *f)
{
	for (unsigned w = 0; w < WHATS; w++)
		free(f->v[w]);
}

/* The ratio is the median of the rounds' ratios of medians. */
static void print(unsigned what, struct figures *many, struct figures *few, unsigned rounds)
{
	static const char *const name[] = {"notify", "tick", "word"};
	struct bench_line line = {.bench = "bench_pending",
				  .name = name[what],
				  .unit = "ratio",
				  .has_target = what != WORD, /* as long as it takes till the next tick */
				  .target = 1.2,
				  .direction = "max"};
	size_t n = many->n[what];
	struct bench_pairs pairs;

	bench_pairs_init(&pairs, rounds);
	for (unsigned r = 0; r < rounds; r++)
		bench_pairs_add(&pairs, many->median[what][r], few->median[what][r]);
	line.figure = bench_pairs_ratio(&pairs);
	bench_print(&line,
		    "\"million_ns\":%.0f,\"million_p99_ns\":%.0f,\"one_ns\":%.0f,\"one_p99_ns\":%.0f,\"samples\":%zu",
		    bench_median(many->v[what], n), bench_quantile(many->v[what], n, 0.99),
		    bench_median(few->v[what], few->n[what]), bench_quantile(few->v[what], few->n[what], 0.99), n);
	bench_pairs_fini(&pairs);
}

static void measure(bool quick)
{
	unsigned rounds = quick ? 2 : ROUNDS, samples = quick ? 50 : 300, r = 0;
	uint64_t seed = 1, end = bench_now() + MOST_NS;
	struct contd_event *events = malloc(MILLION * sizeof(*events));
	struct contd_handle *handles = malloc(MILLION * sizeof(*handles));
	struct figures few, many;

	if (!events || !handles)
		exit(1);
	figures_init(&few, rounds, samples);
	figures_init(&many, rounds, samples);
	for (; r < rounds && (r < 2 || bench_now() < end); r++) {
		phase(&few, r, samples, &seed);
		for (unsigned i = 0; i < MILLION; i++) {
			struct contd_event *e = &events[i];

			contd_event_init(e);
			bench_check(contd_event_continue(1, &e, callback, NULL, group, &handles[i]),
				    "contd_event_continue");
		}
		phase(&many, r, samples, &seed);
		for (unsigned i = 0; i < MILLION; i++)
			bench_check(contd_cancel(handles[i]), "contd_cancel");
	}
	for (unsigned w = 0; w < WHATS; w++)
		print(w, &many, &few, r);
	figures_fini(&few);
	figures_fini(&many);
	free(events);
	free(handles);
}

static void bind_to(pthread_t thread, int which)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) || !CPU_ISSET(0, &all) || !CPU_ISSET(1, &all))
		return;
	CPU_SET(which, &one);
	pthread_setaffinity_np(thread, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	/* Many ticks, and as many notifications as are asked for. */
	struct contd_config config = {.size = sizeof(config), .overhead_percent = 20};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	pthread_t thread;

	unsetenv("CONTD_OVERHEAD_PERCENT"); /* would have the last word */
	bench_check(contd_init(&config), "contd_init");
	bench_check(contd_group_create(&attr, &group), "contd_group_create");
	bench_check(-pthread_create(&thread, NULL, compute, NULL), "pthread_create");
	bind_to(thread, 0);
	while (!__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
		sched_yield();
	bind_to(pthread_self(), 1);
	measure(o.quick);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	contd_group_destroy(group);
	contd_fini();
	return 0;
}
