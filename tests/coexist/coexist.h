/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the coexistence tests. Each program has a table of cases, which is also what ctest starts: "program case".
 * A case begins with ticking_begin(): from then on the thread is interrupted as often as contd can be made to, some ten
 * thousand times a second, by a memory word that never holds; ticking_end() lets the word hold and sees to it that this
 * still arrives. Nothing here is bounded in time but by patience; what is asserted are counts and results.
 */
#ifndef CONTD_TESTS_COEXIST_H
#define CONTD_TESTS_COEXIST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#define COEXIST_HELPER __attribute__((unused)) static
#define OURS (SIGRTMAX - 3) /* contd's signal, unless told otherwise */
#define SKIPPED 77
#define PATIENCE_SECONDS 40 /* what is waited for comes at once or never */

/* Also in a child after fork: no exit handlers of the parent's. */
#define DIE(...) \
	do { \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		fflush(NULL); \
		_exit(1); \
	} while (0)

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			DIE("CHECK(%s) failed", #cond); \
	} while (0)

#define CHECK_EQ(a, b) \
	do { \
		long long check_a = (long long)(a), check_b = (long long)(b); \
		if (check_a != check_b) \
			DIE("%s == %s failed: %lld, %lld", #a, #b, check_a, check_b); \
	} while (0)

/* A system call that must not fail. */
#define CHECK_SYS(call) \
	do { \
		if ((call) == -1) \
			DIE("%s failed: %s", #call, strerror(errno)); \
	} while (0)

/* A call of contd's that must return 0. */
#define MUST(call) \
	do { \
		int must_rc = (call); \
		if (must_rc) \
			DIE("%s is %d: %s", #call, must_rc, contd_error_text()); \
	} while (0)

COEXIST_HELPER uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Wait, computing: no system call is made, so that what happens, happens by interruption. */
#define COMPUTE_UNTIL(cond) \
	do { \
		uint64_t compute_limit = now_ns() + PATIENCE_SECONDS * 1000000000ull; \
		while (!(cond)) { \
			if (now_ns() > compute_limit) \
				DIE("never came true: %s", #cond); \
			for (volatile int spin = 0; spin < 500; spin++) \
				; \
		} \
	} while (0)

/* Wait, asleep most of the time; naps are cut short by signals. */
#define AWAIT(cond) \
	do { \
		uint64_t await_limit = now_ns() + PATIENCE_SECONDS * 1000000000ull; \
		while (!(cond)) { \
			if (now_ns() > await_limit) \
				DIE("never came true: %s", #cond); \
			usleep(100); \
		} \
	} while (0)

/* ------------------------------------------------------------------------------------------------------ ticking --- */

static struct contd_group *ticking_safe; /* async-signal-safe */
static uint64_t ticking_word __attribute__((aligned(8)));
static atomic_int ticking_word_held;
static uint64_t ticking_from;
static uint64_t ticking_began_ns;

COEXIST_HELPER struct contd_stats stats_now(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	MUST(contd_stats_get(&s));
	return s;
}

COEXIST_HELPER uint64_t ticks_now(void)
{
	return stats_now().ticks;
}

COEXIST_HELPER void ticking_held(int status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&ticking_word_held, 1);
}

COEXIST_HELPER struct contd_group *group_new(uint32_t flags)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = -1};
	struct contd_group *g = NULL;

	MUST(contd_group_create(&attr, &g));
	return g;
}

/* How fast ticks may come: half of the thread's time is for them. */
COEXIST_HELPER struct contd_config ticking_config(void)
{
	return (struct contd_config){.size = sizeof(struct contd_config),
				     .agent = CONTD_AGENT_REGION,
				     .overhead_percent = 50,
				     .tick_min_ns = 1000,
				     .tick_max_ns = 50000}; /* as often when nothing happens */
}

COEXIST_HELPER void ticking_watch(void)
{
	struct contd_word w = {&ticking_word, 0, 1, CONTD_WORD_EQ};

	ticking_word = 0;
	atomic_store(&ticking_word_held, 0);
	ticking_safe = group_new(CONTD_ASYNC_SIGNAL_SAFE);
	MUST(contd_word_continue(&w, ticking_held, NULL, ticking_safe, NULL));
	ticking_from = ticks_now();
	ticking_began_ns = now_ns();
}

COEXIST_HELPER void ticking_begin(void)
{
	struct contd_config c = ticking_config();

	MUST(contd_init(&c));
	MUST(contd_thread_attach(NULL));
	ticking_watch();
	COMPUTE_UNTIL(ticks_now() > ticking_from + 10);
}

/* It has gone on ticking, and what it waits for still arrives, once, while the thread computes. */
COEXIST_HELPER void ticking_end(void)
{
	uint64_t ticks = ticks_now() - ticking_from, ns = now_ns() - ticking_began_ns, now = ticks_now();

	COMPUTE_UNTIL(ticks_now() > now + 5);
	CHECK_EQ(atomic_load(&ticking_word_held), 0);
	__atomic_store_n(&ticking_word, 1, __ATOMIC_RELEASE);
	COMPUTE_UNTIL(atomic_load(&ticking_word_held));
	COMPUTE_UNTIL(contd_group_outstanding(ticking_safe) == 0);
	CHECK_EQ(atomic_load(&ticking_word_held), 1);
	printf("%llu ticks in %.0f ms, %.0f a second\n", (unsigned long long)ticks, (double)ns * 1e-6,
	       (double)ticks * 1e9 / (double)ns);
	MUST(contd_group_destroy(ticking_safe));
	MUST(contd_thread_detach());
	CHECK_EQ(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------------------ feeding --- */

/*
 * A thread that makes one burst of continuations after the other ready, which the attached threads must run: every one
 * is run once, and none is lost. It is no attached thread itself, so each burst is a notification.
 */
#define FEED_BURST 16

struct fed {
	struct contd_event event;
	atomic_int runs;
};

static struct fed fed[FEED_BURST];
static atomic_int feed_stop;
static atomic_ullong feed_ran, feed_made;
static void (*feed_also)(void); /* what the callbacks do beside counting; async-signal-safe */
static pthread_t feed_thread;

COEXIST_HELPER void feed_cb(int status, void *data)
{
	struct fed *f = data;

	(void)status;
	if (feed_also)
		feed_also();
	atomic_fetch_add(&feed_ran, 1);
	atomic_fetch_add(&f->runs, 1);
}

COEXIST_HELPER void *feed_main(void *data)
{
	(void)data;
	while (!atomic_load(&feed_stop)) {
		for (unsigned i = 0; i < FEED_BURST; i++) {
			struct contd_event *es[] = {&fed[i].event};

			contd_event_init(&fed[i].event);
			atomic_store(&fed[i].runs, 0);
			MUST(contd_event_continue(1, es, feed_cb, &fed[i], ticking_safe, NULL));
			atomic_fetch_add(&feed_made, 1);
		}
		for (unsigned i = 0; i < FEED_BURST; i++)
			MUST(contd_event_complete(&fed[i].event, 0));
		for (unsigned i = 0; i < FEED_BURST; i++) {
			AWAIT(atomic_load(&fed[i].runs));
			CHECK_EQ(atomic_load(&fed[i].runs), 1);
		}
		usleep(200);
	}
	return NULL;
}

/* After ticking_begin(). The thread takes no signals but contd's, and no other thread sends it one: programs test
 * their own. */
COEXIST_HELPER void feed_begin(void (*also)(void))
{
	sigset_t all, before;

	feed_also = also;
	atomic_store(&feed_stop, 0);
	atomic_store(&feed_ran, 0);
	atomic_store(&feed_made, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	CHECK_EQ(pthread_create(&feed_thread, NULL, feed_main, NULL), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Returns how many there were. */
COEXIST_HELPER uint64_t feed_end(void)
{
	COMPUTE_UNTIL(atomic_load(&feed_ran) >= FEED_BURST);
	atomic_store(&feed_stop, 1);
	pthread_join(feed_thread, NULL);
	CHECK_EQ(atomic_load(&feed_ran), atomic_load(&feed_made));
	printf("%llu continuations by notification\n", (unsigned long long)atomic_load(&feed_ran));
	return atomic_load(&feed_ran);
}

/* -------------------------------------------------------------------------------------------------------- cases --- */

struct coexist_case {
	const char *name;
	void (*run)(void);
};

COEXIST_HELPER int coexist_main(int argc, char **argv, const struct coexist_case *cases, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (argc >= 2 && strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s CASE, one of", argv[0]);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, " %s", cases[i].name);
	fputc('\n', stderr);
	return 2;
}

#define COEXIST_CASES(cases) \
	int main(int argc, char **argv) \
	{ \
		return coexist_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0])); \
	}

#endif
