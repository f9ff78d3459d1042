/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <contd/contd.h>

struct bench_options bench_options(int argc, char **argv, const char *choices)
{
	struct bench_options o = {0};

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			o.quick = true;
		} else if (choices && strstr(choices, "--thread") && strcmp(argv[i], "--thread") == 0 && i + 1 < argc) {
			o.thread = argv[++i];
		} else if (choices && strstr(choices, "--mode") && strcmp(argv[i], "--mode") == 0 && i + 1 < argc) {
			o.mode = argv[++i];
		} else {
			bool help = strcmp(argv[i], "--help") == 0;

			fprintf(help ? stdout : stderr, "usage: %s [--quick]%s%s\n", argv[0], choices ? " " : "",
				choices ? choices : "");
			exit(help ? 0 : 2);
		}
	}
	return o;
}

uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_quantile(double *v, size_t n, double q)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(v[0]), by_size);
	return v[(size_t)(q * (double)(n - 1) + 0.5)];
}

double bench_median(double *v, size_t n)
{
	return bench_quantile(v, n, 0.5);
}

double bench_random(uint64_t *state)
{
	/* splitmix64: any state will do, 0 included */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

void bench_check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(-rc), contd_error_text());
	exit(1);
}

static void *must_alloc(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

void bench_pairs_init(struct bench_pairs *p, size_t most)
{
	p->n = 0;
	p->most = most;
	p->a = must_alloc(most * sizeof(p->a[0]));
	p->b = must_alloc(most * sizeof(p->b[0]));
}

void bench_pairs_add(struct bench_pairs *p, double a, double b)
{
	if (p->n == p->most || !(b > 0))
		return;
	p->a[p->n] = a;
	p->b[p->n++] = b;
}

/* Of a copy: a[i] and b[i] must stay neighbours. */
static double median_of(const double *a, const double *b, size_t n)
{
	double *v = must_alloc((n + 1) * sizeof(v[0])), m;

	for (size_t i = 0; i < n; i++)
		v[i] = b ? a[i] / b[i] : a[i];
	m = bench_median(v, n);
	free(v);
	return m;
}

double bench_pairs_ratio(const struct bench_pairs *p)
{
	return median_of(p->a, p->b, p->n);
}

double bench_pairs_a(const struct bench_pairs *p)
{
	return median_of(p->a, NULL, p->n);
}

double bench_pairs_b(const struct bench_pairs *p)
{
	return median_of(p->b, NULL, p->n);
}

void bench_pairs_fini(struct bench_pairs *p)
{
	free(p->a);
	free(p->b);
}

void bench_print(const struct bench_line *line, const char *raw, ...)
{
	bool met = strcmp(line->direction, "min") == 0 ? line->figure >= line->target : line->figure <= line->target;
	va_list args;

	printf("{\"bench\":\"%s\"", line->bench);
	if (line->name)
		printf(",\"case\":\"%s\"", line->name);
	printf(",\"figure\":%.4g,\"unit\":\"%s\"", line->figure, line->unit);
	if (line->has_target)
		printf(",\"target\":%.4g,\"direction\":\"%s\",\"met\":%s", line->target, line->direction,
		       met ? "true" : "false");
	else
		printf(",\"target\":null,\"direction\":\"%s\",\"met\":null", line->direction);
	if (raw) {
		putchar(',');
		va_start(args, raw);
		vprintf(raw, args);
		va_end(args);
	}
	puts("}");
	fflush(stdout);
}

/* For --toggle-collect. */
__attribute__((noinline)) void bench_counted_rounds(double (*run)(unsigned n), unsigned n);
void bench_counted_rounds(double (*run)(unsigned n), unsigned n)
{
	run(n);
}

int bench_count(const char *mode, const struct bench_counted *cases, size_t n)
{
	char name[32];
	unsigned rounds;

	if (sscanf(mode, "count,%31[^,],%u", name, &rounds) != 2 || rounds == 0) {
		fputs("bench: --mode count,CASE,ROUNDS\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, cases[i].name) != 0)
			continue;
		cases[i].run(256);
		bench_counted_rounds(cases[i].run, rounds);
		printf("%u\n", rounds);
		return 0;
	}
	fprintf(stderr, "bench: there is no case %s\n", name);
	return 2;
}
