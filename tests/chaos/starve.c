/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No test: does this kernel let a program starve, while others call sched_yield(2) in loops? docs/proof.md has the
 * reasons. Neither contd nor MPI is part of it.
 *
 *   starve PROCESSES YIELDING NAPPING WORK_US NAP_US [SECONDS]
 *
 * Each process has a separate session, so many threads that work for WORK_US and yield, and so many that nap for
 * NAP_US. The program says how long its own sleep of 0.1 s took at worst.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double work_s, end;
static useconds_t nap_us;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void work(double s)
{
	double until = now() + s;

	while (now() < until)
		;
}

static void *yielding(void *data)
{
	while (now() < end) {
		work(work_s);
		sched_yield();
	}
	return data;
}

static void *napping(void *data)
{
	while (now() < end) {
		work(3e-6);
		usleep(nap_us);
	}
	return data;
}

static void process(int yields, int naps)
{
	pthread_t thread;

	setsid();
	for (int i = 0; i < yields + naps; i++)
		if (pthread_create(&thread, NULL, i < yields ? yielding : napping, NULL))
			abort();
	while (now() < end)
		sleep(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	double worst = 0;

	if (argc < 6) {
		fprintf(stderr, "usage: %s PROCESSES YIELDING NAPPING WORK_US NAP_US [SECONDS]\n", argv[0]);
		return 2;
	}
	work_s = atof(argv[4]) * 1e-6;
	nap_us = (useconds_t)atoi(argv[5]);
	end = now() + (argc > 6 ? atof(argv[6]) : 15);
	for (int i = 0; i < atoi(argv[1]); i++)
		if (fork() == 0)
			process(atoi(argv[2]), atoi(argv[3]));
	while (now() < end) {
		double before = now(), took;

		usleep(100000);
		took = now() - before;
		worst = took > worst ? took : worst;
	}
	while (wait(NULL) > 0)
		;
	printf("a sleep of 0.1 s took %.2f s at worst\n", worst);
	return 0;
}
