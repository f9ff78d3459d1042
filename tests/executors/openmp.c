/* SPDX-License-Identifier: BSD-3-Clause */
/* contd/executor-openmp.h: a team with one thread that generates, asleep or polling; a team of one; threads that wait
 * in tasks. */
#include <contd/executor-openmp.h>

#include <dlfcn.h>

#include "executors.h"

static struct contd_executor_omp omp;
static int flags, team;
static pthread_t thread;

static void *run_team(void *data)
{
	(void)data;
	omp_set_dynamic(0);
#pragma omp parallel num_threads(team)
#pragma omp single
	contd_executor_omp_generate(&omp);
	return NULL;
}

static void generate(void)
{
	check(pthread_create(&thread, NULL, run_team, NULL) == 0, " ");
	while (__atomic_load_n(&omp.threads, __ATOMIC_RELAXED) != team)
		usleep(100);
}

static struct contd_executor *start_team(int threads)
{
	must(contd_executor_omp_init(&omp, flags));
	team = threads;
	generate();
	return omp.executor;
}

/* One more, which generates. */
static struct contd_executor *start(int threads)
{
	return start_team(threads + 1);
}

static int stop(void)
{
	int r;

	contd_executor_omp_stop(&omp, 1);
	pthread_join(thread, NULL);
	r = contd_executor_omp_fini(&omp);
	if (r) { /* it is as before */
		contd_executor_omp_stop(&omp, 0);
		generate();
	}
	return r;
}

/* Outside of parallel regions the level is 0. */
static int is_mine(void)
{
	return omp_get_level() > 0;
}

static const struct pool asleep = {"OpenMP, asleep", "OpenMP tasks, 4 threads,", start, stop, is_mine, 1, 0};
static const struct pool polling = {"OpenMP, polling", "OpenMP tasks, 4 threads,", start, stop, is_mine, 1, 0};
static const struct pool alone = {"OpenMP, a team of one", "OpenMP tasks, 3 threads,", start_team, stop, is_mine, 0, 0};

/* All threads wait at the same time, each in its task, for a continuation that any of them may run. */
static void waiting_in_tasks(int threads)
{
	struct contd_group *group;

	must(contd_init(NULL));
	memset(pieces, 0, sizeof(pieces));
	total = strangers = 0;
	must(contd_executor_omp_init(&omp, 0));
	group = group_of(omp.executor, 0);
	not_a_pool_thread = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
	for (int i = 0; i < 500; i++) {
#pragma omp task firstprivate(i)
		{
			put(&pieces[i], run_piece, &pieces[i], group);
			complete(i);
			while (!__atomic_load_n(&pieces[i].runs, __ATOMIC_ACQUIRE))
				contd_executor_omp_yield(&omp);
		}
	}
	not_a_pool_thread = 1;
	all_have_run(500);
	check(strangers == 0, " ");
	must(contd_group_destroy(group));
	must(contd_executor_drain(omp.executor));
	must(contd_executor_omp_fini(&omp));
	check(contd_fini() == 0, " ");
}

/* Tasks of what is ready now, and a barrier. Outside of a parallel region OpenMP runs tasks at once. */
static void spawned(int threads)
{
	must(contd_init(NULL));
	memset(pieces, 0, sizeof(pieces));
	total = strangers = 0;
	must(contd_executor_omp_init(&omp, 0));
	for (int i = 0; i < 500; i++) {
		contd_task_init(&pieces[i].task, omp.executor, i % 3 - 1, run_piece, &pieces[i]);
		must(contd_task_submit(&pieces[i].task, i % 7));
	}
	if (threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
		check(contd_executor_omp_spawn(&omp) == 500, " ");
	} else {
		check(contd_executor_omp_spawn(&omp) == 500, " ");
	}
	all_have_run(500);
	check(contd_executor_omp_spawn(&omp) == 0, " ");
	check(contd_executor_omp_yield(&omp) == 0, " ");
	must(contd_executor_omp_fini(&omp));
	check(contd_fini() == 0, " ");
}

static __thread int holds;
static int returned, yields;

/* In the place of libc's. A thread that stops is held in it, until who generates has returned, or gives way instead. */
int sem_post(sem_t *sem)
{
	int (*real)(sem_t *) = (int (*)(sem_t *))(uintptr_t)dlsym(RTLD_NEXT, "sem_post");

	if (holds) {
		__atomic_store_n(&yields, 0, __ATOMIC_SEQ_CST);
		while (!__atomic_load_n(&returned, __ATOMIC_SEQ_CST) && __atomic_load_n(&yields, __ATOMIC_SEQ_CST) < 5)
			usleep(100);
		check(!__atomic_load_n(&returned, __ATOMIC_SEQ_CST), "the memory may be gone");
	}
	return real(sem);
}

int sched_yield(void)
{
	__atomic_add_fetch(&yields, 1, __ATOMIC_SEQ_CST);
	return usleep(1);
}

static void *stops(void *data)
{
	(void)data;
	holds = 1;
	contd_executor_omp_stop(&omp, 1);
	return NULL;
}

/* The generating thread returns when no thread is in contd_executor_omp_stop(), because the executor may end then. */
static void stopped_by_another(void)
{
	pthread_t other;

	must(contd_init(NULL));
	must(contd_executor_omp_init(&omp, CONTD_EXECUTOR_OMP_POLL));
	check(pthread_create(&other, NULL, stops, NULL) == 0, " ");
	contd_executor_omp_generate(&omp);
	__atomic_store_n(&returned, 1, __ATOMIC_SEQ_CST);
	pthread_join(other, NULL);
	must(contd_executor_omp_fini(&omp));
	check(contd_fini() == 0, " ");
}

static void bad_arguments(void)
{
	check(contd_executor_omp_init(&omp, 0) == -EPERM, "before contd_init()");
	refused(contd_executor_omp_init(NULL, 0));
	refused(contd_executor_omp_init(&omp, 2));
	refused(contd_executor_omp_fini(NULL));
}

int main(void)
{
	check(omp_get_max_task_priority() >= 2, "set OMP_MAX_TASK_PRIORITY=2");
	bad_arguments();
	stopped_by_another();
	executors_run(&asleep);
	executors_run(&alone);
	flags = CONTD_EXECUTOR_OMP_POLL;
	executors_run(&polling);
	for (int threads = 1; threads <= 4; threads++)
		waiting_in_tasks(threads);
	for (int threads = 0; threads <= 4; threads++)
		spawned(threads);
	return 0;
}
