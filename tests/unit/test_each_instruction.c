/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/*
 * A signal before each instruction of a call. The processor's trap flag stops the call after each instruction. In one
 * run after another the handler of SIGTRAP does, one instruction later each time, what a signal handler of the program
 * may do. A test point cannot stand there: the compiler moves no store across one, and so what it does elsewhere would
 * not be seen.
 */
#include <signal.h>

#include <contd/executor.h>

#include "base/atomic.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"
#include "task/executor.h"
#include "unit.h"

TestSuite(each_instruction, .timeout = WATCHDOG);

#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
Test(each_instruction, skipped)
{
	cr_skip_test("it needs the trap flag of x86-64, and signals that come at once");
}
#else
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define FURTHER (SLOW_BUILD ? 11u : 1u) /* each step takes some 30 us */

static uint32_t steps, act_at;
static void (*act)(void);

static void on_step(int signo, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)signo;
	(void)info;
	if (++steps == act_at) {
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		act();
	}
	errno = saved;
}

/* Make the call, and act before its n-th instruction. false: it has fewer. */
static bool interrupted(void (*call)(void), uint32_t n, void (*action)(void))
{
	struct sigaction trap = {.sa_sigaction = on_step, .sa_flags = SA_NODEFER | SA_SIGINFO};

	cr_assert_eq(sigaction(SIGTRAP, &trap, NULL), 0);
	steps = 0;
	act_at = n;
	act = action;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
	call();
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
	return steps >= n;
}

static struct contd_executor *ex, *other;
static struct contd_group *g;
static struct contd_event event;
static struct contd_task task, issues;
static struct tally t;

static void poll_once(void)
{
	cr_assert_geq(contd_poll(0), 0);
}

static void test_once(void)
{
	int complete;

	cr_assert_geq(contd_group_test(g, &complete), 0);
}

static void run_one(void)
{
	cr_assert_eq(contd_executor_run(other, 1, 0), 1);
}

static void guard_once(void)
{
	contd_guard_begin();
	contd_guard_end();
}

static void submit(void)
{
	must(contd_task_submit(&task, 0));
}

static void complete(void)
{
	must(contd_event_complete(&event, 0));
}

static void nothing(int status, void *data)
{
	(void)status;
	(void)data;
}

/* --------------------------------------------------------------------------------- a task, and a thread to wake --- */

/* While a thread drives the sources, or issues operations, it wakes others later, also for tasks of a signal handler
 * that interrupts it. When the call has returned they have been woken. */
static void woken(void (*call)(void), bool issuing)
{
	uint32_t n = 1;
	bool came = true;

	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(NULL, &ex));
	must(contd_executor_create(NULL, &other));
	g = group_new(0, -1);
	contd__add(&ex->sleepers, 1); /* as if a thread slept */
	if (issuing)
		contd__store(&contd__executors.issues, nothing);
	for (unsigned ran = 1; came; ran++, n += FURTHER) {
		contd_task_init(&task, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t);
		contd_task_init(&issues, other, CONTD_PRIORITY_NORMAL, nothing, NULL);
		if (issuing)
			must(contd_task_submit(&issues, 0));
		came = interrupted(call, n, submit);
		cr_assert_null(contd__self.untold, "instruction %u: the thread sleeps on", n);
		cr_assert_eq(contd_executor_run(ex, 0, 0), came);
		cr_assert_eq(runs(&t), came ? ran : ran - 1);
		cr_assert_eq(IN_HAND_NOW(contd__load(&ex->in_hand)), 0);
	}
	cr_assert_gt(n, 50, "no steps are made");
	contd__sub(&ex->sleepers, 1);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	must(contd_executor_destroy(other));
	cr_assert_eq(contd_fini(), 0);
}

Test(each_instruction, submitted_in_a_poll)
{
	woken(poll_once, false);
}

Test(each_instruction, submitted_in_a_test)
{
	woken(test_once, false);
}

Test(each_instruction, submitted_while_a_task_issues)
{
	woken(run_one, true);
}

/* ------------------------------------------------------------------------------- a continuation, to run at once --- */

/* On an attached thread it has run when the call returns: in the handler, or at the end of what kept that from it. */
static void picked_up(void (*call)(void))
{
	struct contd_event *events[] = {&event};
	struct contd_group *safe;
	uint32_t n = 1;
	bool came = true;

	start(CONTD_AGENT_CALLER);
	g = group_new(0, -1);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must(contd_thread_attach(NULL));
	for (unsigned ran = 1; came; ran++, n += FURTHER) {
		contd_event_init(&event);
		must(contd_event_continue(1, events, tally_cb, &t, safe, NULL));
		came = interrupted(call, n, complete);
		if (!came)
			complete();
		cr_assert_eq(runs(&t), ran, "instruction %u: it has run %d times", n, (int)(runs(&t) - ran + 1));
		cr_assert_eq(contd__tls.guard, 0);
	}
	cr_assert_gt(n, 5, "no steps are made");
	must(contd_thread_detach());
	must(contd_group_destroy(safe));
	must(contd_group_destroy(g));
	cr_assert_eq(contd_fini(), 0);
}

Test(each_instruction, completed_in_a_poll)
{
	picked_up(poll_once);
}

Test(each_instruction, completed_in_a_test)
{
	picked_up(test_once);
}

Test(each_instruction, completed_in_a_guard)
{
	picked_up(guard_once);
}
/* ------------------------------------------------------------------------------ an executor that goes meanwhile --- */

static struct helper helper;
static uint32_t under_way, destroyed, n;
static bool came = true;

static void run_and_destroy(void *data)
{
	(void)data;
	contd_executor_run(ex, 0, 0);
	if (contd_executor_destroy(ex) == 0)
		contd__store(&destroyed, 1);
}

/* Wakes the threads of the one that was put off before, and another thread destroys that one. */
static void submit_elsewhere(void)
{
	if (contd__reading_sig())
		return; /* it would wait for this thread */
	submit();
	helper_do(&helper, run_and_destroy, NULL);
}

static void put_off_and_poll(bool last)
{
	(void)last;
	contd__store(&under_way, 0);
	must(contd_task_submit(&issues, 0)); /* the executor's thread is to be woken later */
	came = interrupted(poll_once, n, submit_elsewhere);
}

static uint32_t is_under_way(void)
{
	return contd__load(&under_way);
}

static struct contd__source calls_back = {
	.name = "calls back", .where = WHERE_THREAD, .progress = put_off_and_poll, .pending = is_under_way};

/* A function of the program that a source calls may poll. In that poll the wake-up is still put off. */
Test(each_instruction, destroyed_where_its_threads_are_woken)
{
	start(CONTD_AGENT_CALLER);
	must(contd__source_register(&calls_back));
	must(contd_executor_create(NULL, &other));
	contd__add(&other->sleepers, 1);
	helper_create(&helper, false);
	for (n = 1; came; n += FURTHER) {
		must(contd_executor_create(NULL, &ex));
		contd__add(&ex->sleepers, 1);
		contd__store(&destroyed, 0);
		contd_task_init(&task, other, CONTD_PRIORITY_NORMAL, nothing, NULL);
		contd_task_init(&issues, ex, CONTD_PRIORITY_NORMAL, nothing, NULL);
		contd__store(&under_way, 1);
		cr_assert_geq(contd_poll(0), 0);
		if (!destroyed) {
			must(contd_executor_drain(ex));
			must(contd_executor_destroy(ex));
		}
		must(contd_executor_drain(other));
	}
	helper_join(&helper);
	must(contd_executor_destroy(other));
	cr_assert_eq(contd_fini(), 0);
}
#endif
