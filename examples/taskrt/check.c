/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What taskrt promises, and how a task waits for MPI by each mode that a runtime has a part in: an even number of ranks, two
 * threads each. Exits with 0 when all is right.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <contd/modes.h>

#include "taskrt.h"

enum { TASKS = 40, TURNS = 25, VALUES = 100 };

static struct taskrt *rt;
static int rank, peer;
static int left; /* tasks that have not ended */
static int ended[2 * TASKS], ended_count;

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "taskrt: rank %d: line %d: not %s\n", rank, __LINE__, #condition); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
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

/* -------------------------------------------------------------------------------------------------- the runtime alone --- */

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

/* ---------------------------------------------------------------------------------------------------------- with MPI --- */

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
	how.requests = transferred ? taskrt_executor(rt) : NULL;
	how.completions = mode == CONTD_MODE_NEW_TASK || (transferred && !task_waits) ? taskrt_executor(rt) : NULL;
	left = TASKS;
	for (int i = 0; i < TASKS; i++)
		CHECK(taskrt_spawn(rt, CONTD_PRIORITY_NORMAL, task_waits ? waits : goes_on, &exchanges[i]) == 0);
	run_all();
	for (int i = 0; i < TASKS; i++)
		CHECK(exchanges[i].turn == TURNS);
}

int main(int argc, char **argv)
{
	static const int modes[] = {CONTD_MODE_YIELD_WHILE, CONTD_MODE_SUSPEND, CONTD_MODE_NEW_TASK,
				    CONTD_MODE_CONTINUATION};
	int level, ranks;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	if (level < MPI_THREAD_MULTIPLE) {
		fprintf(stderr, "taskrt: this MPI has no MPI_THREAD_MULTIPLE\n");
		MPI_Finalize();
		return 77;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	peer = rank ^ 1;
	CHECK(ranks % 2 == 0);
	CHECK(contd_init(NULL) == 0);
	rt = taskrt_create(64 * 1024, NULL, NULL);
	CHECK(rt);
	high_before_normal();
	on_two_threads();
	for (int i = 0; i < 4; i++) {
		exchange_by(modes[i], 0);
		exchange_by(modes[i], 1);
	}
	taskrt_destroy(rt);
	CHECK(contd_fini() == 0);
	if (rank == 0)
		printf("taskrt: %d tasks, by %d modes\n", TASKS, 4);
	return MPI_Finalize();
}
