/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency against share of compute lost: what the parts of the program share.
 *
 * Two ranks. Rank 0 computes, with receives pending; rank 1 sends small messages at random intervals. One run of the
 * program measures one *mode* (a way of learning of messages, with one setting: mode.c has the table) on each *kernel*
 * (kernel.c). scripts/plot runs all of them.
 *
 *   main.c      options, ranks, cores
 *   mode.c      the table of modes
 *   kernel.c    what rank 0 computes
 *   sender.c    rank 1
 *   receiver.c  rank 0: slices, figures, one JSON line a kernel
 *   polling.c   ways without contd: a Testsome loop, a progress thread
 *   contd.c     ways with contd; not in the program curve_plain, where MPI has nothing of contd's in front of it
 *   plot.c      a program of its own: SVG files, the table, the comparison
 */
#ifndef CONTD_BENCH_CURVE_H
#define CONTD_BENCH_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "../bench.h"

/* -------------------------------------------------------------------------------- modes --- */

enum curve_how {
	CURVE_PLAIN,      /* contd; no regions: the info key alone */
	CURVE_REGION,     /* contd; compute regions */
	CURVE_CHECKPOINT, /* contd; compute regions with contd_checkpoint() every `every` iterations */
	CURVE_LOOP,       /* MPI_Testsome every `every` iterations */
	CURVE_THREAD      /* a thread in a Testsome loop that sleeps `sleep_ns` in between */
};

struct curve_mode {
	const char *series;  /* what the points of one line in the plot have in common */
	const char *setting; /* what they differ in */
	const char *name;    /* of the point, for --mode */
	enum curve_how how;
	bool spare;        /* threads beside the computing one have another core; their processor time counts as cost */
	bool ring;         /* rank 1 rings the bell after each send */
	bool any;          /* callbacks may run on contd's thread: mpi_continue_thread=any */
	bool twice;        /* CURVE_LOOP: until nothing more is found, instead of one call */
	uint64_t every;    /* iterations between looks */
	uint64_t sleep_ns; /* 0: spin */
	const char *environment; /* NAME=VALUE, separated by blanks */
	bool missing;            /* not in this version of contd */
};

extern const struct curve_mode curve_modes[];
extern const size_t curve_mode_count;

static inline bool curve_uses_contd(const struct curve_mode *m)
{
	return m->how <= CURVE_CHECKPOINT;
}

/* ------------------------------------------------------------------------------ kernels --- */

/* An iteration takes about 0.1 µs. Kernels keep their place, so that few or many at a time are the same work. */
struct curve_kernel {
	const char *name;
	const char *text;
	void (*prepare)(void);
	void (*run)(uint64_t iterations);
};

extern const struct curve_kernel curve_kernels[];
extern const size_t curve_kernel_count;

/* ----------------------------------------------------------------------------- messages --- */

#define CURVE_TAG_DATA 1
#define CURVE_TAG_ORDER 2
#define CURVE_TAG_RESULT 3
#define CURVE_MOST 8192u /* messages in a slice */

struct curve_message {
	uint64_t sent;
};

/* From rank 0 to rank 1, once a slice. */
struct curve_order {
	uint64_t begin;    /* of the slice; 0: that was all of this kernel, answer with curve_result */
	uint64_t messages; /* inside the slice */
	uint64_t spacing;  /* mean, ns */
	uint64_t last;     /* when one more is sent, which keeps something pending till after the slice */
	uint64_t end;      /* 1: and of the program */
};

struct curve_result {
	double send_us; /* median time of a send, the ring included where one is rung */
	double send_p99_us;
};

struct curve_arrival {
	struct curve_message message;
	uint64_t seen;
};

/* Of the slice under way: the messages inside and one more. */
extern struct curve_arrival curve_arrivals[CURVE_MOST + 1];
extern unsigned curve_arrival_count;

/* --------------------------------------------------------------------------------- ways --- */

/* How a mode's program is written. All but compute are off the clock. */
struct curve_way {
	void (*start)(const struct curve_mode *mode); /* after MPI_Init_thread */
	void (*post)(void);                           /* receives for curve_arrival_count messages */
	/* Iterations done until then, with receives pending. `chunk`: how many to do between looks at the clock. */
	uint64_t (*compute)(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end);
	double (*interval_us)(void); /* time between looks in force, 0: unknown */
	void (*finish)(void);        /* until all have arrived */
	void (*stop)(void);
};

const struct curve_way *curve_way_contd(const struct curve_mode *mode); /* in curve_plain: NULL */
const struct curve_way *curve_way_polling(const struct curve_mode *mode);

uint64_t curve_compute(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end);
/* The same, with look() after every `every` iterations. */
uint64_t curve_compute_looking(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end, uint64_t every,
			       void (*look)(void));

/* ------------------------------------------------------------------------- the programs --- */

struct curve_options {
	const struct curve_mode *mode;
	const char *kernel; /* NULL: all */
	bool quick;
	double rate; /* messages a second */
};

void curve_sender(const struct curve_options *o);
void curve_receiver(const struct curve_options *o);
void curve_ring(void); /* rank 1, after a send; nothing where the version of contd has no such call */

/* Cores that the program may use, most CURVE_CORES of them. */
#define CURVE_CORES 8
extern int curve_core[CURVE_CORES];
extern int curve_cores;

/* Bind this process's threads: the calling one to `mine`, the others to `others`. */
void curve_bind(int mine, int others);

#endif
