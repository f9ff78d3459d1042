/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether contd works with MPI, which threads may enter MPI, and what this thread is in. */
#ifndef CONTD_MPI_STATE_H
#define CONTD_MPI_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "base/atomic.h"

struct contd_group;
struct contd__taking;

/* Is contd started: not before its first call, not after MPI_Finalize, and not while it rests between sessions? */
extern uint32_t contd__mpi_open;
extern uint32_t contd__mpi_ended; /* it does not begin again */

/*
 * contd has ended, or this is a forked child: what an executor was given before, say, does nothing any more. While
 * contd rests between sessions it does. Sequentially consistent, after the slot has become RUNNING: pairs with
 * contd__mpi_end, which sets contd__mpi_ended and then looks at the slots.
 */
static inline bool contd__mpi_over(void)
{
	return __builtin_expect(contd__load_seq(&contd__mpi_ended), 0);
}

extern MPI_Status contd__status_empty; /* MPI 4.1, 3.7.3; MPI_ERROR is MPI_SUCCESS */

/* contd begins in MPI, which works: what it reads from MPI once. */
void contd__mpi_state_start(void);

/* contd is started, or goes on after it has rested. All that this needs is there. */
static inline void contd__mpi_opens(void)
{
	/* Release: pairs with the acquire in started (life.c). */
	contd__store_release(&contd__mpi_open, 1);
}

/* It is to rest, or to end. The caller looks for threads that drive MPI next. Partner: contd__mpi_enter(). */
static inline void contd__mpi_closes(void)
{
	contd__store_seq(&contd__mpi_open, 0);
}

static inline void contd__mpi_ends(void)
{
	contd__store_seq(&contd__mpi_ended, 1);
	contd__mpi_closes();
}

/* In the child of a fork every call finds contd closed, and says so. */
static inline void contd__mpi_state_forked(void)
{
	contd__store(&contd__mpi_ended, 1);
	contd__store(&contd__mpi_open, 0);
}

/* A source of MPI's is driven: false, and nothing to be left, where MPI_Finalize has begun. */
bool contd__mpi_enter(void);
void contd__mpi_leave(void);

/* May the calling thread enter MPI although the program has not called MPI? */
bool contd__mpi_thread_may_sig(void);

/* Is this thread between the two? Is any? */
bool contd__mpi_inside(void);
bool contd__mpi_driven(void);

/* Asks MPI whether the calling thread is its main thread, once for each epoch of sessions; MPI may be called here. */
void contd__mpi_ask_main(void);

/* A completion call that is under way on this thread. */
struct contd__call {
	bool runs_itself; /* it runs continuations itself; progress inside it need not */
	struct contd__taking
		*taking; /* it is a test or wait of a CR, in MPI's progress, and takes what completes there */
	struct contd__call *outer;
};
extern __thread struct contd__call *contd__call __attribute__((tls_model("initial-exec")));

/* These go around a completion call. */
static inline void contd__call_enter(struct contd__call *call, bool runs_itself)
{
	*call = (struct contd__call){.runs_itself = runs_itself, .outer = contd__call};
	contd__call = call;
}

static inline void contd__call_leave(const struct contd__call *call)
{
	contd__call = call->outer;
}

/* Around a function of the program's: what it calls is not the completion call that it is in. */
static inline struct contd__call *contd__call_outside(void)
{
	struct contd__call *call = contd__call;

	contd__call = NULL;
	return call;
}

static inline void contd__call_back(struct contd__call *call)
{
	contd__call = call;
}

/* This thread runs continuations inside progress of MPI's that no completion call of contd's surrounds. */
extern __thread bool contd__inside_progress __attribute__((tls_model("initial-exec")));

/* These go around it. They nest. */
static inline bool contd__inside_progress_begin(void)
{
	bool outer = contd__inside_progress;

	contd__inside_progress = true;
	return outer;
}

static inline void contd__inside_progress_end(bool outer)
{
	contd__inside_progress = outer;
}

#endif
