/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a compute region, and of a guard, begun and ended on an attached thread, beside an empty loop. */
#include <contd/contd.h>

#include "bench.h"

#define TURNS 2000000u

static double empty(void)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("" : : "r"(i) : "memory");
	return (double)(bench_now() - begin) / TURNS;
}

static double region(void)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < TURNS; i++) {
		contd_compute_begin();
		__asm__ volatile("" : : "r"(i) : "memory");
		contd_compute_end();
	}
	return (double)(bench_now() - begin) / TURNS;
}

static double guard(void)
{
	uint64_t begin = bench_now();

	for (unsigned i = 0; i < TURNS; i++) {
		contd_guard_begin();
		__asm__ volatile("" : : "r"(i) : "memory");
		contd_guard_end();
	}
	return (double)(bench_now() - begin) / TURNS;
}

static void measure(const char *name, double (*with)(void), unsigned rounds)
{
	struct bench_line line = {.bench = "bench_region", .name = name, .unit = "ns"};
	struct bench_pairs p;

	bench_pairs_init(&p, rounds);
	for (unsigned r = 0; r < rounds; r++) {
		double without = empty();

		bench_pairs_add(&p, with(), without);
	}
	line.figure = bench_pairs_a(&p) - bench_pairs_b(&p);
	line.direction = "max";
	bench_print(&line, "\"with_ns\":%.2f,\"without_ns\":%.2f", bench_pairs_a(&p), bench_pairs_b(&p));
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	unsigned rounds = o.quick ? 5 : 51;

	bench_check(contd_init(NULL), "contd_init");
	bench_check(contd_thread_attach(NULL), "contd_thread_attach");
	measure("region", region, rounds);
	measure("guard", guard, rounds);
	bench_check(contd_fini(), "contd_fini");
	return 0;
}
