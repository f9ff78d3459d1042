/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a scan while nothing is ready, with one continuation pending and with a million: it must not depend on
 * the number. The million is registered and completed again in each round, so that both sides are measured within
 * a few milliseconds of each other.
 */
#include <stdlib.h>

#include <contd/contd.h>

#include "bench.h"

#define MILLION 1000000u
#define LOOKS 4096u

static uint64_t ran;

static void callback(int status, void *data)
{
	(void)status;
	(void)data;
	ran++;
}

static struct contd_group *group;

static double looks_test(void)
{
	uint64_t begin = bench_now();
	int complete;

	for (unsigned i = 0; i < LOOKS; i++)
		contd_group_test(group, &complete);
	return (double)(bench_now() - begin) / LOOKS;
}

static double looks_poll(void)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < LOOKS; i++)
		contd_poll(0);
	return (double)(bench_now() - begin) / LOOKS;
}

/* The median of a few batches, the first of which is for the caches. */
static double look(double (*looks)(void))
{
	double v[9];

	looks();
	for (unsigned i = 0; i < 9; i++)
		v[i] = looks();
	return bench_median(v, 9);
}

static void attach(struct contd_event *e)
{
	contd_event_init(e);
	bench_check(contd_event_continue(1, &e, callback, NULL, group, NULL), "contd_event_continue");
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	unsigned rounds = o.quick ? 3 : 21;
	struct contd_event *events = malloc(MILLION * sizeof(*events));
	struct bench_pairs test, poll, one;
	struct bench_line line = {
		.bench = "bench_scan", .unit = "ratio", .has_target = true, .target = 1.2, .direction = "max"};
	double *reg = malloc(rounds * sizeof(*reg)), *run = malloc(rounds * sizeof(*run));
	uint64_t seed = 1;

	if (!events || !reg || !run)
		return 1;
	bench_pairs_init(&test, rounds);
	bench_pairs_init(&poll, rounds);
	bench_pairs_init(&one, rounds);
	bench_check(contd_init(NULL), "contd_init");
	bench_check(contd_group_create(NULL, &group), "contd_group_create");
	attach(&events[0]);
	for (unsigned r = 0; r < rounds; r++) {
		double few_test, few_poll, few_one, many_one;
		uint64_t t;

		few_test = look(looks_test);
		few_poll = look(looks_poll);
		t = bench_now();
		for (unsigned i = 0; i < 1000; i++) {
			contd_event_complete(&events[0], 0);
			contd_poll(0);
			attach(&events[0]);
		}
		few_one = (double)(bench_now() - t) / 1000;

		t = bench_now();
		for (unsigned i = 1; i < MILLION; i++)
			attach(&events[i]);
		reg[r] = (double)(bench_now() - t) / MILLION;
		bench_pairs_add(&test, look(looks_test), few_test);
		bench_pairs_add(&poll, look(looks_poll), few_poll);
		/* One of the million becomes ready: cache misses for event, slot and leaf, but no walk. */
		t = bench_now();
		for (unsigned i = 0; i < 1000; i++) {
			struct contd_event *e = &events[(unsigned)(bench_random(&seed) * MILLION)];

			contd_event_complete(e, 0);
			contd_poll(0);
			attach(e);
		}
		many_one = (double)(bench_now() - t) / 1000;
		bench_pairs_add(&one, many_one, few_one);

		t = bench_now();
		for (unsigned i = 1; i < MILLION; i++)
			contd_event_complete(&events[i], 0);
		contd_poll(0);
		run[r] = (double)(bench_now() - t) / MILLION;
	}
	if (contd_group_outstanding(group) != 1 || ran != (uint64_t)rounds * (MILLION - 1 + 2000))
		return 1;

	line.name = "test";
	line.figure = bench_pairs_ratio(&test);
	bench_print(&line, "\"million_ns\":%.1f,\"one_ns\":%.1f,\"register_ns\":%.1f,\"complete_and_run_ns\":%.1f",
		    bench_pairs_a(&test), bench_pairs_b(&test), bench_median(reg, rounds), bench_median(run, rounds));
	line.name = "poll";
	line.figure = bench_pairs_ratio(&poll);
	bench_print(&line, "\"million_ns\":%.1f,\"one_ns\":%.1f", bench_pairs_a(&poll), bench_pairs_b(&poll));
	line.name = "one ready";
	line.has_target = false;
	line.figure = bench_pairs_ratio(&one);
	bench_print(&line, "\"million_ns\":%.1f,\"one_ns\":%.1f", bench_pairs_a(&one), bench_pairs_b(&one));

	contd_event_complete(&events[0], 0);
	contd_poll(0);
	contd_group_destroy(group);
	contd_fini();
	return 0;
}
