/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1

#include <stdlib.h>
#include <string.h>

#include "heat.h"

#define STAMP_DOUBLES 1 /* values behind a row in a message */
#define LINE_DOUBLES 8

static double *new_rows(size_t rows, size_t stride)
{
	void *memory = NULL;

	/* rows and stride are at most 2^20 + 8 each, so nothing overflows where size_t has 64 bits. */
	if (rows > SIZE_MAX / sizeof(double) / stride)
		return NULL;
	if (posix_memalign(&memory, LINE_DOUBLES * sizeof(double), rows * stride * sizeof(double)))
		return NULL;
	return memory;
}

static int new_halos(struct heat *h)
{
	for (int b = 0; b < 2; b++) {
		for (int k = 0; k < h->borders; k++) {
			h->halo[b][k].in = new_rows(1, h->stride);
			h->halo[b][k].out = new_rows(1, h->stride);
			if (!h->halo[b][k].in || !h->halo[b][k].out)
				return -1;
		}
	}
	return 0;
}

static int new_sums(struct heat *h)
{
	int inner = h->opt->ny - 2;

	h->row_sums = new_rows(1, (size_t)h->rows);
	if (!h->row_sums)
		return -1;
	if (h->rank != 0)
		return 0;
	h->all_sums = new_rows(1, (size_t)inner);
	h->counts = calloc((size_t)h->ranks, sizeof(*h->counts));
	h->displs = calloc((size_t)h->ranks, sizeof(*h->displs));
	if (!h->all_sums || !h->counts || !h->displs)
		return -1;
	for (int r = 0; r < h->ranks; r++) {
		h->displs[r] = (int)((int64_t)inner * r / h->ranks);
		h->counts[r] = (int)((int64_t)inner * (r + 1) / h->ranks) - h->displs[r];
	}
	return 0;
}

int grid_init(struct heat *h, const struct options *opt, MPI_Comm comm)
{
	int64_t inner = opt->ny - 2;

	memset(h, 0, sizeof(*h));
	h->opt = opt;
	h->comm = comm;
	MPI_Comm_rank(comm, &h->rank);
	MPI_Comm_size(comm, &h->ranks);
	h->first = (int)(1 + inner * h->rank / h->ranks);
	h->rows = (int)(1 + inner * (h->rank + 1) / h->ranks) - h->first;
	h->lo = 0;
	h->hi = h->rows;
	if (h->rank > 0) {
		h->border[h->borders++] = (struct border){UP, 0, h->rank - 1};
		h->lo++;
	}
	if (h->rank < h->ranks - 1) {
		h->border[h->borders++] = (struct border){DOWN, h->rows - 1, h->rank + 1};
		h->hi--;
	}
	/* One more than nx for the stamp; whole cache lines, so that rows do not share one. */
	h->stride = ((size_t)opt->nx + STAMP_DOUBLES + LINE_DOUBLES - 1) / LINE_DOUBLES * LINE_DOUBLES;
	for (int b = 0; b < 2; b++) {
		h->u[b] = new_rows((size_t)h->rows, h->stride);
		h->edge[b] = new_rows(1, h->stride);
		if (!h->u[b] || !h->edge[b])
			return -1;
	}
	if (new_halos(h))
		return -1;
	return new_sums(h);
}

void grid_fini(struct heat *h)
{
	for (int b = 0; b < 2; b++) {
		free(h->u[b]);
		free(h->edge[b]);
		for (int k = 0; k < SIDES; k++) {
			free(h->halo[b][k].in);
			free(h->halo[b][k].out);
		}
	}
	free(h->row_sums);
	free(h->all_sums);
	free(h->counts);
	free(h->displs);
}

double *grid_row(const struct heat *h, int buffer, int row)
{
	return h->u[buffer] + (size_t)row * h->stride;
}

/* The row above row 0 or below the last one: a halo, or the grid's fixed row. */
static const double *outside(const struct heat *h, int buffer, enum side side)
{
	for (int k = 0; k < h->borders; k++)
		if (h->border[k].side == side)
			return h->halo[buffer][k].in;
	return h->edge[side];
}

/*
 * The start: hot above, cold below, noise in between. The noise is there for the check: every value of every halo
 * matters from the first sweep on, so a halo that was read too early or twice shows in the residual.
 */
static double initial(int y, int x, int ny)
{
	uint64_t z = ((uint64_t)y << 32 | (uint32_t)x) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return 1.0 - (double)y / (ny - 1) + (double)(z >> 11) * 0x1p-53;
}

void grid_reset(struct heat *h)
{
	const struct options *opt = h->opt;

	for (int row = 0; row < h->rows; row++) {
		double *values = grid_row(h, 0, row);

		for (int x = 0; x < opt->nx; x++)
			values[x] = initial(h->first + row, x, opt->ny);
		/* The columns at either end are never written again, so the second buffer needs them too. */
		memcpy(grid_row(h, 1, row), values, (size_t)opt->nx * sizeof(double));
	}
	for (int x = 0; x < opt->nx; x++) {
		h->edge[UP][x] = initial(0, x, opt->ny);
		h->edge[DOWN][x] = initial(opt->ny - 1, x, opt->ny);
	}
}

/* Not inlined: one piece of machine code computes all rows, so the order of rows cannot change the last digit. */
__attribute__((noinline)) static void compute_row(double *restrict out, const double *restrict up,
						  const double *restrict mid, const double *restrict down, int nx)
{
	for (int x = 1; x < nx - 1; x++)
		out[x] = 0.25 * ((up[x] + down[x]) + (mid[x - 1] + mid[x + 1]));
}

void grid_compute(const struct heat *h, int buffer, int first, int last)
{
	for (int row = first; row < last; row++) {
		const double *up = row > 0 ? grid_row(h, buffer, row - 1) : outside(h, buffer, UP);
		const double *down = row < h->rows - 1 ? grid_row(h, buffer, row + 1) : outside(h, buffer, DOWN);

		compute_row(grid_row(h, buffer ^ 1, row), up, grid_row(h, buffer, row), down, h->opt->nx);
	}
}

double grid_residual(struct heat *h)
{
	double sum = 0;

	for (int row = 0; row < h->rows; row++) {
		const double *a = grid_row(h, 0, row), *b = grid_row(h, 1, row);
		double row_sum = 0;

		for (int x = 1; x < h->opt->nx - 1; x++)
			row_sum += (a[x] - b[x]) * (a[x] - b[x]);
		h->row_sums[row] = row_sum;
	}
	/* Sums of rows, added in the order of the grid's rows: no order of computation or of ranks can show in it. */
	MPI_Gatherv(h->row_sums, h->rows, MPI_DOUBLE, h->all_sums, h->counts, h->displs, MPI_DOUBLE, 0, h->comm);
	if (h->rank == 0)
		for (int row = 0; row < h->opt->ny - 2; row++)
			sum += h->all_sums[row];
	return sum;
}
