/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks taskrt's promises, and how a task waits for MPI by each mode that involves a runtime: an even number of
 * ranks, two threads each. Exits with 0 when all is right. With CHECK_ALONE the runtime alone, one process without MPI.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef CHECK_ALONE
#include <contd/modes.h>
#endif

#include "taskrt.h"

enum { TASKS = 40, TURNS = 25, VALUES = 100 };

static struct taskrt *rt;
static struct contd_executor *pool;
static struct contd_group *group;
static int registered; /* events with a continuation */
static int left;       /* tasks that have not ended */
static int ended[2 * TASKS], ended_count;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "taskrt: line %d: not %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

static void one_less(void)
{
	if (__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) == 0)
		taskrt_stop(rt, 1);
}

static void *lend(void *unused)
{
	(void)unused;
	taskrt_run(rt);
	return NULL;
}

/* Runs all that is queued, on two threads. */
static void run_all(void)
{
	pthread_t thread;

	taskrt_stop(rt, 0);
	CHECK(pthread_create(&thread, NULL, lend, NULL) == 0);
	taskrt_run(rt);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(left == 0);
}

/* -------------------------------------------------------------------------------------------- the runtime alone --- */

static void note_end(struct taskrt_task *self, void *number)
{
	(void)self;
	ended[ended_count++] = (int)(intptr_t)number;
	one_less();
}

static void high_before_normal(void)
{
	left = 2 * TASKS;
	taskrt_stop(rt, 0);
	for (intptr_t i = 0; i < 2 * TASKS; i++)
		CHECK(taskrt_spawn(rt, i % 2 ? CONTD_PRIORITY_HIGH : CONTD_PRIORITY_NORMAL, note_end, (void *)i) == 0);
	taskrt_run(rt);
	CHECK(ended_count == 2 * TASKS);
	for (int i = 0; i < TASKS; i++)
		CHECK(ended[i] == 2 * i + 1 && ended[TASKS + i] == 2 * i);
}

static void yields(struct taskrt_task *self, void *data)
{
	volatile int mine = (int)(intptr_t)data; /* on this task's own stack */

	for (int i = 0; i < TURNS; i++) {
		taskrt_yield(self);
		CHECK(mine++ == (int)(intptr_t)data + i);
	}
	one_less();
}

/* One task resumes the other, which may be asleep, be about to, or not have thought of it. */
static struct pair {
	struct taskrt_task *sleeper;
	int given, taken;
} pairs[TASKS];

static void sleeps(struct taskrt_task *self, void *pair)
{
	struct pair *p = pair;

	__atomic_store_n(&p->sleeper, self, __ATOMIC_RELEASE);
	for (int i = 1; i <= TURNS; i++) {
		taskrt_suspend(self);
		CHECK(__atomic_load_n(&p->given, __ATOMIC_ACQUIRE) == i);
		__atomic_store_n(&p->taken, i, __ATOMIC_RELEASE);
	}
	one_less();
}

static void wakes(struct taskrt_task *self, void *pair)
{
	struct pair *p = pair;
	struct taskrt_task *sleeper;

	while (!(sleeper = __atomic_load_n(&p->sleeper, __ATOMIC_ACQUIRE)))
		taskrt_yield(self);
	for (int i = 1; i <= TURNS; i++) {
		__atomic_store_n(&p->given, i, __ATOMIC_RELEASE);
		taskrt_resume(sleeper);
		while (__atomic_load_n(&p->taken, __ATOMIC_ACQUIRE) < i)
			taskrt_yield(self);
	}
	one_less();
}

static void on_two_threads(void)
{
	left = TASKS * 3;
	for (int i = 0; i < TASKS; i++) {
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, sleeps, &pairs[i]) == 0);
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, wakes, &pairs[i]) == 0);
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, yields, (void *)(intptr_t)(i * 1000)) == 0);
	}
	run_all();
}

/* Completed by a thread other than the runtime's: continuations run on lent threads, and resume a task. */
static struct contd_event events[TASKS];
static struct taskrt_task *asleep[TASKS];

static void react(int status, void *number)
{
	CHECK(status == (int)(intptr_t)number);
	taskrt_resume(asleep[status]);
}

static void waits_for_event(struct taskrt_task *self, void *number)
{
	int i = (int)(intptr_t)number;
	struct contd_task work;
	struct contd_event *event = &events[i];

	asleep[i] = self;
	contd_task_init(&work, pool, CONTD_PRIORITY_HIGH, react, number);
	contd_event_init(event);
	CHECK(contd_event_continue(1, &event, contd_task_callback, &work, group, NULL) == 0);
	__atomic_add_fetch(&registered, 1, __ATOMIC_RELEASE);
	taskrt_suspend(self);
	one_less();
}

static void *complete_all(void *unused)
{
	(void)unused;
	while (__atomic_load_n(&registered, __ATOMIC_ACQUIRE) < TASKS)
		sched_yield();
	for (int i = 0; i < TASKS; i++)
		contd_event_complete(&events[i], i);
	return NULL;
}

static void continuations_resume(void)
{
	pthread_t thread;

	CHECK(contd_group_create(NULL, &group) == 0);
	left = TASKS;
	for (intptr_t i = 0; i < TASKS; i++)
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, waits_for_event, (void *)i) == 0);
	CHECK(pthread_create(&thread, NULL, complete_all, NULL) == 0);
	run_all();
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(contd_group_wait(group, -1) == 0);
	CHECK(contd_group_destroy(group) == 0);
}

static void runtime_alone(void)
{
	high_before_normal();
	on_two_threads();
	continuations_resume();
}

#ifndef CHECK_ALONE
/* ----------------------------------------------------------------------------------------------------- with MPI --- */

static int rank, peer;

static struct exchange {
	struct contd_mpi_op op;
	MPI_Request requests[2];
	int sent[VALUES], received[VALUES];
	int tag, turn;
} exchanges[TASKS];

static struct contd_mode_attr how;

static int issue(struct contd_mpi_op *op)
{
	struct exchange *x = op->data;

	for (int i = 0; i < VALUES; i++) {
		x->sent[i] = rank * 1000000 + x->tag * 1000 + x->turn + i;
		x->received[i] = -1;
	}
	MPI_Irecv(x->received, VALUES, MPI_INT, peer, x->tag, MPI_COMM_WORLD, &op->requests[0]);
	return MPI_Isend(x->sent, VALUES, MPI_INT, peer, x->tag, MPI_COMM_WORLD, &op->requests[1]);
}

static void check_values(struct exchange *x)
{
	for (int i = 0; i < VALUES; i++)
		CHECK(x->received[i] == peer * 1000000 + x->tag * 1000 + x->turn + i);
	x->turn++;
}

static void done(struct contd_mpi_op *op, int status)
{
	struct exchange *x = op->data;

	CHECK(status == MPI_SUCCESS);
	check_values(x);
	if (x->turn < TURNS)
		CHECK(contd_mpi_op_run(op, &how) == MPI_SUCCESS);
	else
		one_less();
}

static void prepare(struct exchange *x)
{
	x->op.count = 2;
	x->op.requests = x->requests;
	x->op.statuses = MPI_STATUSES_IGNORE;
	x->op.issue = issue;
	x->op.data = x;
	x->tag = (int)(x - exchanges);
	x->turn = 0;
}

/* The modes in which the task waits. */
static void waits(struct taskrt_task *self, void *exchange)
{
	struct exchange *x = exchange;

	prepare(x);
	x->op.task = self;
	while (x->turn < TURNS) {
		CHECK(contd_mpi_op_run(&x->op, &how) == MPI_SUCCESS);
		check_values(x);
	}
	one_less();
}

/* And those in which each turn is a task of the runtime's, or a continuation. */
static void goes_on(struct taskrt_task *self, void *exchange)
{
	struct exchange *x = exchange;

	(void)self;
	prepare(x);
	x->op.done = done;
	CHECK(contd_mpi_op_run(&x->op, &how) == MPI_SUCCESS);
}

static void exchange_by(int mode, int transferred)
{
	int task_waits = mode == CONTD_MODE_YIELD_WHILE || mode == CONTD_MODE_SUSPEND;

	how = (struct contd_mode_attr){.size = sizeof(how),
				       .mode = mode,
				       .yield = taskrt_yield,
				       .suspend = taskrt_suspend,
				       .resume = taskrt_resume,
				       .cont_req = MPI_REQUEST_NULL};
	how.requests = transferred ? pool : NULL;
	how.completions = mode == CONTD_MODE_NEW_TASK || (transferred && !task_waits) ? pool : NULL;
	left = TASKS;
	for (int i = 0; i < TASKS; i++)
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, task_waits ? waits : goes_on, &exchanges[i]) == 0);
	run_all();
	for (int i = 0; i < TASKS; i++)
		CHECK(exchanges[i].turn == TURNS);
}

static void by_all_modes(void)
{
	static const int modes[] = {CONTD_MODE_YIELD_WHILE, CONTD_MODE_SUSPEND, CONTD_MODE_NEW_TASK,
				    CONTD_MODE_CONTINUATION};

	for (int i = 0; i < 4; i++) {
		exchange_by(modes[i], 0);
		exchange_by(modes[i], 1);
	}
	if (rank == 0)
		printf("taskrt: %d tasks, by %d modes\n", TASKS, 4);
}

/* Returns whether there is MPI_THREAD_MULTIPLE. */
static int begin_mpi(int *argc, char ***argv)
{
	int level, ranks;

	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	peer = rank ^ 1;
	CHECK(ranks % 2 == 0);
	return level == MPI_THREAD_MULTIPLE;
}
#endif

int main(int argc, char **argv)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = CONTD_EXECUTOR_PROGRESS};

#ifndef CHECK_ALONE
	if (!begin_mpi(&argc, &argv)) {
		fprintf(stderr, "taskrt: this MPI has no MPI_THREAD_MULTIPLE\n");
		MPI_Finalize();
		return 77;
	}
#else
	(void)argc;
	(void)argv;
#endif
	CHECK(contd_init(NULL) == 0);
	CHECK(contd_executor_create(&attr, &pool) == 0);
	rt = taskrt_create(64 * 1024, pool);
	CHECK(rt);
	runtime_alone();
#ifndef CHECK_ALONE
	by_all_modes();
#endif
	taskrt_destroy(rt);
	CHECK(contd_executor_destroy(pool) == 0);
	CHECK(contd_fini() == 0);
#ifndef CHECK_ALONE
	MPI_Finalize();
#endif
	return 0;
}
