/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the unit tests. Criterion runs each test in a separate process. */
#ifndef CONTD_TESTS_UNIT_H
#define CONTD_TESTS_UNIT_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <contd/contd.h>

#include "base/error.h"
#include "dispatch/group.h"
#include "signal/attached.h"

/* A test that takes this long hangs. */
#define WATCHDOG 120
/* An awaited thing comes at once or never. */
#define PATIENCE_SECONDS 60

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define SLOW_BUILD 1
#else
#define SLOW_BUILD 0
#endif

#define must(call) \
	do { \
		int must_rc = (call); \
		cr_assert_eq(must_rc, 0, "%s is %d: %s", #call, must_rc, contd_error_text()); \
	} while (0)

/* Is it the text of that call, as it stands in the program: "contd_poll(0)"? If that is a function of the test's, of
 * any call. */
static inline bool unit_names(const char *text, const char *call)
{
	size_t n = strncmp(call, "contd_", 6) == 0 ? strcspn(call, "(") : strcspn(text, ":");

	return strncmp(text, "contd_", 6) == 0 && strncmp(text, call, strncmp(call, "contd_", 6) == 0 ? n : 0) == 0 &&
	       strncmp(text + n, ": ", 2) == 0 && strlen(text) > n + 12;
}

/* It fails with this error, and a text says which call has failed, and why. */
#define must_fail(call, code) \
	do { \
		int must_rc; \
		contd__fail(0, NULL); \
		must_rc = (call); \
		cr_assert_eq(must_rc, -(code), "%s is %d instead of %d", #call, must_rc, -(code)); \
		cr_assert(unit_names(contd_error_text(), #call), "%s fails with the text \"%s\"", #call, \
			  contd_error_text()); \
	} while (0)

/*
 * Of the tree of ready bits (rcu/table.h) a group's first slots have the root's bit above them and nothing else. Take
 * these, so that what is registered from now on has the whole tree above it.
 */
static inline void beyond_first_chunk(struct contd_group *group)
{
	while (group->table.used < CHUNK_FIRST)
		cr_assert_not_null(contd__slot_alloc_sig(&group->table));
}

/* One continuation's account; everything that a callback may need to tell. */
struct tally {
	unsigned runs;
	int status;
	int context; /* enum contd__context */
	pthread_t thread;
	uintptr_t stack;
};

void tally_cb(int status, void *data);

static inline unsigned runs(const struct tally *t)
{
	return __atomic_load_n(&t->runs, __ATOMIC_ACQUIRE);
}

/* contd_init() with an agent. */
void start(enum contd_agent agent);

struct contd_group *group_new(uint32_t flags, int32_t max_poll);

uint64_t now_ns(void);

/* Wait, asleep, until the condition holds. */
#define await(condition) \
	do { \
		uint64_t await_until = now_ns() + PATIENCE_SECONDS * 1000000000ull; \
		while (!(condition)) { \
			cr_assert(now_ns() < await_until, "never came true: %s", #condition); \
			usleep(100); \
		} \
	} while (0)

/*
 * Wait, computing: no system call is made, so that what happens, happens by interruption. ThreadSanitizer keeps signals
 * back until a call that it intercepts: there it has to be one.
 */
#ifdef __SANITIZE_THREAD__
#define compute_step() usleep(10)
#else
#define compute_step() ((void)0)
#endif
#define compute_until(condition) \
	do { \
		uint64_t compute_until_ns = now_ns() + PATIENCE_SECONDS * 1000000000ull; \
		while (!(condition)) { \
			cr_assert(now_ns() < compute_until_ns, "never came true: %s", #condition); \
			for (volatile int spin = 0; spin < 200; spin++) \
				; \
			compute_step(); \
		} \
	} while (0)

/* contd's own signal, to the calling thread; it has been handled on return unless it is blocked. Any context. */
void raise_ours(void);

/* Complete an event without further steps: ready, but neither run nor notified. Any context. */
int complete_quietly(struct contd_event *event, int status);

struct contd_stats stats_now(void);

/* fault() raises SIGSEGV; the program's handler, which faults_begin() installs, counts it and mends the cause. */
void faults_begin(void);
void fault(void);
unsigned faults(void);

/* A second thread that does jobs. */
struct helper {
	pthread_t thread;
	void (*job)(void *data);
	void *data;
	uint32_t state;
	bool attach;
};
void helper_create(struct helper *h, bool attach);
void helper_start(struct helper *h, void (*job)(void *data), void *data);
/* Any context: no call that is not async-signal-safe. */
void helper_finish(struct helper *h);
void helper_do(struct helper *h, void (*job)(void *data), void *data);
void helper_join(struct helper *h);

#endif
