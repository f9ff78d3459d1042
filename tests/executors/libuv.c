/* SPDX-License-Identifier: BSD-3-Clause */
/* contd/executor-libuv.h, on libuv's threads and on the loop's; and a loop that ends by itself. */
#include <contd/executor-libuv.h>

#include <sys/prctl.h>

#include "executors.h"

static uv_loop_t loop;
static uv_async_t asked; /* the loop is to close the executor */
static struct contd_executor_uv uv;
static int flags, threads_wanted, close_status, to_close;
static sem_t answered;
static pthread_t loop_thread;
static __thread int is_loop_thread;

static void on_closed(struct contd_executor_uv *which, int status)
{
	check(which == &uv, " ");
	close_status = status;
	if (status == 0)
		uv_close((uv_handle_t *)&asked, NULL); /* now the loop ends */
	sem_post(&answered);
}

static void on_asked(uv_async_t *async)
{
	(void)async;
	if (__atomic_exchange_n(&to_close, 0, __ATOMIC_ACQUIRE))
		contd_executor_uv_fini(&uv, on_closed);
}

static void *run_loop(void *data)
{
	(void)data;
	is_loop_thread = 1;
	must(uv_loop_init(&loop));
	must(uv_async_init(&loop, &asked, on_asked));
	must(contd_executor_uv_init(&uv, &loop, threads_wanted, flags));
	sem_post(&answered);
	must(uv_run(&loop, UV_RUN_DEFAULT));
	must(uv_loop_close(&loop));
	return NULL;
}

static struct contd_executor *start(int threads)
{
	threads_wanted = threads;
	check(pthread_create(&loop_thread, NULL, run_loop, NULL) == 0, " ");
	sem_wait(&answered);
	return uv.executor;
}

static int stop(void)
{
	__atomic_store_n(&to_close, 1, __ATOMIC_RELEASE); /* the thread sanitizer does not see libuv's own order */
	uv_async_send(&asked);
	sem_wait(&answered);
	if (close_status == 0)
		pthread_join(loop_thread, NULL);
	return close_status;
}

static int is_on_loop(void)
{
	return is_loop_thread;
}

static int is_on_pool(void)
{
	char name[17] = "";

	prctl(PR_GET_NAME, name);
	return !is_loop_thread && strcmp(name, "contd") != 0;
}

static const struct pool threads_pool = {"libuv's threads", "libuv, 3 threads,", start, stop, is_on_pool, 0, 8};
static const struct pool loop_pool = {"libuv's loop", "libuv, on the loop's thread,", start, stop, is_on_loop, 0, 8};

/* ------------------------------------------------------------------------------------ on the main thread's loop --- */

static void no_answer(struct contd_executor_uv *which, int status)
{
	check(which == &uv && status == 0, "%d", status);
	check(uv.queued == 0, "libuv still has %d", uv.queued);
	close_status++;
}

static void *complete_later(void *data)
{
	(void)data;
	usleep(20000);
	complete(0);
	return NULL;
}

static void run_and_close(int status, void *data)
{
	run_piece(status, data);
	contd_executor_uv_fini(&uv, no_answer);
}

/* An open executor keeps no loop alive, unless it is to; a continuation may close it. */
static void alive(void)
{
	struct contd_group *group;
	pthread_t thread;

	is_loop_thread = 1;
	not_a_pool_thread = 0;
	pool = &loop_pool;
	must(contd_init(NULL));
	memset(pieces, 0, sizeof(pieces));
	total = strangers = 0;
	must(uv_loop_init(&loop));
	must(contd_executor_uv_init(&uv, &loop, 0, CONTD_EXECUTOR_UV_LOOP));
	check(uv_run(&loop, UV_RUN_DEFAULT) == 0, "it ends at once");
	close_status = 0;
	contd_executor_uv_fini(&uv, no_answer);
	must(uv_run(&loop, UV_RUN_DEFAULT));
	check(close_status == 1, " ");

	must(contd_executor_uv_init(&uv, &loop, 0, CONTD_EXECUTOR_UV_LOOP | CONTD_EXECUTOR_UV_KEEP));
	group = group_of(uv.executor, 0);
	put(&pieces[0], run_and_close, &pieces[0], group);
	must(contd_group_destroy(group));
	check(pthread_create(&thread, NULL, complete_later, NULL) == 0, " ");
	must(uv_run(&loop, UV_RUN_DEFAULT)); /* until it has run, and the executor is closed */
	check(close_status == 2, " ");
	all_have_run(1);
	check(strangers == 0, " ");
	pthread_join(thread, NULL);

	/* On the loop's own thread, which can't turn meanwhile, drain runs what is ready. */
	must(contd_executor_uv_init(&uv, &loop, 2, 0));
	for (int i = 1; i < 100; i++) {
		contd_task_init(&pieces[i].task, uv.executor, 0, run_piece, &pieces[i]);
		must(contd_task_submit(&pieces[i].task, i % 7));
	}
	must(contd_executor_drain(uv.executor));
	all_have_run(100);
	contd_executor_uv_fini(&uv, no_answer);
	must(uv_run(&loop, UV_RUN_DEFAULT));
	check(close_status == 3, " ");
	must(uv_loop_close(&loop));
	check(contd_fini() == 0, " ");
}

static struct contd_task followers[200];
static int followed, held;

static void follow(int status, void *data)
{
	(void)status, (void)data;
	__atomic_add_fetch(&followed, 1, __ATOMIC_RELAXED);
}

/* On one of libuv's threads; the loop's thread drains when it goes on. */
static void submit_followers(int status, void *data)
{
	(void)status, (void)data;
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&followed, __ATOMIC_ACQUIRE))
		sched_yield();
	for (int i = 1; i < 200; i++) {
		contd_task_init(&followers[i], uv.executor, 0, follow, NULL);
		must(contd_task_submit(&followers[i], 0));
	}
}

/*
 * The loop's thread drains while a piece is at work on libuv's only thread, and makes more than that thread runs in one
 * go: the loop, which would queue the rest, does not turn.
 */
static void drained_on_the_loop(void)
{
	struct contd_task first;

	must(contd_init(NULL));
	must(uv_loop_init(&loop));
	must(contd_executor_uv_init(&uv, &loop, 1, CONTD_EXECUTOR_UV_KEEP));
	for (int round = 1; round <= 20; round++) {
		followed = held = 0;
		contd_task_init(&first, uv.executor, 0, submit_followers, NULL);
		must(contd_task_submit(&first, 0));
		while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
			uv_run(&loop, UV_RUN_NOWAIT);
		contd_task_init(&followers[0], uv.executor, 0, follow, NULL); /* drain() runs it */
		must(contd_task_submit(&followers[0], 0));
		must(contd_executor_drain(uv.executor));
		check(followed == 200, "%d", followed);
	}
	close_status = 0;
	contd_executor_uv_fini(&uv, no_answer);
	must(uv_run(&loop, UV_RUN_DEFAULT));
	check(close_status == 1, " ");
	must(uv_loop_close(&loop));
	check(contd_fini() == 0, " ");
}

/* Closed as soon as all have run, when libuv's threads may not have given their pieces back. */
static void closed_early(void)
{
	pool = &threads_pool;
	is_loop_thread = not_a_pool_thread = 1;
	must(contd_init(NULL));
	must(uv_loop_init(&loop));
	close_status = 0;
	for (int round = 0; round < 200; round++) {
		memset(pieces, 0, 8 * sizeof(*pieces));
		total = strangers = 0;
		must(contd_executor_uv_init(&uv, &loop, 4, CONTD_EXECUTOR_UV_KEEP));
		for (int i = 0; i < 7; i++) {
			contd_task_init(&pieces[i].task, uv.executor, 0, run_piece, &pieces[i]);
			must(contd_task_submit(&pieces[i].task, i % 7));
		}
		uv_run(&loop, UV_RUN_NOWAIT);
		while (__atomic_load_n(&total, __ATOMIC_ACQUIRE) < 7)
			sched_yield(); /* the threads run them without the loop */
		contd_executor_uv_fini(&uv, no_answer);
		must(uv_run(&loop, UV_RUN_DEFAULT));
		check(close_status == round + 1, " ");
		all_have_run(7);
		check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	}
	must(uv_loop_close(&loop));
	check(contd_fini() == 0, " ");
}

static void bad_arguments(void)
{
	must(uv_loop_init(&loop));
	refused(contd_executor_uv_init(NULL, &loop, 1, 0));
	refused(contd_executor_uv_init(&uv, NULL, 1, 0));
	refused(contd_executor_uv_init(&uv, &loop, -1, 0));
	refused(contd_executor_uv_init(&uv, &loop, 1, 4));
	check(contd_executor_uv_init(&uv, &loop, 1, 0) == -EPERM, "before contd_init()");
	must(uv_run(&loop, UV_RUN_DEFAULT));
	must(uv_loop_close(&loop));
}

int main(void)
{
	sem_init(&answered, 0, 0);
	bad_arguments();
	executors_run(&threads_pool);
	flags = CONTD_EXECUTOR_UV_LOOP;
	executors_run(&loop_pool);
	alive();
	drained_on_the_loop();
	closed_early();
	return 0;
}
