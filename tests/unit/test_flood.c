/* SPDX-License-Identifier: BSD-3-Clause */
/* The worst handler: whatever is ready, it runs scan_count continuations at most, and starts none after scan_ns. */
#include "unit.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "signal/attached.h"

TestSuite(flood, .timeout = WATCHDOG);

enum { READY = 3000, HANDLERS = 4096 };

/* Of each handler: how many it ran. */
static uint32_t handlers, ran_in[HANDLERS];
static uint32_t total;
static uint64_t callback_ticks;

static void note_handler(const char *name)
{
	if (strcmp(name, "handler_entered") == 0 && !contd__tls.guard)
		handlers++;
}

static void flood_cb(int status, void *data)
{
	uint64_t now = contd__ticks();
	uint32_t h = handlers < HANDLERS ? handlers : HANDLERS - 1;

	(void)status;
	ran_in[h]++;
	while (contd__ticks() - now < callback_ticks)
		;
	contd__add(&total, 1);
	contd__add((uint32_t *)data, 1);
}

static uint32_t each[READY];

static void make_ready(struct contd_group *const *groups, unsigned n)
{
	static struct contd_event e[READY];

	contd_guard_begin();
	for (unsigned i = 0; i < READY; i++) {
		struct contd_event *es[] = {&e[i]};

		must(contd_event_continue(1, es, flood_cb, &each[i], groups[i % n], NULL));
	}
	for (unsigned i = 0; i < READY; i++)
		must(complete_quietly(&e[i], 0));
	contd_guard_end();
}

static void begin(enum contd_agent agent, uint32_t count, uint64_t ns, uint64_t callback_ns)
{
	struct contd_config config = {.size = sizeof(config), .agent = agent, .scan_count = count, .scan_ns = ns};

	config.overhead_percent = 50;
	must(contd_init(&config));
	callback_ticks = (uint64_t)((double)callback_ns * contd__clock.ticks_per_ns);
	must(contd_thread_attach(NULL));
	__atomic_store_n(&contd__testpoint_hook, note_handler, __ATOMIC_RELEASE);
}

static void end(void)
{
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < READY; i++)
		cr_assert_eq(each[i], 1, "number %u ran %u times", i, each[i]);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

static void flooded(enum contd_agent agent, bool region, uint32_t count)
{
	struct contd_group *g[7];
	struct contd_stats s;

	begin(agent, count, 1000000000, 0);
	for (unsigned i = 0; i < 7; i++)
		g[i] = group_new(i % 2 || !region ? CONTD_ASYNC_SIGNAL_SAFE : 0, -1);
	/* Before: a region looks at what is ready when it begins. */
	if (region)
		contd_compute_begin();
	make_ready(g, 7);
	/* The first signal is enough: what is left over is seen to. */
	raise_ours();
	compute_until(contd__load(&total) == READY);
	if (region)
		contd_compute_end();
	for (unsigned h = 0; h < HANDLERS; h++)
		cr_assert_leq(ran_in[h], count, "handler %u ran %u", h, ran_in[h]);
	cr_assert_geq(handlers, (READY + count - 1) / count);
	s = stats_now();
	cr_assert_eq(region ? s.run_region : s.run_handler, READY);
	cr_assert_gt(s.handler_max_ns, 0);
	end();
}

Test(flood, count_outside_regions)
{
	flooded(CONTD_AGENT_REGION, false, 64);
}
Test(flood, count_outside_regions_by_signals_alone)
{
	flooded(CONTD_AGENT_CALLER, false, 10);
}
Test(flood, count_in_regions)
{
	flooded(CONTD_AGENT_REGION, true, 64);
}
Test(flood, count_in_regions_by_signals_alone)
{
	flooded(CONTD_AGENT_CALLER, true, 100);
}
Test(flood, count_of_one)
{
	flooded(CONTD_AGENT_REGION, false, 1);
}
Test(flood, count_on_the_daemon_side)
{
	flooded(CONTD_AGENT_TICK, false, 64);
}

/* None is started when the time is over, but for the first; a handler that lost its processor has only run fewer. */
Test(flood, time)
{
	enum { SCAN_NS = 200000, CALLBACK_NS = 20000 };
	struct contd_group *g;
	struct contd_stats s;
	uint32_t most = 0;

	begin(CONTD_AGENT_REGION, 1000000, SCAN_NS, CALLBACK_NS);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	make_ready(&g, 1);
	raise_ours();
	compute_until(contd__load(&total) == READY);
	for (unsigned h = 1; h < HANDLERS; h++) {
		if (ran_in[h] > most)
			most = ran_in[h];
		/* By the clock in the callbacks: each takes its time, so no more of them can begin than fit. */
		cr_assert_leq(ran_in[h], SCAN_NS / CALLBACK_NS + 1, "handler %u ran %u", h, ran_in[h]);
	}
	cr_assert_geq(most, 1);
	cr_assert_geq(handlers, READY / (SCAN_NS / CALLBACK_NS + 1));
	s = stats_now();
	cr_assert_geq(s.handler_max_ns, CALLBACK_NS);
	cr_assert_geq(s.handler_ns, (uint64_t)READY * CALLBACK_NS / 100 * 99);
	cr_assert_leq(s.handler_max_ns, s.handler_ns);
	end();
}

/* A callback that takes longer than the whole scan: one a handler, and all get their turn. */
Test(flood, time_for_one)
{
	struct contd_group *g;

	begin(CONTD_AGENT_REGION, 1000000, 1000, 20000);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	make_ready(&g, 1);
	raise_ours();
	compute_until(contd__load(&total) == READY);
	for (unsigned h = 0; h < HANDLERS - 1; h++)
		cr_assert_leq(ran_in[h], 1);
	end();
}

/* Both bounds, and callbacks that make more ready: chains do not make a handler longer. */
static uint32_t chain_left = 5000;

static void chain_cb(int status, void *data)
{
	(void)status;
	ran_in[handlers < HANDLERS ? handlers : HANDLERS - 1]++;
	contd__add(&total, 1);
	if (contd__load(&chain_left) && contd__sub(&chain_left, 1) > 0)
		if (contd_event_continue(0, NULL, chain_cb, data, data, NULL))
			__builtin_trap();
}

Test(flood, chains)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	struct contd_group *g;
	struct contd_stats s;

	begin(CONTD_AGENT_REGION, 50, 1000000000, 0);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_event_continue(1, es, chain_cb, g, g, NULL));
	must(complete_quietly(&e, 0));
	raise_ours();
	compute_until(contd_group_outstanding(g) == 0);
	for (unsigned h = 0; h < HANDLERS; h++)
		cr_assert_leq(ran_in[h], 50, "handler %u ran %u", h, ran_in[h]);
	cr_assert_eq(total, 5001);
	s = stats_now();
	cr_assert_eq(s.run_handler, 5001);
	memset(each, 0, sizeof(each));
	for (unsigned i = 0; i < READY; i++)
		each[i] = 1;
	end();
}

/* The longest handler is recorded, whatever the others were; and begins at 0 in the next life. */
static void long_once_cb(int status, void *data)
{
	uint64_t until = now_ns() + *(uint64_t *)data;

	(void)status;
	while (now_ns() < until)
		;
	contd__add(&total, 1);
}

Test(flood, longest_handler)
{
	static uint64_t lengths[] = {100000, 20000000, 1000};
	struct contd_group *g;

	begin(CONTD_AGENT_CALLER, 64, 1000000000, 0);
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	cr_assert_eq(stats_now().handler_max_ns, 0);
	for (unsigned i = 0; i < 3; i++) {
		struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
		uint64_t before = stats_now().handler_max_ns;

		must(contd_event_continue(1, es, long_once_cb, &lengths[i], g, NULL));
		must(complete_quietly(&e, 0));
		raise_ours();
		compute_until(contd__load(&total) == i + 1);
		compute_until(contd__load(&contd__me->inside) == 0);
		cr_assert_geq(stats_now().handler_max_ns, before);
		cr_assert_geq(stats_now().handler_max_ns * 101 / 100, lengths[i]);
	}
	cr_assert_geq(stats_now().handler_ns, stats_now().handler_max_ns);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
	start(CONTD_AGENT_CALLER);
	cr_assert_eq(stats_now().handler_max_ns, 0);
	cr_assert_eq(contd_fini(), 0);
}
