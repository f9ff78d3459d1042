/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* Executors: where continuations run that have been given to one, what is refused, and that nothing is lost. */
#include <contd/executor.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/event.h"
#include "dispatch/source.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "task/executor.h"
#include "unit.h"

TestSuite(executor, .timeout = WATCHDOG);

#define LONG_NS (PATIENCE_SECONDS * 1000000000ll)

static struct contd_event e[8];
static struct contd_event *es[8][1] = {{&e[0]}, {&e[1]}, {&e[2]}, {&e[3]}, {&e[4]}, {&e[5]}, {&e[6]}, {&e[7]}};
static struct tally t[8];
static struct contd_group *g;
static struct contd_executor *ex;

static struct contd_group *group_of(struct contd_executor *executor, uint32_t flags, int priority)
{
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = flags, .max_poll = -1, .priority = priority};
	struct contd_group *group;

	must(contd_group_create(&attr, &group));
	must(contd_group_set_executor(group, executor));
	return group;
}

static void begin_pull(uint32_t flags)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = flags};

	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(&attr, &ex));
	g = group_of(ex, 0, 0);
}

static void end(void)
{
	int rc;

	must(contd_executor_drain(ex));
	must(contd_group_wait(g, LONG_NS));
	must(contd_group_destroy(g));
	/* A scan of the daemon's may still hold the group: then it is given back in a moment. */
	await((rc = contd_executor_destroy(ex)) != -EBUSY);
	must(rc);
	cr_assert_eq(contd_fini(), 0);
}

/* --------------------------------------------------------------------------------------------------------- pull --- */

Test(executor, only_lent_threads_run_it)
{
	struct contd_group *plain;
	int complete;

	begin_pull(0);
	plain = group_new(0, -1);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_continue(1, es[1], tally_cb, &t[1], plain, NULL));
	must(contd_event_complete(&e[0], 7));
	must(contd_event_complete(&e[1], 0));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 0);
	must_fail(contd_group_wait(g, 1000000), ETIMEDOUT);
	cr_assert_eq(runs(&t[0]), 0, "a thread that is not lent has run it");
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 7);
	cr_assert_eq(contd_group_test(g, &complete), 0);
	cr_assert_eq(complete, 1);
	must(contd_group_destroy(plain));
	end();
}

Test(executor, never_inside_the_call_that_registers)
{
	begin_pull(0);
	must(contd_event_complete(&e[0], 0));
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_continue(0, NULL, tally_cb, &t[1], g, NULL));
	cr_assert_eq(runs(&t[0]) + runs(&t[1]), 0);
	cr_assert_eq(contd_executor_run(ex, 1, 0), 1, "no more than one");
	cr_assert_eq(runs(&t[0]) + runs(&t[1]), 1);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(runs(&t[0]) + runs(&t[1]), 2);
	end();
}

static void *lent(void *data)
{
	(void)data;
	cr_assert_geq(contd_executor_run(ex, 0, -1), 0);
	return NULL;
}

static void lent_thread(uint32_t flags)
{
	pthread_t thread;

	begin_pull(flags);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	for (unsigned i = 0; i < 1000; i++) {
		contd_event_init(&e[0]);
		must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
		if (i % 50 == 0)
			usleep(2000); /* it sleeps */
		must(contd_event_complete(&e[0], 0));
		must(contd_group_wait(g, LONG_NS));
		cr_assert_eq(runs(&t[0]), i + 1);
		cr_assert(pthread_equal(t[0].thread, thread));
	}
	must_fail(contd_executor_destroy(ex), EBUSY);
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(contd_executor_run(ex, 0, -1), 0, "it is stopped");
	must(contd_executor_stop(ex, 0));
	cr_assert_eq(contd_executor_run(ex, 0, 1000000), 0, "nothing comes");
	end();
}

Test(executor, a_thread_that_sleeps_is_woken)
{
	lent_thread(0);
}
Test(executor, a_thread_that_looks_for_others_is_woken)
{
	lent_thread(CONTD_EXECUTOR_PROGRESS);
}

/* It looks at memory words, and runs what belongs to no executor. */
/* A look at sources notifies once, after all hand-overs: otherwise a woken thread would find a single task. */
#define SWEEP 40
static struct contd_task sweep[SWEEP];
static uint32_t swept, sweep_under_way;

static void sweep_progress(bool last)
{
	(void)last;
	contd__store(&sweep_under_way, 0);
	for (unsigned i = 0; i < SWEEP; i++)
		cr_assert_eq(contd__task_hand_over_sig(&sweep[i], 0, NULL), 0);
}

static uint32_t sweep_pending(void)
{
	return contd__load(&sweep_under_way);
}

static struct contd__source sweep_source = {
	.name = "sweep", .where = WHERE_THREAD, .progress = sweep_progress, .pending = sweep_pending};

static void count_swept(int status, void *data)
{
	(void)status;
	(void)data;
	contd__add(&swept, 1);
}

Test(executor, a_sweep_wakes_once)
{
	pthread_t thread;
	uint32_t before;

	begin_pull(0);
	must(contd__source_register(&sweep_source));
	for (unsigned i = 0; i < SWEEP; i++)
		contd_task_init(&sweep[i], ex, CONTD_PRIORITY_NORMAL, count_swept, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	while (contd__load(&ex->sleepers) == 0)
		sched_yield();
	usleep(20000); /* it sleeps */
	before = contd__load(&ex->wake);
	contd__store(&sweep_under_way, 1);
	contd_poll(0);
	cr_assert_eq(contd__self.untold, NULL);
	while (contd__load(&swept) < SWEEP)
		sched_yield();
	cr_assert_leq(contd__load(&ex->wake) - before, 1);
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_executor_drain(ex));
	end();
}

/* Several together, twice in one sweep: as many threads are woken as there is work. */
#define LENT 3
static struct contd__source events_source;
static uint32_t together;

static void events_progress(bool last)
{
	struct contd_event *some[] = {&e[0], &e[1], &e[2], &e[3]};

	(void)last;
	contd__store(&sweep_under_way, 0);
	contd__events_complete_sig(some, 2);
	contd__events_complete_sig(some + 2, 2);
}

static void wait_for_the_others(int status, void *data)
{
	(void)status;
	(void)data;
	contd__add(&together, 1);
	await(contd__load(&together) >= LENT);
}

Test(executor, a_sweep_wakes_all_that_it_has_work_for)
{
	pthread_t thread[LENT];

	begin_pull(0);
	events_source = (struct contd__source){
		.name = "events", .where = WHERE_THREAD, .progress = events_progress, .pending = sweep_pending};
	must(contd__source_register(&events_source));
	for (unsigned i = 0; i < 4; i++)
		must(contd_event_continue(1, es[i], wait_for_the_others, NULL, g, NULL));
	for (unsigned i = 0; i < LENT; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, lent, NULL), 0);
	await(contd__load(&ex->sleepers) == LENT);
	usleep(20000); /* they sleep */
	contd__store(&sweep_under_way, 1);
	cr_assert_eq(contd_poll(0), 0);
	must(contd_group_wait(g, LONG_NS));
	cr_assert_eq(contd__load(&together), 4);
	must(contd_executor_stop(ex, 1));
	for (unsigned i = 0; i < LENT; i++)
		cr_assert_eq(pthread_join(thread[i], NULL), 0);
	end();
}

/* A signal handler of the program's submits a task where the thread that it interrupts counts whom it is to wake. */
static struct contd_task from_a_handler;
static const char *interrupted_at;
static unsigned interruptions;

static void submit_in_handler(int signo)
{
	(void)signo;
	must(contd_task_submit(&from_a_handler, 0));
}

static void interrupt_there(const char *name)
{
	if (strcmp(name, interrupted_at) == 0 && interruptions++ == 0)
		raise(SIGUSR2);
}

/* The sweep's last task is another executor's: the threads of the first one are woken in the midst of the sweep. */
static void submitted_in_a_handler_at(const char *name)
{
	struct contd_executor_attr attr = {.size = sizeof(attr)};
	struct contd_executor *other;
	uint32_t before;

	begin_pull(0);
	must(contd_executor_create(&attr, &other));
	must(contd__source_register(&sweep_source));
	for (unsigned i = 0; i < SWEEP; i++)
		contd_task_init(&sweep[i], ex, CONTD_PRIORITY_NORMAL, count_swept, NULL);
	contd_task_init(&sweep[SWEEP - 1], other, CONTD_PRIORITY_NORMAL, count_swept, NULL);
	contd_task_init(&from_a_handler, ex, CONTD_PRIORITY_NORMAL, count_swept, NULL);
	signal(SIGUSR2, submit_in_handler);
	contd__add(&ex->sleepers, 1); /* as if a thread of each slept */
	contd__add(&other->sleepers, 1);
	before = contd__load(&ex->wake);
	interrupted_at = name;
	__atomic_store_n(&contd__testpoint_hook, interrupt_there, __ATOMIC_RELEASE);
	contd__store(&sweep_under_way, 1);
	contd_poll(0);
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	cr_assert_gt(interruptions, 0, "%s is never passed", name);
	cr_assert_eq(contd__self.untold, NULL);
	cr_assert_eq(contd__lent.untold_threads, 0);
	cr_assert_eq(contd__load(&ex->wake) - before, 2, "once for the sweep, once in the handler");
	contd__sub(&ex->sleepers, 1);
	contd__sub(&other->sleepers, 1);
	cr_assert_eq(contd_executor_run(ex, 0, 0), SWEEP);
	cr_assert_eq(contd_executor_run(other, 0, 0), 1);
	cr_assert_eq(IN_HAND_NOW(contd__load(&ex->in_hand)), 0, "it would never be drained");
	must(contd_executor_destroy(other));
	end();
}

Test(executor, a_handler_submits_where_threads_are_put_off)
{
	submitted_in_a_handler_at("tell_held");
}

Test(executor, a_handler_submits_where_threads_are_woken)
{
	submitted_in_a_handler_at("tells_now");
}

/* A brief task's hand-overs are notified when it ends, but at once if a callback runs in it, because that may wait. */
static struct contd_executor *issuing;
static struct contd_task brief[2], awaited;
static bool came, handed_over_before;

static void hand_over_and_wait(int status, void *data)
{
	uint64_t until = now_ns() + 5000000000ull;

	(void)status;
	(void)data;
	if (!handed_over_before)
		must(contd_task_submit(&awaited, 0));
	while (!runs(&t[0]) && now_ns() < until)
		usleep(100);
	came = runs(&t[0]);
}

static void issue_briefly(int status, void *data)
{
	(void)status;
	if (data)
		must(contd_task_submit(&awaited, 0));
	else
		must(contd_event_continue(0, NULL, hand_over_and_wait, NULL, g, NULL));
}

static void callback_in_a_brief_task(void)
{
	pthread_t thread;

	begin_pull(0);
	must(contd_executor_create(NULL, &issuing));
	must(contd_group_set_executor(g, NULL));
	contd__store(&contd__executors.issues, issue_briefly);
	contd_task_init(&brief[0], issuing, CONTD_PRIORITY_NORMAL, issue_briefly, &awaited);
	contd_task_init(&brief[1], issuing, CONTD_PRIORITY_NORMAL, issue_briefly, NULL);
	contd_task_init(&awaited, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	await(contd__load(&ex->sleepers));
	usleep(20000); /* it sleeps */
	for (int i = !handed_over_before; i < 2; i++)
		must(contd_task_submit(&brief[i], 0));
	cr_assert_eq(contd_executor_run(issuing, 0, 0), 1 + handed_over_before);
	cr_assert(came, "the thread that runs it was notified too late");
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_executor_destroy(issuing));
	end();
}

Test(executor, a_callback_in_a_brief_task_may_wait)
{
	callback_in_a_brief_task();
}
Test(executor, a_callback_in_a_brief_task_may_wait_for_another_one_s)
{
	handed_over_before = true;
	callback_in_a_brief_task();
}

Test(executor, progress)
{
	static uint64_t word;
	struct contd_word condition = {.address = &word, .value = 1, .op = CONTD_WORD_EQ};
	struct contd_group *plain;
	pthread_t thread;

	begin_pull(CONTD_EXECUTOR_PROGRESS);
	plain = group_new(0, -1);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	must(contd_word_continue(&condition, tally_cb, &t[0], g, NULL));
	must(contd_word_continue(&condition, tally_cb, &t[1], plain, NULL));
	contd__store_release(&word, 1);
	await(runs(&t[0]) == 1 && runs(&t[1]) == 1);
	cr_assert(pthread_equal(t[0].thread, thread));
	cr_assert(pthread_equal(t[1].thread, thread));
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_group_destroy(plain));
	end();
}

static unsigned order[64], ordered;

static void note_order(int status, void *data)
{
	(void)status;
	order[ordered++] = (unsigned)(uintptr_t)data;
}

Test(executor, high_priority_first)
{
	static struct contd_task task[3];
	struct contd_group *by[3];

	begin_pull(0);
	for (int p = 0; p < 3; p++)
		by[p] = group_of(ex, 0, p - 1);
	for (uintptr_t i = 0; i < 3; i++) {
		must(contd_event_continue(0, NULL, note_order, (void *)(i * 2), by[i], NULL));
		contd_task_init(&task[i], ex, (int)i - 1, note_order, (void *)(i * 2));
		must(contd_task_submit(&task[i], 0));
	}
	cr_assert_eq(contd_executor_run(ex, 0, 0), 6);
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(order[i], 4 - i / 2 * 2, "%u at %u", order[i], i);
	for (int p = 0; p < 3; p++)
		must(contd_group_destroy(by[p]));
	end();
}

/* Work that submits itself again leaves turns for lower priorities. */
static struct contd_task endless;

static void again(int status, void *data)
{
	(void)status, (void)data;
	if (++ordered < 100000)
		must(contd_task_submit(&endless, 0));
}

Test(executor, nothing_starves)
{
	begin_pull(0);
	contd_task_init(&endless, ex, CONTD_PRIORITY_HIGH, again, NULL);
	must(contd_task_submit(&endless, 0));
	must(contd_event_continue(0, NULL, tally_cb, &t[0], g, NULL));
	cr_assert_eq(contd_executor_run(ex, 1000, 0), 1000);
	cr_assert_eq(runs(&t[0]), 1);
	ordered = 100000;
	end();
}

/* -------------------------------------------------------------------------------------------------------- tasks --- */

Test(executor, tasks_in_order)
{
	static struct contd_task task[64];

	begin_pull(0);
	for (uintptr_t i = 0; i < 64; i++) {
		contd_task_init(&task[i], ex, 0, note_order, (void *)i);
		must(contd_task_submit(&task[i], 0));
	}
	cr_assert_eq(contd_executor_run(ex, 0, 0), 64);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_eq(order[i], i);
	end();
}

static struct contd_task in_order[60];

static void submit_some(uintptr_t from, uintptr_t to)
{
	for (uintptr_t i = from; i < to; i++) {
		contd_task_init(&in_order[i], ex, 0, note_order, (void *)i);
		must(contd_task_submit(&in_order[i], 0));
	}
}

static void *submit_from_elsewhere(void *unused)
{
	submit_some(20, 40);
	return unused;
}

/* The thread that takes them submits as well, before and after another one. */
Test(executor, tasks_in_order_whoever_submits)
{
	pthread_t thread;

	begin_pull(0);
	for (unsigned round = 0; round < 3; round++) {
		ordered = 0;
		submit_some(0, 20);
		cr_assert_eq(pthread_create(&thread, NULL, submit_from_elsewhere, NULL), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		submit_some(40, 60);
		cr_assert_eq(contd_executor_run(ex, 0, 0), 60);
		for (unsigned i = 0; i < 60; i++)
			cr_assert_eq(order[i], i);
	}
	end();
}

/* --------------------------------------------------------------------------------- one thread, and then several --- */

enum { CIRCULATE = 16, GENERATIONS = 60, SHARINGS = 60 };

static struct circulating {
	struct contd_task task;
	uint32_t generation, running;
} circulating[CIRCULATE];
static uint32_t circulated, not_alone;

/* Each task queues itself again, and never runs twice at a time. */
static void circulate(int status, void *data)
{
	struct circulating *c = data;

	(void)status;
	if (contd__xchg(&c->running, 1))
		contd__add(&not_alone, 1);
	c->generation++;
	contd__add(&circulated, 1);
	contd__store_release(&c->running, 0);
	if (c->generation < GENERATIONS)
		contd_task_submit(&c->task, 0);
}

static bool takes = false, lends = true;

static void *come_and_go(void *how)
{
	bool lend = *(bool *)how;

	for (unsigned i = 0; contd__load(&circulated) < CIRCULATE * GENERATIONS; i++) {
		struct contd_work *work;

		if (!lend && (work = contd_executor_take(ex)) != NULL)
			contd_work_run(work);
		else if (lend)
			contd_executor_run(ex, 1 + i % 7, i % 5 ? 0 : 10000);
		sched_yield();
	}
	return NULL;
}

Test(executor, its_only_thread_gets_company)
{
	char text[80];

	begin_pull(0);
	for (unsigned round = 0; round < SHARINGS; round++) {
		struct contd_executor *before = ex;
		pthread_t thread[2];

		must(contd_executor_create(NULL, &ex));
		contd__store(&circulated, 0);
		contd_executor_run(ex, 0, 0);
		for (unsigned i = 0; i < CIRCULATE; i++) {
			circulating[i].generation = 0;
			contd_task_init(&circulating[i].task, ex, (int)(i % 3) - 1, circulate, &circulating[i]);
			must(contd_task_submit(&circulating[i].task, 0));
		}
		contd_executor_run(ex, 1 + round * 7, 0);
		cr_assert_eq(pthread_create(&thread[0], NULL, come_and_go, round % 2 ? &lends : &takes), 0);
		contd_executor_run(ex, 50, 1000000);
		cr_assert_eq(pthread_create(&thread[1], NULL, come_and_go, round % 3 ? &lends : &takes), 0);
		contd_executor_run(ex, 100, 1000000);
		cr_assert_gt(contd_executor_describe(ex, text, sizeof(text)), 0);
		must(contd_executor_drain(ex));
		for (unsigned i = 0; i < 2; i++)
			cr_assert_eq(pthread_join(thread[i], NULL), 0);
		for (unsigned i = 0; i < CIRCULATE; i++)
			cr_assert_eq(circulating[i].generation, GENERATIONS, "task %u", i);
		cr_assert_eq(contd__load(&circulated), CIRCULATE * GENERATIONS);
		cr_assert_eq(contd__load(&not_alone), 0);
		must(contd_executor_destroy(ex));
		ex = before;
	}
	end();
}

/*
 * The first to take, and another one that begins to at the same time, at each distance: no task runs twice or never. It
 * is the barrier in settle() that keeps them apart.
 */
enum { AT_ONCE = 16, MEETINGS = SLOW_BUILD ? 500 : 40000 };

static struct contd_task at_once[AT_ONCE];
static uint32_t ran_at_once[AT_ONCE], meeting;

static void run_at_once(int status, void *data)
{
	(void)status;
	contd__add((uint32_t *)data, 1);
}

static void take_all(void)
{
	for (struct contd_work *work; (work = contd_executor_take(ex)) != NULL;)
		contd_work_run(work);
}

static void *take_too(void *unused)
{
	(void)unused;
	for (uint32_t i = 1; i <= MEETINGS; i++) {
		for (unsigned tries = 0; contd__load_acquire(&meeting) != 2 * i - 1; tries++) {
			CONTD_RELAX();
			if (tries > 1000) /* the other thread may have no processor */
				sched_yield();
		}
		for (uint32_t k = 0; k < i % 64; k++)
			CONTD_RELAX();
		take_all();
		contd__store_release(&meeting, 2 * i);
	}
	return NULL;
}

Test(executor, two_take_at_once)
{
	struct contd_executor *before;
	pthread_t thread;

	begin_pull(0);
	before = ex;
	cr_assert_eq(pthread_create(&thread, NULL, take_too, NULL), 0);
	for (uint32_t i = 1; i <= MEETINGS; i++) {
		must(contd_executor_create(NULL, &ex));
		cr_assert_null(contd_executor_take(ex)); /* it is this thread's now */
		for (unsigned k = 0; k < AT_ONCE; k++) {
			contd__store(&ran_at_once[k], 0);
			contd_task_init(&at_once[k], ex, 0, run_at_once, &ran_at_once[k]);
			must(contd_task_submit(&at_once[k], 0));
		}
		contd__store_release(&meeting, 2 * i - 1);
		take_all();
		while (contd__load_acquire(&meeting) != 2 * i)
			sched_yield();
		for (unsigned k = 0; k < AT_ONCE; k++)
			cr_assert_eq(contd__load(&ran_at_once[k]), 1, "task %u, meeting %u", k, i);
		must(contd_executor_destroy(ex));
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	ex = before;
	end();
}

static void lend_for_a_while(void *rc)
{
	*(int *)rc = contd_executor_run(ex, 0, 1000);
}

Test(executor, threads_that_come_one_after_the_other)
{
	struct helper helper[3];

	begin_pull(0);
	for (unsigned i = 0; i < 3; i++)
		helper_create(&helper[i], false);
	contd_task_init(&in_order[0], ex, 0, tally_cb, &t[0]);
	for (unsigned i = 0; i < 6; i++) {
		int rc = -1;

		must(contd_task_submit(&in_order[0], 0));
		helper_do(&helper[i % 3], lend_for_a_while, &rc);
		cr_assert_eq(rc, 1);
		cr_assert_eq(contd__load(&ex->shared), OWNED, "each was the only one in its time");
	}
	cr_assert_eq(runs(&t[0]), 6);
	for (unsigned i = 0; i < 3; i++)
		helper_join(&helper[i]);
	end();
}

static uint32_t it_runs, it_may_end, drained;

static void run_for_long(int status, void *data)
{
	(void)status;
	(void)data;
	contd__store_release(&it_runs, 1);
	await(contd__load_acquire(&it_may_end));
}

static void drain_it(void *unused)
{
	(void)unused;
	must(contd_executor_drain(ex));
	contd__store_release(&drained, 1);
}

/* Nothing is queued any more; but something runs. */
Test(executor, drained_when_the_last_task_has_run)
{
	struct helper lent, drainer;
	int rc;

	begin_pull(0);
	helper_create(&lent, false);
	helper_create(&drainer, false);
	contd_task_init(&in_order[0], ex, 0, run_for_long, NULL);
	must(contd_task_submit(&in_order[0], 0));
	helper_start(&lent, lend_for_a_while, &rc);
	await(contd__load_acquire(&it_runs));
	helper_start(&drainer, drain_it, NULL);
	usleep(20000);
	cr_assert_eq(contd__load_acquire(&drained), 0);
	contd__store_release(&it_may_end, 1);
	helper_finish(&drainer);
	cr_assert_eq(contd__load_acquire(&drained), 1);
	helper_join(&lent);
	helper_join(&drainer);
	end();
}

Test(executor, a_continuation_that_becomes_a_task)
{
	static struct contd_task task;
	struct contd_group *plain;
	int complete;

	begin_pull(0);
	plain = group_new(0, -1);
	contd_task_init(&task, ex, 0, tally_cb, &t[0]);
	must(contd_event_continue(1, es[0], contd_task_callback, &task, plain, NULL));
	must(contd_event_complete(&e[0], 5));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(contd_group_outstanding(plain), 1, "until the task has run");
	must_fail(contd_executor_destroy(ex), EBUSY);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 5);
	cr_assert_eq(contd_group_test(plain, &complete), 0);
	cr_assert_eq(complete, 1);
	/* Complete already: inside the call, as far as the handing over. */
	must(contd_event_continue(1, es[0], contd_task_callback, &task, plain, NULL));
	cr_assert_eq(contd_group_outstanding(plain), 1);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(contd_group_outstanding(plain), 0);
	must(contd_group_destroy(plain));
	end();
}

static void complete_it(void *event)
{
	must(contd_event_complete(event, 0));
}

/* In the handler, on a thread that computes. */
Test(executor, a_handler_hands_over)
{
	static struct contd_task task;
	struct contd_group *safe;
	struct helper other;
	pthread_t thread;

	start(CONTD_AGENT_REGION);
	must(contd_executor_create(NULL, &ex));
	g = group_of(ex, 0, 0);
	safe = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	cr_assert_eq(pthread_create(&thread, NULL, lent, NULL), 0);
	must(contd_thread_attach(NULL));
	helper_create(&other, false);
	contd_task_init(&task, ex, 0, tally_cb, &t[0]);
	for (unsigned i = 1; i <= 50; i++) {
		contd_event_init(&e[0]);
		must(contd_event_continue(1, es[0], contd_task_callback, &task, safe, NULL));
		helper_do(&other, complete_it, &e[0]);
		while (runs(&t[0]) < i)
			;
		cr_assert(pthread_equal(t[0].thread, thread));
		must(contd_group_wait(safe, LONG_NS));
	}
	cr_assert_gt(stats_now().run_handler, 0, "none was handed over by the handler");
	helper_join(&other);
	must(contd_thread_detach());
	must(contd_executor_stop(ex, 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	must(contd_group_destroy(safe));
	end();
}

/* ------------------------------------------------------------------------------------------------- take, notify --- */

static unsigned notifications;

static void count_notification(void *pool)
{
	(void)pool;
	contd__add(&notifications, 1);
}

Test(executor, told_once_and_taken)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .notify = count_notification};
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = &ops};
	static struct contd_task task;
	struct contd_work *work[3];
	int complete;

	start(CONTD_AGENT_CALLER);
	must(contd_executor_create(&attr, &ex));
	g = group_of(ex, 0, 0);
	cr_assert_null(contd_executor_take(ex));
	for (unsigned i = 0; i < 2; i++)
		must(contd_event_continue(1, es[i], tally_cb, &t[i], g, NULL));
	must(contd_event_complete(&e[0], 0));
	must(contd_event_complete(&e[1], 0));
	contd_task_init(&task, ex, 0, tally_cb, &t[2]);
	must(contd_task_submit(&task, 0));
	cr_assert_eq(notifications, 1, "%u", notifications);
	for (unsigned i = 0; i < 3; i++) {
		work[i] = contd_executor_take(ex);
		cr_assert_not_null(work[i]);
	}
	cr_assert_null(contd_executor_take(ex));
	cr_assert_eq(runs(&t[0]) + runs(&t[1]) + runs(&t[2]), 0);
	contd_group_test(g, &complete);
	cr_assert_eq(complete, 0);
	must_fail(contd_executor_destroy(ex), EBUSY);
	for (unsigned i = 0; i < 3; i++)
		contd_work_run(work[i]);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(runs(&t[i]), 1);
	contd_group_test(g, &complete);
	cr_assert_eq(complete, 1);
	contd_event_init(&e[0]);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(notifications, 2, "%u", notifications);
	end();
}

/* A taken continuation can't be cancelled any more; a ready one can. */
Test(executor, cancelled)
{
	struct contd_handle handle[2];
	struct contd_work *work;

	begin_pull(0);
	for (unsigned i = 0; i < 2; i++)
		must(contd_event_continue(1, es[i], tally_cb, &t[i], g, &handle[i]));
	must(contd_event_complete(&e[0], 0));
	must(contd_cancel(handle[0]));
	cr_assert_null(contd_executor_take(ex));
	cr_assert_eq(contd_group_outstanding(g), 1);
	must(contd_event_complete(&e[1], 0));
	work = contd_executor_take(ex);
	must_fail(contd_cancel(handle[1]), EALREADY);
	contd_work_run(work);
	cr_assert_eq(runs(&t[0]), 0);
	cr_assert_eq(runs(&t[1]), 1);
	end();
}

/* A ready continuation that is cancelled is not outstanding, though no thread is lent. */
Test(executor, cancelled_with_nobody_lent)
{
	struct contd_handle handle;

	begin_pull(0);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, &handle));
	must(contd_event_complete(&e[0], 0));
	must(contd_cancel(handle));
	must(contd_group_wait(g, 0));
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
	cr_assert_eq(runs(&t[0]), 0);
}

/* --------------------------------------------------------------------------------------------------------- push --- */

#define QUEUE 4096

static struct {
	pthread_mutex_t lock;
	struct contd_work *work[QUEUE];
	int priority[QUEUE];
	unsigned count, refuse, refused, drained;
	int context; /* enum contd__context of the last submit() */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int pool_submit(void *data, struct contd_work *work, int priority)
{
	int rc = 0;

	cr_assert_eq(data, &pool);
	pthread_mutex_lock(&pool.lock);
	pool.context = contd__self.context;
	if (pool.refuse || pool.count == QUEUE) {
		pool.refuse -= pool.refuse > 0;
		contd__add(&pool.refused, 1);
		rc = -EAGAIN;
	} else {
		pool.work[pool.count] = work;
		pool.priority[pool.count] = priority;
		contd__store_release(&pool.count, pool.count + 1); /* some look at it without the lock */
	}
	pthread_mutex_unlock(&pool.lock);
	return rc;
}

static unsigned pool_run(void)
{
	unsigned ran = 0;

	for (;;) {
		struct contd_work *work;

		pthread_mutex_lock(&pool.lock);
		work = pool.count ? pool.work[--pool.count] : NULL;
		pthread_mutex_unlock(&pool.lock);
		if (!work)
			return ran;
		contd_work_run(work);
		ran++;
	}
}

static void pool_drain(void *data)
{
	(void)data;
	pool.drained++;
	pool_run();
}

static int pool_describe(void *data, char *text, size_t bytes)
{
	(void)data;
	return snprintf(text, bytes, "a pool of tests'");
}

static const struct contd_executor_ops pool_ops = {
	.size = sizeof(pool_ops), .submit = pool_submit, .drain = pool_drain, .describe = pool_describe};

static void begin_push(enum contd_agent agent)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .ops = &pool_ops, .pool = &pool};

	start(agent);
	must(contd_executor_create(&attr, &ex));
	g = group_of(ex, 0, CONTD_PRIORITY_HIGH);
}

Test(executor, submitted)
{
	static struct contd_task task;
	char text[64];

	begin_push(CONTD_AGENT_CALLER);
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_complete(&e[0], 3));
	cr_assert_eq(pool.count, 0, "completing is no look");
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(pool.count, 1);
	cr_assert_eq(pool.priority[0], CONTD_PRIORITY_HIGH);
	contd_task_init(&task, ex, CONTD_PRIORITY_LOW, tally_cb, &t[1]);
	must(contd_task_submit(&task, 4));
	cr_assert_eq(pool.priority[1], CONTD_PRIORITY_LOW);
	cr_assert_eq(contd_group_outstanding(g), 1);
	must_fail(contd_executor_destroy(ex), EBUSY);
	cr_assert_gt(contd_executor_describe(ex, text, sizeof(text)), 0);
	cr_assert_str_eq(text, "a pool of tests', 2 in hand");
	cr_assert_eq(pool_run(), 2);
	cr_assert_eq(t[0].status, 3);
	cr_assert_eq(t[1].status, 4);
	cr_assert_eq(contd_group_outstanding(g), 0);
	must_fail(contd_executor_run(ex, 0, 0), EINVAL);
	must_fail(contd_executor_stop(ex, 1), EINVAL);
	cr_assert_null(contd_executor_take(ex));
	must(contd_executor_drain(ex));
	cr_assert_eq(pool.drained, 1);
	end();
}

/* Where it was found. */
Test(executor, refused_on_a_thread)
{
	static struct contd_task task;

	begin_push(CONTD_AGENT_CALLER);
	pool.refuse = 3;
	must(contd_event_continue(0, NULL, tally_cb, &t[0], g, NULL));
	cr_assert_eq(contd_poll(0), 1);
	cr_assert_eq(runs(&t[0]), 1);
	contd_task_init(&task, ex, 0, tally_cb, &t[1]);
	must_fail(contd_task_submit(&task, 0), EAGAIN);
	cr_assert_eq(runs(&t[1]), 0);
	must(contd_group_set_executor(g, NULL));
	must(contd_event_continue(0, NULL, contd_task_callback, &task, g, NULL));
	cr_assert_eq(runs(&t[1]), 1, "refused, and run here");
	cr_assert_eq(contd_group_outstanding(g), 0);
	cr_assert_eq(pool.refused, 3);
	must(contd_group_set_executor(g, ex));
	end();
}

/* It is none of the program's threads, and has it until the pool wants it. */
Test(executor, refused_on_the_daemon)
{
	begin_push(CONTD_AGENT_TICK);
	pool.refuse = 5;
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must(contd_event_continue(1, es[1], tally_cb, &t[1], g, NULL));
	must(contd_event_complete(&e[0], 0));
	must(contd_event_complete(&e[1], 0));
	await(contd__load_acquire(&pool.count) == 2);
	cr_assert_eq(pool.context, CONTEXT_DAEMON);
	cr_assert_eq(pool.refused, 5);
	cr_assert_eq(runs(&t[0]) + runs(&t[1]), 0);
	cr_assert_eq(pool_run(), 2);
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(runs(&t[1]), 1);
	cr_assert_eq(t[0].context, CONTEXT_THREAD);
	end();
}

/* Unless the group says that it may. */
Test(executor, refused_on_the_daemon_which_may)
{
	struct contd_group *any;

	begin_push(CONTD_AGENT_TICK);
	any = group_of(ex, CONTD_THREAD_ANY, 0);
	pool.refuse = 1;
	must(contd_event_continue(1, es[0], tally_cb, &t[0], any, NULL));
	must(contd_event_complete(&e[0], 0));
	await(runs(&t[0]) == 1);
	cr_assert_eq(t[0].context, CONTEXT_DAEMON);
	must(contd_group_wait(any, LONG_NS));
	must(contd_group_destroy(any));
	end();
}

/* ------------------------------------------------------------------------------------------------------- errors --- */

Test(executor, bad_input)
{
	struct contd_executor_ops ops = {.size = sizeof(ops), .submit = pool_submit};
	struct contd_executor_attr attr = {.size = sizeof(attr)};
	struct contd_group_attr limited = {.size = sizeof(limited), .max_poll = 1};
	struct contd_executor *other, *mpi;
	struct contd_group *group;
	struct contd_task task;
	char text[8];

	must_fail(contd_executor_create(NULL, &ex), EPERM);
	begin_pull(0);
	must_fail(contd_executor_create(NULL, NULL), EINVAL);
	attr.size--;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	attr.size++;
	attr.flags = 4;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	attr.flags = CONTD_EXECUTOR_MPI;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	attr.flags = CONTD_EXECUTOR_PROGRESS;
	attr.ops = &ops;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	attr.flags = 0;
	ops.notify = count_notification;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	ops.notify = NULL;
	ops.size--;
	must_fail(contd_executor_create(&attr, &other), EINVAL);
	must_fail(contd_executor_destroy(NULL), EINVAL);
	must_fail(contd_executor_destroy(ex), EBUSY);
	must_fail(contd_executor_run(NULL, 0, 0), EINVAL);
	must_fail(contd_executor_run(ex, 0, -2), EINVAL);
	must_fail(contd_executor_stop(NULL, 0), EINVAL);
	must_fail(contd_executor_drain(NULL), EINVAL);
	must_fail(contd_executor_describe(NULL, text, sizeof(text)), EINVAL);
	must_fail(contd_executor_describe(ex, NULL, 1), EINVAL);
	cr_assert_gt(contd_executor_describe(ex, text, sizeof(text)), (int)sizeof(text), "what it would be");
	must_fail(contd_task_submit(NULL, 0), EINVAL);
	contd_task_init(&task, NULL, 0, tally_cb, NULL);
	must_fail(contd_task_submit(&task, 0), EINVAL);
	contd_task_init(&task, ex, 2, tally_cb, NULL);
	must_fail(contd_task_submit(&task, 0), EINVAL);
	must_fail(contd_group_set_executor(NULL, ex), EINVAL);
	group = group_new(CONTD_POLL_ONLY, -1);
	must_fail(contd_group_set_executor(group, ex), EINVAL);
	must(contd_group_destroy(group));
	group = group_new(CONTD_ASYNC_SIGNAL_SAFE, -1);
	must_fail(contd_group_set_executor(group, ex), EINVAL);
	must(contd_group_destroy(group));
	must(contd_group_create(&limited, &group));
	must_fail(contd_group_set_executor(group, ex), EINVAL);
	must(contd_group_destroy(group));
	must(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL));
	must_fail(contd_group_set_executor(g, NULL), EBUSY);
	must(contd_event_complete(&e[0], 0));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	attr = (struct contd_executor_attr){.size = sizeof(attr),
					    .flags = CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI};
	must(contd_executor_create(&attr, &mpi));
	must(contd_executor_destroy(mpi));
	end();
}

static void *lent_to(void *executor)
{
	cr_assert_geq(contd_executor_run(executor, 0, -1), 0);
	return NULL;
}

/* One thread at a time calls MPI for others, however many executors there are for that. */
Test(executor, one_thread_owns_mpi)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI};
	struct contd_executor *mpi[2];
	pthread_t thread;

	begin_pull(0);
	for (int i = 0; i < 2; i++)
		must(contd_executor_create(&attr, &mpi[i]));
	cr_assert_eq(contd_executor_run(mpi[0], 0, 0), 0);
	cr_assert_eq(pthread_create(&thread, NULL, lent_to, mpi[0]), 0);
	await(contd__load(&mpi[0]->threads));
	for (int i = 0; i < 2; i++)
		must_fail(contd_executor_run(mpi[i], 0, 0), EBUSY);
	must(contd_executor_stop(mpi[0], 1));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(contd_executor_run(mpi[i], 0, 0), 0);
		must(contd_executor_destroy(mpi[i]));
	}
	end();
}

static int code;

static void deadly(int status, void *data)
{
	(void)status, (void)data;
	code = contd_executor_drain(ex);
}

Test(executor, drained_in_its_own_work)
{
	begin_pull(0);
	must(contd_event_continue(0, NULL, deadly, NULL, g, NULL));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(code, -EDEADLK);
	end();
}

/* A task may not wait for itself. */
static struct contd_task becomes, inner_task;
static unsigned refusals;

static void waits_for_itself(int status, void *data)
{
	(void)status;
	(void)data;
	must_fail(contd_group_wait(g, LONG_NS), EDEADLK);
	must_fail(contd_executor_drain(ex), EDEADLK);
	must_fail(contd_fini(), EDEADLK);
	refusals++;
}

static void hand_to_executor(struct contd_group *plain, struct contd_executor *executor)
{
	contd_task_init(&becomes, executor, CONTD_PRIORITY_NORMAL, waits_for_itself, NULL);
	must(contd_event_continue(0, NULL, contd_task_callback, &becomes, plain, NULL));
}

static void begin_becoming(void)
{
	must(contd_group_destroy(g));
	g = group_new(0, -1);
}

Test(executor, a_task_does_not_wait_for_itself)
{
	begin_pull(0);
	begin_becoming();
	hand_to_executor(g, ex);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(refusals, 1);
	end();
}

Test(executor, a_task_that_was_taken_does_not_wait_for_itself)
{
	struct contd_work *work;

	begin_pull(0);
	begin_becoming();
	hand_to_executor(g, ex);
	work = contd_executor_take(ex);
	cr_assert(work);
	contd_work_run(work);
	cr_assert_eq(refusals, 1);
	end();
}

Test(executor, a_continuation_that_was_taken_does_not_wait_for_itself)
{
	struct contd_work *work;

	begin_pull(0);
	must(contd_event_continue(0, NULL, waits_for_itself, NULL, g, NULL));
	work = contd_executor_take(ex);
	cr_assert(work);
	contd_work_run(work);
	cr_assert_eq(refusals, 1);
	end();
}

Test(executor, a_task_of_a_pool_does_not_wait_for_itself)
{
	begin_push(CONTD_AGENT_CALLER);
	begin_becoming();
	hand_to_executor(g, ex);
	cr_assert_eq(pool_run(), 1);
	cr_assert_eq(refusals, 1);
	end();
}

/* In the work of another executor, which its own work runs. */
static struct contd_executor *inner_executor;

static void lend_to_another(int status, void *data)
{
	(void)status;
	(void)data;
	contd_task_init(&inner_task, inner_executor, CONTD_PRIORITY_NORMAL, waits_for_itself, NULL);
	must(contd_task_submit(&inner_task, 0));
	cr_assert_eq(contd_executor_run(inner_executor, 0, 0), 1);
}

Test(executor, work_in_another_one_s_work_does_not_wait_for_itself)
{
	begin_pull(0);
	begin_becoming();
	must(contd_executor_create(NULL, &inner_executor));
	contd_task_init(&becomes, ex, CONTD_PRIORITY_NORMAL, lend_to_another, NULL);
	must(contd_event_continue(0, NULL, contd_task_callback, &becomes, g, NULL));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(refusals, 1);
	must(contd_executor_destroy(inner_executor));
	end();
}

static struct contd_task first_task, second_task;

static void submit_another(int status, void *data)
{
	(void)status;
	(void)data;
	contd__store(&together, 1);
	await(contd__load(&contd__wake.sleepers)); /* who drains */
	usleep(20000);
	must(contd_task_submit(&second_task, 3));
}

static void *lent_for_one(void *data)
{
	(void)data;
	cr_assert_eq(contd_executor_run(ex, 1, -1), 1);
	return NULL;
}

/* The draining thread sleeps, and no other thread can run work that arrives meanwhile. */
Test(executor, drained_of_what_its_work_submits)
{
	pthread_t thread;

	begin_pull(0);
	contd_task_init(&first_task, ex, CONTD_PRIORITY_NORMAL, submit_another, NULL);
	contd_task_init(&second_task, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
	cr_assert_eq(pthread_create(&thread, NULL, lent_for_one, NULL), 0);
	must(contd_task_submit(&first_task, 0));
	await(contd__load(&together));
	must(contd_executor_drain(ex));
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 3);
	cr_assert(pthread_equal(t[0].thread, pthread_self()));
	cr_assert_eq(pthread_join(thread, NULL), 0);
	end();
}

static void wait_for_it(int status, void *data)
{
	(void)status;
	must(contd_event_continue(0, NULL, tally_cb, &t[1], data, NULL));
	must(contd_group_wait(data, LONG_NS));
}

/* The only thread of an executor waits, inside a piece of work, until other work of the executor has run. */
Test(executor, waits_in_its_own_work)
{
	struct contd_group *inner;

	begin_pull(0);
	inner = group_of(ex, 0, 0);
	must(contd_event_continue(0, NULL, wait_for_it, inner, g, NULL));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	cr_assert_eq(runs(&t[1]), 1);
	must(contd_group_destroy(inner));
	end();
}

/* One to the other and back, with a place in each. */
Test(executor, switched)
{
	begin_pull(0);
	for (unsigned i = 0; i < 20; i++) {
		must(contd_group_set_executor(g, NULL));
		must(contd_event_continue(0, NULL, tally_cb, &t[0], g, NULL));
		cr_assert_eq(runs(&t[0]), i + 1, "inside the call");
		must(contd_group_set_executor(g, ex));
		must(contd_event_continue(0, NULL, tally_cb, &t[1], g, NULL));
		cr_assert_eq(runs(&t[1]), i);
		cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	}
	end();
}

/* ------------------------------------------------------------------------------------------------------ threads --- */

#define MANY 4000u
#define THREADS 3u

static struct contd_event many[THREADS][MANY];
static uint32_t ran[THREADS][MANY], ran_all;
static struct contd_task many_task[THREADS][MANY];

static void run_once(int status, void *data)
{
	(void)status;
	contd__add((uint32_t *)data, 1);
	contd__add(&ran_all, 1);
}

static void *complete_many(void *data)
{
	uintptr_t n = (uintptr_t)data;

	for (unsigned i = 0; i < MANY; i++)
		must(contd_event_complete(&many[n][i], 0));
	return NULL;
}

static void from_all_sides(bool tasks)
{
	pthread_t lent_to[THREADS], completer[THREADS];

	begin_pull(0);
	for (unsigned n = 0; n < THREADS; n++)
		cr_assert_eq(pthread_create(&lent_to[n], NULL, lent, NULL), 0);
	for (unsigned n = 0; n < THREADS; n++) {
		for (unsigned i = 0; i < MANY; i++) {
			struct contd_event *one[1] = {&many[n][i]};

			contd_task_init(&many_task[n][i], ex, (int)(i % 3) - 1, run_once, &ran[n][i]);
			must(contd_event_continue(1, one, tasks ? contd_task_callback : run_once,
						  tasks ? (void *)&many_task[n][i] : (void *)&ran[n][i], g, NULL));
		}
	}
	for (uintptr_t n = 0; n < THREADS; n++)
		cr_assert_eq(pthread_create(&completer[n], NULL, complete_many, (void *)n), 0);
	for (unsigned n = 0; n < THREADS; n++)
		cr_assert_eq(pthread_join(completer[n], NULL), 0);
	must(contd_group_wait(g, LONG_NS));
	cr_assert_eq(contd__load(&ran_all), THREADS * MANY);
	for (unsigned n = 0; n < THREADS; n++)
		for (unsigned i = 0; i < MANY; i++)
			cr_assert_eq(ran[n][i], 1);
	must(contd_executor_stop(ex, 1));
	for (unsigned n = 0; n < THREADS; n++)
		cr_assert_eq(pthread_join(lent_to[n], NULL), 0);
	end();
}

static struct contd_event late[2];
static struct tally late_ran[2];

static void another_runs_both(const char *point)
{
	if (strcmp(point, "mark_leaf") != 0)
		return;
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
	must(contd_event_complete(&late[1], 0));
	cr_assert_eq(contd_executor_run(ex, 0, 0), 2);
}

/* The first completer's last mark comes when its continuation has run: it stands for nothing. */
Test(executor, destroyed_after_a_mark_for_nothing)
{
	begin_pull(0);
	for (unsigned i = 0; i < 2; i++) {
		struct contd_event *list[1] = {&late[i]};

		must(contd_event_continue(1, list, tally_cb, &late_ran[i], g, NULL));
	}
	__atomic_store_n(&contd__testpoint_hook, another_runs_both, __ATOMIC_RELEASE);
	must(contd_event_complete(&late[0], 0));
	cr_assert_null(__atomic_load_n(&contd__testpoint_hook, __ATOMIC_ACQUIRE));
	cr_assert_eq(contd_group_outstanding(g), 0);
	must(contd_group_destroy(g));
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

/* contd_fini() drops what is ready and never ran; the executor it was for can be destroyed then. */
Test(executor, destroyed_after_fini_with_something_ready)
{
	struct contd_event event = CONTD_EVENT_INIT, *list[1] = {&event};
	struct tally tally = {0};

	begin_pull(0);
	must(contd_event_continue(1, list, tally_cb, &tally, g, NULL));
	must(contd_event_complete(&event, 0));
	must_fail(contd_executor_destroy(ex), EBUSY);
	cr_assert_eq(contd_fini(), 1);
	must(contd_executor_destroy(ex));
	cr_assert_eq(runs(&tally), 0);
}

/* Tasks are the program's: they are not dropped. */
Test(executor, destroyed_after_fini_with_a_task_queued)
{
	static struct contd_task queued;

	begin_pull(0);
	contd_task_init(&queued, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
	must(contd_task_submit(&queued, 9));
	cr_assert_eq(contd_fini(), 0);
	must_fail(contd_executor_destroy(ex), EBUSY);
	cr_assert(strstr(contd_error_text(), "contd_init()"), "%s", contd_error_text());
	must_fail(contd_executor_drain(ex), EPERM);
	start(CONTD_AGENT_CALLER);
	must(contd_executor_drain(ex));
	cr_assert_eq(runs(&t[0]), 1);
	cr_assert_eq(t[0].status, 9);
	must(contd_executor_destroy(ex));
	cr_assert_eq(contd_fini(), 0);
}

/* Another thread stands somewhere in a call, and does not get on before the executor's end has begun. */
static const char *stands_at, *stays_at;
static __thread bool is_the_other;
static uint32_t stands, leaving, left_behind, destroyed;
static struct contd_task told_later;

static void stay_until_destroyed(void)
{
	uint64_t until = now_ns() + 300000000ull;

	/* Where destroying does not wait for this thread it is over by now: else it would have to be over later. */
	while (!contd__load(&destroyed) && now_ns() < until)
		usleep(1000);
	contd__store(&left_behind, contd__load(&destroyed));
}

static void stand_in_the_call(const char *point)
{
	if (!is_the_other && strcmp(point, "executor_leaves") == 0)
		contd__store(&leaving, 1);
	if (!is_the_other)
		return;
	if (strcmp(point, stands_at) == 0) {
		contd__store(&stands, 1);
		await(contd__load(&leaving));
	}
	if (strcmp(point, stays_at) == 0)
		stay_until_destroyed();
}

static void hand_over_later(int status, void *data)
{
	(void)status;
	(void)data;
	must(contd_task_submit(&told_later, 0));
}

static void *issue_elsewhere(void *unused)
{
	(void)unused;
	is_the_other = true;
	cr_assert_eq(contd_executor_run(issuing, 0, 0), 1);
	return NULL;
}

static void *stop_elsewhere(void *unused)
{
	(void)unused;
	is_the_other = true;
	must(contd_executor_stop(ex, 1));
	return NULL;
}

/* Without a group that is still to be freed: destroying waits for a grace period then, before it looks. */
static void begin_without_a_group(void)
{
	struct contd_executor *first;

	begin_pull(0);
	must(contd_group_destroy(g));
	must(contd_executor_create(NULL, &first));
	must(contd_executor_destroy(first));
}

static pthread_t stand_elsewhere(void *(*call)(void *), const char *stands_there, const char *stays_there)
{
	pthread_t thread;

	stands_at = stands_there;
	stays_at = stays_there;
	__atomic_store_n(&contd__testpoint_hook, stand_in_the_call, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&thread, NULL, call, NULL), 0);
	await(contd__load(&stands));
	return thread;
}

static void destroy_before_it_has_left(pthread_t thread)
{
	must(contd_executor_destroy(ex));
	contd__store(&destroyed, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(contd__load(&left_behind), 0, "destroyed while another thread was about to wake its threads");
	__atomic_store_n(&contd__testpoint_hook, NULL, __ATOMIC_RELEASE);
}

/*
 * A thread that hands over a task has seen that one of the executor's threads sleeps. Before it says that it will wake
 * it, the task runs and the executor is drained. Then the end of the executor waits.
 */
Test(executor, destroyed_while_waking_its_threads_is_put_off)
{
	static struct contd_task issue;
	pthread_t thread;

	begin_without_a_group();
	must(contd_executor_create(NULL, &issuing));
	contd__store(&contd__executors.issues, hand_over_later);
	contd_task_init(&issue, issuing, CONTD_PRIORITY_NORMAL, hand_over_later, NULL);
	contd_task_init(&told_later, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
	must(contd_task_submit(&issue, 0));
	contd__add(&ex->sleepers, 1); /* as if a thread slept */
	thread = stand_elsewhere(issue_elsewhere, "tell_holds", "tells_now");
	contd__sub(&ex->sleepers, 1);
	cr_assert_eq(contd_executor_run(ex, 0, 0), 1);
	must(contd_executor_drain(ex));
	destroy_before_it_has_left(thread);
	must(contd_executor_destroy(issuing));
	cr_assert_eq(contd_fini(), 0);
}

/* The executor's threads return, and it is destroyed, while the call that has stopped it is still under way. */
Test(executor, destroyed_while_it_is_being_stopped_is_put_off)
{
	pthread_t thread;

	begin_without_a_group();
	thread = stand_elsewhere(stop_elsewhere, "executor_stopped", "executor_stopped");
	cr_assert_eq(contd_executor_run(ex, 0, -1), 0);
	destroy_before_it_has_left(thread);
	cr_assert_eq(contd_fini(), 0);
}

Test(executor, continuations_from_all_sides)
{
	from_all_sides(false);
}
Test(executor, tasks_from_all_sides)
{
	from_all_sides(true);
}

/* ------------------------------------------------------------------------------------------- after contd_fini() --- */

/* A pool has work in its queue when contd ends. Continuations that contd_fini() has counted do not run, not even after
 * the next contd_init(). */
static void work_outlives_contd(bool is_task, bool another_life)
{
	static struct contd_task task;
	struct contd_group *own = NULL;
	struct contd_work *work;

	begin_pull(0);
	contd_event_init(&e[0]);
	if (is_task) {
		must(contd_group_create(NULL, &own));
		contd_task_init(&task, ex, CONTD_PRIORITY_NORMAL, tally_cb, &t[0]);
		cr_assert_geq(contd_event_continue(1, es[0], contd_task_callback, &task, own, NULL), 0);
	} else {
		cr_assert_geq(contd_event_continue(1, es[0], tally_cb, &t[0], g, NULL), 0);
	}
	must(contd_event_complete(&e[0], 0));
	contd_poll(0);
	work = contd_executor_take(ex);
	cr_assert_not_null(work);
	must_fail(contd_executor_destroy(ex), EBUSY);
	cr_assert_eq(contd_fini(), 1, "one never ran");
	if (another_life)
		must(contd_init(NULL));
	cr_assert_eq(contd_work_priority(work), CONTD_PRIORITY_NORMAL);
	contd_work_run(work);
	cr_assert_eq(t[0].runs, 0, "it ran although contd_fini() has counted it");
	must(contd_executor_destroy(ex));
	if (another_life)
		cr_assert_eq(contd_fini(), 0);
}

Test(executor, a_continuation_in_a_pool_s_queue_outlives_contd)
{
	work_outlives_contd(false, false);
}
Test(executor, a_continuation_in_a_pool_s_queue_outlives_contd_into_its_next_life)
{
	work_outlives_contd(false, true);
}
Test(executor, a_task_in_a_pool_s_queue_outlives_contd)
{
	work_outlives_contd(true, false);
}
Test(executor, a_task_in_a_pool_s_queue_outlives_contd_into_its_next_life)
{
	work_outlives_contd(true, true);
}
