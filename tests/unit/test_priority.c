/* SPDX-License-Identifier: BSD-3-Clause */
/* High before normal before low, in every kind of scan; and nothing starves. */
#include "unit.h"
#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/react.h"
#include "rcu/table.h"

TestSuite(priority, .timeout = WATCHDOG);

static struct contd_group *prio_group(uint32_t flags, int32_t max_poll, int32_t priority)
{
	struct contd_group_attr attr = {
		.size = sizeof(attr), .flags = flags, .max_poll = max_poll, .priority = priority};
	struct contd_group *g = NULL;

	must(contd_group_create(&attr, &g));
	return g;
}

/* -------------------------------------------------------------------------------------------------------- order --- */

enum { EACH = 4, ALL = 3 * EACH };
static struct contd_event event[ALL];
static int order[ALL];
static uint32_t ordered;

static void order_cb(int status, void *data)
{
	uint32_t i = contd__add(&ordered, 1);

	(void)status;
	if (i < ALL)
		order[i] = (int)(intptr_t)data;
}

static struct contd_group *low, *normal, *high;

static void three(uint32_t flags)
{
	low = prio_group(flags, -1, CONTD_PRIORITY_LOW);
	normal = prio_group(flags, -1, CONTD_PRIORITY_NORMAL);
	high = prio_group(flags, -1, CONTD_PRIORITY_HIGH);
}

/* Ready, lowest first; no thread is notified. */
static void make_ready(void)
{
	struct contd_group *g[] = {low, normal, high};

	ordered = 0;
	for (unsigned i = 0; i < ALL; i++) {
		struct contd_event *es[] = {&event[i]};

		contd_event_init(&event[i]);
		must(contd_event_continue(1, es, order_cb, (void *)(intptr_t)(i / EACH), g[i / EACH], NULL));
	}
	for (unsigned i = 0; i < ALL; i++)
		must(complete_quietly(&event[i], 0));
}

static bool in_order(uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (order[i] > order[i - 1])
			return false;
	return order[0] == 2;
}

Test(priority, of_a_poll)
{
	start(CONTD_AGENT_CALLER);
	three(0);
	for (unsigned round = 0; round < 20; round++) {
		make_ready();
		cr_assert_eq(contd_poll(0), ALL);
		cr_assert(in_order(ALL));
	}
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_a_poll_with_a_maximum)
{
	start(CONTD_AGENT_CALLER);
	three(0);
	make_ready();
	cr_assert_eq(contd_poll(EACH - 1), EACH - 1);
	cr_assert_eq(contd_poll(2), 2);
	cr_assert_eq(ordered, EACH + 1);
	cr_assert(in_order(ordered));
	cr_assert_eq(order[EACH], 1, "the high ones, and then a normal one");
	while (contd_poll(0))
		;
	cr_assert_eq(ordered, ALL);
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_a_test_and_a_wait)
{
	struct contd_group *other;
	int complete;

	start(CONTD_AGENT_CALLER);
	three(0);
	other = prio_group(CONTD_POLL_ONLY, -1, CONTD_PRIORITY_LOW);
	for (unsigned round = 0; round < 5; round++) {
		make_ready();
		cr_assert_eq(contd_group_test(other, &complete), ALL);
		cr_assert(in_order(ALL));
		make_ready();
		cr_assert_eq(contd_group_test(low, &complete), ALL);
		cr_assert_eq(order[0], 0, "its own group first, whatever its priority");
		cr_assert_eq(order[EACH], 2);
		make_ready();
		must(contd_group_wait(normal, -1));
		cr_assert_eq(order[0], 1);
		contd_poll(0);
	}
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_a_handler)
{
	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	three(CONTD_ASYNC_SIGNAL_SAFE);
	for (unsigned round = 0; round < 20; round++) {
		make_ready();
		raise_ours();
		compute_until(contd__load(&ordered) == ALL);
		cr_assert(in_order(ALL));
	}
	cr_assert_geq(stats_now().run_handler, 20 * ALL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_a_handler_with_a_count)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = EACH + 1, .scan_ns = 1000000000};

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	three(CONTD_ASYNC_SIGNAL_SAFE);
	make_ready();
	contd_guard_begin(); /* the signal for what is left must not come now */
	contd__react_sig(LOOK);
	cr_assert_eq(ordered, EACH + 1);
	cr_assert(in_order(ordered));
	contd__react_sig(LOOK);
	cr_assert_eq(ordered, 2 * (EACH + 1));
	cr_assert(in_order(ordered));
	contd_guard_end();
	compute_until(contd__load(&ordered) == ALL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_a_region)
{
	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	three(0);
	make_ready();
	contd_compute_begin();
	raise_ours();
	compute_until(contd__load(&ordered) == ALL);
	contd_compute_end();
	cr_assert(in_order(ALL));
	cr_assert_eq(stats_now().run_region, ALL);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, of_the_daemon)
{
	start(CONTD_AGENT_CALLER);
	three(CONTD_THREAD_ANY);
	for (unsigned round = 0; round < 20; round++) {
		make_ready();
		must(contd_daemon_start(NULL));
		await(contd__load(&ordered) == ALL);
		must(contd_daemon_stop());
		cr_assert(in_order(ALL));
	}
	cr_assert_eq(stats_now().run_daemon, 20 * ALL);
	cr_assert_eq(contd_fini(), 0);
}

/* Among kinds of groups of one priority a scan may choose; between priorities not. */
Test(priority, is_above_the_kind_of_group)
{
	start(CONTD_AGENT_CALLER);
	low = prio_group(CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, -1, CONTD_PRIORITY_LOW);
	normal = prio_group(CONTD_ASYNC_SIGNAL_SAFE, -1, CONTD_PRIORITY_NORMAL);
	high = prio_group(0, -1, CONTD_PRIORITY_HIGH);
	for (unsigned round = 0; round < 5; round++) {
		make_ready();
		cr_assert_eq(contd_poll(0), ALL);
		cr_assert(in_order(ALL));
	}
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, out_of_range)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1};
	struct contd_group *g = NULL;

	start(CONTD_AGENT_CALLER);
	attr.priority = CONTD_PRIORITY_HIGH + 1;
	must_fail(contd_group_create(&attr, &g), EINVAL);
	attr.priority = CONTD_PRIORITY_LOW - 1;
	must_fail(contd_group_create(&attr, &g), EINVAL);
	attr.priority = INT32_MIN;
	must_fail(contd_group_create(&attr, &g), EINVAL);
	cr_assert_null(g);
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------------- starvation --- */

/* Work that never ends: each callback registers the next one, complete. */
static bool busy_over;
static uint64_t busy_runs;

static void busy_cb(int status, void *data)
{
	(void)status;
	busy_runs++;
	if (!busy_over)
		must(contd_event_continue(0, NULL, busy_cb, data, data, NULL));
}

static struct contd_group *busy(uint32_t flags, int32_t priority, unsigned n)
{
	struct contd_group *g = prio_group(flags | CONTD_ENQUEUE_COMPLETE, -1, priority);

	for (unsigned i = 0; i < n; i++)
		must(contd_event_continue(0, NULL, busy_cb, g, g, NULL));
	return g;
}

static void end(void)
{
	busy_over = true;
	while (contd_poll(0))
		;
	cr_assert_eq(contd__load(&contd__ready), 0);
	cr_assert_eq(contd_fini(), 0);
}

enum { WAITING = 30 };
static struct tally waiting[WAITING];

static void wait_in(struct contd_group *g, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		must(contd_event_continue(0, NULL, tally_cb, &waiting[i], g, NULL));
}

static unsigned waited(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WAITING; i++)
		n += runs(&waiting[i]);
	return n;
}

/* Every `often`-th of the scans runs one of those that wait at least. */
static void reached_by_polls(unsigned often, uint32_t max)
{
	unsigned before = 0, since = 0;

	while (waited() < WAITING) {
		cr_assert_eq(contd_poll(max), max);
		since++;
		if (waited() != before)
			since = 0;
		before = waited();
		cr_assert_lt(since, often, "%u of %u were reached, and then none by %u scans", before,
			     (unsigned)WAITING, since);
	}
}

static void reached(uint32_t busy_flags, uint32_t flags, int32_t priority, unsigned often)
{
	for (uint32_t max = 1; max <= 16; max *= 4) {
		start(CONTD_AGENT_CALLER);
		busy_over = false;
		memset(waiting, 0, sizeof(waiting));
		busy(busy_flags, CONTD_PRIORITY_HIGH, 40);
		wait_in(prio_group(flags | CONTD_ENQUEUE_COMPLETE, -1, priority), 0, WAITING);
		reached_by_polls(often, max);
		end();
	}
}

/* "Every fourth scan begins with them." */
Test(priority, low_ones_are_reached)
{
	reached(0, 0, CONTD_PRIORITY_LOW, 4);
}
Test(priority, normal_ones_are_reached)
{
	reached(0, 0, CONTD_PRIORITY_NORMAL, 4);
}
Test(priority, low_ones_of_other_kinds_are_reached)
{
	reached(CONTD_ASYNC_SIGNAL_SAFE | CONTD_THREAD_ANY, 0, CONTD_PRIORITY_LOW, 4);
}
Test(priority, low_signal_safe_ones_are_reached)
{
	reached(0, CONTD_ASYNC_SIGNAL_SAFE, CONTD_PRIORITY_LOW, 4);
}

/* Where both lower priorities have some, these turns are shared: every eighth scan each. */
Test(priority, low_ones_are_reached_between_busy_high_and_normal_ones)
{
	start(CONTD_AGENT_CALLER);
	busy(0, CONTD_PRIORITY_HIGH, 10);
	busy(CONTD_ASYNC_SIGNAL_SAFE, CONTD_PRIORITY_NORMAL, 10);
	wait_in(prio_group(CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_LOW), 0, WAITING);
	reached_by_polls(8, 1);
	end();
}

/* In each of several kinds and groups at once: those turns go round too. */
Test(priority, low_ones_of_all_kinds_are_reached)
{
	start(CONTD_AGENT_CALLER);
	for (uint32_t kind = 0; kind < 4; kind++)
		busy((kind & 1 ? CONTD_THREAD_ANY : 0) | (kind & 2 ? CONTD_ASYNC_SIGNAL_SAFE : 0), CONTD_PRIORITY_HIGH,
		     5);
	busy(CONTD_ASYNC_SIGNAL_SAFE, CONTD_PRIORITY_LOW, 5);
	for (uint32_t kind = 0; kind < 3; kind++)
		wait_in(prio_group((kind & 1 ? CONTD_THREAD_ANY : 0) | CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_LOW),
			kind * 10, kind * 10 + 10);
	/* A fourth of the scans; of these, in turns, the busy low kind takes every other one at most. */
	reached_by_polls(3 * 4, 1);
	end();
}

/* Handlers scan other kinds of groups between the polls: their turns are not taken from the polls'. */
static void polls_and_handlers(uint32_t busy_flags)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = 1, .scan_ns = 1000000000};
	unsigned before = 0, since = 0;

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	contd_guard_begin();
	busy(busy_flags, CONTD_PRIORITY_HIGH, 10);
	busy(CONTD_ASYNC_SIGNAL_SAFE, CONTD_PRIORITY_LOW, 10);
	wait_in(prio_group(CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_LOW), 0, WAITING);
	while (waited() < WAITING) {
		cr_assert_eq(contd_poll(1), 1);
		since = waited() == before ? since + 1 : 0;
		before = waited();
		cr_assert_lt(since, 16, "%u of %u were reached", before, (unsigned)WAITING);
		contd__react_sig(LOOK);
	}
	busy_over = true;
	contd_guard_end();
	while (contd_poll(0))
		;
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(priority, low_ones_are_reached_between_handlers)
{
	polls_and_handlers(0);
}
Test(priority, low_ones_are_reached_between_busy_handlers)
{
	polls_and_handlers(CONTD_ASYNC_SIGNAL_SAFE);
}

/* In the handler itself. */
Test(priority, low_ones_are_reached_by_handlers)
{
	struct contd_config config = {
		.size = sizeof(config), .agent = CONTD_AGENT_CALLER, .scan_count = 8, .scan_ns = 1000000000};
	unsigned before = 0;

	must(contd_init(&config));
	must(contd_thread_attach(NULL));
	contd_guard_begin();
	busy(CONTD_ASYNC_SIGNAL_SAFE, CONTD_PRIORITY_HIGH, 10);
	wait_in(prio_group(CONTD_ASYNC_SIGNAL_SAFE | CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_LOW), 0, WAITING);
	for (unsigned since = 0; waited() < WAITING;) {
		cr_assert_eq(contd__react_sig(LOOK), 8);
		since = waited() == before ? since + 1 : 0;
		before = waited();
		cr_assert_lt(since, 4, "%u of %u were reached", before, (unsigned)WAITING);
	}
	busy_over = true;
	contd_guard_end();
	while (contd_poll(0))
		;
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

/* On the daemon: its scans are bounded by time. */
static uint32_t daemon_over;

static void daemon_busy_cb(int status, void *data)
{
	(void)status;
	if (!contd__load(&daemon_over))
		must(contd_event_continue(0, NULL, daemon_busy_cb, data, data, NULL));
}

Test(priority, low_ones_are_reached_by_the_daemon)
{
	struct contd_group *g;

	start(CONTD_AGENT_TICK);
	g = prio_group(CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_HIGH);
	for (unsigned i = 0; i < 10; i++)
		must(contd_event_continue(0, NULL, daemon_busy_cb, g, g, NULL));
	wait_in(prio_group(CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE, -1, CONTD_PRIORITY_LOW), 0, WAITING);
	await(waited() == WAITING);
	contd__store(&daemon_over, 1);
	must(contd_group_wait(g, -1));
	cr_assert_eq(contd_fini(), 0);
}

/* Once the lower ones had their turn, high ones come first again, in every scan. */
Test(priority, order_is_back_after_a_flood)
{
	for (unsigned polls = 1; polls <= 20; polls++) {
		unsigned wrong = 0;

		start(CONTD_AGENT_CALLER);
		three(0);
		busy_over = false;
		busy(0, CONTD_PRIORITY_HIGH, 5);
		make_ready();
		for (unsigned i = 0; i < polls; i++)
			cr_assert_eq(contd_poll(1), 1);
		busy_over = true;
		while (contd_poll(0))
			;
		for (unsigned round = 0; round < 8; round++) {
			make_ready();
			cr_assert_eq(contd_poll(0), ALL);
			wrong += !in_order(ALL);
		}
		cr_assert_eq(wrong, 0, "after %u short polls %u of 8 scans did not begin with high ones", polls, wrong);
		end();
	}
}

/* ----------------------------------------------------------------------------------------------- one revolution --- */

/* Groups of one kind, all busy but those that wait: each is reached before any other one has its second turn. */
Test(priority, groups_within_one_revolution)
{
	enum { BUSY = 7, GROUPS = BUSY + WAITING };

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < WAITING; i++) {
		if (i % 5 == 0 && i / 5 < BUSY)
			busy(0, 0, 3);
		wait_in(prio_group(CONTD_ENQUEUE_COMPLETE, -1, 0), i, i + 1);
	}
	for (unsigned scans = 0; scans < GROUPS; scans++)
		cr_assert_eq(contd_poll(1), 1);
	cr_assert_eq(waited(), WAITING);
	end();
}

/* ... and the four kinds of groups take turns. */
Test(priority, kinds_within_one_revolution)
{
	enum { EACH_KIND = 7 };
	unsigned scans = 0;

	start(CONTD_AGENT_CALLER);
	for (uint32_t kind = 0; kind < 4; kind++) {
		uint32_t flags = (kind & 1 ? CONTD_THREAD_ANY : 0) | (kind & 2 ? CONTD_ASYNC_SIGNAL_SAFE : 0);

		busy(flags, 0, 3);
		for (unsigned i = 0; i < EACH_KIND; i++)
			wait_in(prio_group(flags | CONTD_ENQUEUE_COMPLETE, -1, 0), kind * EACH_KIND + i,
				kind * EACH_KIND + i + 1);
	}
	for (; waited() < 4 * EACH_KIND; scans++) {
		cr_assert_lt(scans, 4 * (EACH_KIND + 1));
		cr_assert_eq(contd_poll(1), 1);
	}
	end();
}

/* ----------------------------------------------------------------------------------------------------- max_poll --- */

/* Of each group its own max_poll runs in a test, of the group tested and of those that are run beside it. */
Test(priority, tests_of_many_groups_are_bounded_each_by_its_own)
{
	enum { GROUPS = 12, PER = 40 };
	static struct tally t[GROUPS];
	struct contd_group *g[GROUPS];
	int complete;

	for (unsigned poll_only = 0; poll_only < 2; poll_only++) {
		start(CONTD_AGENT_CALLER);
		memset(t, 0, sizeof(t));
		for (unsigned i = 0; i < GROUPS; i++)
			g[i] = prio_group(CONTD_ENQUEUE_COMPLETE | (poll_only ? CONTD_POLL_ONLY : 0),
					  (int32_t)(1 + i * 3), (int32_t)(i % 3) - 1);
		for (unsigned round = 0; round < 3; round++)
			for (unsigned i = 0; i < GROUPS; i++) {
				unsigned before, max = 1 + i * 3, ran;

				for (unsigned k = 0; k < GROUPS; k++)
					while (contd_group_outstanding(g[k]) < PER)
						must(contd_event_continue(0, NULL, tally_cb, &t[k], g[k], NULL));
				before = runs(&t[i]);
				ran = (unsigned)contd_group_test(g[i], &complete);
				cr_assert_eq(complete, 0);
				cr_assert_eq(runs(&t[i]) - before, max, "group %u: %u instead of %u", i,
					     runs(&t[i]) - before, max);
				cr_assert_eq(ran, poll_only ? max : GROUPS + 3 * GROUPS * (GROUPS - 1) / 2);
			}
		for (unsigned i = 0; i < GROUPS; i++)
			must(contd_group_wait(g[i], -1));
		cr_assert_eq(contd_fini(), 0);
	}
}

/* -------------------------------------------------------------------------------------------------------- hints --- */

/* Where a class's bit has just been cleared another continuation of it, or of the next lower one, becomes ready. */
static struct contd_event chain_event[300];
static struct tally chain_tally[300];
static uint32_t chained;

static void complete_next(const char *name)
{
	if (strcmp(name, "class_cleared") == 0 && chained < 300)
		complete_quietly(&chain_event[chained++], 0);
}

Test(priority, none_is_lost_where_a_class_is_cleared)
{
	struct contd_group *g[9];

	start(CONTD_AGENT_CALLER);
	for (unsigned i = 0; i < 9; i++)
		g[i] = prio_group(i % 3 == 0   ? 0
				  : i % 3 == 1 ? CONTD_THREAD_ANY
					       : CONTD_ASYNC_SIGNAL_SAFE,
				  -1, 1 - (int32_t)(i / 3));
	for (unsigned i = 0; i < 300; i++) {
		struct contd_event *es[] = {&chain_event[i]};

		must(contd_event_continue(1, es, tally_cb, &chain_tally[i], g[i * 7 % 9], NULL));
	}
	__atomic_store_n(&contd__testpoint_hook, complete_next, __ATOMIC_RELEASE);
	complete_quietly(&chain_event[chained++], 0);
	for (unsigned i = 0; i < 1000 && chained < 300; i++) {
		contd_poll(1 + i % 2);
		if (!contd__load(&contd__ready) && chained < 300)
			complete_quietly(&chain_event[chained++], 0);
	}
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	while (contd_poll(0))
		;
	cr_assert_eq(chained, 300);
	for (unsigned i = 0; i < 300; i++)
		cr_assert_eq(runs(&chain_tally[i]), 1, "number %u", i);
	cr_assert_eq(contd__load(&contd__ready), 0);
	cr_assert_eq(contd_fini(), 0);
}
