/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * A continuation that becomes ready, or is notified, while another one runs on an attached thread runs when that one
 * has ended, wherever it ran. And what the program's own signal handler completes at the end of a look, where that has
 * been already. No agent is there that would come by later.
 */
#include <string.h>

#include <contd/executor.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/thread.h"
#include "rcu/table.h"
#include "unit.h"

TestSuite(pickup, .timeout = WATCHDOG);

static struct contd_executor *ex;
static struct contd_group *g, *safe;
static struct contd_event first = CONTD_EVENT_INIT, then = CONTD_EVENT_INIT;
static struct tally t;
static struct helper other;
static bool by_another;

static void complete_it(void *event)
{
	must(contd_event_complete(event, 0));
}

static void complete_the_other(int status, void *data)
{
	(void)status;
	(void)data;
	if (by_another) {
		helper_do(&other, complete_it, &then);
		compute_until(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED);
	} else {
		complete_it(&then);
	}
	cr_assert_eq(runs(&t), 0, "not inside another continuation");
}

static void begin(bool notified)
{
	struct contd_event *es[] = {&then};

	start(CONTD_AGENT_CALLER);
	by_another = notified;
	helper_create(&other, false);
	must(contd_executor_create(NULL, &ex));
	g = group_new(0, -1);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	must(contd_event_continue(1, es, tally_cb, &t, safe, NULL));
}

static void end(void)
{
	cr_assert_eq(runs(&t), 1, "it is ready, and never runs");
	helper_join(&other);
	must(contd_thread_detach());
	must(contd_group_destroy(g));
	must(contd_group_destroy(safe));
	must(contd_executor_drain(ex));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

static void ready(void)
{
	struct contd_event *es[] = {&first};

	must(contd_event_continue(1, es, complete_the_other, NULL, g, NULL));
	must(contd_event_complete(&first, 0));
}

static void lent(bool notified)
{
	begin(notified);
	must(contd_group_set_executor(g, ex));
	ready();
	/* One and no more: a scan for another one would look, too. */
	cr_assert_eq(contd_executor_run(ex, 1, 0), 1);
	end();
}

Test(pickup, lent_and_completed_by_the_callback)
{
	lent(false);
}

Test(pickup, lent_and_notified)
{
	lent(true);
}

static void taken(bool notified)
{
	struct contd_work *work;

	begin(notified);
	must(contd_group_set_executor(g, ex));
	ready();
	work = contd_executor_take(ex);
	cr_assert_not_null(work);
	contd_work_run(work);
	end();
}

Test(pickup, taken_and_completed_by_the_callback)
{
	taken(false);
}

Test(pickup, taken_and_notified)
{
	taken(true);
}

static void drained(bool notified)
{
	begin(notified);
	must(contd_group_set_executor(g, ex));
	ready();
	must(contd_executor_drain(ex));
	end();
}

Test(pickup, drained_and_completed_by_the_callback)
{
	drained(false);
}

Test(pickup, drained_and_notified)
{
	drained(true);
}

static void polled(bool notified)
{
	begin(notified);
	ready();
	cr_assert_gt(contd_poll(1), 0);
	end();
}

Test(pickup, polled_and_completed_by_the_callback)
{
	polled(false);
}

Test(pickup, polled_and_notified)
{
	polled(true);
}

static void at_once(bool notified)
{
	begin(notified);
	must(contd_event_continue(0, NULL, complete_the_other, NULL, g, NULL));
	end();
}

Test(pickup, at_once_and_completed_by_the_callback)
{
	at_once(false);
}

Test(pickup, at_once_and_notified)
{
	at_once(true);
}

static void carried(bool notified)
{
	static struct contd_carried c;

	begin(notified);
	must(contd__carried_begin(&c, complete_the_other, NULL, g));
	contd__carried_at_once(&c);
	end();
}

Test(pickup, carried_and_completed_by_the_callback)
{
	carried(false);
}

Test(pickup, carried_and_notified)
{
	carried(true);
}

/* ---------------------------------------------------------------------------------------- in the handler itself --- */

static unsigned hits;

/* Ready, and all threads that were told have looked where the handler is about to clear a hint, and found nothing. */
static void become_ready(const char *name)
{
	if (strcmp(name, "root_empty") == 0 && contd__self.context == CONTEXT_HANDLER && hits++ == 0)
		must(complete_quietly(&then, 0));
}

Test(pickup, a_hint_that_the_handler_sets_again)
{
	begin(false);
	contd__root_mark_sig(safe->table.root,
			     safe->table.root_index); /* for nothing, as a marker that was overtaken does */
	__atomic_store_n(&contd__testpoint_hook, become_ready, __ATOMIC_RELEASE);
	raise_ours();
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_gt(hits, 0);
	end();
}

/* ------------------------------------------------------------------------------------ completed behind the scan --- */

static uint32_t behind;

/* As a signal handler of the program's does that comes there. */
static void complete_behind(const char *point)
{
	if (strcmp(point, "class_cleared") == 0 && contd__xchg(&behind, 0))
		complete_it(&then);
}

static struct contd_group *group_of_priority(uint32_t flags, int32_t priority)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = -1, .priority = priority};
	struct contd_group *made;

	must(contd_group_create(&attr, &made));
	return made;
}

/*
 * The scan has been at the high priority's groups, and finds nothing in the others: a mark is there for nothing, of a
 * continuation that was cancelled.
 */
static void completed_behind(bool region, uint32_t flags, bool by_guard)
{
	struct contd_event *es[] = {&first}, *then_es[] = {&then};
	struct contd_group *high = group_of_priority(flags, CONTD_PRIORITY_HIGH);
	struct contd_handle handle;

	must(contd_event_continue(1, then_es, tally_cb, &t, high, NULL));
	g = group_of_priority(flags, CONTD_PRIORITY_NORMAL);
	if (region)
		contd_compute_begin();
	contd_guard_begin();
	must(contd_event_continue(1, es, tally_cb, NULL, g, &handle));
	must(contd_event_complete(&first, 0));
	must(contd_cancel(handle));
	if (!by_guard) { /* the guard's end has nothing to do, and a signal comes */
		contd__and(&contd__tls.flags, ~CONTD__TLS_MISSED);
		contd_guard_end();
	}
	contd__store(&behind, 1);
	__atomic_store_n(&contd__testpoint_hook, complete_behind, __ATOMIC_RELEASE);
	if (by_guard)
		contd_guard_end();
	else
		raise_ours();
	cr_assert_eq(contd__load(&behind), 0, "class_cleared is not passed");
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	compute_until(runs(&t));
	if (region)
		contd_compute_end();
	must(contd_group_destroy(high));
	must(contd_group_destroy(g));
}

static void completed_behind_each(bool region, uint32_t flags, bool by_guard)
{
	start(CONTD_AGENT_CALLER);
	must(contd_thread_attach(NULL));
	completed_behind(region, flags, by_guard);
	must(contd_thread_detach());
	cr_assert_eq(contd_fini(), 0);
}

Test(pickup, completed_behind_a_handler_s_scan)
{
	completed_behind_each(false, CONTD_ASYNC_SIGNAL_SAFE, false);
}

Test(pickup, completed_behind_a_guard_s_scan)
{
	completed_behind_each(false, CONTD_ASYNC_SIGNAL_SAFE, true);
}

Test(pickup, completed_behind_a_handler_s_scan_in_a_region)
{
	completed_behind_each(true, 0, false);
}

Test(pickup, completed_behind_a_guard_s_scan_in_a_region)
{
	completed_behind_each(true, 0, true);
}
