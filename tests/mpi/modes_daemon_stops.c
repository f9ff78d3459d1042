/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * A thread sleeps in a suspended operation, because the daemon makes progress for it. When the daemon is stopped, or
 * the settings want none any more, the thread makes progress itself.
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

static void *sleeps(void *data)
{
	static const struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_SUSPEND};
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

/* op.state is contd's: 2 stands there while the thread sleeps. */
static void receive(bool by_settings)
{
	struct task t;
	pthread_t thread;

	memset(&t, 0, sizeof(t));
	t.op = (struct contd_mpi_op){
		.count = 1, .requests = &t.request, .statuses = &t.status, .issue = issue, .data = &t};
	if (by_settings)
		agent(CONTD_AGENT_TICK);
	else
		CHECK_EQ(contd_daemon_start(NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, sleeps, &t), 0);
	while (__atomic_load_n(&t.op.state, __ATOMIC_RELAXED) != 2)
		sched_yield();
	if (by_settings)
		agent(CONTD_AGENT_CALLER);
	else
		CHECK_EQ(contd_daemon_stop(), 0);
	CHECK_OK(MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD));
	pthread_join(thread, NULL);
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
	for (int by_settings = 0; by_settings < 2; by_settings++) {
		check_begin(by_settings ? "by settings" : "contd_daemon_stop()");
		for (int i = 0; i < 20; i++) {
			if (check_rank == 0)
				receive(by_settings);
			else
				send_later();
		}
	}
	return check_fini();
}
