/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the chaos programs share: threads that draw from a seed, a diary of what each of them did last, deeds at test
 * points, and a report that ends the program when a rule is broken.
 *
 * Each thread has two generators, both made of (seed, round, thread) when a round begins. One is for its operations and
 * nothing else draws from it, so that a seed gives each thread the same operations again. The other one is for what
 * timing decides: test points, handlers and callbacks.
 *
 * A program defines the functions at the end of this file.
 */
#ifndef CONTD_TESTS_CHAOS_H
#define CONTD_TESTS_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define CHAOS_DIARY 256u
#define CHAOS_THREADS 16u

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define CHAOS_SLOW 6u
#else
#define CHAOS_SLOW 1u
#endif

struct chaos_thread {
	uint32_t number;
	int32_t tid;
	bool daemon;        /* contd's: it blocks all signals */
	uint64_t random;    /* of operations */
	uint64_t random_at; /* of test points, handlers and callbacks */
	uint32_t in_point;  /* test points whose deeds are under way, one inside the other */
	uint32_t steps;     /* operations */
	const char *doing;
	uint32_t written;
	struct chaos_entry {
		uint64_t ns;
		const char *what;
		uint64_t a, b;
	} diary[CHAOS_DIARY];
};

/* A kind of operations that --only and --without choose by name. */
struct chaos_class {
	const char *name;
	const char *says;
	bool off;
};

struct chaos_options {
	uint64_t seed;
	uint32_t seconds, threads, operations, rounds;
	bool stay; /* --abort: leave a core instead of exit status 1 */
};
extern struct chaos_options chaos;
extern uint32_t chaos_round, chaos_calm; /* calm: deeds are rare and short */
extern uint32_t chaos_progress;          /* operations of all threads */
extern __thread struct chaos_thread *chaos_me __attribute__((tls_model("initial-exec")));

/* Reads the arguments; ends the program where they are wrong, and after --list. */
void chaos_begin(int argc, char **argv, struct chaos_class *classes, size_t n);

/* One more thread, to be given to chaos_become() by it. */
struct chaos_thread *chaos_thread_new(const char *doing);
void chaos_become(struct chaos_thread *t);
/* A new round: new generators, other hot test points. */
void chaos_round_begin(void);

/* From one of the two generators, below n (0: all bits). */
uint64_t chaos_draw(uint64_t n);
uint64_t chaos_draw_at(uint64_t n);
uint64_t chaos_mix(uint64_t a, uint64_t b);

/* For the diary. Any context. */
void chaos_note(const char *what, uint64_t a, uint64_t b);

uint64_t chaos_ns(void);
void chaos_nap(uint64_t ns); /* async-signal-safe; may end early */

/*
 * The clock for bounds, in ns: time as the watching thread sees it, which naps again and again. A nap counts for at
 * most twice its length. So no bound passes while other work, or a pause of the machine, keeps this process from
 * running. The ranks of a job on one host share it: a bound does not pass either while one of them does not run.
 */
uint64_t chaos_patience(void);
/*
 * Begin the watching thread, and end it: the other ranks do not wait for this one then. While it watches, it is wrong
 * that chaos_progress does not change for long.
 */
void chaos_watch(void);
void chaos_watch_end(void);
/* fd: memory of at least CHAOS_SHARED bytes, filled with 0, that all ranks map. -1: it can't be mapped, or too many. */
#define CHAOS_RANKS 64
#define CHAOS_SHARED (CHAOS_RANKS * sizeof(uint64_t))
int chaos_share_patience(int fd, uint32_t rank, uint32_t ranks);

/* A rule is broken: says so, prints all diaries, and ends the program. */
_Noreturn void chaos_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Outside handlers, and outside contd: no signal is blocked on this thread. Under the thread sanitizer that may be
 * untrue, and this makes it true again. The runtime of gcc 12 puts a signal off until the thread calls a function
 * that the runtime knows, blocks all signals while it calls the handlers, and keeps the mask from before in one place
 * for each thread. If one more signal arrives just before it blocks them, and a handler calls such a function, the
 * second one's mask overwrites the first one's: all signals stay blocked. Then a notification that is sent to the
 * thread never comes.
 */
void chaos_signals_unblocked(void);

/* A bound, by chaos_patience(): that many milliseconds on an idle machine with a plain build. */
uint64_t chaos_bound_ns(uint64_t ms);

/* Begin to act at test points, and stop. */
void chaos_points(bool on);

/* How many descriptors are open. */
int chaos_descriptors(void);

/* How many slots of the group are not free. While no thread registers or completes anything. */
struct contd_group;
uint32_t chaos_slots_used(struct contd_group *group);

/* Pages of doorbells that are mapped. */
uint32_t chaos_pages(void);

/* ------------------------------------------------------------------------------------------- the program's part --- */

/* The thread that runs here, where it is none of the program's: contd's daemon, or NULL. */
struct chaos_thread *chaos_stranger(void);
/* A piece of another thread's work that a signal handler may do. */
void chaos_deed(struct chaos_thread *t);
/* Raise a signal on the calling thread. contd's, or the program's. */
void chaos_raise(struct chaos_thread *t, bool ours);
/* More for the report. */
void chaos_report(void);

#endif
