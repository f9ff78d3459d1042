/* SPDX-License-Identifier: BSD-3-Clause */
/* contd/executor-glib.h, with exclusive threads and shared ones; where no thread can be created; and where the program
 * changes the pool's size meanwhile. */
#include <contd/executor-glib.h>

#include <dlfcn.h>
#include <sys/prctl.h>

#include "executors.h"

static struct contd_executor_glib glib;
static gboolean exclusive;

/* ----------------------------------------------------------------------------------- threads that can't be made --- */

static int refuse_threads, refused;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (__atomic_load_n(&refuse_threads, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
		return EAGAIN;
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	return next(thread, attr, start, data);
}

/* ------------------------------------------------------------------------------- the size that the program sets --- */

static pthread_t main_thread;
static int slow_reads;

/* Where others than the program read the size, the program has time to change it before they go on. */
gint g_thread_pool_get_max_threads(GThreadPool *of)
{
	static gint (*next)(GThreadPool *);
	gint size;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "g_thread_pool_get_max_threads");
	size = next(of);
	if (__atomic_load_n(&slow_reads, __ATOMIC_RELAXED) && !pthread_equal(pthread_self(), main_thread))
		usleep(20000);
	return size;
}

/* ----------------------------------------------------------------------------------------------------- the pool --- */

static struct contd_executor *start(int threads)
{
	must(contd_executor_glib_init(&glib, threads, exclusive));
	return glib.executor;
}

static int stop(void)
{
	return contd_executor_glib_fini(&glib);
}

static int is_mine(void)
{
	char name[17] = "";

	prctl(PR_GET_NAME, name);
	return strncmp(name, "pool", 4) == 0;
}

static const struct pool exclusive_pool = {
	"exclusive", "GThreadPool, exclusive, 3 of 3 threads,", start, stop, is_mine, 1, 0};
static const struct pool shared_pool = {"shared", "GThreadPool, 0 of 3 threads,", start, stop, is_mine, 1, 0};

/* GLib has none left that it could use again. */
static void no_unused_threads(void)
{
	g_thread_pool_set_max_unused_threads(0);
	while (g_thread_pool_get_num_unused_threads())
		usleep(1000);
}

/* The daemon offers until there are threads: all run on the pool's threads, once. */
static void refused_and_offered_again(void)
{
	struct contd_group *group;

	no_unused_threads();
	begin(CONTD_AGENT_TICK, 3);
	group = group_of(executor, CONTD_PRIORITY_HIGH);
	for (int i = 0; i < 1000; i++)
		put(&pieces[i], run_piece, &pieces[i], group);
	refused = 0;
	refuse_threads = 1;
	for (int i = 0; i < 500; i++)
		complete(i);
	while (__atomic_load_n(&refused, __ATOMIC_RELAXED) < 5)
		usleep(1000);
	check(__atomic_load_n(&total, __ATOMIC_RELAXED) == 0, "%d have run", total);
	check(g_thread_pool_unprocessed(glib.pool) <= 2, "refused work fills the queue: %u",
	      g_thread_pool_unprocessed(glib.pool));
	check(contd_executor_glib_fini(&glib) == -EBUSY, " ");
	__atomic_store_n(&refuse_threads, 0, __ATOMIC_RELAXED);
	for (int i = 500; i < 1000; i++)
		complete(i);
	while (__atomic_load_n(&total, __ATOMIC_ACQUIRE) < 1000)
		usleep(1000);
	wait_and_destroy(group);
	all_have_run(1000);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	end();
}

/* The program changes the pool's size while the daemon offers what no thread could be created for. */
static void refused_and_resized(void)
{
	struct contd_group *group;

	no_unused_threads();
	begin(CONTD_AGENT_TICK, 3);
	group = group_of(executor, 0);
	for (int i = 0; i < 100; i++)
		put(&pieces[i], run_piece, &pieces[i], group);
	refused = 0;
	slow_reads = 1;
	refuse_threads = 1;
	for (int i = 0; i < 50; i++)
		complete(i);
	for (int i = 0; i < 100 || __atomic_load_n(&refused, __ATOMIC_RELAXED) < 20; i++) {
		g_thread_pool_set_max_threads(glib.pool, 2 + i % 5, NULL);
		usleep(1000);
		check(g_thread_pool_get_max_threads(glib.pool) == 2 + i % 5, "%d instead of %d",
		      g_thread_pool_get_max_threads(glib.pool), 2 + i % 5);
	}
	check(__atomic_load_n(&total, __ATOMIC_RELAXED) == 0, "%d have run", total);
	__atomic_store_n(&refuse_threads, 0, __ATOMIC_RELAXED);
	for (int i = 50; i < 100; i++)
		complete(i);
	wait_and_destroy(group);
	all_have_run(100);
	check(strangers == 0, "%d ran on other threads than the pool's", strangers);
	slow_reads = 0;
	end();
}

/* Where a thread of the program's finds it, it runs there. A task of the program's own is refused to its face. */
static void refused_and_run_here(void)
{
	struct contd_group *group;

	no_unused_threads();
	begin(CONTD_AGENT_CALLER, 3);
	group = group_of(executor, 0);
	refuse_threads = 1;
	for (int i = 0; i < 100; i++) {
		put(&pieces[i], run_piece, &pieces[i], group);
		complete(i);
	}
	must(contd_group_wait(group, LONG_NS));
	all_have_run(100);
	check(strangers == 100, "%d ran here", strangers);
	contd_task_init(&pieces[100].task, executor, 0, run_piece, &pieces[100]);
	check(contd_task_submit(&pieces[100].task, 0) == -EAGAIN, " ");
	check(g_thread_pool_unprocessed(glib.pool) == 1, "what is left of the first");
	must(contd_group_destroy(group));
	end(); /* with it still in the queue */
	all_have_run(100);
	begin(CONTD_AGENT_CALLER, 1);
	exclusive = TRUE;
	must(pool->stop());
	check(contd_executor_glib_init(&glib, 1, TRUE) == -EAGAIN, " ");
	exclusive = FALSE;
	refuse_threads = 0;
	check(contd_fini() == 0, " ");
}

static void bad_arguments(void)
{
	check(contd_executor_glib_init(&glib, 1, TRUE) == -EPERM, "before contd_init()");
	refused(contd_executor_glib_init(NULL, 1, TRUE));
	refused(contd_executor_glib_init(&glib, 0, TRUE));
	refused(contd_executor_glib_init(&glib, -2, FALSE));
	refused(contd_executor_glib_init(&glib, -1, TRUE));
	refused(contd_executor_glib_fini(NULL));
}

int main(void)
{
	main_thread = pthread_self();
	g_thread_pool_set_max_idle_time(100); /* ms; else unused threads stay for 15 s */
	bad_arguments();
	exclusive = TRUE;
	executors_run(&exclusive_pool);
	exclusive = FALSE;
	executors_run(&shared_pool);
	refused_and_offered_again();
	refused_and_resized();
	refused_and_run_here();
	return 0;
}
