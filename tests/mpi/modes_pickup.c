/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/* not on portable: a test of another operation wakes no thread there */
/* not on mpich: a test of another operation wakes no thread there */
/*
 * A suspended task's operation is found complete in the test of another task's, which calls resume(). Async-signal-safe
 * continuations that resume() makes ready run before that call returns: no thread looks later.
 */
#include <contd/modes.h>

#include "check.h"

#define ROUNDS 50

struct task {
	struct contd_mpi_op op;
	MPI_Request request;
	MPI_Status status;
	int in, tag, suspends, resumes;
};

static struct task first, second;
static struct contd_event event;
static int safe_runs;

static int issue(struct contd_mpi_op *op)
{
	struct task *t = op->data;

	return MPI_Irecv(&t->in, 1, MPI_INT, 1, t->tag, MPI_COMM_WORLD, &t->request);
}

static void done(struct contd_mpi_op *op, int status)
{
	(void)op;
	CHECK_EQ(status, MPI_SUCCESS);
}

static void run(struct task *t, int tag, const struct contd_mode_attr *how)
{
	memset(t, 0, sizeof(*t));
	t->tag = tag;
	t->op = (struct contd_mpi_op){.count = 1,
				      .requests = &t->request,
				      .statuses = &t->status,
				      .issue = issue,
				      .done = done,
				      .data = t,
				      .task = t};
	CHECK_OK(contd_mpi_op_run(&t->op, how));
}

static void resume(void *task)
{
	struct task *t = task;

	t->resumes++;
	if (t == &first)
		CHECK_EQ(contd_event_complete(&event, 0), 0);
}

static void safe(int status, void *data)
{
	(void)status;
	(void)data;
	safe_runs++;
}

static void suspend(void *task);
static const struct contd_mode_attr how = {
	.size = sizeof(how), .mode = CONTD_MODE_SUSPEND, .suspend = suspend, .resume = resume};
static int shown;

/* The first task's: the other task runs now, when both messages are there, and MPI has not looked. */
static void suspend(void *task)
{
	struct task *t = task;
	int go = 1;

	t->suspends++;
	if (t == &first) {
		CHECK_OK(MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
		usleep(100000);
		run(&second, 2, &how);
		if (second.suspends == 0 && first.resumes == 1) {
			shown++;
			CHECK_EQ(safe_runs, 1);
		}
	}
	while (!t->resumes)
		contd_poll(0);
}

static void round_of_first(struct contd_group *group)
{
	struct contd_event *es[] = {&event};

	safe_runs = 0;
	contd_event_init(&event);
	CHECK_EQ(contd_event_continue(1, es, safe, NULL, group, NULL), 0);
	run(&first, 1, &how);
	contd_poll(0);
	CHECK_EQ(safe_runs, 1);
}

static void round_of_second(void)
{
	int go, out = 1;

	CHECK_OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};
	struct contd_group_attr attr = {.size = sizeof(attr), .flags = CONTD_ASYNC_SIGNAL_SAFE, .max_poll = -1};
	struct contd_group *group;
	int over = 0;

	CHECK_EQ(contd_init(&config), 0);
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_EQ(contd_thread_attach(NULL), 0);
	CHECK_EQ(contd_group_create(&attr, &group), 0);
	check_begin("what a resumed task makes ready");
	/* Messages may take longer than the task waits for them. */
	for (int i = 0; i < ROUNDS && !over; i++) {
		if (check_rank == 0)
			round_of_first(group);
		else
			round_of_second();
		over = shown > 0;
		CHECK_OK(MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD));
	}
	CHECK_EQ(over, 1);
	CHECK_EQ(contd_group_destroy(group), 0);
	CHECK_EQ(contd_thread_detach(), 0);
	return check_fini();
}
