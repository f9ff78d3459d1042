/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: task */
/* ranks: 1 2 */
/* also: caller CONTD_AGENT=caller */
/* The five completion modes: requests and completions inline and transferred, to threads that are lent and to a
 * queue. */
#include <errno.h>

#include "modes.h"

static int tag;

/* ------------------------------------------------------------------------------------------ a pool with a queue --- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct contd_work *work[1024];
	int count, refuse;
	bool over;
	pthread_t thread;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int queue_submit(void *pool, struct contd_work *work, int priority)
{
	int rc = 0;

	(void)pool, (void)priority;
	pthread_mutex_lock(&queue.lock);
	if (queue.refuse) {
		queue.refuse--;
		rc = -EAGAIN;
	} else {
		queue.work[queue.count++] = work;
	}
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return rc;
}

static void *queue_thread(void *data)
{
	(void)data;
	pthread_mutex_lock(&queue.lock);
	while (!queue.over || queue.count) {
		struct contd_work *work;

		if (!queue.count) {
			pthread_cond_wait(&queue.changed, &queue.lock);
			continue;
		}
		work = queue.work[--queue.count];
		pthread_mutex_unlock(&queue.lock);
		contd_work_run(work);
		pthread_mutex_lock(&queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

/* ------------------------------------------------------------------------------------------------- combinations --- */

static void one(const struct contd_mode_attr *how, pthread_t requests, pthread_t completions, int messages, bool ignore)
{
	struct exchange x;
	int rc;

	exchange_prepare(&x, tag, messages, ignore);
	tag = (tag + EACH) % 3000;
	rc = contd_mpi_op_run(&x.op, how);
	CHECK_OK(rc);
	if (how->mode <= CONTD_MODE_SUSPEND && !how->completions)
		CHECK_EQ(atomic_load(&x.done), 1);
	exchange_await(&x);
	exchange_check(&x);
	CHECK(pthread_equal(x.issued, how->requests ? requests : pthread_self()));
	if (how->completions)
		CHECK(pthread_equal(x.where, completions));
	else if (how->mode <= CONTD_MODE_SUSPEND)
		CHECK(pthread_equal(x.where, pthread_self()));
}

static void all_of(pthread_t requests, pthread_t completions, MPI_Request cr)
{
	for (int mode = 0; mode < MODES; mode++) {
		for (int transfers = 0; transfers < 4; transfers++) {
			struct contd_mode_attr how = {.size = sizeof(how),
						      .mode = mode,
						      .priority = transfers % 2,
						      .requests = transfers & 1 ? requests_pool : NULL,
						      .completions = transfers & 2 ? completions_pool : NULL};

			check_begin(mode_name[mode]);
			if (mode == CONTD_MODE_NEW_TASK && !how.completions)
				continue;
			for (int i = 0; i < 6; i++) {
				if (mode > CONTD_MODE_SUSPEND)
					how.cont_req = i % 2 ? cr : (MPI_Request)0;
				if (mode == CONTD_MODE_MPIX)
					how.flags = i % 3 ? MPIX_CONT_INVOKE_FAILED : 0;
				one(&how, requests, completions, 1 + i % EACH, i / 3);
			}
		}
	}
	if (cr != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
}

/* ------------------------------------------------------------------------------------------------- user's tasks --- */

static atomic_int yields, suspended, resumed;
static struct contd_event woken;

static void count_yield(void *task)
{
	CHECK(task == &yields);
	atomic_fetch_add(&yields, 1);
	sched_yield();
}

static void suspend(void *task)
{
	CHECK(task == &woken);
	atomic_fetch_add(&suspended, 1);
	while (!contd_event_is_complete(&woken))
		contd_poll(0);
}

static void resume(void *task)
{
	CHECK(task == &woken);
	atomic_fetch_add(&resumed, 1);
	CHECK_EQ(contd_event_complete(task, 0), 0);
}

static void users_own(void)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_YIELD_WHILE, .yield = count_yield};
	struct exchange x;

	check_begin("a yield function");
	for (int transfer = 0; transfer < 2; transfer++) {
		how.requests = transfer ? requests_pool : NULL;
		exchange_prepare(&x, tag++, 1, false);
		x.op.task = &yields;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		exchange_check(&x);
	}
	check_begin("suspend and resume functions");
	how = (struct contd_mode_attr){
		.size = sizeof(how), .mode = CONTD_MODE_SUSPEND, .suspend = suspend, .resume = resume};
	for (int i = 0; i < 20; i++) {
		how.requests = i % 2 ? requests_pool : NULL;
		contd_event_init(&woken);
		atomic_store(&suspended, 0);
		atomic_store(&resumed, 0);
		exchange_prepare(&x, tag++, 1 + i % EACH, false);
		x.op.task = &woken;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		exchange_check(&x);
		CHECK_EQ(atomic_load(&suspended), atomic_load(&resumed));
		if (how.requests)
			CHECK_EQ(atomic_load(&suspended), 1);
	}
}

/* ------------------------------------------------------------------------------------------------------- errors --- */

static int issue_nothing(struct contd_mpi_op *op)
{
	(void)op;
	return MPI_ERR_TAG;
}

static void told(void)
{
	struct contd_mode_attr how = {.size = sizeof(how), .completions = completions_pool};
	struct exchange x;

	check_begin("an error of issue()");
	for (int mode = 0; mode < MODES; mode++) {
		for (int transfer = 0; transfer < 2; transfer++) {
			int rc;

			how.mode = mode;
			how.requests = transfer ? requests_pool : NULL;
			exchange_prepare(&x, 0, 1, false);
			x.op.issue = issue_nothing;
			rc = contd_mpi_op_run(&x.op, &how);
			CHECK_EQ(rc, mode <= CONTD_MODE_SUSPEND ? MPI_ERR_TAG : MPI_SUCCESS);
			exchange_await(&x);
			CHECK_EQ(atomic_load(&x.done), 1);
			CHECK_EQ(x.status, MPI_ERR_TAG);
		}
	}
	/* A message that is longer than what receives it. */
	check_begin("an operation that fails");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int mode = 0; mode < MODES; mode++) {
		static const int two[2] = {1, 2};
		struct contd_mpi_op *op = &x.op;
		MPI_Request send;

		how.mode = mode;
		how.requests = NULL;
		how.flags = mode == CONTD_MODE_MPIX ? MPIX_CONT_INVOKE_FAILED : 0;
		exchange_prepare(&x, 0, 1, mode % 2);
		op->issue = NULL;
		op->count = 1;
		/* The message first: Open MPI 4.1 does not report a short one to oneself that was expected. */
		MPI_Isend(two, 2, MPI_INT, 0, 5, MPI_COMM_SELF, &send);
		MPI_Irecv(&x.in[0], 1, MPI_INT, 0, 5, MPI_COMM_SELF, &x.requests[0]);
		CHECK_EQ(contd_mpi_op_run(op, &how), mode <= CONTD_MODE_SUSPEND ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
		exchange_await(&x);
		CHECK_EQ(x.status, MPI_ERR_TRUNCATE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
}

static void bad_input(void)
{
	struct contd_mode_attr good = {.size = sizeof(good), .mode = CONTD_MODE_CONTINUATION}, how;
	MPI_Request request = MPI_REQUEST_NULL, cr;
	struct exchange x;

	check_begin("bad input");
	exchange_prepare(&x, 0, 0, true);
	CHECK_EQ(contd_mpi_op_run(NULL, &good), MPI_ERR_ARG);
	CHECK_EQ(contd_mpi_op_run(&x.op, NULL), MPI_ERR_ARG);
#define REFUSED(class, ...) \
	do { \
		how = good; \
		exchange_prepare(&x, 0, 0, true); \
		__VA_ARGS__; \
		CHECK_EQ(contd_mpi_op_run(&x.op, &how), class); \
		CHECK_EQ(atomic_load(&x.done), 0); \
	} while (0)
	REFUSED(MPI_ERR_ARG, how.size--);
	REFUSED(MPI_ERR_ARG, how.mode = -1);
	REFUSED(MPI_ERR_ARG, how.mode = MODES);
	REFUSED(MPI_ERR_ARG, how.priority = 2);
	REFUSED(MPI_ERR_ARG, how.suspend = suspend);
	REFUSED(MPI_ERR_ARG, how.mode = CONTD_MODE_NEW_TASK);
	REFUSED(MPI_ERR_ARG, x.op.count = -1);
	REFUSED(MPI_ERR_ARG, x.op.count = 1; x.op.requests = NULL);
	REFUSED(MPI_ERR_ARG, x.op.done = NULL);
	REFUSED(MPI_ERR_ARG, how.requests = requests_pool; x.op.issue = NULL);
	/* A mode that has no use for it. */
	REFUSED(MPI_ERR_ARG, how.flags = MPIX_CONT_INVOKE_FAILED);
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	for (int mode = 0; mode <= CONTD_MODE_SUSPEND; mode++) {
		REFUSED(MPI_ERR_ARG, how.mode = mode; how.cont_req = cr);
		REFUSED(MPI_ERR_ARG, how.mode = mode; how.flags = MPIX_CONT_DEFER_COMPLETE);
	}
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Irecv(&x.in[0], 1, MPI_INT, 0, 77, MPI_COMM_SELF, &request);
	REFUSED(MPI_ERR_REQUEST, how.cont_req = request);
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	/* No operations at all: complete at once. */
	how = good;
	exchange_prepare(&x, 0, 0, true);
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	exchange_await(&x);
	CHECK_EQ(x.status, MPI_SUCCESS);
}

/* The pool wants nothing just then: it is done here. */
static void refused(void)
{
	struct contd_mode_attr how = {.size = sizeof(how), .mode = CONTD_MODE_SUSPEND, .completions = completions_pool};
	struct exchange x;

	check_begin("refused");
	queue.refuse = 1;
	exchange_prepare(&x, tag++, 1, false);
	CHECK_OK(contd_mpi_op_run(&x.op, &how));
	exchange_check(&x);
	CHECK(pthread_equal(x.where, pthread_self()));
	how.requests = completions_pool;
	queue.refuse = 1;
	exchange_prepare(&x, tag++, 1, false);
	CHECK_EQ(contd_mpi_op_run(&x.op, &how), MPI_ERR_OTHER);
	CHECK_EQ(atomic_load(&x.done), 0);
}

/* The pool that issues does nothing else for MPI, and there is no other thread: the waiting thread drives it. */
static void issued_by_a_queue(struct contd_executor *pool)
{
	struct contd_mode_attr how = {.size = sizeof(how), .requests = pool};
	struct exchange x;

	check_begin("issued by a queue's thread");
	for (int i = 0; i < 40; i++) {
		how.mode = i % 2 ? CONTD_MODE_SUSPEND : CONTD_MODE_YIELD_WHILE;
		if (check_rank == 0)
			usleep(1000); /* the other one has issued, and waits */
		exchange_prepare(&x, tag++, 1 + i % EACH, false);
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		exchange_check(&x);
	}
}

int main(int argc, char **argv)
{
	static const struct contd_executor_ops ops = {.size = sizeof(ops), .submit = queue_submit};
	struct contd_executor_attr progress = {.size = sizeof(progress), .flags = CONTD_EXECUTOR_PROGRESS};
	struct contd_executor_attr queued = {.size = sizeof(queued), .ops = &ops, .pool = &queue};
	pthread_t requests, completions;
	MPI_Request cr;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	check_begin("start");
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_EQ(contd_executor_create(&progress, &requests_pool), 0);
	CHECK_EQ(contd_executor_create(NULL, &completions_pool), 0);
	pthread_create(&requests, NULL, lend, requests_pool);
	pthread_create(&completions, NULL, lend, completions_pool);
	all_of(requests, completions, cr);
	users_own();
	told();
	bad_input();
	CHECK_EQ(contd_executor_stop(completions_pool, 1), 0);
	pthread_join(completions, NULL);
	CHECK_EQ(contd_executor_drain(completions_pool), 0);
	CHECK_EQ(contd_executor_destroy(completions_pool), 0);

	/* The same with a pool that has a queue. */
	CHECK_EQ(contd_executor_create(&queued, &completions_pool), 0);
	pthread_create(&queue.thread, NULL, queue_thread, NULL);
	all_of(requests, queue.thread, MPI_REQUEST_NULL);
	refused();
	CHECK_EQ(contd_executor_stop(requests_pool, 1), 0);
	pthread_join(requests, NULL);
	CHECK_EQ(contd_executor_drain(requests_pool), 0);
	CHECK_EQ(contd_executor_destroy(requests_pool), 0);
	issued_by_a_queue(completions_pool);
	pthread_mutex_lock(&queue.lock);
	queue.over = true;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	pthread_join(queue.thread, NULL);
	CHECK_EQ(contd_executor_drain(completions_pool), 0);
	CHECK_EQ(contd_executor_destroy(completions_pool), 0);
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
