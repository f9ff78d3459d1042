/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by one_key_multiple.c and one_key_regions.c. Rank 1 receives: some threads, each with a continuation for
 * another message, compute until all of these have run, and call neither MPI nor contd. Each says so by a flag in
 * memory that rank 0 sees, too: that sends when all compute, so every callback must find that all of them do.
 */
#ifndef CONTD_TESTS_MPI_ONE_KEY_COMMON_H
#define CONTD_TESTS_MPI_ONE_KEY_COMMON_H

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define THREADS_MAX 3
#define LIMIT_SECONDS 30
#define LARGE (1 << 20)

/* Of both ranks. A flag names the round, so that nothing is left over from the one before. */
struct shared {
	atomic_int computing[THREADS_MAX], posted;
};
static struct shared *shared;

struct mine {
	MPI_Status status;
	atomic_int runs, bad, all_computing;
	_Atomic(pthread_t) ran_on;
	pthread_t thread;
	unsigned char *buffer;
};
static struct mine mine[THREADS_MAX];
static int threads, round_number, bytes;
static atomic_int total; /* callbacks that have run in this round */
static volatile double sink;

/* A page of memory that both ranks map; they are on one machine in this test. */
CHECK_HELPER void shared_make(void)
{
	char name[64] = "";
	int fd;

	if (check_rank == 0) {
		snprintf(name, sizeof(name), "/contd-one-key-%d", (int)getpid());
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		CHECK(fd >= 0);
		CHECK_EQ(ftruncate(fd, sizeof(*shared)), 0);
		MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	} else {
		MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
		fd = shm_open(name, O_RDWR, 0);
		CHECK(fd >= 0);
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!CHECK(shared != MAP_FAILED))
		MPI_Abort(MPI_COMM_WORLD, 1);
	close(fd);
	MPI_Barrier(MPI_COMM_WORLD);
	if (check_rank == 0)
		shm_unlink(name);
}

/* How many threads of the receiver compute in this round. */
CHECK_HELPER int computing_now(void)
{
	int n = 0;

	for (int i = 0; i < threads; i++)
		n += atomic_load(&shared->computing[i]) == round_number;
	return n;
}

/* In a callback: async-signal-safe. */
CHECK_HELPER void note_run(struct mine *m, MPI_Status *status)
{
	if (status != &m->status || status->MPI_ERROR != MPI_SUCCESS || status->MPI_TAG != (int)(m - mine))
		atomic_store(&m->bad, 1);
	atomic_store(&m->ran_on, pthread_self());
	atomic_store(&m->all_computing, computing_now() == threads);
	atomic_fetch_add(&m->runs, 1);
}

/* Until all callbacks have run; false: they have not come. Nothing is called but the clock. */
CHECK_HELPER bool compute(int i)
{
	struct timespec begin, now;
	double x = 1;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	atomic_store(&shared->computing[i], round_number);
	do {
		for (int k = 0; k < 1000; k++)
			x = x * 1.000001 + 1e-9;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (atomic_load(&total) < threads && now.tv_sec < begin.tv_sec + LIMIT_SECONDS);
	sink = x;
	return atomic_load(&total) >= threads;
}

/* Rank 0. It waits without MPI, because the receiver does not call it either. */
CHECK_HELPER void send_when_all_compute(void)
{
	time_t limit = time(NULL) + LIMIT_SECONDS;

	while (computing_now() < threads && time(NULL) < limit)
		usleep(200);
	CHECK_EQ(computing_now(), threads);
	for (int i = 0; i < threads; i++) {
		pattern_fill(mine[i].buffer, (size_t)bytes, (unsigned)(round_number + i));
		MPI_Send(mine[i].buffer, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
	}
}

CHECK_HELPER void round_begin(int number, int size)
{
	round_number = number;
	bytes = size;
	atomic_store(&total, 0);
	for (int i = 0; i < threads; i++) {
		unsigned char *buffer = mine[i].buffer;

		memset(&mine[i], 0, sizeof(mine[i]));
		mine[i].buffer = buffer;
		memset(buffer, 0xee, LARGE);
	}
}

/* Rank 1, when its threads have ended: each continuation has run once, while all computed, on one of them. */
CHECK_HELPER void round_check(void)
{
	for (int i = 0; i < threads; i++) {
		bool known = false;

		CHECK_EQ(mine[i].runs, 1);
		CHECK(!mine[i].bad);
		CHECK(mine[i].all_computing);
		for (int k = 0; k < threads; k++)
			known = known || pthread_equal(mine[i].ran_on, mine[k].thread);
		CHECK(known); /* and not on the daemon */
		CHECK(pattern_holds(mine[i].buffer, (size_t)bytes, (unsigned)(round_number + i)));
	}
}

/* f(i) on each of the threads; the calling one is number 0, of OpenMP's threads as well. */
static void (*run_each)(int);

CHECK_HELPER void *run_one(void *data)
{
	run_each((int)(intptr_t)data);
	return NULL;
}

CHECK_HELPER void run_threads(void (*f)(int))
{
#ifdef _OPENMP
	int there = 0;

#pragma omp parallel num_threads(threads) reduction(+ : there)
	{
		there++;
		f(omp_get_thread_num());
	}
	CHECK_EQ(there, threads);
#else
	pthread_t thread[THREADS_MAX];

	run_each = f;
	for (int i = 1; i < threads; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, run_one, (void *)(intptr_t)i), 0);
	f(0);
	for (int i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
#endif
}

CHECK_HELPER void one_key_begin(int *argc, char ***argv, int level, int count)
{
	check_init(argc, argv, level);
	if (check_size != 2) {
		fprintf(stderr, "two ranks are needed\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	check_unbind();
	threads = count;
	for (int i = 0; i < threads; i++)
		mine[i].buffer = malloc(LARGE);
	shared_make();
}

#endif
