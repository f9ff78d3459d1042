/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: each rule of continuations is a separate test, which runs in a separate job.
 *
 * A test is registered where it is written, by one of these macros, whose name, ranks and level CMake reads from the
 * sources; so they stand on the macro's first line:
 *   CONFORMANCE_BOTH(name, ranks, level, "rule") { ... }         run once for each interface that is there
 *   CONFORMANCE_ON_DRAFT, CONFORMANCE_ON_REVISED                 for the one interface
 *   CONFORMANCE_TEST                                             the test says itself which interface it uses
 *   CONFORMANCE_ENDS(name, ranks, level, how, "rule") { ... }    the same, where the job ends abnormally: it is run by
 *                                                                the script `expect`, whose first argument how is
 * level is what MPI_Init_thread is called with: single, funneled, serialized or multiple; with "none" the test calls
 * MPI_Init itself, or does not.
 *
 * Files: <section>.c what holds for both interfaces, <section>_draft.c, <section>_revised.c, <section>_mixed.c what
 * needs both, contd*.c what only contd promises. Everything but contd*.c uses MPI and the interface alone.
 */
#ifndef CONFORMANCE_CONFORMANCE_H
#define CONFORMANCE_CONFORMANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interface.h"

/* ----------------------------------------------------------------------------------------------------- registry --- */

enum level { level_none, level_single, level_funneled, level_serialized, level_multiple };

enum face { face_draft, face_revised };

struct test {
	const char *name;
	int ranks;
	enum level level;
	unsigned faces; /* bits 1 << enum face */
	const char *rule;
	void (*body)(void);
	struct test *next;
};

void test_register(struct test *test);

#define CONFORMANCE_REGISTER(name, ranks, level, faces, rule) \
	static void name(void); \
	static struct test name##_test = {#name, ranks, level_##level, faces, rule, name, NULL}; \
	__attribute__((constructor)) static void name##_register(void) \
	{ \
		test_register(&name##_test); \
	} \
	static void name(void)

#define CONFORMANCE_BOTH(name, ranks, level, rule) \
	CONFORMANCE_REGISTER(name, ranks, level, 1 << face_draft | 1 << face_revised, rule)
#define CONFORMANCE_ON_DRAFT(name, ranks, level, rule) CONFORMANCE_REGISTER(name, ranks, level, 1 << face_draft, rule)
#define CONFORMANCE_ON_REVISED(name, ranks, level, rule) \
	CONFORMANCE_REGISTER(name, ranks, level, 1 << face_revised, rule)
#define CONFORMANCE_TEST(name, ranks, level, rule) CONFORMANCE_REGISTER(name, ranks, level, 0, rule)
#define CONFORMANCE_ENDS(name, ranks, level, how, rule) CONFORMANCE_REGISTER(name, ranks, level, 0, rule)

/* ------------------------------------------------------------------------------------------------------- checks --- */

/* A check that fails is printed and counted, and the test goes on; it tells whether it held. Any thread. */
bool check_that(bool good, const char *what, const char *file, int line);
bool check_equal(long long a, long long b, const char *what, const char *file, int line);
bool check_class(int code, int class, const char *what, const char *file, int line);

#define CHECK(cond) check_that((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check_equal((long long)(a), (long long)(b), #a ", " #b, __FILE__, __LINE__)
#define CHECK_CLASS(call, class) check_class((call), (class), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_CLASS((call), MPI_SUCCESS)

/* Names what follows in messages, and gives it the watchdog's full time. */
void step(const char *name);

/* For a job that ends abnormally: how far it came, for expect. It goes to the file CONFORMANCE_SAYS too, because a
 * launcher may lose the output of a process that ends the job. */
void say(const char *what);

/* The rule cannot be shown here. All ranks of a test must come to the same decision; then the test returns. */
void skip(const char *reason);

/* How many checks have failed so far. */
int failures(void);

/* Run after MPI_Finalize. */
extern void (*after_finalize)(void);

/* ---------------------------------------------------------------------------------------- the job, and messages --- */

extern int my_rank, ranks;
/*
 * The world and MPI_COMM_SELF, each duplicated, so that other messages and error handlers are not in the way. All
 * communicators have MPI_ERRORS_RETURN.
 */
extern MPI_Comm world, self;

int next_rank(void);
int previous_rank(void);

/* A receive of one byte that is not complete before send_byte is called, by the peer or on `self`. */
MPI_Request receive_byte(int from, int tag, MPI_Comm comm);
void send_byte(int to, int tag, MPI_Comm comm);

/* One process is enough for most rules: what is pending here ends with complete_pending of the same tag. */
MPI_Request pending(int tag);
void complete_pending(int tag);

/* Returns when the operation is complete, without completing it in the sense of MPI_Test. */
void until_complete(MPI_Request op);

/* MPI calls that make progress and are no tests of a CR, until *count is n at least; false after ten seconds. */
bool drive_until(atomic_int *count, int n);
void drive_once(void);

/* Compute that long, without any call. */
void compute_ms(int ms);

/* ------------------------------------------------------------------------------------------- the two interfaces --- */

/*
 * A test that is run for both interfaces calls these: the same calls in the interface under test. A CR of new_cr
 * is active. Test and Wait make a CR of the revised interface inactive when they report completion; again() then starts
 * it again, and does nothing in the draft.
 */
extern enum face face;

typedef void callback(MPI_Status *statuses, void *data);

int init_cr(MPI_Info info, MPI_Request *cr);
int attach(MPI_Request *op, callback *cb, void *data, MPI_Status *status, MPI_Request cr);
int attach_all(int count, MPI_Request ops[], callback *cb, void *data, MPI_Status statuses[], MPI_Request cr);

/* Pairs of info key and value; NULL ends them. */
MPI_Info new_info(const char *key, ...) __attribute__((sentinel));
MPI_Request new_cr(const char *key, ...);
void again(MPI_Request *cr);
void free_cr(MPI_Request *cr);
/* MPI_Wait and again(); MPI_Test, and again() where it says true. */
void wait_cr(MPI_Request *cr);
bool test_cr(MPI_Request *cr);

/* The calls that complete requests, on the CR between two null requests. True where the CR is reported complete. */
enum how { by_test, by_testall, by_testany, by_testsome, by_wait, by_waitall, by_waitany, by_waitsome, hows };
extern const char *const how_name[hows];
bool report_by(enum how how, MPI_Request *cr);

#define POLL_ONLY "mpi_continue_poll_only"
#define ENQUEUE_COMPLETE "mpi_continue_enqueue_complete"
#define MAX_POLL "mpi_continue_max_poll"
#define THREAD "mpi_continue_thread"
#define SIGNAL_SAFE "mpi_continue_async_signal_safe"

/* ----------------------------------------------------------------------------------------------------- statuses --- */

/* A callback's record; `see` is async-signal-safe. */
struct seen {
	atomic_int runs;
	MPI_Status *status; /* the pointer it was given */
	pthread_t thread;
};

callback see;

/* For continuations that must not run. */
callback never;

void poison(void *memory, size_t bytes);
bool is_poison(const void *memory, size_t bytes);

/* Source, tag and count of the empty status (MPI 4.1, 3.7.3), and not cancelled; MPI_ERROR is another matter. */
bool is_empty(const MPI_Status *status);
bool was_cancelled(const MPI_Status *status);
int count_of(const MPI_Status *status);
int class_of(int code);

#endif
