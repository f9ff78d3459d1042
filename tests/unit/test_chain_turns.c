/* SPDX-License-Identifier: BSD-3-Clause */
/* Constant stack, continued: chains in a region with ticks, on the daemon, and over groups that wait by turns. */
#include "unit.h"
#include "base/atomic.h"

TestSuite(chain_turns, .timeout = WATCHDOG);

/* Callers at different depths and a signal frame (some KiB); a chain that nests needs some hundred bytes a link. */
#define DEPTH_MAX 65536u

static uintptr_t lowest, highest;
static uint32_t links, wanted;
static int link_rc;
static struct contd_group *group[2];

static void chain_begin(unsigned n)
{
	lowest = UINTPTR_MAX;
	highest = 0;
	link_rc = 0;
	contd__store(&links, 0);
	wanted = n;
}

static bool last_link(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here < lowest)
		lowest = here;
	if (here > highest)
		highest = here;
	return contd__add(&links, 1) + 1 == wanted;
}

static void chain_check(void)
{
	cr_assert_eq(link_rc, 0);
	cr_assert_eq(contd__load(&links), wanted);
	cr_assert_lt(highest - lowest, DEPTH_MAX, "%u links: %zu bytes of stack", wanted, (size_t)(highest - lowest));
}

static void next_cb(int status, void *data)
{
	int rc;

	(void)status;
	if (last_link())
		return;
	rc = contd_event_continue(0, NULL, next_cb, data, data, NULL);
	if (rc)
		link_rc = rc;
}

Test(chain_turns, in_a_region_with_ticks)
{
	struct contd_config c = {
		.size = sizeof(c), .agent = CONTD_AGENT_REGION, .overhead_percent = 50, .tick_min_ns = 1000};
	struct contd_event first = CONTD_EVENT_INIT, *es[] = {&first};

	must(contd_init(&c));
	group[0] = group_new(0, -1);
	must(contd_thread_attach(NULL));
	chain_begin(5000); /* a scan goes around once: one or two links a tick */
	must(contd_event_continue(1, es, next_cb, group[0], group[0], NULL));
	must(contd_event_complete(&first, 0));
	contd_compute_begin();
	compute_until(contd__load(&links) == wanted);
	contd_compute_end();
	must(contd_group_wait(group[0], -1));
	chain_check();
	cr_assert_eq(stats_now().run_region, wanted);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(chain_turns, on_the_daemon)
{
	struct contd_event first = CONTD_EVENT_INIT, *es[] = {&first};
	struct contd_daemon_attr attr = {sizeof(attr), 1000};

	start(CONTD_AGENT_CALLER);
	group[0] = group_new(CONTD_THREAD_ANY, -1);
	must(contd_daemon_start(&attr));
	chain_begin(5000); /* a look goes around once: one or two links each */
	must(contd_event_continue(1, es, next_cb, group[0], group[0], NULL));
	must(contd_event_complete(&first, 0));
	await(contd_group_outstanding(group[0]) == 0);
	chain_check();
	must(contd_daemon_stop());
	cr_assert_eq(contd_fini(), 0);
}

/* A continuation of one registers the other's next, which waits for the first's group to be complete. */
static void by_turns_cb(int status, void *data)
{
	uintptr_t mine = (uintptr_t)data;
	int rc;

	(void)status;
	if (last_link())
		return;
	rc = contd_group_continue(group[mine], by_turns_cb, (void *)(mine ^ 1), group[mine ^ 1], NULL);
	if (rc)
		link_rc = rc;
}

static void by_turns(uint32_t flags0, uint32_t flags1)
{
	start(CONTD_AGENT_CALLER);
	group[0] = group_new(flags0, -1);
	group[1] = group_new(flags1, -1);
	chain_begin(SLOW_BUILD ? 250000 : 2500000);
	must(contd_event_continue(0, NULL, by_turns_cb, NULL, group[0], NULL));
	while (contd_group_outstanding(group[0]) + contd_group_outstanding(group[1])) {
		must(contd_group_wait(group[0], -1));
		must(contd_group_wait(group[1], -1));
	}
	chain_check();
	cr_assert_eq(stats_now().run, wanted);
	cr_assert_eq(contd_fini(), 0);
}

Test(chain_turns, groups)
{
	by_turns(0, 0);
}
Test(chain_turns, enqueued)
{
	by_turns(CONTD_ENQUEUE_COMPLETE, 0);
}
Test(chain_turns, async_signal_safe)
{
	by_turns(CONTD_ASYNC_SIGNAL_SAFE, CONTD_ASYNC_SIGNAL_SAFE);
}
