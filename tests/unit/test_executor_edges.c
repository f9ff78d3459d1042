/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* Executors: what was wrong once. Waits in lent threads, refusals, executors that go, drains, priorities. */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <contd/executor.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "task/executor.h"
#include "unit.h"

/* An awaited thing comes at once. If it comes later, chance has found it. */
#define LIMIT_SECONDS 10
#define LIMIT_NS (LIMIT_SECONDS * 1000000000ll)

TestSuite(executor_edges, .timeout = 3 * LIMIT_SECONDS);

/* Does it become true in time? Any thread. */
#define in_time(condition) \
	({ \
		uint64_t in_time_until = now_ns() + LIMIT_NS; \
		while (!(condition) && now_ns() < in_time_until) \
			usleep(100); \
		(condition); \
	})
#define soon(condition) cr_assert(in_time(condition), "never came true: %s", #condition)

static struct contd_event e[4];
static struct contd_event *es[4][1] = {{&e[0]}, {&e[1]}, {&e[2]}, {&e[3]}};
static struct tally t[4];
static struct contd_group *g, *h;
static struct contd_executor *ex, *ex2;
static struct contd_task task[4];
static uint32_t phase;

static struct contd_group *group_of(struct contd_executor *executor, uint32_t flags)
{
	struct contd_group *group = group_new(flags, -1);

	must(contd_group_set_executor(group, executor));
	return group;
}

static struct contd_executor *pull(uint32_t flags)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = flags};
	struct contd_executor *executor;

	must(contd_executor_create(&attr, &executor));
	return executor;
}

static struct contd_executor *with(const struct contd_executor_ops *ops)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = ops};
	struct contd_executor *executor;

	must(contd_executor_create(&attr, &executor));
	return executor;
}

static void end(void)
{
	must(contd_executor_drain(ex));
	must(contd_group_wait(g, LIMIT_NS));
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

static pthread_t thread_new(void *(*job)(void *data), void *data)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, job, data), 0);
	return thread;
}

static int lent_rc;

static void *lent(void *executor)
{
	lent_rc = contd_executor_run(executor, 0, -1);
	return NULL;
}

static void stop(struct contd_executor *executor, pthread_t thread)
{
	must(contd_executor_stop(executor, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_geq(lent_rc, 0);
}

static int wait_rc = 1;

static void wait_for_g(int status, void *data)
{
	(void)status;
	(void)data;
	wait_rc = contd_group_wait(g, -1);
	contd__store_seq(&phase, 1);
}

/* ---------------------------------------------------------------------------------------- waits in lent threads --- */

/* The executor's only thread sleeps in a wait for the executor's work, which becomes ready then: it runs it. */
static void wait_in_a_lent_thread(enum contd_agent agent)
{
	pthread_t thread;

	start(agent);
	ex = pull(0);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	thread = thread_new(lent, ex);
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, wait_for_g, NULL);
	must(contd_task_submit(&task[0], 0));
	soon(contd__load_seq(&contd__wake.sleepers));
	usleep(20000); /* it sleeps */
	must(contd_event_complete(&e[0], 7));
	soon(contd__load_seq(&phase));
	cr_assert_eq(wait_rc, 0);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 7);
	cr_assert(pthread_equal(t[0].thread, thread));
	stop(ex, thread);
	end();
}

Test(executor_edges, a_lent_thread_waits)
{
	wait_in_a_lent_thread(CONTD_AGENT_CALLER);
}
Test(executor_edges, a_lent_thread_waits_beside_the_daemon)
{
	wait_in_a_lent_thread(CONTD_AGENT_TICK);
}

/* A thread that is lent to two executors runs work of both in a wait, wherever it waits. */
static void inner_waits(int status, void *data)
{
	(void)status;
	(void)data;
	wait_rc = contd_group_wait(g, LIMIT_NS / 2);
}

static void lends_again(int status, void *drains)
{
	(void)status;
	if (drains)
		must(contd_executor_drain(ex2));
	else
		cr_assert_eq(contd_executor_run(ex2, 0, 0), 1);
}

static void wait_in_a_loan_in_a_loan(void *drains)
{
	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	ex2 = pull(0);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	contd_task_init(&task[0], ex, CONTD_PRIORITY_HIGH, lends_again, drains);
	contd_task_init(&task[1], ex2, CONTD_PRIORITY_NORMAL, inner_waits, NULL);
	must(contd_task_submit(&task[0], 0));
	must(contd_task_submit(&task[1], 0));
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(contd_executor_run(ex, 1, 0), 1);
	cr_assert_eq(wait_rc, 0, "the wait is %d", wait_rc);
	cr_assert_eq(runs(&t[0]), 1);
	must(contd_executor_destroy(ex2));
	end();
}

Test(executor_edges, a_wait_in_a_loan_in_a_loan)
{
	wait_in_a_loan_in_a_loan(NULL);
}
Test(executor_edges, a_wait_in_a_drain_in_a_loan)
{
	wait_in_a_loan_in_a_loan(&task[0]);
}

/* -------------------------------------------------------------------------------------------- executors that go --- */

static uint32_t arrived;
static int set_rc[2];

static void *set_ex(void *data)
{
	contd__add(&arrived, 1);
	set_rc[0] = contd_group_set_executor(g, data);
	return NULL;
}

static void *set_ex2(void *data)
{
	contd__add(&arrived, 1);
	set_rc[1] = contd_group_set_executor(g, data);
	return NULL;
}

static void end_of_both(void)
{
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	must(contd_executor_destroy(ex2));
	cr_assert_eq(contd_fini(), 0);
}

/* Two threads give a group an executor. The one that is second takes it from the first. */
Test(executor_edges, two_executors_at_once)
{
	pthread_t one, two;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	ex2 = pull(0);
	g = group_new(0, -1);
	pthread_mutex_lock(&contd__groups.lock);
	one = thread_new(set_ex, ex);
	two = thread_new(set_ex2, ex2);
	soon(contd__load(&arrived) == 2);
	usleep(20000); /* both are in the call */
	pthread_mutex_unlock(&contd__groups.lock);
	cr_assert_eq(pthread_join(one, NULL), 0);
	cr_assert_eq(pthread_join(two, NULL), 0);
	cr_assert_eq(set_rc[0], 0);
	cr_assert_eq(set_rc[1], 0);
	end_of_both();
}

static uint32_t met, no_more, wrong;

static bool meet(uint32_t n)
{
	contd__add(&met, 1);
	for (unsigned i = 0; contd__load_seq(&met) < n; i++)
		if (i > 1000)
			sched_yield();
	return !contd__load_seq(&no_more);
}

static void *sets(void *executor)
{
	uint64_t until = now_ns() + 400000000;

	for (uint32_t i = 0;; i++) {
		if (executor == ex && now_ns() > until)
			contd__store_seq(&no_more, 1);
		if (!meet(4 * i + 2))
			return NULL;
		contd__add(&wrong, contd_group_set_executor(g, executor) != 0);
		meet(4 * i + 4);
		contd__add(&wrong, contd_group_set_executor(g, NULL) != 0);
	}
}

Test(executor_edges, two_executors_at_once_many_times)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	ex2 = pull(0);
	g = group_new(0, -1);
	thread = thread_new(sets, ex2);
	sets(ex);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(wrong, 0);
	end_of_both();
}

/*
 * A scan has run the last continuation of a group and clears the hint above it. In between the group has got an
 * executor, and something is ready again: the scan marks upwards, in the executor's root. That stays while it does so.
 */
static pthread_t scanner;
static int scan_rc, destroy_rc = 1;

static void hold(uint32_t now)
{
	contd__store_seq(&phase, now);
	in_time(contd__load_seq(&phase) > now);
}

static void hold_scanner(const char *name)
{
	if (!pthread_equal(pthread_self(), scanner))
		return;
	if (contd__load_seq(&phase) == 0 && strcmp(name, "settle_cleared") == 0)
		hold(1);
	else if (contd__load_seq(&phase) == 2 && strcmp(name, "mark_root") == 0)
		hold(3);
}

static void *scans(void *data)
{
	(void)data;
	scanner = pthread_self();
	__atomic_store_n(&contd__testpoint_hook, hold_scanner, __ATOMIC_RELEASE);
	scan_rc = contd_poll(0);
	return NULL;
}

static uint32_t destroyed;

static void *destroys(void *executor)
{
	destroy_rc = contd_executor_destroy(executor);
	contd__store_seq(&destroyed, 1);
	return NULL;
}

Test(executor_edges, its_root_stays_for_a_scan_that_marks)
{
	pthread_t scan, destroyer;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	g = group_new(0, -1);
	beyond_first_chunk(g);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	scan = thread_new(scans, NULL);
	soon(contd__load_seq(&phase) == 1);
	must(contd_group_set_executor(g, ex));
	must(contd_event_continue(1, es[1], tally_cb, &t[1], g, NULL));
	must(contd_event_complete(&e[1], 0));
	contd__store_seq(&phase, 2);
	soon(contd__load_seq(&phase) == 3);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	must(contd_group_wait(g, LIMIT_NS));
	must(contd_group_set_executor(g, NULL));
	must(contd_executor_drain(ex));
	destroyer = thread_new(destroys, ex);
	usleep(100000);
	cr_assert_eq(contd__load_seq(&destroyed), 0, "it is gone, and a scan marks its root");
	contd__store_seq(&phase, 4);
	soon(contd__load_seq(&destroyed));
	cr_assert_eq(destroy_rc, 0);
	cr_assert_eq(pthread_join(destroyer, NULL), 0);
	cr_assert_eq(pthread_join(scan, NULL), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_geq(scan_rc, 1);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(runs(&t[1]), 1);
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

/* A lent thread tests a group that meanwhile gets another executor, which goes again. (asan finds the use.) */
static pthread_t tester;

static void hold_tester(const char *name)
{
	if (!pthread_equal(pthread_self(), tester))
		return;
	if (contd__load_seq(&phase) == 0 && strcmp(name, "by_handle") == 0)
		hold(1);
	else if (contd__load_seq(&phase) == 2 && strcmp(name, "outlet_loaded") == 0)
		hold(3);
}

static void test_by_handle(int status, void *data)
{
	int complete = 0;

	(void)status;
	(void)data;
	tester = pthread_self();
	__atomic_store_n(&contd__testpoint_hook, hold_tester, __ATOMIC_RELEASE);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert(complete);
}

static void *lent_once(void *executor)
{
	cr_assert_eq(contd_executor_run(executor, 1, -1), 1);
	return NULL;
}

Test(executor_edges, tested_while_it_moves_to_an_executor_that_goes)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	ex2 = pull(0);
	g = group_of(ex, 0);
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, test_by_handle, NULL);
	must(contd_task_submit(&task[0], 0));
	thread = thread_new(lent_once, ex);
	soon(contd__load_seq(&phase) == 1);
	must(contd_group_set_executor(g, ex2));
	contd__store_seq(&phase, 2);
	soon(contd__load_seq(&phase) == 3);
	must(contd_group_set_executor(g, NULL));
	must(contd_executor_destroy(ex2));
	contd__store_seq(&phase, 4);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

/* Waited for, given back, drained: then it can be destroyed, though the daemon's scan has not left the group yet. */
static struct contd_work *offered;

static int keep_offer(void *pool, struct contd_work *work, int priority)
{
	(void)pool;
	(void)priority;
	contd__store_release(&offered, work);
	return 0;
}

static void hold_daemon(const char *name)
{
	if (contd__self.context != CONTEXT_DAEMON || contd__load_seq(&phase) || strcmp(name, "settle_cleared") != 0)
		return;
	hold(1);
	usleep(50000); /* it is being destroyed */
}

Test(executor_edges, destroyed_in_order_while_the_daemon_scans)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .submit = keep_offer};

	start(CONTD_AGENT_TICK);
	ex = with(&ops);
	g = group_of(ex, 0);
	beyond_first_chunk(g);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	__atomic_store_n(&contd__testpoint_hook, hold_daemon, __ATOMIC_RELEASE);
	must(contd_event_complete(&e[0], 0));
	soon(contd__load_seq(&phase) == 1);
	cr_assert_not_null(contd__load_acquire(&offered));
	contd_work_run(offered);
	must(contd_group_wait(g, LIMIT_NS));
	must(contd_group_destroy(g));
	must(contd_executor_drain(ex));
	contd__store_seq(&phase, 2);
	must(contd_executor_destroy(ex));
	cr_assert_eq(runs(&t[0]), 1);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_eq(contd_fini(), 0);
}

/*
 * Each thread has a separate executor. The one frees what the other has given back, and waits for a grace period
 * before it does so.
 */
static void *reads(void *data)
{
	bool reader;

	(void)data;
	contd_poll(0); /* contd knows the thread */
	reader = contd__enter_sig();
	hold(1);
	usleep(50000); /* it is being destroyed */
	contd__leave_sig(reader);
	return NULL;
}

Test(executor_edges, destroyed_in_order_while_another_thread_frees_the_group)
{
	pthread_t reader, other;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	ex2 = pull(0);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	must(contd_group_wait(g, LIMIT_NS));
	must(contd_group_destroy(g));
	cr_assert_eq(contd__load_seq(&contd__groups.dead_count), 1);
	reader = thread_new(reads, NULL);
	soon(contd__load_seq(&phase) == 1);
	other = thread_new(destroys, ex2);
	soon(contd__load_seq(&contd__groups.dead_count) == 0); /* it frees the group */
	must(contd_executor_drain(ex));
	contd__store_seq(&phase, 2);
	must(contd_executor_destroy(ex));
	cr_assert_eq(pthread_join(reader, NULL), 0);
	cr_assert_eq(pthread_join(other, NULL), 0);
	cr_assert_eq(destroy_rc, 0);
	cr_assert_eq(contd_fini(), 0);
}

#define ROUNDS_NS 400000000

struct owner {
	uint64_t until;
	int rc;
	const char *text; /* of the call that failed */
};

static void *makes_and_destroys(void *data)
{
	struct owner *o = data;

	do {
		struct contd_event event = CONTD_EVENT_INIT, *events[] = {&event};
		struct contd_executor *executor;
		struct contd_group *group;
		struct tally tally = {0};

		if ((o->rc = contd_executor_create(NULL, &executor)) != 0 ||
		    (o->rc = contd_group_create(NULL, &group)) != 0 ||
		    (o->rc = contd_group_set_executor(group, executor)) != 0 ||
		    (o->rc = contd_event_continue(1, events, tally_cb, &tally, group, NULL)) != 0 ||
		    (o->rc = contd_event_complete(&event, 0)) != 0 ||
		    (o->rc = contd_executor_run(executor, 0, 0) != 1) != 0 ||
		    (o->rc = contd_group_wait(group, LIMIT_NS)) != 0 || (o->rc = contd_group_destroy(group)) != 0 ||
		    (o->rc = contd_executor_drain(executor)) != 0 || (o->rc = contd_executor_destroy(executor)) != 0)
			o->text = contd_error_text();
	} while (!o->rc && now_ns() < o->until);
	return NULL;
}

Test(executor_edges, destroyed_in_order_on_two_threads)
{
	struct owner owner[2] = {{.until = now_ns() + ROUNDS_NS}, {.until = now_ns() + ROUNDS_NS}};
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	thread = thread_new(makes_and_destroys, &owner[1]);
	makes_and_destroys(&owner[0]);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(owner[i].rc, 0, "%d: %s", owner[i].rc, owner[i].text);
	cr_assert_eq(contd_fini(), 0);
}

/* ----------------------------------------------------------------------------------------------------- refusals --- */

/* The daemon offers a continuation to the pool. Until that refuses it, a thread finds nothing, and sleeps. */
static const uint32_t *asleep;

static int refuse(void *pool, struct contd_work *work, int priority)
{
	(void)pool;
	(void)work;
	(void)priority;
	if (contd__self.context == CONTEXT_DAEMON) {
		contd__store_seq(&phase, 1);
		in_time(contd__load_seq(asleep));
		usleep(100000); /* it sleeps */
	}
	return -EAGAIN;
}

static void begin_refusing(const uint32_t *word)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .submit = refuse};

	asleep = word;
	start(CONTD_AGENT_TICK);
	ex = with(&ops);
	g = group_of(ex, 0);
	if (word == &contd__wake.fd_armed)
		cr_assert_geq(contd_fd(), 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	soon(contd__load_seq(&phase)); /* the daemon has found it */
}

Test(executor_edges, refused_while_a_thread_waits)
{
	uint64_t begun;

	begin_refusing(&contd__wake.sleepers);
	begun = now_ns();
	must(contd_group_wait(g, LIMIT_NS));
	cr_assert_lt(now_ns() - begun, LIMIT_NS / 2, "nobody has woken it");
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert(pthread_equal(t[0].thread, pthread_self()));
	end();
}

Test(executor_edges, refused_while_a_thread_polls)
{
	uint64_t begun;

	begin_refusing(&contd__wake.fd_armed);
	begun = now_ns();
	while (!runs(&t[0])) {
		struct pollfd fd = {.fd = contd_fd(), .events = POLLIN};

		cr_assert_lt(now_ns() - begun, LIMIT_NS / 2, "the descriptor does not tell");
		poll(&fd, 1, LIMIT_SECONDS * 1000);
		if (fd.revents)
			cr_assert_geq(contd_poll(0), 0);
	}
	cr_assert(pthread_equal(t[0].thread, pthread_self()));
	end();
}

/* ----------------------------------------------------------------------------------------------------- notify() --- */

static unsigned notifications;

static void notified(void *pool)
{
	(void)pool;
	errno = EIO; /* a call that it makes may fail */
	contd__add(&notifications, 1);
}

static const struct contd_executor_ops notify_ops = {.size = sizeof(notify_ops), .notify = notified};

/* The pool has looked when contd was down, in vain. In contd's next life it is told again. */
static void told_in_the_next_life(bool by_a_task)
{
	start(CONTD_AGENT_CALLER);
	ex = with(&notify_ops);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(notifications, 1);
	cr_assert_eq(contd_fini(), 1, "its continuation has not run");
	if (by_a_task)
		cr_assert_null(contd_executor_take(ex));
	else
		must_fail(contd_executor_run(ex, 0, 0), EPERM);
	start(CONTD_AGENT_CALLER);
	g = group_of(ex, 0);
	contd_event_init(&e[1]);
	must(contd_event_continue(1, es[1], tally_cb, &t[1], g, NULL));
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[2]);
	if (by_a_task) {
		must(contd_task_submit(&task[0], 0));
		cr_assert_eq(notifications, 2, "%u", notifications);
	}
	must(contd_event_complete(&e[1], 0));
	cr_assert_eq(notifications, 2, "%u", notifications);
	cr_assert_eq(contd_executor_run(ex, 0, 0), by_a_task ? 2 : 1);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(runs(&t[2]), by_a_task);
	end();
}

Test(executor_edges, told_in_the_next_life_of_a_continuation)
{
	told_in_the_next_life(false);
}
Test(executor_edges, told_in_the_next_life_of_a_task)
{
	told_in_the_next_life(true);
}

/* Handlers of the program's call these, too. */
static int errno_after[2];

static void complete_and_submit(int signo)
{
	(void)signo;
	errno = 0;
	contd_event_complete(&e[0], 0);
	errno_after[0] = errno;
	contd_executor_run(ex, 0, 0); /* the pool looks, and is told again */
	errno = 0;
	contd_task_submit(&task[0], 0);
	errno_after[1] = errno;
}

Test(executor_edges, errno_is_kept)
{
	start(CONTD_AGENT_CALLER);
	ex = with(&notify_ops);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[1]);
	complete_and_submit(0);
	cr_assert_eq(notifications, 2);
	cr_assert_eq(errno_after[0], 0, "contd_event_complete(): errno %d", errno_after[0]);
	cr_assert_eq(errno_after[1], 0, "contd_task_submit(): errno %d", errno_after[1]);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	end();
}

/* ------------------------------------------------------------------------------------------ the daemon is ended --- */

/*
 * Two operations are complete in one look, and carry their continuations. The daemon's callback waits for the second
 * one. In the first one's callback the daemon is to end.
 */
static struct contd_carried carried[2];
static uint32_t complete_both, under_way;
static bool by_settings;
static int end_rc = 1, daemon_wait_rc = 1;

static void both_progress(bool last)
{
	(void)last;
	if (!contd__xchg(&complete_both, 0))
		return;
	for (int i = 0; i < 2; i++)
		contd__carried_done_sig(&(struct contd_carried *){&carried[i]}, 1);
	contd__store_seq(&under_way, 0);
}

static uint32_t both_pending(void)
{
	return contd__load_seq(&under_way);
}

static struct contd__source both = {
	.name = "both", .where = WHERE_THREAD, .progress = both_progress, .pending = both_pending};

static void daemon_waits(int status, void *data)
{
	(void)status;
	(void)data;
	contd__store_seq(&phase, 1);
	daemon_wait_rc = contd_group_wait(h, -1);
}

static void ends_the_daemon(int status, void *data)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};

	(void)status;
	(void)data;
	contd__store_seq(&phase, 2);
	end_rc = by_settings ? contd_configure(&config) : contd_daemon_stop();
}

static void *polls(void *data)
{
	(void)data;
	scan_rc = contd_poll(0);
	contd__store_seq(&phase, 3);
	return NULL;
}

static void the_daemon_ends_in_a_callback(void)
{
	struct contd_group *waits;
	pthread_t thread;

	start(by_settings ? CONTD_AGENT_TICK : CONTD_AGENT_CALLER);
	if (!by_settings)
		must(contd_daemon_start(NULL));
	g = group_new(0, -1);
	h = group_new(CONTD_THREAD_ANY, -1);
	waits = group_new(CONTD_THREAD_ANY, -1);
	must(contd__source_register(&both));
	must(contd__carried_begin(&carried[0], ends_the_daemon, NULL, g));
	must(contd__carried_begin(&carried[1], tally_cb, &t[1], h));
	contd__store_seq(&under_way, 1);
	must(contd_event_continue(1, es[0], daemon_waits, NULL, waits, NULL));
	must(contd_event_complete(&e[0], 0));
	soon(contd__load_seq(&phase) == 1);
	usleep(20000); /* the daemon sleeps in its wait */
	contd__store_seq(&complete_both, 1);
	thread = thread_new(polls, NULL);
	soon(contd__load_seq(&phase) == 3);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(end_rc, 0);
	cr_assert_geq(scan_rc, 1);
	must(contd_group_wait(waits, LIMIT_NS));
	cr_assert_eq(daemon_wait_rc, 0);
	cr_assert_eq(runs(&t[1]), 1);
	must(contd_group_destroy(waits));
	must(contd_group_destroy(g));
	must(contd_group_destroy(h));
	cr_assert_eq(contd_fini(), 0);
}

Test(executor_edges, the_daemon_is_stopped_in_a_carried_callback)
{
	the_daemon_ends_in_a_callback();
}
Test(executor_edges, the_daemon_is_configured_away_in_a_carried_callback)
{
	by_settings = true;
	the_daemon_ends_in_a_callback();
}

static void begins_another(int status, void *data)
{
	(void)status;
	(void)data;
	must(contd__carried_begin(&carried[1], tally_cb, &t[1], h));
	contd__carried_at_once(&carried[1]);
}

static void lends_its_thread(int status, void *data)
{
	(void)status;
	(void)data;
	cr_assert_eq(contd_executor_run(ex, 0, -1), 1);
}

static void *polls_while_it_sleeps(void *data)
{
	soon(contd__load_seq(&ex->sleepers) == 1);
	cr_assert_eq(contd_poll(0), 1, "it is ready, and no other thread can run it");
	must(contd_executor_stop(ex, 1));
	return data;
}

/* A task runs on a thread that a carried callback has lent. The operation that the task begins is complete at once, and
 * its continuation is to run after that callback. But the thread sleeps, and another one polls. */
Test(executor_edges, taken_by_a_thread_that_sleeps_in_a_carried_callback)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	g = group_new(0, -1);
	h = group_new(0, -1);
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, begins_another, NULL);
	must(contd_task_submit(&task[0], 0));
	thread = thread_new(polls_while_it_sleeps, NULL);
	must(contd__carried_begin(&carried[0], lends_its_thread, NULL, g));
	contd__carried_at_once(&carried[0]);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert(pthread_equal(t[1].thread, thread));
	must(contd_group_destroy(g));
	must(contd_group_destroy(h));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------------------- drains --- */

static uint32_t drains, ended;

static void slow(int status, void *data)
{
	(void)status;
	(void)data;
	contd__store_seq(&phase, 1);
	in_time(contd__load_seq(&drains));
	usleep(200000);
	contd__store_seq(&ended, 1);
}

static void tests_g(int status, void *data)
{
	int complete;

	(void)status;
	(void)data;
	contd_event_complete(&e[1], 0);
	contd_group_test(g, &complete);
}

/* A continuation that runs by its group's handle is the executor's work, too. */
Test(executor_edges, drained_of_what_a_test_runs)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS);
	g = group_of(ex, 0);
	h = group_new(0, -1);
	must(contd_event_continue(1, es[0], tests_g, NULL, h, NULL));
	must(contd_event_continue(1, es[1], slow, NULL, g, NULL));
	must(contd_event_complete(&e[0], 0)); /* the lent thread looks for others, and finds it */
	thread = thread_new(lent, ex);
	soon(contd__load_seq(&phase));
	contd__store_seq(&drains, 1);
	must(contd_executor_drain(ex));
	cr_assert_eq(contd__load_seq(&ended), 1, "drained, and a continuation of it runs");
	stop(ex, thread);
	must(contd_group_destroy(h));
	end();
}

/* The lent thread is the one that calls MPI: work of such executors runs there, or one piece at a time. */
#define MPI_TASKS 20
static struct contd_task mpi_task[MPI_TASKS];
static pthread_t mpi_thread;
static uint32_t inside, beside, elsewhere, mpi_runs;

static void calls_mpi(int status, void *first)
{
	(void)status;
	if (contd__add(&inside, 1) != 0)
		contd__add(&beside, 1);
	if (!pthread_equal(pthread_self(), mpi_thread))
		contd__add(&elsewhere, 1);
	if (first) {
		contd__store_seq(&phase, 1);
		in_time(contd__load_seq(&contd__executors.drainers));
		usleep(50000); /* the other thread is in its drain */
	}
	usleep(500);
	contd__sub(&inside, 1);
	contd__add(&mpi_runs, 1);
}

static void submit_mpi(unsigned from, unsigned to, void *first)
{
	for (unsigned i = from; i < to; i++) {
		contd_task_init(&mpi_task[i], ex, CONTD_PRIORITY_NORMAL, calls_mpi, first);
		must(contd_task_submit(&mpi_task[i], 0));
	}
}

Test(executor_edges, drained_beside_the_thread_that_calls_mpi)
{
	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	g = group_of(ex, 0);
	mpi_thread = thread_new(lent, ex);
	soon(contd__load_seq(&contd__executors.mpi_owned));
	submit_mpi(0, 1, &phase);
	soon(contd__load_seq(&phase));
	submit_mpi(1, MPI_TASKS, NULL);
	must(contd_executor_drain(ex));
	cr_assert_eq(contd__load_seq(&mpi_runs), MPI_TASKS);
	cr_assert_eq(contd__load_seq(&beside), 0, "%u ran beside the lent thread", beside);
	cr_assert_eq(contd__load_seq(&elsewhere), 0, "%u ran on another thread", elsewhere);
	stop(ex, mpi_thread);
	end();
}

static void *lent_until_stopped(void *executor)
{
	cr_assert_geq(contd_executor_run(executor, 0, -1), 0);
	return NULL;
}

/* Its pool is told, and looks in vain, because another executor has the thread that calls MPI. It is told again of what
 * comes after that. */
Test(executor_edges, told_after_a_look_that_was_refused)
{
	struct contd_executor_attr attr = {
		.size = sizeof(attr), .flags = CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI, .ops = &notify_ops};
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(&attr, &ex));
	ex2 = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	thread = thread_new(lent_until_stopped, ex2);
	soon(contd__load_seq(&ex2->threads) == 1);
	for (unsigned i = 0; i < 2; i++)
		contd_task_init(&task[i], ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[i]);
	must(contd_task_submit(&task[0], 0));
	cr_assert_eq(contd__load(&notifications), 1);
	must_fail(contd_executor_run(ex, 0, 0), EBUSY);
	must(contd_executor_stop(ex2, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_task_submit(&task[1], 0));
	cr_assert_eq(contd__load(&notifications), 2, "it has work, and is never told of it");
	cr_assert_eq(contd_executor_run(ex, 0, 0), 2);
	must(contd_executor_destroy(ex));
	must(contd_executor_destroy(ex2));
	cr_assert_eq(contd_fini(), 0);
}

/* No thread may run its work: the thread that calls MPI is another executor's. */
Test(executor_edges, drained_while_mpi_is_another_executors)
{
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	ex2 = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	thread = thread_new(lent_until_stopped, ex2);
	soon(contd__load_seq(&ex2->threads) == 1);
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
	must(contd_task_submit(&task[0], 0));
	cr_assert_eq(contd_executor_drain(ex), -EBUSY);
	cr_assert_eq(runs(&t[0]), 0);
	must(contd_executor_stop(ex2, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_executor_drain(ex));
	cr_assert_eq(runs(&t[0]), 1);
	must(contd_executor_destroy(ex));
	must(contd_executor_destroy(ex2));
	cr_assert_eq(contd_fini(), 0);
}

/* The same, but nothing is left to run: all that was ready has been cancelled. */
#define MORE_THAN_A_CHUNK 100
static struct contd_event ready[MORE_THAN_A_CHUNK];

Test(executor_edges, drained_of_nothing_while_mpi_is_another_executors)
{
	struct contd_handle handle[MORE_THAN_A_CHUNK];
	pthread_t thread;

	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	ex2 = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	g = group_of(ex, 0);
	thread = thread_new(lent_until_stopped, ex2);
	soon(contd__load_seq(&ex2->threads) == 1);
	for (unsigned i = 0; i < MORE_THAN_A_CHUNK; i++) {
		struct contd_event *waits[] = {&ready[i]};

		contd_event_init(&ready[i]);
		must(contd_event_continue(1, waits, tally_cb, &t[0], g, &handle[i]));
		must(contd_event_complete(&ready[i], 0));
	}
	for (unsigned i = 1; i < MORE_THAN_A_CHUNK; i++)
		must(contd_cancel(handle[i]));
	cr_assert_eq(contd_executor_drain(ex), -EBUSY, "one is left");
	must(contd_cancel(handle[0]));
	cr_assert_eq(contd_executor_drain(ex), 0, "%s", contd_error_text());
	cr_assert_eq(runs(&t[0]), 0);
	must(contd_executor_stop(ex2, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_executor_destroy(ex2));
	end();
}

/* The same, with something ready. Two threads drain: one makes it ready again, which wakes the other one. Each does
 * that once in a millisecond at most. */
static uint32_t claims;

static void counts_claims(const char *name)
{
	if (strcmp(name, "claim_running") == 0)
		contd__add(&claims, 1);
}

static void *drains_in_vain(void *executor)
{
	cr_assert_eq(contd_executor_drain(executor), -EBUSY);
	return NULL;
}

Test(executor_edges, drained_by_two_while_mpi_is_another_executors)
{
	pthread_t thread, drains_too;
	uint64_t begun, ms;

	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	ex2 = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	g = group_of(ex, 0);
	thread = thread_new(lent_until_stopped, ex2);
	soon(contd__load_seq(&ex2->threads) == 1);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	contd__store_release(&contd__testpoint_hook, counts_claims);
	begun = now_ns();
	drains_too = thread_new(drains_in_vain, ex);
	drains_in_vain(ex);
	cr_assert_eq(pthread_join(drains_too, NULL), 0);
	ms = (now_ns() - begun) / 1000000;
	contd__store_release(&contd__testpoint_hook, NULL);
	cr_assert_leq(claims, 2 * (ms + 1), "%u times in %u ms", claims, (unsigned)ms);
	must(contd_executor_stop(ex2, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_executor_drain(ex));
	cr_assert_eq(runs(&t[0]), 1);
	must(contd_executor_destroy(ex2));
	end();
}

/* A group leaves a pool's executor while the pool looks for work, and something of it becomes ready elsewhere. The pool
 * has found nothing. So it is not asked again and again to drain itself. */
static struct contd_handle leaving;
static uint32_t drains;

static void leaves_its_pool(const char *name)
{
	if (strcmp(name, "scan_pinned") != 0 || contd__add(&phase, 1) != 0)
		return;
	must(contd_cancel(leaving));
	must(contd_group_set_executor(g, NULL));
	must(contd_event_continue(1, es[1], tally_cb, &t[1], g, NULL));
	must(contd_event_complete(&e[1], 0));
}

static void counts_drains(void *pool)
{
	(void)pool;
	if (contd__add(&drains, 1) == 9)
		cr_assert_null(contd_executor_take(ex)); /* or this would never end */
}

static const struct contd_executor_ops counting_ops = {.size = sizeof(counting_ops), .drain = counts_drains};

Test(executor_edges, drained_after_a_group_has_left)
{
	start(CONTD_AGENT_CALLER);
	ex = with(&counting_ops);
	g = group_of(ex, 0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, &leaving));
	must(contd_event_complete(&e[0], 0));
	contd__store_release(&contd__testpoint_hook, leaves_its_pool);
	cr_assert_null(contd_executor_take(ex));
	contd__store_release(&contd__testpoint_hook, NULL);
	cr_assert_eq(phase > 0, 1);
	must(contd_executor_drain(ex));
	cr_assert_eq(drains, 1);
	must(contd_group_wait(g, LIMIT_NS));
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(runs(&t[1]), 1);
	end();
}

/* A region submits a task to its own executor. An interruption in the middle of that only leaves a note, so a callback
 * never finds the list half changed: it runs at the end of the call, and takes the task. */
static int taken_in_callback = -1;

static void takes_tasks(int status, void *data)
{
	taken_in_callback = contd_executor_run(ex, 1, LIMIT_NS);
	tally_cb(status, data);
}

static void interrupts_the_owner(const char *name)
{
	if (strcmp(name, "task_inside") != 0 || contd__xchg(&phase, 1))
		return;
	cr_assert_eq(contd__load(&ex->inside), 1);
	must(contd_event_complete(&e[0], 0));
	raise_ours();
	cr_assert_eq(taken_in_callback, -1, "it runs in the middle");
	cr_assert_eq(stats_now().guarded, 1);
}

Test(executor_edges, a_callback_never_finds_the_owner_in_the_middle)
{
	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	g = group_new(0, -1);
	must(contd_thread_attach(NULL));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 0);
	cr_assert_eq(ex->owner, &contd__self);
	must(contd_event_continue(1, es[0], takes_tasks, &t[0], g, NULL));
	contd_task_init(&task[0], ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[1]);
	contd_compute_begin();
	contd__store_release(&contd__testpoint_hook, interrupts_the_owner);
	must(contd_task_submit(&task[0], 0));
	contd__store_release(&contd__testpoint_hook, NULL);
	cr_assert_eq(runs(&t[0]), 1);
	contd_compute_end();
	cr_assert_eq(phase, 1);
	cr_assert_eq(taken_in_callback, 1);
	cr_assert_eq(t[0].context, CONTEXT_REGION);
	cr_assert_eq(runs(&t[1]), 1);
	must(contd_thread_detach());
	end();
}

Test(executor_edges, drained_with_no_thread_that_calls_mpi)
{
	start(CONTD_AGENT_CALLER);
	ex = pull(CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI);
	g = group_of(ex, 0);
	mpi_thread = pthread_self();
	submit_mpi(0, MPI_TASKS, NULL);
	must(contd_executor_drain(ex));
	cr_assert_eq(mpi_runs, MPI_TASKS);
	cr_assert_eq(elsewhere, 0);
	cr_assert_eq(contd__load_seq(&contd__executors.mpi_owned), 0);
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread_new(lent, ex), NULL), 0);
	cr_assert_eq(lent_rc, 0, "another thread may be lent: %d", lent_rc);
	end();
}

/* --------------------------------------------------------------------------------------------------- priorities --- */

/* A task that contd_task_submit() would not take runs in its continuation's callback, once. */
static void becomes_a_wrong_task(bool has_executor, int priority)
{
	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	g = group_new(0, -1);
	contd_task_init(&task[0], has_executor ? ex : NULL, priority, tally_cb, &t[0]);
	must_fail(contd_task_submit(&task[0], 0), EINVAL);
	must(contd_event_continue(1, es[0], contd_task_callback, &task[0], g, NULL));
	must(contd_event_complete(&e[0], 5));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 5);
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 0);
	cr_assert_null(contd_executor_take(ex));
	must(contd_group_wait(g, LIMIT_NS));
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(runs(&t[0]), 1);
}

Test(executor_edges, a_task_of_priority_2)
{
	becomes_a_wrong_task(true, 2);
}
Test(executor_edges, a_task_of_priority_4)
{
	becomes_a_wrong_task(true, 4);
}
Test(executor_edges, a_task_of_priority_minus_3)
{
	becomes_a_wrong_task(true, -3);
}
Test(executor_edges, a_task_without_an_executor)
{
	becomes_a_wrong_task(false, CONTD_PRIORITY_NORMAL);
}

/* Work of high priority that never runs dry leaves turns for the rest, also where it is taken. */
static void take_beside_high_priority(void)
{
	struct contd_work *work;
	unsigned looks = 0;

	contd_task_init(&task[0], ex, CONTD_PRIORITY_HIGH, tally_cb, &t[0]);
	must(contd_task_submit(&task[0], 0));
	do {
		cr_assert_lt(looks++, 1000, "it waits for ever");
		contd_task_init(&task[looks % 2], ex, CONTD_PRIORITY_HIGH, tally_cb, &t[0]);
		must(contd_task_submit(&task[looks % 2], 0));
		work = contd_executor_take(ex);
		cr_assert_not_null(work);
		contd_work_run(work);
	} while (!runs(&t[1]));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 2);
	cr_assert_eq(runs(&t[0]), looks + 1);
	cr_assert_eq(runs(&t[1]), 1);
}

static void begin_taking(void)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .max_poll = -1, .priority = CONTD_PRIORITY_LOW};

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	g = group_of(ex, 0);
	must(contd_group_create(&attr, &h));
	must(contd_group_set_executor(h, ex));
}

Test(executor_edges, a_low_task_is_taken_at_last)
{
	begin_taking();
	contd_task_init(&task[2], ex, CONTD_PRIORITY_LOW, tally_cb, &t[1]);
	must(contd_task_submit(&task[2], 0));
	take_beside_high_priority();
	must(contd_group_destroy(h));
	end();
}
Test(executor_edges, a_low_continuation_is_taken_at_last)
{
	begin_taking();
	must(contd_event_continue(0, NULL, tally_cb, &t[1], h, NULL));
	take_beside_high_priority();
	must(contd_group_destroy(h));
	end();
}

/* -------------------------------------------------------------------------------------------------------- dumps --- */

/* A dump that is slow to be written has no group: the executor of one that is destroyed meanwhile can be destroyed. */
static void *dumps_to(void *fdp)
{
	return (void *)(intptr_t)contd_dump(*(int *)fdp);
}

Test(executor_edges, goes_beside_a_dump_that_cannot_be_written)
{
	static struct contd_group *many[500];
	char read_to[4096];
	pthread_t thread;
	int ends[2], waiting = 0;
	void *rc;

	start(CONTD_AGENT_CALLER);
	ex = pull(0);
	for (unsigned i = 0; i < 500; i++)
		many[i] = group_of(ex, 0);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
	cr_assert_eq(pthread_create(&thread, NULL, dumps_to, &ends[1]), 0);
	/* It is among the groups, and has more to write than the pipe takes. */
	soon(ioctl(ends[0], FIONREAD, &waiting) == 0 && waiting > 2048);
	for (unsigned i = 0; i < 500; i++)
		must(contd_group_destroy(many[i]));
	must(contd_executor_destroy(ex));
	cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	while (pthread_tryjoin_np(thread, &rc))
		if (read(ends[0], read_to, sizeof(read_to)) <= 0)
			usleep(100);
	cr_assert_eq((intptr_t)rc, 0);
	close(ends[0]);
	close(ends[1]);
	cr_assert_eq(contd_fini(), 0);
}

/* ------------------------------------------------------------------------------------------------------- limits --- */

Test(executor_edges, one_event_too_many)
{
	size_t n = (1u << 23) - 2;
	struct contd_event **events = calloc(n, sizeof(events[0])); /* no thread looks at them */

	cr_assert_not_null(events);
	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	must_fail(contd_event_continue(n, events, tally_cb, &t[0], g, NULL), EINVAL);
	cr_assert_not_null(strstr(contd_error_text(), "2^23 - 3"), "%s", contd_error_text());
	cr_assert_eq(contd_group_outstanding(g), 0);
	must_fail(contd_event_continue(n - 1, events, tally_cb, &t[0], g, NULL), EINVAL);
	cr_assert_null(strstr(contd_error_text(), "2^23"), "so many may be: %s", contd_error_text());
	must(contd_group_destroy(g));
	free(events);
	cr_assert_eq(contd_fini(), 0);
}
