/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * A task runtime that completes its operations through mpi-ext.h, in the order of pika's mpix mode: the CR is made
 * and not started; every idle worker polls it with MPI_Test, one at a time, and starts it whenever it is reported
 * complete; tasks attach at any time, while it is inactive too, with flags that mean nothing there and
 * MPI_STATUSES_IGNORE for the status of one request; the CR is never freed.
 */
#include "ext.h"

#include <sched.h>

#define WORKERS 3
#define TASKS 100 /* a worker */
#define DEPTH 3   /* operations a task, the later ones started by the callback of the one before */
#define FLAGS (MPIX_CONT_POLL_ONLY | MPIX_CONT_INVOKE_FAILED)

struct runtime {
	MPI_Request cr;
	pthread_mutex_t polling;
	int ready, restarts, callbacks;
};

struct task {
	struct runtime *runtime;
	pthread_mutex_t lock;
	pthread_cond_t resumed;
	MPI_Request in[DEPTH], out;
	int received, sent, tag, left, rc, complete;
};

static int resume(int rc, void *data);

static void task_begin(struct task *task, int first)
{
	int next = (ext_rank + 1) % ext_size, previous = (ext_rank + ext_size - 1) % ext_size;
	MPI_Request *in = &task->in[task->left - 1];

	task->received = -1;
	task->sent = task->tag * 10 + task->left;
	EXPECT_OK(MPI_Irecv(&task->received, 1, MPI_INT, previous, task->tag, MPI_COMM_WORLD, in));
	EXPECT_OK(MPI_Isend(&task->sent, 1, MPI_INT, next, task->tag, MPI_COMM_WORLD, &task->out));
	EXPECT_OK(MPIX_Continue(in, resume, task, FLAGS, MPI_STATUSES_IGNORE, task->runtime->cr));
	if (first) /* of those that callbacks start the task may be over by now */
		EXPECT_EQ(*in == MPI_REQUEST_NULL, 1);
}

static int resume(int rc, void *data)
{
	struct task *task = (struct task *)data;

	ext_add(&task->runtime->callbacks, 1);
	if (rc == MPI_SUCCESS) {
		EXPECT_EQ(task->received, task->sent);
		EXPECT_OK(MPI_Wait(&task->out, MPI_STATUS_IGNORE));
	}
	if (rc == MPI_SUCCESS && --task->left > 0) {
		task_begin(task, 0);
		return MPI_SUCCESS;
	}
	pthread_mutex_lock(&task->lock);
	task->rc = rc;
	task->complete = 1;
	pthread_mutex_unlock(&task->lock);
	pthread_cond_signal(&task->resumed);
	return MPI_SUCCESS;
}

/* The work of an idle worker. */
static void poll_once(struct runtime *runtime)
{
	int flag = 0;

	if (!ext_read(&runtime->ready) || pthread_mutex_trylock(&runtime->polling))
		return;
	EXPECT_OK(MPI_Test(&runtime->cr, &flag, MPI_STATUS_IGNORE));
	if (flag) {
		runtime->restarts++;
		EXPECT_OK(MPI_Start(&runtime->cr));
	}
	pthread_mutex_unlock(&runtime->polling);
}

static int task_complete(struct task *task)
{
	int complete;

	pthread_mutex_lock(&task->lock);
	complete = task->complete;
	pthread_mutex_unlock(&task->lock);
	return complete;
}

struct worker {
	struct runtime *runtime;
	pthread_t thread;
	int number;
};

static void *work(void *data)
{
	struct worker *worker = (struct worker *)data;

	for (int i = 0; i < TASKS; i++) {
		struct task task;

		memset(&task, 0, sizeof(task));
		task.runtime = worker->runtime;
		pthread_mutex_init(&task.lock, NULL);
		pthread_cond_init(&task.resumed, NULL);
		task.tag = worker->number;
		task.left = 1 + i % DEPTH;
		task_begin(&task, 1);
		while (!task_complete(&task)) {
			poll_once(worker->runtime);
			sched_yield(); /* mpirun gives a rank one core */
		}
		EXPECT_EQ(task.rc, MPI_SUCCESS);
		EXPECT_EQ(task.left, 0);
		pthread_cond_destroy(&task.resumed);
		pthread_mutex_destroy(&task.lock);
	}
	return NULL;
}

/* A receive that is too short: the task hears of it in rc, and the CR knows nothing of it. */
static void fail(struct runtime *runtime)
{
	int next = (ext_rank + 1) % ext_size, previous = (ext_rank + ext_size - 1) % ext_size;
	int sent[2] = {1, 2}, class_of_it = MPI_SUCCESS, flag = 0;
	struct task task;
	MPI_Request out;

	memset(&task, 0, sizeof(task));
	task.runtime = runtime;
	pthread_mutex_init(&task.lock, NULL);
	pthread_cond_init(&task.resumed, NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	EXPECT_OK(MPI_Irecv(&task.received, 1, MPI_INT, previous, 99, MPI_COMM_WORLD, task.in));
	EXPECT_OK(MPIX_Continue(task.in, resume, &task, FLAGS, MPI_STATUSES_IGNORE, runtime->cr));
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_OK(MPI_Isend(sent, 2, MPI_INT, next, 99, MPI_COMM_WORLD, &out));
	while (!task_complete(&task))
		poll_once(runtime);
	EXPECT_OK(MPI_Wait(&out, MPI_STATUS_IGNORE));
	MPI_Error_class(task.rc, &class_of_it);
	EXPECT_EQ(class_of_it, MPI_ERR_TRUNCATE);
	EXPECT_OK(MPI_Test(&runtime->cr, &flag, MPI_STATUS_IGNORE));
	EXPECT_EQ(flag, 1);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void run(struct runtime *runtime, int flags)
{
	struct worker workers[WORKERS];
	int flag = 0, operations = 0;

	memset(runtime, 0, sizeof(*runtime));
	pthread_mutex_init(&runtime->polling, NULL);
	EXPECT_OK(MPIX_Continue_init(flags, MPI_UNDEFINED, MPI_INFO_NULL, &runtime->cr));
	EXPECT(runtime->cr != MPI_REQUEST_NULL);
	/* It is complete as it was made: the first poll starts it. */
	EXPECT_OK(MPI_Test(&runtime->cr, &flag, MPI_STATUS_IGNORE));
	EXPECT_EQ(flag, 1);
	EXPECT(runtime->cr != MPI_REQUEST_NULL);
	__atomic_store_n(&runtime->ready, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++) {
		workers[i].runtime = runtime;
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < TASKS; i++)
		operations += WORKERS * (1 + i % DEPTH);
	EXPECT_EQ(runtime->callbacks, operations);
	EXPECT(runtime->restarts > 0);
	if (ext_size > 1) { /* Open MPI (4.1) does not find it out in messages to oneself */
		fail(runtime);
		EXPECT_EQ(runtime->callbacks, operations + 1);
	}
	pthread_mutex_destroy(&runtime->polling);
}

int main(int argc, char **argv)
{
	static struct runtime any, polled;

	ext_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	run(&any, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	run(&polled, MPIX_CONT_POLL_ONLY);
	return ext_fini();
}
