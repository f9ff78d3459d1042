/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The overhead budget: over any second, what the library charges for interruptions stays inside contd_overhead_percent.
 * What it charges is deterministic: a price for each interruption, measured once (lost_ns without handler_ns), and for
 * handlers that ran nothing what they took. What callbacks take is work, and how long a handler is off its processor is
 * not the library's: so the prices are what is summed up, and of the handlers' own part what the purse counts.
 */
#include <sys/wait.h>

#include "source.h"
#include "unit.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "dispatch/purse.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "signal/attached.h"

TestSuite(overhead, .timeout = WATCHDOG);

#define SECOND 1000000000ull
#define RUN_NS 1250000000ull /* a sliding second, and a bit */

static void begin(enum contd_agent agent, double percent)
{
	struct contd_config config = {.size = sizeof(config),
				      .agent = agent,
				      .overhead_percent = percent,
				      .tick_min_ns = 1000,
				      .tick_max_ns = 1000000000,
				      .scan_count = 64,
				      .scan_ns = 1000000000};

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
}

/* ------------------------------------------------------------------------------------------------------ samples --- */

/* The sum of charges, with its time; sampled under a guard, so that no interruption lies between the two. */
enum { SAMPLES = 1 << 16 };
static struct {
	uint64_t at, charged;
} sample[SAMPLES];
static unsigned samples;

static void take_sample(void)
{
	struct contd_stats s;

	s.size = sizeof(s);
	contd_guard_begin();
	contd_stats_get(&s);
	if (samples < SAMPLES) {
		/* The end of the window is after, its begin before what is counted. */
		sample[samples].charged = s.lost_ns - s.handler_ns;
		sample[samples].at = now_ns();
		samples++;
	}
	contd_guard_end();
}

/* The most in any window of a second, as a share of it in percent; one charge more may lie at each end. */
static double worst_percent(void)
{
	uint64_t worst = 0;
	unsigned from = 0;

	for (unsigned to = 1; to < samples; to++) {
		while (sample[to].at - sample[from].at > SECOND)
			from++;
		if (sample[to].charged - sample[from].charged > worst)
			worst = sample[to].charged - sample[from].charged;
	}
	return (double)worst / SECOND * 100;
}

static double price_percent(void)
{
	uint64_t tick = contd__load(&contd__signals.kernel_ticks), notice = contd__load(&contd__signals.notice_ticks);

	return (double)(tick > notice ? tick : notice) / contd__clock.ticks_per_ns / SECOND * 100;
}

static const double percents[] = {0.5, 2, 10};

/* ------------------------------------------------------------------------------------------------ notifications --- */

static uint32_t over;
static struct contd_group *flooded;
static uint64_t flood_sent;
static struct tally flood_tally;

/* As many as it can, without end: each is a continuation that must run. */
static void *flood(void *data)
{
	(void)data;
	while (!contd__load_acquire(&over)) {
		must(contd_event_continue(0, NULL, tally_cb, &flood_tally, flooded, NULL));
		contd__add(&flood_sent, 1);
		if (contd_group_outstanding(flooded) > 3000) /* the handlers are late: as much as the budget wants */
			usleep(1000);
	}
	return NULL;
}

static void compute_and_sample(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	samples = 0;
	while (now_ns() < until) {
		for (volatile unsigned i = 0; i < 20000; i++)
			;
		compute_step();
		take_sample();
	}
}

static void flood_stays_within(double percent, bool notifications, bool ticks)
{
	static uint64_t word;
	struct contd_word w = {&word, 0, 1, CONTD_WORD_EQ};
	struct contd_handle h;
	struct tally t = {0};
	struct contd_stats s;
	pthread_t thread;
	double worst;

	begin(ticks ? CONTD_AGENT_REGION : CONTD_AGENT_CALLER, percent);
	flooded = group_new(CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE, -1);
	over = 0;
	flood_sent = flood_tally.runs = 0;
	if (ticks)
		must(contd_word_continue(&w, tally_cb, &t, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), &h));
	if (notifications)
		cr_assert_eq(pthread_create(&thread, NULL, flood, NULL), 0);
	compute_and_sample(RUN_NS);
	if (notifications) {
		contd__store_release(&over, 1);
		pthread_join(thread, NULL);
		/* None is lost, without a call. */
		compute_until(contd_group_outstanding(flooded) == 0);
		cr_assert_eq(runs(&flood_tally), flood_sent);
	}
	if (ticks)
		must(contd_cancel(h));
	s = stats_now();
	worst = worst_percent();
	cr_log_info("%g %%: %g; %lu ticks, %lu notifications, %lu put off, %lu ran", percent, worst, s.ticks,
		    s.notifications, s.put_off, s.run);
	cr_assert_leq(worst, percent + 2 * price_percent(), "%g %%: in a second %g", percent, worst);
	if (notifications) {
		cr_assert_geq(s.notifications + s.ticks, 5);
		if (percent < 1) /* more than a loaded machine can send is not put off */
			cr_assert_geq(s.put_off, 1, "more were wanted than could be paid");
	} else {
		cr_assert_eq(s.notifications + s.put_off, 0);
		cr_assert_geq(s.ticks, 3);
	}
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(overhead, notifications_half_a_percent)
{
	flood_stays_within(percents[0], true, false);
}
Test(overhead, notifications_two_percent)
{
	flood_stays_within(percents[1], true, false);
}
Test(overhead, notifications_ten_percent)
{
	flood_stays_within(percents[2], true, false);
}
Test(overhead, ticks)
{
	for (unsigned i = 0; i < 3; i++)
		flood_stays_within(percents[i], false, true);
}
Test(overhead, both_half_a_percent)
{
	flood_stays_within(percents[0], true, true);
}
Test(overhead, both_two_percent)
{
	flood_stays_within(percents[1], true, true);
}
Test(overhead, both_ten_percent)
{
	flood_stays_within(percents[2], true, true);
}

/* A handler that ran something costs its own part, too: what it would have taken with nothing to run. */
Test(overhead, handlers_that_run_something_cost_what_empty_ones_do)
{
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	uint64_t before, cost;

	begin(CONTD_AGENT_CALLER, 2);
	contd__me->empty_ticks = contd__signals.kernel_ticks; /* as if it took long */
	must(contd_event_continue(1, es, tally_cb, &flood_tally, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), NULL));
	complete_quietly(&e, 0);
	contd__me->purse.balance = contd__purse_most();
	contd__me->purse.at = contd__ticks() + contd__clock.second; /* nothing flows in meanwhile */
	before = (uint64_t)contd__me->purse.balance;
	raise_ours();
	compute_until(runs(&flood_tally));
	contd_guard_begin();
	cost = before - (uint64_t)contd__me->purse.balance;
	contd_guard_end();
	cr_assert_geq(cost, contd__signals.notice_ticks + contd__me->empty_ticks);
	cr_assert_leq(cost, contd__signals.notice_ticks + 3 * contd__me->empty_ticks);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* -------------------------------------------------------------------------------------------------------- rings --- */

/* A peer that rings without pause. */
static pid_t ringer(const char *job)
{
	pid_t child = fork();

	if (child == 0) {
		struct contd_bell *bell;

		for (unsigned i = 0; i < 1000 && contd_bell_open(job, 0, &bell); i++)
			usleep(1000);
		for (;;)
			contd_bell_ring(bell);
	}
	cr_assert_gt(child, 0);
	return child;
}

static void rings_stay_within(double percent)
{
	struct contd_stats s;
	char job[40];
	double worst;
	pid_t child;

	snprintf(job, sizeof(job), "overhead-%d", (int)getpid());
	child = ringer(job); /* before contd starts: what is forked from it may not */
	begin(CONTD_AGENT_REGION, percent);
	source_register(&source_a, WHERE_REGION, false);
	must(contd_bell_listen(job, 0));
	source_begin(&source_a); /* never ends: there is always a use for a ring */
	contd_compute_begin();
	compute_and_sample(RUN_NS);
	contd_compute_end();
	s = stats_now();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	worst = worst_percent();
	cr_log_info("%g %%: %g; %lu rings, %lu ticks", percent, worst, s.rings, s.ticks);
	cr_assert_geq(s.rings, 3, "%lu", s.rings);
	cr_assert_leq(worst, percent + 2 * price_percent(), "%g %%: in a second %g, of %lu rings and %lu ticks",
		      percent, worst, s.rings, s.ticks);
	source_finish(&source_a);
	contd_compute_begin();
	compute_until(contd__load(&source_a.found));
	contd_compute_end();
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(overhead, rings_half_a_percent)
{
	rings_stay_within(percents[0]);
}
Test(overhead, rings_two_percent)
{
	rings_stay_within(percents[1]);
}
Test(overhead, rings_ten_percent)
{
	rings_stay_within(percents[2]);
}

/* ----------------------------------------------------------------------------------------------------- back-off --- */

#define LONGEST 3100000u
static uint64_t words[2];
static uint64_t ticks_at_run;

/* The calling thread's. Any context: contd_stats_get() may block. */
static uint64_t ticks_counted(void)
{
	return contd__load(&contd__self.counters.ticks);
}

static void tally_at_tick(int status, void *data)
{
	contd__store(&ticks_at_run, ticks_counted());
	tally_cb(status, data);
}

/* If ticks came faster than they are handled, the thread would never get on, whatever the limits ask for. */
Test(overhead, shortest_ticks_leave_the_thread_time)
{
	struct contd_config config = {.size = sizeof(config), .tick_min_ns = 1000, .tick_max_ns = 1000};
	struct contd_word never = {&words[0], 0, 1, CONTD_WORD_EQ};
	struct tally t = {0};
	struct contd_handle h;
	uint64_t ticks;

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&never, tally_cb, &t, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), &h));
	ticks = ticks_counted();
	for (int rounds = 0; rounds < 1000; rounds++) {
		uint64_t counted = ticks_counted();

		compute_until(ticks_counted() != counted);
	}
	cr_assert_geq(ticks_counted() - ticks, 1000);
	cr_assert_geq((double)stats_now().tick_ns * contd__clock.ticks_per_ns,
		      1.9 * (double)contd__load(&contd__signals.kernel_ticks));
	must(contd_cancel(h));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* With a word that never holds ticks get rarer, up to the longest; what a tick finds makes them frequent at once. */
Test(overhead, quiet_ticks_get_rarer)
{
	struct contd_config config = {.size = sizeof(config),
				      .overhead_percent = 50,
				      .tick_min_ns = 100000,
				      .tick_max_ns = LONGEST,
				      .scan_ns = 1000000000};
	struct contd_word never = {&words[0], 0, 1, CONTD_WORD_EQ}, soon = {&words[1], 0, 1, CONTD_WORD_EQ};
	uint64_t interval, last = 0, shortest, since;
	uint32_t quiet;
	struct tally t = {0}, t_never = {0};
	struct contd_handle h;
	struct contd_group *g;

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	g = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_word_continue(&never, tally_cb, &t_never, g, &h));
	shortest = stats_now().tick_ns;
	cr_assert_geq(shortest, 100000);
	for (unsigned round = 1; round <= 3; round++) {
		bool grew = false;

		do {
			compute_until((interval = stats_now().tick_ns) != last);
			grew = grew || (last && interval > last);
			last = interval;
			cr_assert_leq(interval, LONGEST);
		} while (interval < LONGEST / 9 * 8);
		cr_assert(grew || shortest >= LONGEST / 9 * 8);
		cr_assert_geq(contd__me->quiet, 64);
		/* It stays there. */
		compute_until(contd__me->quiet > 400);
		cr_assert_geq(stats_now().tick_ns, LONGEST / 9 * 8);
		/* ... until one finds something: then it is short again by that tick. */
		must(contd_word_continue(&soon, tally_at_tick, &t, g, NULL));
		__atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
		compute_until(runs(&t) == round);
		contd_guard_begin();
		/* The tick that ran it was no quiet one, so no more are counted than came since. */
		quiet = contd__me->quiet;
		since = ticks_counted() - contd__load(&ticks_at_run);
		contd_guard_end();
		cr_assert_leq(quiet, since, "%u quiet ticks, and %lu since it ran", quiet, since);
		words[1] = 0;
		last = 0;
	}
	must(contd_cancel(h));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* Ticks that arrive under a guard have not looked: they are not quiet ones. */
Test(overhead, guarded_ticks_are_not_quiet_ones)
{
	struct contd_config config = {.size = sizeof(config), .tick_min_ns = 100000, .tick_max_ns = 100000};
	struct contd_word never = {&words[0], 0, 1, CONTD_WORD_EQ};
	uint64_t before, empty;
	struct contd_handle h;
	struct tally t = {0};
	uint32_t quiet;

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	must(contd_word_continue(&never, tally_cb, &t, group_new(CONTD_ASYNC_SIGNAL_SAFE, -1), &h));
	compute_until(stats_now().ticks >= 3);
	contd_guard_begin();
	quiet = contd__me->quiet;
	empty = contd__me->empty_ticks;
	before = stats_now().guarded;
	compute_until(stats_now().guarded >= before + 20);
	cr_assert_eq(contd__load(&contd__me->quiet), quiet);
	cr_assert_eq(contd__load(&contd__me->empty_ticks), empty,
		     "a look that was not made says nothing of what one costs");
	contd_guard_end();
	must(contd_cancel(h));
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}
