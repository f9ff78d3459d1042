/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 2 */
/*
 * A thread sleeps in a suspended operation, because the daemon makes progress for it, or the executor that has issued
 * it. When the daemon is stopped, the settings want none any more, or the last thread of the executor leaves, the
 * thread makes progress itself.
 */
#include <pthread.h>

#include <contd/modes.h>

#include "check.h"

struct task {
	struct contd_mpi_op op;
	MPI_Request request;
	MPI_Status status;
	int in;
};

static int issue(struct contd_mpi_op *op)
{
	struct task *t = op->data;

	return MPI_Irecv(&t->in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &t->request);
}

static struct contd_executor *pool; /* NULL: the thread issues it itself */

static void *lends(void *data)
{
	(void)data;
	CHECK(contd_executor_run(pool, 0, -1) >= 0);
	return NULL;
}

static void *sleeps(void *data)
{
	const struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_SUSPEND, .requests = pool};
	struct task *t = data;

	CHECK_OK(contd_mpi_op_run(&t->op, &how));
	CHECK_EQ(t->in, 7);
	return NULL;
}

static void agent(int which)
{
	struct contd_config config = {.size = sizeof(config), .agent = which};

	CHECK_EQ(contd_configure(&config), 0);
}

enum { BY_CALL, BY_SETTINGS, BY_POOL, WAYS };
static const char *const way_name[] = {"contd_daemon_stop()", "by settings", "contd_executor_run() returns"};

/* op.contd.state is contd's: 2 stands there while the thread sleeps. */
static void receive(int way)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = CONTD_EXECUTOR_PROGRESS};
	struct task t;
	pthread_t thread, lent;

	memset(&t, 0, sizeof(t));
	t.op = (struct contd_mpi_op){
		.count = 1, .requests = &t.request, .statuses = &t.status, .issue = issue, .data = &t};
	if (way == BY_SETTINGS) {
		agent(CONTD_AGENT_TICK);
	} else if (way == BY_CALL) {
		CHECK_EQ(contd_daemon_start(NULL), 0);
	} else {
		CHECK_EQ(contd_executor_create(&attr, &pool), 0);
		CHECK_EQ(pthread_create(&lent, NULL, lends, NULL), 0);
	}
	CHECK_EQ(pthread_create(&thread, NULL, sleeps, &t), 0);
	while (__atomic_load_n(&t.op.contd.state, __ATOMIC_RELAXED) != 2)
		sched_yield();
	if (way == BY_SETTINGS) {
		agent(CONTD_AGENT_CALLER);
	} else if (way == BY_CALL) {
		CHECK_EQ(contd_daemon_stop(), 0);
	} else {
		CHECK_EQ(contd_executor_stop(pool, 1), 0);
		pthread_join(lent, NULL);
	}
	CHECK_OK(MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD));
	pthread_join(thread, NULL);
	if (way == BY_POOL)
		CHECK_EQ(contd_executor_destroy(pool), 0);
	pool = NULL;
}

static void send_later(void)
{
	int out = 7;

	CHECK_OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	struct contd_config config = {.size = sizeof(config), .agent = CONTD_AGENT_CALLER};

	unsetenv("CONTD_AGENT"); /* the settings are this test's own */
	CHECK_EQ(contd_init(&config), 0);
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	for (int way = 0; way < WAYS; way++) {
		check_begin(way_name[way]);
		for (int i = 0; i < 20; i++) {
			if (check_rank == 0)
				receive(way);
			else
				send_later();
		}
	}
	return check_fini();
}
