/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring: what all ways of driving it have in common. Every rank starts messages, which travel from rank to rank and
 * home; a rank has N * W * R slots, each with room for two messages, which by turns receive one and pass it on. A slot
 * does not care whose message it gets: that is said in the message.
 *
 *   ring_next(s)     what the slot is to do now: s->sends, s->receives, in one step
 *   ring_issue(s)    the MPI calls of the step
 *   ring_finished(s) the step is complete: the message that has come is verified
 *
 * Of these none is called for a slot by two threads at a time; of several slots they are.
 */
#ifndef RING_H
#define RING_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef RING_PLAIN
#include <mpi.h>
#else
#include <contd/executor.h>
#include <contd/modes.h>
#include <contd/mpi.h>
#endif

enum { TAG_MESSAGE = 1, TAG_NOBODY = 2 };

enum mode { MODE_YIELD, MODE_SUSPEND, MODE_TASK, MODE_CONTINUATION, MODE_MPIX, MODE_TESTSOME };
enum pool { POOL_NONE, POOL_PULL, POOL_COMM, POOL_TASKRT, POOL_GLIB };

struct options {
	int mode;
	bool requests_transfer, completions_transfer;
	int pool;
	bool high;
	size_t size_least, size_most;
	long iterations, rounds, in_flight, warmup;
	int threads;
	bool thread_tasks; /* tasks that wait are threads, not taskrt's */
	bool together;     /* a step sends one message and receives the next */
	bool no_cr;
	bool all;   /* that there are, one after the other */
	int cancel; /* percent of the steps before which a receive is cancelled */
	int repeat;
	bool beside; /* each time Testsome first */
};

extern const char *const ring_modes[], *const ring_pools[];

/* The first bytes of each message; the rest depends on it. */
struct header {
	uint32_t origin, round;
	uint64_t iteration;
};

struct slot {
#ifndef RING_PLAIN
	struct contd_mpi_op op;
	sem_t done; /* of tasks that are threads, where completions are transferred */
	bool cancel_at_once;
#endif
	MPI_Request requests[2];
	MPI_Status statuses[2];
	struct worker *worker;
	unsigned char *buffers[2];
	size_t bytes; /* of the message in buffers[at] */
	int at;
	bool holds; /* a message in buffers[at] is to be passed on */
	bool sends, receives, cancels;
	bool cancelled; /* before this step a receive was */
	MPI_Request nobody;
	uint64_t sum; /* of what all messages that were received are to look like */
	uint32_t random;
};

struct worker {
	struct ring *ring;
	struct slot *slots;
	long count;
	MPI_Request cr;
#ifndef RING_PLAIN
	struct contd_mode_attr how;
#endif
};

struct ring {
	struct options options;
	int rank, ranks;
	bool shared; /* by threads: counts are atomic */
	bool statuses;
	MPI_Comm comm;
	struct slot *slots;
	long slot_count;
	struct worker *workers;
	/* Of one pass. */
	long iterations;
	long allowed; /* messages of this rank that may start: with whole iterations */
	long started;
	long to_receive; /* receives that no thread has begun */
	uint32_t *home;  /* by iteration: messages that came home */
	long ending;     /* slots that still have something to do */
	bool over;
	void (*ended)(struct ring *ring); /* called when the last slot has ended */
};

/* relaxed where threads share the count: nothing is ordered by it but itself. */
static inline long ring_add(const struct ring *r, long *count, long n)
{
	long before = *count;

	if (r->shared)
		return __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
	*count = before + n;
	return before;
}

__attribute__((noreturn, format(printf, 1, 2))) void ring_die(const char *format, ...);
void ring_options(struct options *o, int argc, char **argv);

/* Returns false if there is nothing left to do for the slot. */
bool ring_next(struct slot *s);

/* Returns how many requests there are now in s->requests; what is received comes first. */
int ring_count(const struct slot *s);
int ring_issue(struct slot *s, MPI_Request requests[]);
void ring_finished(struct slot *s);

static inline bool ring_is_over(struct ring *r)
{
	return __atomic_load_n(&r->over,
			       __ATOMIC_ACQUIRE); /* with all that the slots have done; partner: ring_next() */
}

void testsome_work(struct worker *w);

#ifndef RING_PLAIN
void modes_begin(struct ring *r);
void modes_pass(struct ring *r);
void modes_work(struct worker *w);
void modes_passed(struct ring *r);
void modes_end(struct ring *r);
bool modes_exists(const struct options *o);
void modes_needs(const struct options *o, int *thread_level, bool *shared);
#endif

#endif
