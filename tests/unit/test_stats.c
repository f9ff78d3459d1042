/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics are exact once the threads are quiet. */
#include "unit.h"
#include "rcu/table.h"
#include "dispatch/slot.h"
#include "base/clock.h"
#include "base/atomic.h"

TestSuite(stats, .timeout = WATCHDOG);

static uint64_t histogram(const struct contd_stats *s)
{
	uint64_t sum = 0;

	for (unsigned b = 0; b < CONTD_HISTOGRAM_BUCKETS; b++)
		sum += s->latency[b];
	return sum;
}

#define counts(s, registered_, run_, inline_, cancelled_) \
	do { \
		cr_assert_eq((s).registered, (uint64_t)(registered_)); \
		cr_assert_eq((s).run, (uint64_t)(run_)); \
		cr_assert_eq((s).run_inline, (uint64_t)(inline_)); \
		cr_assert_eq((s).cancelled, (uint64_t)(cancelled_)); \
		cr_assert_eq(histogram(&(s)), (s).run); \
	} while (0)

/*
 * Each of several threads does this: 100 that complete later and are run by its poll, 30 inside the call, 10 cancelled,
 * one that is refused.
 */
enum { THREADS = 4, LATER = 100, INLINE = 30, CANCELLED = 10 };

static uint32_t go, ready;

static void *sequence(void *group)
{
	struct contd_event e[LATER] = {{0}}, c[CANCELLED] = {{0}};
	struct contd_event *es[1], *busy[] = {&c[0]};
	struct contd_handle h[CANCELLED];
	struct tally t = {0};
	struct contd_group *mine = group_new(0, -1);

	for (unsigned i = 0; i < LATER; i++) {
		es[0] = &e[i];
		must(contd_event_continue(1, es, tally_cb, &t, mine, NULL));
	}
	for (unsigned i = 0; i < INLINE; i++)
		must(contd_event_continue(0, NULL, tally_cb, &t, mine, NULL));
	for (unsigned i = 0; i < CANCELLED; i++) {
		es[0] = &c[i];
		must(contd_event_continue(1, es, tally_cb, &t, mine, &h[i]));
	}
	must_fail(contd_event_continue(1, busy, tally_cb, &t, mine, NULL), EBUSY);
	for (unsigned i = 0; i < CANCELLED; i++)
		must(contd_cancel(h[i]));
	must_fail(contd_cancel(h[0]), EALREADY);
	for (unsigned i = 0; i < LATER; i++)
		must(contd_event_complete(&e[i], 0));
	must(contd_group_wait(mine, -1));
	await(runs(&t) == LATER + INLINE); /* by whichever thread */
	(void)group;
	contd__add(&ready, 1);
	/* The first half of the threads end; the others live on. */
	while (contd__load_acquire(&go) == 0)
		usleep(100);
	must(contd_group_destroy(mine));
	return NULL;
}

Test(stats, known_sequence_over_threads_that_live_and_that_ended)
{
	pthread_t thread[THREADS];
	struct contd_stats s;

	start(CONTD_AGENT_CALLER);
	s = stats_now();
	counts(s, 0, 0, 0, 0);
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, sequence, NULL), 0);
	await(contd__load_acquire(&ready) == THREADS);
	s = stats_now();
	counts(s, THREADS * (LATER + INLINE + CANCELLED), THREADS * (LATER + INLINE), THREADS * INLINE,
	       THREADS * CANCELLED);
	cr_assert_geq(s.grown, THREADS, "each group's first 64 places were not enough");
	contd__store_release(&go, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	s = stats_now();
	counts(s, THREADS * (LATER + INLINE + CANCELLED), THREADS * (LATER + INLINE), THREADS * INLINE,
	       THREADS * CANCELLED);
	/* And more: some ended, some new, and this one. */
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(pthread_create(&thread[i], NULL, sequence, NULL), 0);
		pthread_join(thread[i], NULL);
	}
	sequence(NULL);
	s = stats_now();
	counts(s, (THREADS + 3) * (LATER + INLINE + CANCELLED), (THREADS + 3) * (LATER + INLINE),
	       (THREADS + 3) * INLINE, (THREADS + 3) * CANCELLED);
	cr_assert_eq(s.run_handler + s.run_region + s.run_daemon, 0);
	cr_assert_eq(s.ticks + s.notifications + s.notify_failed + s.guarded + s.overruns, 0);
	cr_assert_eq(s.handler_ns, 0);
	cr_assert_eq(s.lost_ns, 0);
	cr_assert_eq(contd_fini(), 0);
	/* From the start again. */
	start(CONTD_AGENT_CALLER);
	s = stats_now();
	counts(s, 0, 0, 0, 0);
	cr_assert_eq(s.grown + s.scans, 0);
	cr_assert_eq(contd_fini(), 0);
}

static struct contd_event e1, e2, e3, e4, e5;
static struct contd_event *es1[] = {&e1}, *es2[] = {&e2}, *es3[] = {&e3}, *es4[] = {&e4}, *es5[] = {&e5};
static struct tally t1, t2, t3, t4, t5;

static void job_complete(void *event)
{
	must(contd_event_complete(event, 0));
}

Test(stats, where_each_one_ran)
{
	struct contd_group *safe, *plain, *any;
	struct contd_stats s;
	struct helper other;

	start(CONTD_AGENT_CALLER);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	plain = group_new(0, -1);
	any = group_new(CONTD_THREAD_ANY, -1);
	helper_create(&other, false);
	must(contd_thread_attach(NULL));
	/* One in the handler, on notification by another thread, and one signal under a guard. */
	must(contd_event_continue(1, es1, tally_cb, &t1, safe, NULL));
	helper_start(&other, job_complete, &e1);
	compute_until(runs(&t1));
	helper_finish(&other);
	s = stats_now();
	counts(s, 1, 1, 0, 0);
	cr_assert_eq(s.run_handler, 1);
	cr_assert_eq(s.notifications, 1);
	cr_assert_gt(s.handler_ns, 0);
	cr_assert_geq(s.lost_ns, s.handler_ns);
	contd_guard_begin();
	raise_ours();
	contd_guard_end();
	cr_assert_eq(stats_now().guarded, 1);
	/* One in a region. */
	must(contd_event_continue(1, es2, tally_cb, &t2, plain, NULL));
	must(contd_event_complete(&e2, 0));
	contd_compute_begin();
	raise_ours();
	contd_compute_end();
	cr_assert_eq(runs(&t2), 1);
	/* One on the daemon. */
	must(contd_daemon_start(NULL));
	must(contd_event_continue(1, es3, tally_cb, &t3, any, NULL));
	must(contd_event_complete(&e3, 0));
	await(runs(&t3));
	must(contd_daemon_stop());
	/* One in a poll, one inside the call. */
	must(contd_event_continue(1, es4, tally_cb, &t4, plain, NULL));
	must(contd_event_complete(&e4, 0));
	cr_assert_eq(contd_poll(0), 1);
	must(contd_event_complete(&e5, 0));
	must(contd_event_continue(1, es5, tally_cb, &t5, plain, NULL));
	s = stats_now();
	counts(s, 5, 5, 1, 0);
	cr_assert_eq(s.run_handler, 1);
	cr_assert_eq(s.run_region, 1);
	cr_assert_eq(s.run_daemon, 1, "the daemon has ended, its count not");
	cr_assert_eq(s.notifications, 1);
	cr_assert_eq(s.guarded, 1);
	cr_assert_eq(s.ticks, 0);
	cr_assert_eq(s.grown, 0);
	helper_join(&other);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(stats, growth)
{
	enum { N = 64 + 4096 + 1 };
	static struct contd_event e[N];
	struct tally t = {0};
	struct contd_group *g;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	for (unsigned i = 0; i < N; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, tally_cb, &t, g, NULL));
		if (i < 32)
			cr_assert_eq(stats_now().grown, 0);
		else if (i == 64)
			cr_assert_eq(stats_now().grown, 1);
	}
	cr_assert_eq(stats_now().grown, 2);
	cr_assert_eq(contd_fini(), N);
}

Test(stats, ticks_and_their_cost)
{
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_group *g;
	struct contd_stats s;
	struct tally t = {0};

	start(CONTD_AGENT_REGION);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	s = stats_now();
	cr_assert_eq(s.tick_cost_ns, 0, "nothing has been measured");
	must(contd_thread_attach(NULL));
	s = stats_now();
	cr_assert_gt(s.tick_cost_ns, 0);
	cr_assert_eq(s.tick_ns, 0);
	must(contd_word_continue(&w, tally_cb, &t, g, NULL));
	s = stats_now();
	cr_assert_geq(s.tick_ns, 10000);
	cr_assert_leq(s.tick_ns, 10000000);
	{
		uint64_t before = s.ticks;

		compute_until(stats_now().ticks >= before + 3);
	}
	s = stats_now();
	cr_assert_gt(s.handler_ns, 0);
	cr_assert_geq(s.lost_ns, s.handler_ns + 3 * s.tick_cost_ns / 2, "what the kernel costs is in it");
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	compute_until(runs(&t));
	compute_until(stats_now().tick_ns == 0);
	s = stats_now();
	counts(s, 1, 1, 0, 0);
	cr_assert_eq(s.run_handler, 1);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* A continuation that is ready for a while shows so. */
Test(stats, latency_is_in_its_bucket)
{
	struct contd_stats s;
	struct contd_group *g;
	uint64_t long_ones = 0;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must(contd_event_continue(1, es1, tally_cb, &t1, g, NULL));
	must(contd_event_continue(1, es2, tally_cb, &t2, g, NULL));
	usleep(50000); /* before they are ready: does not count */
	must(contd_event_complete(&e1, 0));
	usleep(50000);
	cr_assert_eq(contd_poll(0), 1);
	must(contd_event_complete(&e2, 0));
	cr_assert_eq(contd_poll(0), 1);
	s = stats_now();
	counts(s, 2, 2, 0, 0);
	for (unsigned b = 24; b < CONTD_HISTOGRAM_BUCKETS; b++) /* 2^24 ns is 17 ms */
		long_ones += s.latency[b];
	cr_assert_geq(long_ones, 1);
	cr_assert_eq(contd_fini(), 0);
}

/* However long, as far as its clock goes; and a clock that is a little behind the completer's shows no wait. */
static uint64_t above(uint32_t waited, unsigned bucket)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g = group_new(0, -1);
	struct contd_stats before = stats_now(), after;
	struct contd__slot *slot = NULL;
	uint64_t n = 0;

	must(contd_event_continue(1, es, tally_cb, &t1, g, NULL));
	must(contd_event_complete(&e, 0));
	for (uint32_t i = 0; !slot; i++)
		if (SLOT_STATE(contd__load(&contd__table_slot(&g->table, i)->state)) == SLOT_READY)
			slot = contd__table_slot(&g->table, i);
	contd__store(&slot->link, (uint32_t)(contd__ticks() >> 5) - waited);
	cr_assert_eq(contd_poll(0), 1);
	after = stats_now();
	for (unsigned b = bucket; b < CONTD_HISTOGRAM_BUCKETS; b++)
		n += after.latency[b] - before.latency[b];
	must(contd_group_destroy(g));
	return n;
}

Test(stats, latency_of_long_waits)
{
	start(CONTD_AGENT_CALLER);
	/* 2^30 ns is a second: units of 32 ticks, of clocks up to 10 GHz. */
	cr_assert_eq(above(0x70000000, 32), 1);
	cr_assert_eq(above(0x90000000, 32), 1);
	cr_assert_eq(above(0xf0000000, 32), 1);
	cr_assert_eq(above(0u - 1000000, 1), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* By a thread that contd does not know; the next life begins at 0. */
static void *ring_once(void *bell)
{
	await(contd_bell_ring(bell) == 1);
	return NULL;
}

Test(stats, rings_sent)
{
	struct contd_bell *bell;
	pthread_t thread;
	char job[32];

	snprintf(job, sizeof(job), "stats-%d", (int)getpid());
	static uint64_t never;
	struct contd_word word = {&never, 0, 1, CONTD_WORD_EQ};
	struct tally t = {0};

	start(CONTD_AGENT_TICK);
	must(contd_word_continue(&word, tally_cb, &t, group_new(0, -1), NULL)); /* its daemon naps, and may be rung */
	must(contd_bell_listen(job, 0));
	must(contd_bell_open(job, 0, &bell));
	cr_assert_eq(stats_now().rings_sent, 0);
	cr_assert_eq(pthread_create(&thread, NULL, ring_once, bell), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(stats_now().rings_sent, 1);
	await(contd_bell_ring(bell) == 1);
	cr_assert_eq(stats_now().rings_sent, 2);
	contd_bell_close(bell);
	cr_assert_eq(contd_fini(), 1);
	start(CONTD_AGENT_CALLER);
	cr_assert_eq(stats_now().rings_sent, 0);
	cr_assert_eq(contd_fini(), 0);
}
