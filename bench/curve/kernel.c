/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's computation: in registers, through memory, and in between. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "curve.h"

static double *allocate(size_t n, double value)
{
	double *p = malloc(n * sizeof(*p));

	if (!p) {
		fputs("curve: out of memory\n", stderr);
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		p[i] = value; /* touched, so that no page fault falls into a slice */
	return p;
}

/* ---------------------------------------------------------------------------- registers --- */

static double registers[8];

static void compute_prepare(void)
{
	for (unsigned i = 0; i < 8; i++)
		registers[i] = 1 + 0.1 * i;
}

/* Eight chains of multiply and add, enough to keep both pipes of a processor busy. */
static void compute_run(uint64_t iterations)
{
	double a = registers[0], b = registers[1], c = registers[2], d = registers[3];
	double e = registers[4], f = registers[5], g = registers[6], h = registers[7];

	for (uint64_t i = 0; i < 32 * iterations; i++) {
		a = a * 0.999 + 0.001;
		b = b * 0.999 + 0.001;
		c = c * 0.999 + 0.001;
		d = d * 0.999 + 0.001;
		e = e * 0.999 + 0.001;
		f = f * 0.999 + 0.001;
		g = g * 0.999 + 0.001;
		h = h * 0.999 + 0.001;
	}
	registers[0] = a;
	registers[1] = b;
	registers[2] = c;
	registers[3] = d;
	registers[4] = e;
	registers[5] = f;
	registers[6] = g;
	registers[7] = h;
}

/* ------------------------------------------------------------------------------- memory --- */

#define STRIP 64u /* elements an iteration */

static double *triad[3];
static size_t triad_length, triad_at;

static void memory_prepare(void)
{
	/* All three together four times the last cache, as the processor tells it; a virtual one may tell none. */
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t bytes = cache > (8l << 20) && cache < (256l << 20) ? 4 * (size_t)cache : 128u << 20;

	if (triad[0])
		return;
	triad_length = bytes / 3 / sizeof(double) / STRIP * STRIP;
	for (unsigned i = 0; i < 3; i++)
		triad[i] = allocate(triad_length, i);
}

static void memory_run(uint64_t iterations)
{
	for (; iterations; iterations--) {
		double *a = triad[0] + triad_at;
		const double *b = triad[1] + triad_at, *c = triad[2] + triad_at;

		for (unsigned i = 0; i < STRIP; i++)
			a[i] = b[i] + 3 * c[i];
		triad_at += STRIP;
		if (triad_at == triad_length)
			triad_at = 0;
	}
}

/* -------------------------------------------------------------------------------- mixed --- */

#define EDGE 194u /* two grids of 301 KB: past the first-level cache, inside the second */

static double *grid, *next;
static unsigned row;

static void mixed_prepare(void)
{
	if (grid)
		return;
	grid = allocate(EDGE * EDGE, 1);
	next = allocate(EDGE * EDGE, 1);
	row = 1;
}

/* An iteration is one row. */
static void mixed_run(uint64_t iterations)
{
	for (; iterations; iterations--) {
		const double *up = grid + (row - 1) * EDGE, *mid = up + EDGE, *down = mid + EDGE;
		double *to = next + row * EDGE;

		for (unsigned i = 1; i < EDGE - 1; i++)
			to[i] = 0.2 * (mid[i] + up[i] + down[i] + mid[i - 1] + mid[i + 1]);
		if (++row == EDGE - 1) {
			double *swap = grid;

			grid = next;
			next = swap;
			row = 1;
		}
	}
}

const struct curve_kernel curve_kernels[] = {
	{"compute", "compute-bound: multiply and add in registers", compute_prepare, compute_run},
	{"memory", "memory-bound: triad over arrays larger than the caches", memory_prepare, memory_run},
	{"mixed", "mixed: 5-point stencil in the second-level cache", mixed_prepare, mixed_run},
};
const size_t curve_kernel_count = sizeof(curve_kernels) / sizeof(curve_kernels[0]);

/* -------------------------------------------------------------------------------- loops --- */

uint64_t curve_compute(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end)
{
	uint64_t done = 0;

	while (bench_now() < end) {
		kernel->run(chunk);
		done += chunk;
	}
	return done;
}

uint64_t curve_compute_looking(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end, uint64_t every,
			       void (*look)(void))
{
	uint64_t done = 0, left = every;

	if (every < chunk)
		chunk -= chunk % every;
	while (bench_now() < end) {
		for (uint64_t todo = chunk; todo;) {
			uint64_t step = left < todo ? left : todo;

			kernel->run(step);
			done += step;
			todo -= step;
			left -= step;
			if (!left) {
				look();
				left = every;
			}
		}
	}
	return done;
}
