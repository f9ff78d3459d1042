/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the benchmarks: clock, medians, options, and the one JSON object a line that scripts/bench collects.
 *
 * The machines that these run on are small, virtual and busy, so nothing is compared across runs: two things are
 * measured in turns, in short batches (A B A B ...), and the result is the median of the ratios of neighbours.
 */
#ifndef CONTD_BENCH_H
#define CONTD_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_options {
	bool quick;         /* a smoke test: under 3 s, figures mean little */
	const char *thread; /* --thread single|multiple: MPI thread level; NULL where not given */
	const char *mode;   /* --mode NAME; NULL where not given */
};

/* Exits with a usage text on anything unknown. `choices` lists what else than --quick this benchmark takes, or NULL. */
struct bench_options bench_options(int argc, char **argv, const char *choices);

/* CLOCK_MONOTONIC in ns: the same for all processes of a machine, and async-signal-safe. */
uint64_t bench_now(void);

/* Both sort v. q from 0 to 1. */
double bench_median(double *v, size_t n);
double bench_quantile(double *v, size_t n, double q);

/* Pseudo-random, 0 <= x < 1. */
double bench_random(uint64_t *state);

/* Prints what failed with the library's advice, and exits with 1, if rc < 0. */
void bench_check(int rc, const char *what);

/* One alternation's figures: a[i] and b[i] were measured next to each other. */
struct bench_pairs {
	size_t n, most;
	double *a, *b;
};

void bench_pairs_init(struct bench_pairs *p, size_t most);
void bench_pairs_add(struct bench_pairs *p, double a, double b);
double bench_pairs_ratio(const struct bench_pairs *p); /* median of a[i] / b[i] */
double bench_pairs_a(const struct bench_pairs *p);     /* medians of each side */
double bench_pairs_b(const struct bench_pairs *p);
void bench_pairs_fini(struct bench_pairs *p);

/*
 * For counting instructions: --mode count,CASE,ROUNDS runs one case that many times, after a few rounds that are not
 * counted, and prints ROUNDS. bench/mpi/instructions counts, with callgrind. Returns what main() returns.
 */
struct bench_counted {
	const char *name;
	double (*run)(unsigned n); /* what it returns is not used */
};
int bench_count(const char *mode, const struct bench_counted *cases, size_t n);

/* A target is the most ("max") or the least ("min") that the figure may be. */
struct bench_line {
	const char *bench;
	const char *name; /* "case" in the output, where one program prints several lines; else NULL */
	double figure;
	const char *unit;
	bool has_target;
	double target;
	const char *direction; /* "max" or "min" */
};

/* Prints the line; raw is a printf format of more members, without the leading comma, or NULL. */
void bench_print(const struct bench_line *line, const char *raw, ...) __attribute__((format(printf, 2, 3)));

#endif
