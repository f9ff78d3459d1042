/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread loads and unloads libraries, another one computes or calls MPI.
 *
 *     loader LEVEL KIND     LEVEL: funneled, serialized, multiple
 *
 * KIND: constructor   the library is opened by its name alone, in the middle of progress; its constructor waits until
 *                     the progress is done (in flockfile(3)). Progress must not wait for the loader
 *       destructor    the library's destructor calls MPI. At MPI_THREAD_SERIALIZED it waits for its turn, which another
 *                     thread has: a call of MPI there must not wait for the loader
 *       named         it is opened by its name alone while another thread enters and leaves MPI. After the next calls
 *                     of MPI its code is known, as the program's
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#define CLOSURE_WITH_MPI
#include "closure.h"

EXPORTED void contd_test_progress(void);
EXPORTED void plugin_begins(void);
EXPORTED void plugin_ends(void);

#define TIMES 12

static const char *kind;
static int level;
static uint32_t inside_progress, step;
static double progress_takes;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static void *handle;
static uint64_t times;

static uint32_t at(void)
{
	return __atomic_load_n(&step, __ATOMIC_SEQ_CST);
}

static void go_to(uint32_t which)
{
	__atomic_store_n(&step, which, __ATOMIC_SEQ_CST);
}

static bool is(const char *which)
{
	return !strcmp(kind, which);
}

/* In the place of MPI's progress. */
void contd_test_progress(void)
{
	__atomic_store_n(&inside_progress, 1, __ATOMIC_SEQ_CST);
	times++;
	for (double end = now_s() + progress_takes; now_s() < end;)
		spin(1000);
	__atomic_store_n(&inside_progress, 0, __ATOMIC_SEQ_CST);
}

static void my_turn(void)
{
	if (level < MPI_THREAD_MULTIPLE)
		pthread_mutex_lock(&turn);
}

static void over(void)
{
	if (level < MPI_THREAD_MULTIPLE)
		pthread_mutex_unlock(&turn);
}

/* plugin.c calls these. */
void plugin_begins(void)
{
	if (kind && is("constructor")) {
		flockfile(stderr);
		funlockfile(stderr);
	}
}

void plugin_ends(void)
{
	if (!kind || !is("destructor"))
		return;
	go_to(1);
	my_turn();
	MPI_Barrier(MPI_COMM_SELF);
	over();
}

static double took(double since, const char *what)
{
	double s = now_s() - since;

	if (s > 0.9)
		printf("%s takes %.1f s\n", what, s);
	return s;
}

static int failures;

static void *opens_in_progress(void *unused)
{
	double begin;

	while (!__atomic_load_n(&inside_progress, __ATOMIC_SEQ_CST))
		;
	begin = now_s();
	handle = dlopen(PLUGIN_NAME, RTLD_NOW);
	failures += !handle || took(begin, "loading a library in the middle of progress") > 0.9;
	go_to(1);
	return unused;
}

static void constructor(void)
{
	pthread_t thread;

	progress_takes = 0.02;
	pthread_create(&thread, NULL, opens_in_progress, NULL);
	while (at() < 1)
		spin(10000);
	pthread_join(thread, NULL);
}

static void *closes(void *unused)
{
	dlclose(handle);
	return unused;
}

static void destructor(void)
{
	pthread_t thread;
	double begin;

	handle = dlopen(PLUGIN, RTLD_NOW);
	my_turn();
	pthread_create(&thread, NULL, closes, NULL);
	while (at() < 1)
		usleep(1000);
	usleep(200000); /* the destructor waits for its turn now */
	begin = now_s();
	MPI_Barrier(MPI_COMM_SELF);
	failures += took(begin, "a call of MPI beside dlclose()") > 0.9;
	over();
	pthread_join(thread, NULL);
}

static void *opens_by_name(void *unused)
{
	for (uint32_t i = 0; i < TIMES; i++) {
		while (at() < 2 * i + 1)
			;
		handle = dlopen(PLUGIN_NAME, RTLD_NOW);
		go_to(2 * i + 2);
	}
	return unused;
}

static void named(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, opens_by_name, NULL);
	for (uint32_t i = 0; i < TIMES; i++) {
		void (*compute)(unsigned);
		uint64_t before;
		double give_up;

		go_to(2 * i + 1);
		while (at() < 2 * i + 2)
			MPI_Barrier(MPI_COMM_SELF);
		compute = handle ? (void (*)(unsigned))dlsym(handle, "plugin_computes") : NULL;
		if (!compute) {
			printf("no library\n");
			_exit(1);
		}
		before = passed(PASSED_NOT);
		for (give_up = now_s() + 2; passed(PASSED_NOT) < before + 10 && now_s() < give_up;) {
			compute(1000000);
			MPI_Barrier(MPI_COMM_SELF);
		}
		if (passed(PASSED_NOT) < before + 10) {
			printf("time %u: no progress in its code\n", i);
			failures++;
		}
		dlclose(handle);
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int wanted = !strcmp(name, "multiple")     ? MPI_THREAD_MULTIPLE
		     : !strcmp(name, "serialized") ? MPI_THREAD_SERIALIZED
						   : MPI_THREAD_FUNNELED;

	kind = argc > 2 ? argv[2] : "";
	MPI_Init_thread(&argc, &argv, wanted, &level);
	if (level < wanted) {
		printf("this MPI has no such level\n");
		MPI_Finalize();
		return 77;
	}
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	if (is("constructor"))
		constructor();
	else if (is("destructor"))
		destructor();
	else
		named();
	progress_takes = 0;
	MPI_Finalize();
	return failures != 0;
}
