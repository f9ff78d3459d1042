/* SPDX-License-Identifier: BSD-3-Clause */
/* A continuation that registers the next one, complete already: the stack does not grow with the chain. */
#include "unit.h"

TestSuite(chain_stack, .timeout = 600);

#define LENGTH (SLOW_BUILD ? 250000u : 10000000u)

static struct contd_group *g[2];
static uint32_t made;
static uintptr_t lowest = UINTPTR_MAX, highest;
static struct contd_event reused = CONTD_EVENT_INIT;

static void note_stack(void)
{
	char here;
	uintptr_t at = (uintptr_t)&here;

	if (at < lowest)
		lowest = at;
	if (at > highest)
		highest = at;
}

static void next_cb(int status, void *data)
{
	note_stack();
	if (++made < LENGTH)
		must(contd_event_continue(0, NULL, next_cb, data, g[made % 2], NULL));
}

static void run_chain(uint32_t flags0, uint32_t flags1)
{
	start(CONTD_AGENT_CALLER);
	g[0] = group_new(flags0, -1);
	g[1] = group_new(flags1, -1);
	must(contd_event_continue(0, NULL, next_cb, NULL, g[0], NULL));
	while (contd_group_outstanding(g[0]) + contd_group_outstanding(g[1])) {
		must(contd_group_wait(g[0], -1));
		must(contd_group_wait(g[1], -1));
	}
	cr_assert_eq(made, LENGTH);
	cr_assert_lt(highest - lowest, 8192, "%zu bytes", (size_t)(highest - lowest));
	cr_assert_eq(stats_now().run, LENGTH);
	cr_assert_leq(stats_now().grown, 0, "nor does the table");
	cr_assert_eq(contd_fini(), 0);
}

Test(chain_stack, inline_)
{
	run_chain(0, 0);
}
Test(chain_stack, enqueued)
{
	run_chain(CONTD_ENQUEUE_COMPLETE, CONTD_ENQUEUE_COMPLETE);
}
Test(chain_stack, poll_only)
{
	run_chain(CONTD_POLL_ONLY, CONTD_POLL_ONLY);
}
Test(chain_stack, two_kinds)
{
	run_chain(CONTD_THREAD_ANY, CONTD_ASYNC_SIGNAL_SAFE);
}

/* Completed by the callback itself, on an attached thread, where completing runs what is async-signal-safe. */
static void complete_next_cb(int status, void *data)
{
	struct contd_event *es[] = {&reused};

	note_stack();
	if (++made == LENGTH)
		return;
	contd_event_init(&reused);
	must(contd_event_continue(1, es, complete_next_cb, data, g[0], NULL));
	must(contd_event_complete(&reused, 0));
}

static void run_completions(uint32_t flags, bool attach)
{
	struct contd_event *es[] = {&reused};

	start(CONTD_AGENT_REGION);
	g[0] = group_new(flags, -1);
	if (attach)
		must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, complete_next_cb, NULL, g[0], NULL));
	must(contd_event_complete(&reused, 0));
	must(contd_group_wait(g[0], -1));
	cr_assert_eq(made, LENGTH);
	if (attach)
		must(contd_thread_detach());
	/* Interrupted at different depths, but never one inside the other. */
	cr_assert_lt(highest - lowest, 32768, "%zu bytes", (size_t)(highest - lowest));
	cr_assert_eq(contd_fini(), 0);
}

Test(chain_stack, completed_in_the_callback)
{
	run_completions(0, false);
}
Test(chain_stack, completed_in_the_callback_on_an_attached_thread)
{
	run_completions(CONTD_ASYNC_SIGNAL_SAFE, true);
}

/* Groups that wait for groups: each completion fires the next. */
Test(chain_stack, groups_in_a_row)
{
	enum { ROW = 4000 };
	static struct contd_group *row[ROW];
	struct contd_event e = CONTD_EVENT_INIT, *es[] = {&e};
	uint32_t n = 0;

	start(CONTD_AGENT_CALLER);
	made = LENGTH;
	for (unsigned i = 0; i < ROW; i++)
		row[i] = group_new(CONTD_POLL_ONLY * (i % 2), -1);
	must(contd_event_continue(1, es, next_cb, NULL, row[0], NULL));
	for (unsigned i = 1; i < ROW; i++)
		must(contd_group_continue(row[i - 1], next_cb, NULL, row[i], NULL));
	must(contd_event_complete(&e, 0));
	for (unsigned i = 0; i < ROW; i++)
		must(contd_group_wait(row[i], -1));
	n = made - LENGTH;
	cr_assert_eq(n, ROW);
	cr_assert_lt(highest - lowest, 8192, "%zu bytes", (size_t)(highest - lowest));
	cr_assert_eq(contd_fini(), 0);
}
