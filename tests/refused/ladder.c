/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One scenario that uses everything of the core, again and again: each time the next call of one function of the C
 * library is refused (once, or from there on until contd says so), until none is left. What contd refuses then it says,
 * with a text; nothing that was registered is lost; the same call succeeds when it is made again; and nothing is left
 * behind.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <contd/contd.h>

#include "base/error.h"
#include "dispatch/group.h"
#include "refused/child.h"
#include "refused/refuse.h"
#include "signal/attached.h"

#define BULK 9000u /* three pieces of a table, and a branch */
#define SOME 100u
#define WORDS 70u /* two blocks */
#define MOST (BULK + 10 * SOME + 2 * WORDS)
#define FOREVER (100 * 1000000000ll)

static unsigned function, rung_n;
static bool rung_onward, known;

/* ---------------------------------------------------------------------------------------------------- the steps --- */

static unsigned seen; /* refusals that have been accounted for */

/* A call of contd's has failed: because of what was refused, and it says something. */
static void step_failed(const char *step, int rc)
{
	CHECK(refuse_refused() > seen, "%s is %d (%s), and nothing was refused", step, rc, contd_error_text());
	CHECK(strlen(contd_error_text()) > 10, "%s is %d without a text", step, rc);
}

/* It has succeeded. Was something refused that it cannot do without? */
static void step_succeeded(const char *step)
{
	if (refuse_refused() == seen)
		return;
	CHECK(refuse_how(function) == MAY, "%s succeeds although it was refused %s", step, refuse_name(function));
	seen = refuse_refused();
}

/* Fails as long as it is refused, and then succeeds. */
#define TRY(call) \
	do { \
		int try_rc; \
		contd__error_text = NULL; \
		try_rc = (call); \
		if (try_rc < 0) { \
			int again_rc; \
			step_failed(#call, try_rc); \
			if (rung_onward) { \
				again_rc = (call); \
				CHECK(again_rc == try_rc, "%s is %d and then %d", #call, try_rc, again_rc); \
			} \
			refuse_end(); \
			seen = refuse_refused(); \
			try_rc = (call); \
			CHECK(try_rc >= 0, "%s made again is %d: %s", #call, try_rc, contd_error_text()); \
		} else { \
			step_succeeded(#call); \
		} \
	} while (0)

/* ------------------------------------------------------------------------------------------------- the scenario --- */

struct one {
	struct contd_event event;
	struct contd_handle handle;
	unsigned runs;
	bool registered, cancelled;
};

static struct one *all;
static unsigned used;
static struct contd_group *plain, *safe, *polled, *any;
static uint64_t words[2 * WORDS];

static void ran(int status, void *data)
{
	(void)status;
	__atomic_add_fetch(&((struct one *)data)->runs, 1, __ATOMIC_SEQ_CST);
}

static unsigned more(struct contd_group *group, unsigned n)
{
	unsigned first = used;

	for (unsigned i = 0; i < n; i++) {
		struct one *o = &all[used++];
		struct contd_event *es[1] = {&o->event};

		contd_event_init(&o->event);
		TRY(contd_event_continue(1, es, ran, o, group, &o->handle));
		o->registered = true;
	}
	return first;
}

static void more_words(struct contd_group *group, uint64_t *word)
{
	for (unsigned i = 0; i < WORDS; i++) {
		struct one *o = &all[used++];
		struct contd_word w = {&word[i], 0, 1, CONTD_WORD_EQ};

		word[i] = 0;
		TRY(contd_word_continue(&w, ran, o, group, &o->handle));
		o->registered = true;
	}
}

static void complete(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		int rc;

		if (all[i].cancelled)
			continue;
		rc = contd_event_complete(&all[i].event, 0);
		CHECK(rc == 0, "contd_event_complete is %d", rc);
	}
}

static void cancel_some(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i += 7) {
		TRY(contd_cancel(all[i].handle));
		all[i].cancelled = true;
	}
}

static unsigned others_first, safe_first;

/* A thread that attaches twice, and the second time leaves that to its end. */
static void *attached_thread(void *unused)
{
	unsigned first;

	(void)unused;
	TRY(contd_thread_attach(NULL));
	others_first = more(plain, SOME);
	first = more(safe, SOME);
	complete(first, SOME);
	TRY(contd_thread_detach());
	TRY(contd_thread_attach(NULL));
	first = more(any, SOME);
	complete(first, SOME);
	contd_compute_begin();
	contd_compute_end();
	return NULL;
}

/* One that contd has not heard of: what it completes it has to tell others of. */
static void *strange_thread(void *unused)
{
	(void)unused;
	complete(safe_first, SOME);
	return NULL;
}

static void on_thread(void *(*body)(void *))
{
	pthread_t t;

	CHECK(__real_pthread_create(&t, NULL, body, NULL) == 0, "no thread for the test itself");
	pthread_join(t, NULL);
}

static void group_make(uint32_t flags, struct contd_group **groupp)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = -1};

	TRY(contd_group_create(&attr, groupp));
}

static void wait_for(struct contd_group *group)
{
	TRY(contd_group_wait(group, FOREVER));
}

static void scenario(enum contd_agent agent)
{
	struct contd_config config = {.size = sizeof(config), .agent = agent, .tick_max_ns = 1000000};
	struct contd_stats stats = {.size = sizeof(stats)};
	unsigned plain_first, polled_first, any_first, chained, complete_now;
	int done;

	memset(all, 0, MOST * sizeof(*all));
	memset(words, 0, sizeof(words));
	used = 0;
	TRY(contd_init(&config));
	TRY(contd_bell_listen("refused", (uint32_t)getpid()));
	TRY(contd_thread_attach(NULL));
	group_make(0, &plain);
	group_make(CONTD_ASYNC_SIGNAL_SAFE, &safe);
	group_make(CONTD_POLL_ONLY, &polled);
	group_make(CONTD_THREAD_ANY, &any);
	TRY(contd_fd());
	plain_first = more(plain, BULK);
	safe_first = more(safe, SOME);
	polled_first = more(polled, SOME);
	any_first = more(any, SOME);
	more_words(plain, words);
	more_words(any, words + WORDS);
	on_thread(attached_thread);
	chained = used++;
	TRY(contd_group_continue(safe, ran, &all[chained], plain, NULL));
	all[chained].registered = true;
	/* Nothing has been given back yet: a refused call has kept no slot, and no record of a thread. */
	CHECK(plain->table.used == BULK + WORDS + SOME + 1, "%u slots", plain->table.used);
	CHECK(any->table.used == SOME + WORDS + SOME, "%u slots", any->table.used);
	CHECK(contd__signals.count == 2, "%u records of threads", contd__signals.count);
	cancel_some(plain_first, BULK);
	cancel_some(any_first, SOME);
	complete(plain_first, BULK / 2);
	on_thread(strange_thread);
	contd_compute_begin();
	for (unsigned i = 0; i < 2 * WORDS; i++)
		__atomic_store_n(&words[i], 1, __ATOMIC_RELEASE);
	complete(any_first, SOME);
	contd_compute_end();
	TRY(contd_daemon_start(NULL));
	TRY(contd_poll(0));
	complete(plain_first + BULK / 2, BULK - BULK / 2);
	complete(polled_first, SOME);
	complete(others_first, SOME);
	TRY(contd_group_test(polled, &done));
	wait_for(polled);
	wait_for(safe);
	wait_for(any);
	wait_for(plain);
	complete_now = used;
	for (unsigned i = 0; i < SOME; i++) {
		struct one *o = &all[used++];

		TRY(contd_event_continue(0, NULL, ran, o, plain, NULL));
		o->registered = true;
	}
	TRY(contd_poll(0));
	for (unsigned i = complete_now; i < used; i++)
		CHECK(all[i].runs == 1, "a continuation without events ran %u times", all[i].runs);
	TRY(contd_stats_get(&stats));
	TRY(contd_daemon_stop());
	TRY(contd_group_destroy(plain));
	TRY(contd_group_destroy(safe));
	TRY(contd_group_destroy(polled));
	TRY(contd_group_destroy(any));
	TRY(contd_thread_detach());
	done = contd_fini();
	CHECK(done == 0, "contd_fini is %d: %s", done, contd_error_text());
	CHECK(used <= MOST, "%u continuations", used);
	for (unsigned i = 0; i < used; i++)
		CHECK(all[i].registered && all[i].runs == (all[i].cancelled ? 0 : 1),
		      "continuation %u of %u%s ran %u times", i, used, all[i].cancelled ? ", cancelled," : "",
		      all[i].runs);
}

/* --------------------------------------------------------------------------------------------------- the ladder --- */

#define NONE_REFUSED 2

static int rung(void)
{
	int descriptors = child_descriptors(), timers = child_timers();

	all = calloc(MOST, sizeof(*all));
	CHECK(all, "no memory for the test itself");
	refuse_start(function, rung_n, rung_onward);
	seen = 0;
	scenario(CONTD_AGENT_TICK);
	scenario(CONTD_AGENT_REGION);
	refuse_end();
	CHECK(child_descriptors() == descriptors, "%d file descriptors, %d before", child_descriptors(), descriptors);
	CHECK(child_timers() == timers, "%d timers, %d before", child_timers(), timers);
	free(all);
	CHECK(refuse_mappings() == 0, "%d mappings are left", refuse_mappings());
	/* Records of threads stay: they are used again, for as long as the process lives. */
	CHECK(refuse_blocks() == (int)contd__signals.count, "%d blocks of memory are left, %u records", refuse_blocks(),
	      contd__signals.count);
	return refuse_refused() ? 0 : NONE_REFUSED;
}

/* The n-th is refused for n = 1, 2...; calls that come with the time (timers set by ticks) make the ladder long: from
 * there on in steps that grow. Returns how many rungs there were, -1 if one failed. */
static int ladder(bool onward)
{
	int rungs = 0;

	rung_onward = onward;
	for (rung_n = 1;; rung_n += rung_n < 24 ? 1 : rung_n / 2) {
		int rc;

		snprintf(child_title, 200, "%s refused, the %u.%s", refuse_name(function), rung_n,
			 onward ? " and all after it" : "");
		rc = child_run(rung);
		if (rc == NONE_REFUSED)
			return rungs;
		if (rc)
			return fprintf(stderr, "%s: exit status %d\n", child_title, rc), -1;
		rungs++;
		if (rungs > 1000)
			return fprintf(stderr, "%s: has no end\n", child_title), -1;
	}
}

/* Functions that the scenario needs: if these were not refused, the ladder would prove nothing. */
static bool needed(const char *name)
{
	static const char *const names[] = {"timer_create",  "timer_settime",  "sigaction",
					    "eventfd",       "mmap",           "calloc",
					    "aligned_alloc", "pthread_create", "syscall(rt_tgsigqueueinfo)"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	int failed = 0, total = 0, n;
	unsigned part = 0, parts = 1;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--known") == 0)
			known = true;
		else if (sscanf(argv[i], "--part=%u/%u", &part, &parts) == 2 && parts)
			part %= parts;
		else if (strcmp(argv[i], "--help") == 0)
			return puts("usage: ladder [--known] [--part=K/N] [FUNCTION]\n"
				    "  --known     also what is known to go by unnoticed\n"
				    "  --part=K/N  each N-th function, from the K-th on"),
			       0;
		else
			only = argv[i];
	for (function = 0; function < refuse_functions(); function++) {
		const char *name = refuse_name(function);

		if (only ? strcmp(only, name) != 0
			 : (refuse_how(function) == KNOWN && !known) || function % parts != part)
			continue;
		n = ladder(false);
		if (n >= 0) {
			int once = n;

			n = ladder(true);
			if (once || n > 0)
				printf("%-28s refused once: %d times, from there on: %d times\n", name, once, n);
			if (n >= 0 && once + n == 0 && needed(name))
				n = (fprintf(stderr, "%s: never called\n", name), -1);
			total += once + n;
		}
		if (n < 0)
			failed++;
	}
	printf("%d rungs, %d functions failed\n", total, failed);
	return failed != 0;
}
