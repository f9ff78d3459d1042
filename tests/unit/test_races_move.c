/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * A group gets another executor, and with it another place, while a scan is on its way to it with nothing but a pin.
 * What has been ready for the scan has run meanwhile; what becomes ready now is somebody else's to run, and another
 * group may have the place.
 */
#include <contd/executor.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "rcu/table.h"
#include "unit.h"

TestSuite(races_move, .timeout = WATCHDOG);

static struct contd_executor *ex;
static struct contd_group *g, *another;
static struct contd_event e[2];
static struct tally t[2];
static unsigned notifications;

/* ----------------------------------------------------------------------------------------------- the test point --- */

static const char *point;
static void (*act)(void);
static uint32_t hits;

static void hook(const char *name)
{
	/* Acquire: pairs with the release in hook_at; the daemon passes points as well. */
	const char *wanted = contd__load_acquire(&point);

	if (wanted && strcmp(name, wanted) == 0 && contd__add(&hits, 1) == 0)
		act();
}

static void hook_at(const char *name, void (*what)(void))
{
	act = what;
	contd__store_release(&point, name);
	__atomic_store_n(&contd__testpoint_hook, hook, __ATOMIC_RELEASE);
}

static void hook_off(void)
{
	cr_assert_gt(contd__load(&hits), 0, "%s is never passed", point);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------------ the executors --- */

static void notify(void *pool)
{
	(void)pool;
	notifications++;
}

static const struct contd_executor_ops pull_ops = {.size = sizeof(pull_ops), .notify = notify};

static struct contd_work *submitted;

static int submit(void *pool, struct contd_work *work, int priority)
{
	(void)pool;
	(void)priority;
	contd__store_release(&submitted, work);
	return 0;
}

static const struct contd_executor_ops push_ops = {.size = sizeof(push_ops), .submit = submit};

static struct contd_executor *executor_new(const struct contd_executor_ops *ops)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = ops};
	struct contd_executor *made;

	must(contd_executor_create(&attr, &made));
	return made;
}

/* i becomes ready, and no thread is told. */
static void make_ready(unsigned i, struct contd_group *group)
{
	struct contd_event *es[] = {&e[i]};

	must(contd_event_continue(1, es, tally_cb, &t[i], group, NULL));
	must(complete_quietly(&e[i], 0));
}

static void begin(enum contd_agent agent)
{
	start(agent);
	ex = executor_new(&pull_ops);
	g = group_new(0, -1);
	make_ready(0, g);
}

static void end(void)
{
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------------ another group --- */

static void another_takes_the_place(void)
{
	const struct contd__root *root = g->table.root;
	uint32_t index = g->table.root_index;

	cr_assert_eq(contd_poll(0), 1);
	must(contd_group_set_executor(g, ex));
	another = group_new(0, -1);
	cr_assert_eq(another->table.root, root);
	cr_assert_eq(another->table.root_index, index);
	make_ready(1, another);
}

Test(races_move, the_place_is_another_group_s)
{
	begin(CONTD_AGENT_CALLER);
	hook_at("scan_pinned", another_takes_the_place);
	contd_poll(0);
	hook_off();
	for (unsigned i = 0; i < 10; i++)
		contd_poll(0);
	cr_assert_eq(runs(&t[1]), 1, "its bit was cleared for the group that had the place before");
	must(contd_group_destroy(another));
	end();
}

/* --------------------------------------------------------------------------------------------- another's to run --- */

static void becomes_the_executor_s(void)
{
	if (runs(&t[0]) == 0)
		cr_assert_eq(contd_poll(0), 1);
	must(contd_group_set_executor(g, ex));
	make_ready(1, g);
}

static void executor_has_it(void)
{
	hook_off();
	cr_assert_eq(runs(&t[1]), 0, "a thread that is not lent has run it");
	cr_assert_eq(notifications, 1, "what was put back is told of");
	contd_poll(0);
	cr_assert_eq(runs(&t[1]), 0);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	end();
}

Test(races_move, found_by_its_place)
{
	begin(CONTD_AGENT_CALLER);
	hook_at("scan_pinned", becomes_the_executor_s);
	contd_poll(0);
	executor_has_it();
}

Test(races_move, found_by_its_handle)
{
	int complete;

	begin(CONTD_AGENT_CALLER);
	cr_assert_eq(contd_poll(0), 1);
	hook_at("scan_group", becomes_the_executor_s);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 0);
	executor_has_it();
}

/* On a thread that takes nothing itself at the moment. */
static void *run_what_is_ready(void *unused)
{
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	return unused;
}

static void becomes_everybody_s(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, run_what_is_ready, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_group_set_executor(g, NULL));
	make_ready(1, g);
}

static void begin_with_executor(void)
{
	start(CONTD_AGENT_CALLER);
	ex = executor_new(&pull_ops);
	g = group_new(0, -1);
	must(contd_group_set_executor(g, ex));
	make_ready(0, g);
}

Test(races_move, a_thread_that_takes_runs_nothing)
{
	begin_with_executor();
	hook_at("scan_pinned", becomes_everybody_s);
	cr_assert_null(contd_executor_take(ex));
	hook_off();
	cr_assert_eq(runs(&t[1]), 0, "it ran inside contd_executor_take()");
	cr_assert_eq(contd_poll(0), 1);
	end();
}

static struct contd_executor *second;

static void becomes_the_second_s(void)
{
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	must(contd_group_set_executor(g, second));
	make_ready(1, g);
}

Test(races_move, a_thread_of_the_executor_before)
{
	begin_with_executor();
	second = executor_new(&pull_ops);
	hook_at("scan_pinned", becomes_the_second_s);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 0);
	hook_off();
	cr_assert_eq(runs(&t[1]), 0, "a thread of another executor has run it");
	cr_assert_eq(contd_executor_run(second, 0, 0), 1);
	must(contd_group_set_executor(g, NULL));
	must(contd_executor_destroy(second));
	end();
}

/* --------------------------------------------------------------------------------------------------- the daemon --- */

static uint32_t reached, go;

/* On the daemon: until the program has done its part. */
static void stop_here(void)
{
	contd__store_release(&reached, 1);
	while (!contd__load_acquire(&go))
		usleep(100);
}

/* The daemon is about to hand over what is ready of a push executor's group; but the program does. */
static void begin_with_daemon(const char *name)
{
	start(CONTD_AGENT_TICK);
	ex = executor_new(&push_ops);
	g = group_new(0, -1);
	must(contd_group_set_executor(g, ex));
	hook_at(name, stop_here);
	make_ready(0, g);
	contd__wake_daemon_sig(true);
	await(contd__load_acquire(&reached));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_not_null(contd__load_acquire(&submitted));
	contd_work_run(submitted);
}

Test(races_move, the_daemon_runs_nothing_of_the_program_s)
{
	begin_with_daemon("scan_pinned");
	must(contd_group_set_executor(g, NULL));
	make_ready(1, g);
	contd__store_release(&go, 1);
	usleep(20000); /* it goes on */
	hook_off();
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(t[1].context, CONTEXT_THREAD);
	end();
}

static uint32_t left, destroyed;

static void *leave_and_destroy(void *unused)
{
	must(contd_group_set_executor(g, NULL));
	contd__store_release(&left, 1);
	must(contd_executor_destroy(ex));
	contd__store_release(&destroyed, 1);
	return unused;
}

static void end_without_executor(void)
{
	make_ready(1, g);
	cr_assert_eq(contd_poll(0), 1);
	hook_off();
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

Test(races_move, the_daemon_asks_whether_an_executor_rests_that_is_gone)
{
	begin_with_daemon("executor_rests");
	leave_and_destroy(NULL);
	contd__store_release(&go, 1);
	usleep(20000); /* it goes on */
	end_without_executor();
}

Test(races_move, the_daemon_reads_an_executor_that_is_to_go)
{
	pthread_t thread;

	begin_with_daemon("executor_read");
	cr_assert_eq(pthread_create(&thread, NULL, leave_and_destroy, NULL), 0);
	await(contd__load_acquire(&left));
	usleep(20000);
	cr_assert_eq(contd__load(&destroyed), 0, "it is freed under the daemon's hands");
	contd__store_release(&go, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	end_without_executor();
}
