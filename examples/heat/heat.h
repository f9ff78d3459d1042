/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heat: the 2-D heat equation over MPI ranks, as an example of low-latency continuations.
 *
 *   options.c  the command line
 *   grid.c     the rows of a rank, the stencil, the residual: plain computation and memory
 *   sweep.c    the halo exchange and its three ways of learning that a halo has come; the part to read
 *   report.c   medians over all ranks, the table
 *   heat.c     main
 *
 * The grid has ny rows of nx values. The outermost rows and columns are fixed; the rows in between are dealt out in
 * blocks of consecutive rows, at least one a rank. Each rank has at most two neighbours, UP (lower rank) and DOWN.
 */
#ifndef HEAT_HEAT_H
#define HEAT_HEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

enum mode { MODE_SIGNAL, MODE_POLL, MODE_WAITALL, MODES };

extern const char *const mode_names[MODES];

struct options {
	int nx, ny;
	int sweeps;
	int block; /* interior rows between two looks at the flags (signal) or at MPI (poll) */
	int skew;  /* percent */
	enum mode modes[MODES];
	int mode_count;
	bool csv, check, help;
};

enum side { UP, DOWN, SIDES };

/*
 * One halo of one buffer. A message is the nx values of a row, and behind them the sender's clock at the time of the
 * send, in nanoseconds: a double holds that exactly for the first 104 days after boot, and to 2 ns for another 104.
 */
struct halo {
	double *in;
	double *out;
	/*
	 * Written when the receive is known to be complete: in the signal mode by the continuation, that is by a
	 * signal handler on the thread that reads them. Hence atomics, which are lock-free and allowed there.
	 */
	atomic_int here;
	_Atomic int64_t reacted_ns;
	atomic_long reactions;
	long starts; /* how often the receive was started: what reactions must be */
};

/* A row that needs a halo. */
struct border {
	enum side side;
	int row;
	int peer;
};

struct heat {
	const struct options *opt;
	MPI_Comm comm;
	int rank, ranks;
	int rows;   /* of this rank */
	int first;  /* the grid's index of its row 0 */
	int lo, hi; /* rows lo to hi - 1 need no halo */
	size_t stride;
	/* Sweep s reads u[s & 1] and writes the other one; whatever is indexed by a buffer is about the one read. */
	double *u[2];
	double *edge[SIDES]; /* the fixed rows above and below the grid */
	struct border border[SIDES];
	int borders;
	bool settled[SIDES];        /* border row k of this sweep has been computed */
	struct halo halo[2][SIDES]; /* [buffer][border] */
	MPI_Request recv[2][SIDES], send[2][SIDES];
	double *row_sums;     /* one a row */
	double *all_sums;     /* rank 0: one a row of the grid */
	int *counts, *displs; /* rank 0: of all_sums */
};

/* The result of a mode on one rank. */
struct outcome {
	double *sweep_us; /* one a sweep */
	double *react_us; /* SIDES a sweep; negative: none to count */
	double wall_ns, lost_ns;
	long halos;      /* reactions that were due */
	long reactions;  /* reactions that were counted */
	long faults;     /* sweeps and sides that had none or more than one */
	double residual; /* rank 0 */
};

/* options.c: 0, or -1 with a message in text. */
int options_parse(struct options *opt, int argc, char **argv, char *text, size_t text_size);
void options_help(void);

/* grid.c */
int grid_init(struct heat *h, const struct options *opt, MPI_Comm comm); /* -1: out of memory on this rank */
void grid_fini(struct heat *h);
void grid_reset(struct heat *h);
double *grid_row(const struct heat *h, int buffer, int row);
/* Rows first to last - 1 of the buffer that is not `buffer`, from `buffer`. Computation only: no call, no lock. */
void grid_compute(const struct heat *h, int buffer, int first, int last);
/* Sum of the squares of the last sweep's changes, on rank 0; the same for any number of ranks. Collective. */
double grid_residual(struct heat *h);

/* sweep.c */
void sweep_init(struct heat *h); /* the persistent requests */
void sweep_fini(struct heat *h);
void sweep_run(struct heat *h, enum mode mode, struct outcome *out); /* Collective. */

/* report.c; create, destroy and add on all ranks, the rest on rank 0 */
struct report;
struct report *report_create(const struct heat *h, bool comparable); /* NULL: out of memory on this rank */
void report_destroy(struct report *report);
void report_add(struct report *report, const struct heat *h, enum mode mode, const struct outcome *out);
void report_print(const struct report *report, const struct heat *h);
bool report_check(const struct report *report); /* says on stderr what is wrong */

#endif
