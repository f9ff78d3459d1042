/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table "Who runs it, and when" of docs/signals.md, cell by cell: what completes the event, the flags of the group,
 * what the attached thread does, and the agent. The letters are those of the document.
 */
#include "source.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

TestSuite(who_runs, .timeout = WATCHDOG);

#define NOT_WITHIN_NS 10000000 /* by then a continuation that no thread runs has not run */

/* The thread's state: the columns. */
enum state { UNKNOWN_CODE, REGION, GUARD_IN_REGION, GUARD, WAITS, NOT_ATTACHED, STATES };
static const char *const state_names[] = {"unknown code", "region",           "guard in a region",
					  "guard",        "contd_group_wait", "not attached"};

/* The completing side. */
enum kind { OWN, OTHER, HANDLER, GROUP, WORD, SOURCE, KINDS };
static const char *const kind_names[] = {"the thread itself", "another thread", "a signal handler",
					 "a group",           "a memory word",  "a source"};

enum { PLAIN, SIGNAL_SAFE, ANY, POLL_ONLY, FLAGS };
static const char *const flag_names[] = {"plain", "async-signal-safe", "thread any", "poll-only"};
static const uint32_t flags_of[] = {0, CONTD_ASYNC_SIGNAL_SAFE, CONTD_THREAD_ANY, CONTD_POLL_ONLY};

/*
 * H: inside the call that completes it. N: by a signal, the thread calls nothing. G: at the end of the guard. W: by the
 * thread that waits. D: on the daemon. E: as D or N, the first to look. C: not until a call. -: does not exist.
 */
static const char expected_caller[KINDS][FLAGS][STATES + 1] = {
	[OWN] = {"CHGC-C", "HHGG-C", "CHGC-C", "CCCC-C"},     [OTHER] = {"CNGCWC", "NNGGWC", "CNGCWC", "CCCCCC"},
	[HANDLER] = {"CHGCWC", "HHGGWC", "CHGCWC", "CCCCCC"}, [GROUP] = {"CNGCWC", "NNGGWC", "CNGCWC", "CCCCCC"},
	[WORD] = {"CCCCWC", "CCCCWC", "CCCCWC", "CCCCCC"},    [SOURCE] = {"CCCCWC", "CCCCWC", "CCCCWC", "CCCCCC"},
};
static const char expected_region[KINDS][FLAGS][STATES + 1] = {
	[OWN] = {"CHGC-C", "HHGG-C", "CHGC-C", "CCCC-C"},     [OTHER] = {"CNGCWC", "NNGGWC", "CNGCWC", "CCCCCC"},
	[HANDLER] = {"CHGCWC", "HHGGWC", "CHGCWC", "CCCCCC"}, [GROUP] = {"CNGCWC", "NNGGWC", "CNGCWC", "CCCCCC"},
	[WORD] = {"CNGCWC", "NNGGWC", "CNGCWC", "CCCCCC"},    [SOURCE] = {"CNGCWC", "CNGCWC", "CNGCWC", "CCCCCC"},
};
static const char expected_daemon[KINDS][FLAGS][STATES + 1] = {
	[OWN] = {"CHGC-C", "HHGG-C", "DDDD-D", "CCCC-C"},     [OTHER] = {"CNGCWC", "NNGGWC", "DDDDWD", "CCCCCC"},
	[HANDLER] = {"CHGCWC", "HHGGWC", "DDDDWD", "CCCCCC"}, [GROUP] = {"CNGCWC", "NNGGWC", "DDDDWD", "CCCCCC"},
	[WORD] = {"CNGCWC", "NNGGWC", "DEEDWD", "CCCCCC"},    [SOURCE] = {"CNGCWC", "NNGGWC", "DEEDWD", "CCCCCC"},
};

static struct helper other;
static struct tally tally;
static struct contd_event event, awaited_event, waited_event;
static struct contd_group *group, *awaited, *waited;
static struct contd_handle awaited_handle;
static uint64_t word __attribute__((aligned(8)));
static enum kind kind;
static bool with_daemon;
static char expected;
static const char *cell;

static void complete(void *data)
{
	(void)data;
	switch (kind) {
	case GROUP:
		must(contd_cancel(awaited_handle)); /* nothing of it is outstanding any more */
		break;
	case WORD:
		__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
		break;
	case SOURCE:
		source_finish(&source_a);
		break;
	default:
		contd_event_complete(&event, 0);
	}
}

static void on_usr1(int signo)
{
	(void)signo;
	contd_event_complete(&event, 0);
}

static void not_yet(void)
{
	for (uint64_t until = now_ns() + NOT_WITHIN_NS; now_ns() < until;) {
		cr_assert_eq(runs(&tally), 0, "%s: somebody has run it", cell);
		compute_step();
	}
}

/* While the thread is in contd_group_wait(). */
static void complete_for_waiter(void *thread)
{
	usleep(1000);
	if (kind == HANDLER)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	else
		complete(NULL);
	if (expected == 'C')
		not_yet();
	else
		await(runs(&tally));
	must(contd_event_complete(&waited_event, 0));
}

static void make(unsigned flags)
{
	struct contd_event *events[] = {&event}, *awaited_events[] = {&awaited_event};
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};

	memset(&tally, 0, sizeof(tally));
	contd_event_init(&event);
	contd_event_init(&awaited_event);
	word = 0;
	group = group_new(flags, -1);
	switch (kind) {
	case GROUP:
		awaited = group_new(0, -1);
		must(contd_event_continue(1, awaited_events, tally_cb, NULL, awaited, &awaited_handle));
		must(contd_group_continue(awaited, tally_cb, &tally, group, NULL));
		break;
	case WORD:
		must(contd_word_continue(&w, tally_cb, &tally, group, NULL));
		break;
	case SOURCE:
		source_continue(&source_a, &event, tally_cb, &tally, group);
		break;
	default:
		must(contd_event_continue(1, events, tally_cb, &tally, group, NULL));
	}
}

static void in_wait(void)
{
	struct contd_event *events[] = {&waited_event};
	pthread_t me = pthread_self();
	struct tally over = {0};

	contd_event_init(&waited_event);
	waited = group_new(0, -1);
	must(contd_event_continue(1, events, tally_cb, &over, waited, NULL));
	helper_start(&other, complete_for_waiter, &me);
	must(contd_group_wait(waited, PATIENCE_SECONDS * 1000000000ll));
	helper_finish(&other);
	must(contd_group_destroy(waited));
}

static void check(enum state state)
{
	bool region = state == REGION || state == GUARD_IN_REGION, guard = state == GUARD_IN_REGION || state == GUARD;
	int context = region ? CONTEXT_REGION : CONTEXT_HANDLER;

	if (region)
		contd_compute_begin();
	if (guard)
		contd_guard_begin();
	if (state == WAITS)
		in_wait();
	else if (kind == OWN)
		complete(NULL);
	else if (kind == HANDLER)
		pthread_kill(pthread_self(), SIGUSR1);
	else
		helper_do(&other, complete, NULL);
	switch (expected) {
	case 'H':
		cr_assert_eq(runs(&tally), 1, "%s: not here and now", cell);
		cr_assert_eq(tally.context, context, "%s: context %d", cell, tally.context);
		break;
	case 'N':
		compute_until(runs(&tally));
		cr_assert_eq(tally.context, context, "%s: context %d", cell, tally.context);
		break;
	case 'G':
		compute_until(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED);
		cr_assert_eq(runs(&tally), 0, "%s: under the guard", cell);
		contd_guard_end();
		/* Unless the daemon has just found it, and not marked it yet: its notification follows. */
		if ((kind == SOURCE || kind == WORD) && with_daemon)
			compute_until(runs(&tally));
		cr_assert_eq(runs(&tally), 1, "%s: not at the end of the guard", cell);
		cr_assert_eq(tally.context, context, "%s: context %d", cell, tally.context);
		guard = false;
		break;
	case 'D':
		compute_until(runs(&tally));
		cr_assert_eq(tally.context, CONTEXT_DAEMON, "%s: context %d", cell, tally.context);
		break;
	case 'E':
		compute_until(runs(&tally));
		cr_assert(tally.context == CONTEXT_DAEMON || tally.context == context, "%s: context %d", cell,
			  tally.context);
		break;
	case 'C':
		not_yet();
		break;
	}
	if (guard)
		contd_guard_end();
	if (expected == 'C')
		cr_assert_eq(runs(&tally), 0, "%s: at the end of the guard", cell);
	if (region)
		contd_compute_end();
}

static void table(enum contd_agent agent, const char (*letters)[FLAGS][STATES + 1])
{
	static char text[160];

	signal(SIGUSR1, on_usr1);
	cell = text;
	with_daemon = letters == expected_daemon;
	for (kind = 0; kind < KINDS; kind++)
		for (unsigned f = 0; f < FLAGS; f++)
			for (enum state state = 0; state < STATES; state++) {
				int complete_now;

				expected = letters[kind][f][state];
				if (expected == '-')
					continue;
				snprintf(text, sizeof(text), "completed by %s, %s, thread: %s", kind_names[kind],
					 flag_names[f], state_names[state]);
				start(agent);
				if (kind == SOURCE)
					source_register(&source_a, WHERE_THREAD | WHERE_REGION | WHERE_DAEMON, false);
				if (state != NOT_ATTACHED)
					must(contd_thread_attach(NULL));
				helper_create(&other, false);
				make(flags_of[f]);
				check(state);
				while (expected == 'C' && !runs(&tally))
					must(contd_group_test(group, &complete_now) < 0);
				cr_assert_eq(runs(&tally), 1, "%s", cell);
				helper_join(&other);
				must(contd_group_wait(group, -1)); /* counted down a moment later */
				must(contd_group_destroy(group));
				if (kind == GROUP)
					must(contd_group_destroy(awaited));
				if (state != NOT_ATTACHED)
					must(contd_thread_detach());
				cr_assert_eq(contd_fini(), 0);
			}
}

Test(who_runs, agent_caller)
{
	table(CONTD_AGENT_CALLER, expected_caller);
}

Test(who_runs, agent_region)
{
	table(CONTD_AGENT_REGION, expected_region);
}

Test(who_runs, agent_tick)
{
	table(CONTD_AGENT_TICK, expected_daemon);
}

Test(who_runs, agent_block)
{
	table(CONTD_AGENT_BLOCK, expected_daemon);
}

Test(who_runs, agent_spin)
{
	table(CONTD_AGENT_SPIN, expected_daemon);
}

/* ------------------------------------------------------------------------------------------- beside the table --- */

static void begin_with(enum contd_agent agent, uint32_t flags, bool beyond)
{
	start(agent);
	kind = OTHER;
	memset(&tally, 0, sizeof(tally));
	contd_event_init(&event);
	must(contd_thread_attach(NULL));
	helper_create(&other, false);
	group = group_new(flags, -1);
	if (beyond)
		beyond_first_chunk(group);
	must(contd_event_continue(1, (struct contd_event *[]){&event}, tally_cb, &tally, group, NULL));
}

static void begin(enum contd_agent agent, uint32_t flags)
{
	begin_with(agent, flags, false);
}

static void end(void)
{
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	helper_join(&other);
	must(contd_group_destroy(group));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Continuations that are ready when a region begins run as after a notification, whichever thread completed them. */
Test(who_runs, ready_before_the_region_begins)
{
	begin(CONTD_AGENT_CALLER, 0);
	contd_compute_begin();
	contd_compute_end();
	for (unsigned i = 0; i < 2; i++) {
		if (i)
			helper_do(&other, complete, NULL);
		else
			complete(NULL);
		not_yet();
		contd_compute_begin();
		cr_assert_eq(runs(&tally), 1);
		contd_compute_end();
		tally.runs = 0;
		contd_event_init(&event);
		must(contd_event_continue(1, (struct contd_event *[]){&event}, tally_cb, &tally, group, NULL));
	}
	/* A guard or a callback puts it off to its end. */
	complete(NULL);
	contd_guard_begin();
	contd_compute_begin();
	cr_assert_eq(runs(&tally), 0);
	contd_guard_end();
	cr_assert_eq(runs(&tally), 1);
	contd_compute_end();
	end();
}

/* Whenever another thread completes it while this one begins and ends regions, it runs. */
Test(who_runs, short_regions)
{
	enum { ROUNDS = SLOW_BUILD ? 300 : 3000 };

	begin(CONTD_AGENT_CALLER, 0);
	for (unsigned round = 1;; round++) {
		helper_start(&other, complete, NULL);
		compute_until((contd_compute_begin(), contd_compute_end(), runs(&tally)) == round);
		helper_finish(&other);
		if (round == ROUNDS)
			break;
		contd_event_init(&event);
		must(contd_event_continue(1, (struct contd_event *[]){&event}, tally_cb, &tally, group, NULL));
	}
	end();
}

/* More than one interruption may run, and no ticks. */
Test(who_runs, what_a_scan_in_a_region_leaves)
{
	enum { N = 500 };
	static struct contd_event events[N];
	static struct tally tallies[N];

	begin(CONTD_AGENT_CALLER, 0);
	for (unsigned i = 0; i < N; i++)
		must(contd_event_continue(1, (struct contd_event *[]){&events[i]}, tally_cb, &tallies[i], group, NULL));
	contd_compute_begin();
	for (unsigned i = 0; i < N; i++)
		complete_quietly(&events[i], 0);
	helper_do(&other, complete, NULL);
	compute_until(contd_group_outstanding(group) == 0);
	contd_compute_end();
	end();
}

/* Nothing left to pay it from: it comes when the purse can pay again, by a tick, whatever the agent. */
Test(who_runs, put_off)
{
	uint64_t put_off;

	begin(CONTD_AGENT_CALLER, 0);
	put_off = stats_now().put_off;
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second / 50);
	contd_compute_begin();
	helper_do(&other, complete, NULL);
	compute_until(runs(&tally));
	cr_assert_eq(tally.context, CONTEXT_REGION);
	contd_compute_end();
	cr_assert_eq(stats_now().put_off, put_off + 1);
	end();
}

/* The clock has gone back since: it still comes within a second. */
Test(who_runs, put_off_by_a_clock_that_goes_back)
{
	uint64_t sent;

	begin(CONTD_AGENT_CALLER, CONTD_ASYNC_SIGNAL_SAFE);
	contd__store(&contd__me->purse.enough_at, contd__ticks() + contd__clock.second * 3600);
	sent = now_ns();
	helper_do(&other, complete, NULL);
	compute_until(runs(&tally));
	cr_assert_lt(now_ns() - sent, 10000000000ull);
	cr_assert_leq(contd__load(&contd__me->purse.enough_at), contd__ticks() + contd__clock.second);
	end();
}

/* Completions during the first attach's calibration are handled at its end, and later ones too. */
static const char *complete_at;

static void complete_there(const char *name)
{
	if (!complete_at || strcmp(name, complete_at))
		return;
	complete_at = NULL;
	helper_do(&other, complete, NULL);
}

static void complete_event(void *data)
{
	must(contd_event_complete(data, 0));
}

static void calibration(const char *name)
{
	struct contd_event after = CONTD_EVENT_INIT;
	struct tally later = {0};

	start(CONTD_AGENT_CALLER);
	kind = OTHER;
	helper_create(&other, false);
	group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	contd_event_init(&event);
	must(contd_event_continue(1, (struct contd_event *[]){&event}, tally_cb, &tally, group, NULL));
	must(contd_event_continue(1, (struct contd_event *[]){&after}, tally_cb, &later, group, NULL));
	complete_at = name;
	__atomic_store_n(&contd__testpoint_hook, complete_there, __ATOMIC_RELEASE);
	must(contd_thread_attach(NULL));
	cr_assert_null(complete_at);
	compute_until(runs(&tally));
	cr_assert_eq(contd__load(&contd__me->signalled), 0);
	helper_do(&other, complete_event, &after);
	compute_until(runs(&later));
	end();
}

Test(who_runs, while_a_tick_is_measured)
{
	calibration("calibrating");
}

Test(who_runs, while_a_notification_is_measured)
{
	calibration("calibrated");
}

/* A debugger stops the thread at each signal for longer than the signals are apart. */
static uint32_t slow_ticks;
static void slowly(const char *name)
{
	struct timespec ts = {0, 200000};

	if (strcmp(name, "calibration_tick"))
		return;
	contd__add(&slow_ticks, 1);
	nanosleep(&ts, NULL);
}

Test(who_runs, a_calibration_ends_whatever_its_interruptions_take)
{
	start(CONTD_AGENT_CALLER);
	__atomic_store_n(&contd__testpoint_hook, slowly, __ATOMIC_RELEASE);
	must(contd_thread_attach(NULL));
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_leq(contd__load(&slow_ticks), 2 * CALIBRATION_TICKS_MOST + 2);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The region ends between the completer's look and its signal. */
static uint32_t ended;

static void end_region_before_send(const char *name)
{
	if (strcmp(name, "notify_before_send") || contd__load(&ended))
		return;
	contd__store_release(&ended, 1);
	while (contd__load_acquire(&ended) != 2)
		sched_yield();
}

Test(who_runs, a_region_that_ends_before_the_signal)
{
	begin(CONTD_AGENT_CALLER, 0);
	__atomic_store_n(&contd__testpoint_hook, end_region_before_send, __ATOMIC_RELEASE);
	contd_compute_begin();
	helper_start(&other, complete, NULL);
	compute_until(contd__load_acquire(&ended) == 1);
	contd_compute_end();
	contd__store_release(&ended, 2);
	helper_finish(&other);
	not_yet();
	contd_compute_begin();
	cr_assert_eq(runs(&tally), 1);
	contd_compute_end();
	end();
}

/*
 * A scan in the handler clears a hint for a place that it finds empty, finds something there after all, and sets the
 * hint again. Threads that looked in between have found nothing, so this handler's thread must look once more.
 */
static struct contd_event late_event;
static uint32_t parked, put;
static const char *put_at;
static pthread_t scanning;

static void park_other_put_here(const char *name)
{
	if (!pthread_equal(pthread_self(), scanning)) {
		if (strcmp(name, "claim_running") == 0 && contd__load(&parked) == 0) {
			contd__store_release(&parked, 1);
			while (contd__load_acquire(&parked) != 2)
				sched_yield();
		}
	} else if (strcmp(name, put_at) == 0 && !put) {
		put = 1;
		complete_quietly(&late_event, 0);
	}
}

static void poll_one(void *data)
{
	(void)data;
	cr_assert_eq(contd_poll(1), 1);
}

static void hint_again(uint32_t flags, bool in_region, const char *at)
{
	struct tally late = {0};

	put_at = at;
	begin_with(CONTD_AGENT_CALLER, flags, strcmp(at, "settle_empty") == 0);
	must(contd_event_continue(1, (struct contd_event *[]){&late_event}, tally_cb, &late, group, NULL));
	scanning = pthread_self();
	if (in_region)
		contd_compute_begin();
	complete_quietly(&event, 0);
	__atomic_store_n(&contd__testpoint_hook, park_other_put_here, __ATOMIC_RELEASE);
	helper_start(&other, poll_one, NULL);
	compute_until(contd__load_acquire(&parked) == 1);
	raise_ours();
	cr_assert_eq(put, 1);
	contd__store_release(&parked, 2);
	helper_finish(&other);
	compute_until(runs(&late));
	cr_assert_eq(runs(&tally), 1);
	if (in_region)
		contd_compute_end();
	end();
}

Test(who_runs, a_hint_that_the_handler_sets_again)
{
	hint_again(CONTD_ASYNC_SIGNAL_SAFE, false, "settle_empty");
}

Test(who_runs, a_hint_of_the_root_that_the_handler_sets_again)
{
	hint_again(CONTD_ASYNC_SIGNAL_SAFE, false, "root_empty");
}

Test(who_runs, a_hint_that_the_handler_sets_again_in_a_region)
{
	hint_again(0, true, "settle_empty");
}

Test(who_runs, a_hint_of_the_root_that_the_handler_sets_again_in_a_region)
{
	hint_again(0, true, "root_empty");
}
