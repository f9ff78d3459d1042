/* SPDX-License-Identifier: BSD-3-Clause */
/* How the daemon waits: ticks, sleep on descriptors, or none; and that idle costs nothing. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "source.h"
#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/limits.h"
#include "dispatch/page.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "signal/timer.h"

TestSuite(agents, .timeout = WATCHDOG);

/* Longer than what is tested; what ends in time has been woken. */
#define LONG_TICK_NS 10000000000ull
#define SOON_NS 8000000000ull

static struct contd_event e1, e2;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2};
static struct tally t1, t2;
static struct contd_group *any, *plain;

static void begin_agent(enum contd_agent agent, uint64_t tick_ns)
{
	struct contd_config config = {.size = sizeof(config), .agent = agent, .scan_ns = 1000000000};

	if (tick_ns == LONG_TICK_NS)
		config.overhead_percent = 50; /* nor do tests wake it so often that its purse is spent */
	config.tick_min_ns = tick_ns < 1000000000 ? tick_ns : 1000000000;
	config.tick_max_ns = tick_ns;
	must(contd_init(&config));
	contd__store(&contd__limits.tick_min, tick_ns); /* may be more than a setting may say */
	any = group_new(CONTD_THREAD_ANY, -1);
	plain = group_new(0, -1);
}

/* --------------------------------------------------------------------------------------- what a thread has cost --- */

struct usage {
	uint64_t switches, cpu_ns;
};

static uint64_t number_behind(const char *path, const char *key)
{
	char line[256];
	uint64_t n = 0;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			n = strtoull(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static struct usage usage_of(pid_t tid)
{
	struct usage u;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	u.switches =
		number_behind(path, "voluntary_ctxt_switches:") + number_behind(path, "nonvoluntary_ctxt_switches:");
	/* Nanoseconds on a processor, and waiting for one; ticks of stat(5) are too coarse to show little. */
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	u.cpu_ns = number_behind(path, "");
	return u;
}

static pid_t daemon_tid;

static void tid_cb(int status, void *data)
{
	contd__store_release(&daemon_tid, (pid_t)syscall(SYS_gettid));
	tally_cb(status, data);
}

static void find_daemon(void)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct tally t = {0};

	must(contd_event_continue(1, es, tid_cb, &t, any, NULL));
	must(contd_event_complete(&e, 0));
	await(contd_group_outstanding(any) == 0);
	cr_assert_eq(t.context, CONTEXT_DAEMON);
}

static uint32_t daemon_is(void)
{
	return contd__load_seq(&contd__page->armed.by.daemon);
}

/* -------------------------------------------------------------------------------------------------------- block --- */

/* Its sleep lasts as long as nothing happens: no look, no switch, no time. */
static void sleeps_for(uint64_t ns, enum contd__where where)
{
	struct usage before, after;
	uint32_t looks;

	await(daemon_is() == DAEMON_POLLS);
	usleep(50000); /* until it is in the kernel */
	before = usage_of(daemon_tid);
	looks = looks_at(&source_a, where);
	usleep((useconds_t)(ns / 1000));
	after = usage_of(daemon_tid);
	cr_assert_eq(looks_at(&source_a, where), looks);
	cr_assert_eq(after.switches, before.switches);
	cr_assert_eq(after.cpu_ns, before.cpu_ns);
	cr_assert_eq(daemon_is(), DAEMON_POLLS);
}

static void begin_block(void)
{
	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	sleeps_for(300000000, WHERE_DAEMON);
}

Test(agents, block_sleeps_until_the_descriptor_is_readable)
{
	begin_block();
	for (unsigned i = 1; i <= 100; i++) {
		uint64_t begun = now_ns();

		source_finish(&source_a);
		await(runs(&t1) == i);
		cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
		cr_assert_eq(t1.context, CONTEXT_DAEMON);
		source_continue(&source_a, &e1, tally_cb, &t1, any);
	}
	cr_assert_leq(looks_at(&source_a, WHERE_DAEMON), 100 * 6 + 50, "%u looks for 100 operations",
		      looks_at(&source_a, WHERE_DAEMON));
	sleeps_for(200000000, WHERE_DAEMON);
	cr_assert_eq(contd_fini(), 1);
}

Test(agents, block_is_woken_by_a_completion)
{
	begin_block();
	for (unsigned i = 1; i <= 50; i++) {
		uint64_t begun = now_ns();

		contd_event_init(&e2);
		must(contd_event_continue(1, es2, tally_cb, &t2, any, NULL));
		must(contd_event_complete(&e2, 0));
		await(runs(&t2) == i);
		cr_assert_lt(now_ns() - begun, SOON_NS);
		cr_assert_eq(t2.context, CONTEXT_DAEMON);
	}
	/* Not by what it may not run. */
	sleeps_for(50000000, WHERE_DAEMON);
	contd_event_init(&e2);
	must(contd_event_continue(1, es2, tally_cb, &t2, plain, NULL));
	must(contd_event_complete(&e2, 0));
	sleeps_for(200000000, WHERE_DAEMON);
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(contd_fini(), 1);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* A thread that waits leaves the looking to the daemon, where descriptors tell of everything; else it looks itself. */
Test(agents, block_lets_waits_sleep)
{
	for (int tells = 0; tells < 2; tells++) {
		uint64_t begun;
		double cpu;

		begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
		source_register(&source_a, WHERE_DAEMON | WHERE_THREAD, true);
		source_a.source.tells = tells; /* only this thread asks */
		find_daemon();
		source_continue(&source_a, &e1, tally_cb, &t1, any);
		await(daemon_is() == DAEMON_POLLS);
		cpu = cpu_ns();
		begun = now_ns();
		must_fail(contd_group_wait(any, 300000000), ETIMEDOUT);
		cpu = (cpu_ns() - cpu) / (double)(now_ns() - begun);
		if (tells)
			cr_assert_lt(cpu, 0.02);
		else
			cr_assert_gt(looks_at(&source_a, WHERE_THREAD), 50);
		source_finish(&source_a);
		must(contd_group_wait(any, -1));
		cr_assert_eq(runs(&t1), (unsigned)tells + 1);
		cr_assert_eq(contd_fini(), 0);
	}
}

Test(agents, block_is_woken_by_the_end)
{
	uint64_t begun;

	begin_block();
	begun = now_ns();
	cr_assert_eq(contd_fini(), 1);
	cr_assert_lt(now_ns() - begun, SOON_NS);
}

Test(agents, block_is_woken_by_another_agent)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_SPIN};
	uint64_t begun;

	begin_block();
	begun = now_ns();
	must(contd_configure(&c));
	await(looks_at(&source_a, WHERE_DAEMON) > 1000);
	cr_assert_lt(now_ns() - begun, SOON_NS);
	c.agent = CONTD_AGENT_BLOCK;
	c.tick_max_ns = LONG_TICK_NS;
	must(contd_configure(&c));
	sleeps_for(200000000, WHERE_DAEMON);
	cr_assert_eq(contd_fini(), 1);
}

/* A completion without a descriptor, which a peer rings for: the daemon polls, and only a signal can wake it. */
static uint64_t never;
static const struct contd_word never_word = {&never, 0, 1, CONTD_WORD_EQ};
static struct tally never_tally;

Test(agents, block_is_woken_by_a_peer)
{
	struct contd_bell *bell;
	char job[32];

	snprintf(job, sizeof(job), "agents-%d", (int)getpid());
	begin_block();
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &bell));
	for (unsigned i = 1; i <= 20; i++) {
		uint64_t begun = now_ns();

		await(daemon_is() == DAEMON_POLLS);
		usleep(1000);
		contd__add(&source_a.arrived, 1);
		cr_assert_eq(contd_bell_ring(bell), 1);
		await(runs(&t1) == i);
		cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
		source_continue(&source_a, &e1, tally_cb, &t1, any);
	}
	sleeps_for(200000000, WHERE_DAEMON);
	contd_bell_close(bell);
	cr_assert_eq(contd_fini(), 1);
}

/* The daemon also sleeps on operations that become pending while it asks for descriptors. */
static void begin_the_other(void)
{
	source_b.asking = NULL;
	source_begin(&source_a);
}

Test(agents, block_asks_again_where_something_became_pending_meanwhile)
{
	uint64_t begun;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_DAEMON, true);
	source_register(&source_b, WHERE_DAEMON, true);
	find_daemon();
	source_b.asking = begin_the_other;
	begun = now_ns();
	source_begin(&source_b);
	await(contd__load(&source_a.asked));
	await(daemon_is() == DAEMON_POLLS);
	source_finish(&source_a);
	await(contd__load(&source_a.found));
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	source_finish(&source_b);
	await(contd__load(&source_b.found));
	cr_assert_eq(contd_fini(), 0);
}

/* Ticks at the longest interval, because a completion may come without a descriptor. */
Test(agents, block_looks_at_the_longest_tick)
{
	uint64_t begun;
	uint32_t looks;

	begin_agent(CONTD_AGENT_BLOCK, 20000000);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	await(daemon_is() == DAEMON_POLLS);
	looks = looks_at(&source_a, WHERE_DAEMON);
	begun = now_ns();
	await(looks_at(&source_a, WHERE_DAEMON) >= looks + 20);
	cr_assert_leq(looks_at(&source_a, WHERE_DAEMON) - looks, 3 * ((now_ns() - begun) / 20000000 + 2));
	contd__add(&source_a.arrived, 1);
	await(runs(&t1));
	cr_assert_eq(contd_fini(), 0);
}

/* Another source has no descriptor, or a word is watched: it must look in turns. */
Test(agents, block_ticks_for_a_source_without_a_descriptor)
{
	struct contd_handle h;
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	uint32_t looks;

	begin_agent(CONTD_AGENT_BLOCK, 1000000);
	source_register(&source_a, WHERE_DAEMON, true);
	source_register(&source_b, WHERE_DAEMON, false);
	find_daemon();
	source_begin(&source_a);
	source_continue(&source_b, &e2, tally_cb, &t2, any);
	looks = looks_at(&source_b, WHERE_DAEMON);
	await(looks_at(&source_b, WHERE_DAEMON) > looks + 50);
	await(daemon_is() != DAEMON_POLLS); /* for a moment, while it asks for descriptors */
	source_finish(&source_b);
	await(runs(&t2));
	await(daemon_is() == DAEMON_POLLS);
	must(contd_word_continue(&w, tally_cb, &t1, any, &h));
	looks = looks_at(&source_a, WHERE_DAEMON);
	await(looks_at(&source_a, WHERE_DAEMON) > looks + 50);
	await(daemon_is() != DAEMON_POLLS); /* for a moment, while it asks for descriptors */
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	await(runs(&t1));
	await(daemon_is() == DAEMON_POLLS);
	source_finish(&source_a);
	await(contd__load(&source_a.found));
	cr_assert_eq(contd_fini(), 0);
}

/* "Something is there already": it looks again before it sleeps, and is asked again. */
Test(agents, block_looks_again_where_something_is_there_already)
{
	uint32_t asked;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	contd__store(&source_a.busy, 5);
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	await(contd__load(&source_a.busy) == 0);
	await(daemon_is() == DAEMON_POLLS);
	asked = contd__load(&source_a.asked);
	cr_assert_geq(asked, 6);
	/* Once after each such answer. It may have asked first: the source begins while the daemon is at work. */
	cr_assert_geq(looks_at(&source_a, WHERE_DAEMON), 5);
	sleeps_for(200000000, WHERE_DAEMON);
	cr_assert_eq(contd__load(&source_a.asked), asked);
	source_finish(&source_a);
	await(runs(&t1));
	cr_assert_eq(contd_fini(), 0);
}

/* Nor may a source that always has something take the whole core, or one with a descriptor that stays readable. */
static void does_not_take_the_core(void)
{
	struct usage before, after;
	uint64_t begun, passed;

	await(looks_at(&source_a, WHERE_DAEMON) > 2); /* the purse is full at first */
	usleep(200000);
	begun = now_ns();
	before = usage_of(daemon_tid);
	usleep(1000000);
	after = usage_of(daemon_tid);
	passed = now_ns() - begun;
	cr_assert_lt((double)(after.cpu_ns - before.cpu_ns), (double)passed * 0.2, "%g %% of a core",
		     (double)(after.cpu_ns - before.cpu_ns) * 100 / (double)passed);
}

Test(agents, block_and_a_descriptor_that_stays_readable)
{
	begin_agent(CONTD_AGENT_BLOCK, 10000000);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	source_a.deaf = true;
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	source_finish(&source_a);
	does_not_take_the_core();
	cr_assert_eq(runs(&t1), 0);
	contd__store(&source_a.deaf, false);
	await(runs(&t1));
	cr_assert_eq(contd_fini(), 0);
}

Test(agents, block_and_a_source_that_is_always_busy)
{
	begin_agent(CONTD_AGENT_BLOCK, 10000000);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	contd__store(&source_a.busy, UINT32_MAX);
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	does_not_take_the_core();
	contd__store(&source_a.busy, 0);
	source_finish(&source_a);
	await(runs(&t1));
	cr_assert_eq(contd_fini(), 0);
}

/* ----------------------------------------------------------------------------------------- on behalf of regions --- */

static void *finisher(void *data)
{
	usleep(*(useconds_t *)data);
	source_finish(&source_a);
	return NULL;
}

/* The thread computes, ticks are far too rare, and only its region may drive the source: the daemon watches for it. */
Test(agents, block_interrupts_a_region)
{
	useconds_t pause = 2000;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	must(contd_thread_attach(NULL));
	for (unsigned i = 1; i <= 30; i++) {
		uint64_t begun = now_ns();
		pthread_t thread;

		source_continue(&source_a, &e1, tally_cb, &t1, plain);
		cr_assert_eq(pthread_create(&thread, NULL, finisher, &pause), 0);
		contd_compute_begin();
		compute_until(runs(&t1) == i);
		contd_compute_end();
		cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
		cr_assert_eq(t1.context, CONTEXT_REGION);
		pthread_join(thread, NULL);
	}
	cr_assert_eq(looks_at(&source_a, WHERE_DAEMON), 0);
	cr_assert_geq(stats_now().notifications, 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The thread has armed the bell in a region, and the operation ends between two regions: the daemon's signal finds the
 * thread outside. */
Test(agents, block_rings_between_two_regions)
{
	uint64_t begun;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_compute_begin();
	contd_compute_end();
	cr_assert_neq(contd__load_seq(&contd__page->armed.by.thread), 0);
	begun = now_ns();
	source_finish(&source_a);
	await(stats_now().notifications >= 1 && contd__load_seq(&contd__page->armed.by.thread) == 0);
	contd_compute_begin();
	compute_until(runs(&t1));
	contd_compute_end();
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static uint32_t computing, found_by_other;

static void *computes_beside(void *arg)
{
	(void)arg;
	must(contd_thread_attach(NULL));
	contd_compute_begin(); /* the first region of a thread looks; the bell is another thread's */
	contd_compute_end();
	contd_compute_begin();
	contd__store_seq(&computing, 1);
	compute_until(runs(&t1));
	contd_compute_end();
	contd__store_seq(&found_by_other, t1.context == CONTEXT_REGION);
	must(contd_thread_detach());
	return NULL;
}

/* The thread that has armed the bell is outside regions, and another one computes. */
Test(agents, block_hands_on_to_a_thread_that_computes)
{
	uint64_t begun;
	pthread_t thread;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_compute_begin();
	cr_assert_eq(pthread_create(&thread, NULL, computes_beside, NULL), 0);
	compute_until(contd__load_seq(&computing));
	contd_compute_end();
	begun = now_ns();
	source_finish(&source_a);
	pthread_join(thread, NULL);
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	cr_assert_eq(contd__load_seq(&found_by_other), 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* ---------------------------------------------------------------------------------- no ring for regions is lost --- */

static void begin_region_source(void)
{
	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	must(contd_thread_attach(NULL));
}

/* What becomes ready now is found in this thread's region, without a tick. */
static void finish_is_found_here(void)
{
	uint64_t begun = now_ns();

	source_finish(&source_a);
	compute_until(runs(&t1));
	contd_compute_end();
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	cr_assert_eq(t1.context, CONTEXT_REGION);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* The ring comes under a guard in a region, and the region ends before the guard. */
Test(agents, block_rings_under_a_guard_that_outlasts_the_region)
{
	uint64_t begun;

	begin_region_source();
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_compute_begin();
	cr_assert_neq(contd__load_seq(&contd__page->armed.by.thread), 0);
	contd_guard_begin();
	begun = now_ns();
	source_finish(&source_a);
	compute_until(contd__load(&contd__self.counters.guarded));
	contd_compute_end();
	contd_guard_end();
	contd_compute_begin();
	compute_until(runs(&t1));
	contd_compute_end();
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A region begins under a guard, which ends in the region. */
Test(agents, block_rings_a_region_that_began_under_a_guard)
{
	begin_region_source();
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_guard_begin();
	contd_compute_begin();
	contd_guard_end();
	finish_is_found_here();
}

static void region_cb(int status, void *data)
{
	contd_compute_begin();
	contd_compute_end();
	tally_cb(status, data);
}

/* A callback had a region, in which nothing runs. */
Test(agents, block_rings_after_a_region_in_a_callback)
{
	begin_region_source();
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	must(contd_event_continue(1, es2, region_cb, &t2, plain, NULL));
	must(contd_event_complete(&e2, 0));
	contd_poll(0);
	cr_assert_eq(runs(&t2), 1);
	contd_compute_begin();
	finish_is_found_here();
}

static struct helper beside;
static uint32_t beside_computes, beside_leaves;

static void computes_until_found(void *data)
{
	(void)data;
	contd_compute_begin();
	contd_compute_end();
	contd_compute_begin();
	contd__store_seq(&beside_computes, 1);
	compute_until(runs(&t1) || contd__load_seq(&beside_leaves));
	contd_compute_end();
	contd__store_seq(&beside_computes, 0);
}

/* Another thread computes, and this one has armed the bell. */
static void begin_beside(void)
{
	begin_region_source();
	helper_create(&beside, true);
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	contd_compute_begin();
	helper_start(&beside, computes_until_found, NULL);
	compute_until(contd__load_seq(&beside_computes));
	contd_compute_end();
	cr_assert_eq(contd__load_seq(&contd__page->armed.by.thread), (uint32_t)gettid());
}

static void finish_is_found_beside(bool attached)
{
	uint64_t begun = now_ns();

	if (!contd__load(&source_a.arrived))
		source_finish(&source_a);
	await(runs(&t1));
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	cr_assert(pthread_equal(t1.thread, beside.thread));
	helper_join(&beside);
	if (attached)
		must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(agents, block_rings_another_thread_after_a_detach)
{
	begin_beside();
	must(contd_thread_detach());
	finish_is_found_beside(false);
}

/* Ticks outside regions, which have no use. */
Test(agents, block_rings_another_thread_where_this_one_rests)
{
	begin_beside();
	contd__rest_sig(contd__me);
	finish_is_found_beside(true);
}

static uint32_t taken_from_page, detached;

static void while_it_detaches(const char *name)
{
	if (strcmp(name, "region_bell_taken") != 0)
		return;
	contd__store_seq(&taken_from_page, 1);
	await(contd__load_seq(&detached));
}

/* The daemon has taken the bell away, and is about to interrupt a thread that detaches. */
Test(agents, block_rings_another_thread_where_this_one_has_gone)
{
	begin_beside();
	contd__store_release(&contd__testpoint_hook, while_it_detaches);
	source_finish(&source_a);
	await(contd__load_seq(&taken_from_page));
	/* Nobody sees the bell taken: as if the thread had detached a moment before. */
	contd__store_seq(&contd__page->armed.by.thread, 1);
	must(contd_thread_detach());
	contd__store_seq(&contd__page->armed.by.thread, 0);
	contd__store_seq(&detached, 1);
	finish_is_found_beside(false);
}

static void begins_here(void *data)
{
	(void)data;
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
}

/* This thread computes already when another one begins what its region may look at. */
Test(agents, block_arms_where_a_thread_computes_already)
{
	struct helper h;

	begin_region_source();
	helper_create(&h, false);
	contd_compute_begin();
	contd_compute_end();
	contd_compute_begin();
	helper_do(&h, begins_here, NULL);
	finish_is_found_here();
	helper_join(&h);
}

static void watches(void *data)
{
	(void)data;
	contd_compute_begin();
	while (!(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED))
		contd_checkpoint();
	contd_compute_end();
}

/* Checkpoints of a region that has ended watch the bell. */
Test(agents, block_rings_where_checkpoints_have_watched_the_bell)
{
	struct helper h;
	char job[32];

	begin_region_source();
	snprintf(job, sizeof(job), "agents-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	helper_create(&h, true);
	contd_compute_begin();
	contd__store_seq(&contd__page->armed.by.thread, 0);
	helper_do(&h, watches, NULL);
	finish_is_found_here();
	helper_join(&h);
}

/* A thread that is not attached computes, and its checkpoints watch the bell. The daemon sleeps by then. */
Test(agents, block_rings_checkpoints_of_a_thread_that_is_not_attached)
{
	char job[32];

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	snprintf(job, sizeof(job), "agents-%d", (int)getpid());
	must(contd_bell_listen(job, 0));
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	await(contd__load_seq(&contd__wake.daemon_asleep));
	contd_compute_begin();
	contd_checkpoint();
	cr_assert(contd__load_seq(&contd__page->armed.by.thread) & BELL_WATCHED);
	source_finish(&source_a);
	await(contd__load_seq(&contd__page->armed.by.thread) == 0); /* the daemon has rung */
	contd_checkpoint();
	contd_compute_end();
	cr_assert_eq(runs(&t1), 1);
	cr_assert_eq(contd_fini(), 0);
}

/* No thread computes, and each gets interruptions: none of them is handed on. A kernel without membarrier(2) does not
 * tell whether one does: the first time each other thread is interrupted, so that it looks. */
static void interrupted(void *data)
{
	(void)data;
	for (unsigned i = 0; i < 100; i++)
		raise_ours();
}

Test(agents, block_hands_nothing_on_where_no_thread_computes)
{
	bool has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0) > 0;
	uint32_t before;

	begin_beside();
	contd__store_seq(&beside_leaves, 1);
	helper_finish(&beside);
	contd__store_seq(&contd__page->armed.by.thread, 0);
	for (unsigned i = 0; i < 10; i++) {
		helper_start(&beside, interrupted, NULL);
		interrupted(NULL);
		helper_finish(&beside);
	}
	before = stats_now().notifications + stats_now().put_off;
	if (has_membarrier)
		cr_assert_eq(before, 0);
	else
		cr_assert(before >= 1 && before <= 2, "%u interruptions of two threads", before);
	/* One thread computes: once. */
	contd__store_seq(&beside_leaves, 0);
	contd__store_seq(&source_a.elsewhere, true);
	helper_start(&beside, computes_until_found, NULL);
	await(contd__load_seq(&beside_computes));
	contd__store_seq(&contd__page->armed.by.thread, 0);
	for (unsigned i = 0; i < 10; i++)
		interrupted(NULL);
	cr_assert_leq(stats_now().notifications + stats_now().put_off, before + 1);
	contd__store_seq(&beside_leaves, 1);
	helper_join(&beside);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 1);
}

static void takes_from_the_descriptor(int status, void *data)
{
	contd__add(&source_a.arrived, 1); /* and nothing is left to read */
	tally_cb(status, data);
}

/* A tick runs a callback that takes from a descriptor, and nothing else is pending that ticks are of use for. */
Test(agents, block_looks_again_after_a_callback_in_a_tick)
{
	struct contd_group *g;
	uint64_t begun;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	contd__store(&contd__limits.tick_min, 1000000);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE, -1);
	source_register(&source_a, WHERE_DAEMON, true);
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	await(daemon_is() == DAEMON_POLLS);
	usleep(50000);
	begun = now_ns();
	must(contd_event_complete(&e2, 0));
	must(contd_event_continue(1, es2, takes_from_the_descriptor, &t2, g, NULL));
	compute_until(runs(&t1));
	cr_assert_lt(now_ns() - begun, SOON_NS, "a tick has found it");
	cr_assert_geq(stats_now().ticks, 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* What is readable is not a region's. */
Test(agents, block_interrupts_no_region_for_the_daemons_own)
{
	uint64_t before;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_REGION, true);
	source_register(&source_b, WHERE_DAEMON, true);
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e1, tally_cb, &t1, plain);
	source_continue(&source_b, &e2, tally_cb, &t2, any);
	contd_compute_begin();
	await(contd__load_seq(&contd__page->armed.by.thread) && daemon_is() == DAEMON_POLLS);
	before = stats_now().notifications;
	source_finish(&source_b);
	compute_until(runs(&t2));
	await(daemon_is() == DAEMON_POLLS);
	cr_assert_eq(stats_now().notifications, before);
	source_finish(&source_a);
	compute_until(runs(&t1));
	contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Readable while no thread is in a region: no thread may read it, and the daemon's own work goes on. */
Test(agents, block_leaves_regions_descriptors_alone_outside_them)
{
	struct usage before, after;

	begin_agent(CONTD_AGENT_BLOCK, LONG_TICK_NS);
	source_register(&source_a, WHERE_DAEMON, true);
	source_register(&source_b, WHERE_REGION, true);
	find_daemon();
	must(contd_thread_attach(NULL));
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	source_continue(&source_b, &e2, tally_cb, &t2, plain);
	source_finish(&source_b);
	sleeps_for(300000000, WHERE_DAEMON);
	source_finish(&source_a);
	await(runs(&t1));
	/* Nothing but the region's source is left. */
	usleep(50000);
	before = usage_of(daemon_tid);
	usleep(200000);
	after = usage_of(daemon_tid);
	cr_assert_eq(before.switches, after.switches);
	contd_compute_begin();
	compute_until(runs(&t2));
	contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------------- spin, tick --- */

static void nothing_is_pending_costs_nothing(void)
{
	struct usage before, after = {0};
	unsigned i = 0;

	await(contd__load_seq(&contd__wake.daemon_asleep));
	do {
		before = usage_of(daemon_tid);
		usleep(200000);
		after = usage_of(daemon_tid);
		cr_assert_lt(i++, 20);
	} while (before.cpu_ns != after.cpu_ns || before.switches != after.switches);
	cr_assert(contd__load_seq(&contd__wake.daemon_asleep));
}

Test(agents, spin_looks_without_pause)
{
	begin_agent(CONTD_AGENT_SPIN, LONG_TICK_NS);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	nothing_is_pending_costs_nothing();
	for (unsigned i = 1; i <= 3; i++) {
		uint32_t looks = looks_at(&source_a, WHERE_DAEMON);

		source_continue(&source_a, &e1, tally_cb, &t1, any);
		await(looks_at(&source_a, WHERE_DAEMON) > looks + 20000);
		cr_assert_eq(daemon_is(), DAEMON_AWAKE);
		source_finish(&source_a);
		await(runs(&t1) == i);
		nothing_is_pending_costs_nothing();
	}
	cr_assert_eq(contd__load(&source_a.asked), 0, "it has no use for descriptors");
	cr_assert_eq(contd_fini(), 0);
}

Test(agents, tick_looks_in_turns)
{
	begin_agent(CONTD_AGENT_TICK, 1000000);
	source_register(&source_a, WHERE_DAEMON, true);
	find_daemon();
	nothing_is_pending_costs_nothing();
	source_continue(&source_a, &e1, tally_cb, &t1, any);
	await(looks_at(&source_a, WHERE_DAEMON) > 100);
	source_finish(&source_a);
	await(runs(&t1));
	nothing_is_pending_costs_nothing();
	cr_assert_eq(contd__load(&source_a.asked), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* Wake-ups by peers are counted; those by threads of this process are no rings. */
Test(agents, rings_that_wake_the_daemon_are_counted)
{
	struct contd_bell *bell;
	char job[32];

	snprintf(job, sizeof(job), "agents-%d", (int)getpid());
	begin_agent(CONTD_AGENT_TICK, LONG_TICK_NS);
	find_daemon();
	for (unsigned i = 0; i < 5; i++)
		find_daemon();
	cr_assert_eq(stats_now().rings, 0);
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &bell));
	await(contd__load_seq(&contd__wake.daemon_asleep));
	cr_assert_eq(contd_bell_ring(bell), 0, "nothing is pending, and it was rung");
	must(contd_word_continue(&never_word, tally_cb, &never_tally, group_new(0, -1), NULL));
	for (uint64_t i = 1; i <= 10; i++) {
		await(daemon_is() == DAEMON_NAPS);
		cr_assert_eq(contd_bell_ring(bell), 1);
		await(stats_now().rings == i);
	}
	contd_bell_close(bell);
	cr_assert_eq(contd_fini(), 1);
}

/* --------------------------------------------------------------------------------------------------------- idle --- */

#define IDLE_SECONDS 10

static pid_t paused_tid;
static struct contd_group *safe;
static uint32_t paused_runs;

static void paused_cb(int status, void *data)
{
	(void)status;
	(void)data;
	contd__add(&paused_runs, 1);
}

static void *pauses(void *data)
{
	(void)data;
	must(contd_thread_attach(NULL));
	contd__store_release(&paused_tid, (pid_t)syscall(SYS_gettid));
	for (;;)
		pause();
	return NULL;
}

static void same(const char *agent, const char *what, uint64_t before, uint64_t after, int *wrong)
{
	if (before == after)
		return;
	fprintf(stderr, "agent %s: %s: %lu, and then %lu\n", agent, what, (unsigned long)before, (unsigned long)after);
	*wrong = 1;
}

/* In a separate process. Everything has been pending once, and is complete. */
__attribute__((unused)) static int idle(enum contd_agent agent, const char *name)
{
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct usage d0, d1, p0, p1;
	struct contd_stats s0, s1;
	uint64_t q0, q1;
	pthread_t thread;
	int wrong = 0;

	start(agent);
	any = group_new(CONTD_THREAD_ANY, -1);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	source_register(&source_a, WHERE_THREAD | WHERE_REGION | WHERE_DAEMON, true);
	cr_assert_eq(pthread_create(&thread, NULL, pauses, NULL), 0);
	await(contd__load_acquire(&paused_tid));
	if (agent >= CONTD_AGENT_TICK)
		find_daemon();
	/* By a notification, a word, a source. */
	must(contd_event_continue(1, es1, paused_cb, NULL, safe, NULL));
	must(contd_event_complete(&e1, 0));
	must(contd_word_continue(&w, paused_cb, NULL, safe, NULL));
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	if (agent == CONTD_AGENT_CALLER)
		contd_poll(0);
	await(contd__load(&paused_runs) == 2);
	source_continue(&source_a, &e2, tally_cb, &t2, any);
	source_finish(&source_a);
	if (agent < CONTD_AGENT_TICK)
		contd_poll(0);
	await(runs(&t2));
	/* The daemon sleeps if continuations wait only for a call, or for an event of the program's. */
	contd_event_init(&e1);
	must(contd_event_continue(1, es1, paused_cb, NULL, safe, NULL));
	usleep(500000);

	s0 = stats_now();
	q0 = number_behind("/proc/self/status", "SigQ:");
	p0 = usage_of(paused_tid);
	d0 = usage_of(agent >= CONTD_AGENT_TICK ? daemon_tid : paused_tid);
	sleep(IDLE_SECONDS);
	d1 = usage_of(agent >= CONTD_AGENT_TICK ? daemon_tid : paused_tid);
	p1 = usage_of(paused_tid);
	q1 = number_behind("/proc/self/status", "SigQ:");
	s1 = stats_now();

	same(name, "context switches of the daemon", d0.switches, d1.switches, &wrong);
	same(name, "processor time of the daemon", d0.cpu_ns, d1.cpu_ns, &wrong);
	same(name, "wake-ups of the thread that pauses", p0.switches, p1.switches, &wrong);
	same(name, "processor time of the thread that pauses", p0.cpu_ns, p1.cpu_ns, &wrong);
	same(name, "ticks", s0.ticks, s1.ticks, &wrong);
	same(name, "notifications", s0.notifications + s0.put_off + s0.rings, s1.notifications + s1.put_off + s1.rings,
	     &wrong);
	same(name, "time in handlers", s0.handler_ns, s1.handler_ns, &wrong);
	same(name, "scans", s0.scans, s1.scans, &wrong);
	(void)q0, (void)q1; /* of all processes of the user: it says nothing about this one where others run */
	/* And it is there at once. */
	must(contd_event_complete(&e1, 0));
	await(contd__load(&paused_runs) == 3);
	return wrong;
}

#ifndef __SANITIZE_THREAD__ /* it knows no threads in a child of a process that has some */
Test(agents, idle_costs_nothing)
{
	static const char *const names[] = {"", "caller", "region", "tick", "block", "spin"};
	pid_t child[CONTD_AGENT_SPIN + 1];

#ifdef __SANITIZE_THREAD__
	cr_skip_test("the sanitizer lets no child of a fork have threads");
#endif
	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_SPIN; agent++) {
		child[agent] = fork();
		cr_assert_geq(child[agent], 0);
		if (child[agent] == 0)
			_exit(idle((enum contd_agent)agent, names[agent]));
	}
	for (int agent = CONTD_AGENT_CALLER; agent <= CONTD_AGENT_SPIN; agent++) {
		int status;

		cr_assert_eq(waitpid(child[agent], &status, 0), child[agent]);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "agent %s: %x", names[agent],
			  (unsigned)status);
	}
}
#endif
