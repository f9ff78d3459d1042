/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Below MPI_THREAD_MULTIPLE: one thread is lent to the executor that owns MPI, and is the only one that calls MPI;
 * others hand it their requests, by every mode.
 */
#ifndef CONTD_TESTS_MPI_MODES_ONE_THREAD_H
#define CONTD_TESTS_MPI_MODES_ONE_THREAD_H

#include "modes.h"

#define WORKERS 2
#define ROUNDS 200

static pthread_t communicates;
static atomic_int elsewhere, working = WORKERS;

static int issue_and_see(struct contd_mpi_op *op)
{
	if (!pthread_equal(pthread_self(), communicates))
		atomic_fetch_add(&elsewhere, 1);
	return exchange_issue(op);
}

static void *work(void *data)
{
	int number = (int)(intptr_t)data;

	for (int i = 0; i < ROUNDS; i++) {
		struct contd_mode_attr how = {
			.size = sizeof(how),
			.mode = i % MODES,
			.requests = requests_pool,
			.completions = i % 2 || i % MODES == CONTD_MODE_NEW_TASK ? completions_pool : NULL};
		struct exchange x;

		exchange_prepare(&x, (number * ROUNDS + i) * EACH, 1 + i % EACH, false);
		x.op.issue = issue_and_see;
		CHECK_OK(contd_mpi_op_run(&x.op, &how));
		while (!atomic_load(&x.done))
			sched_yield();
		exchange_check(&x);
	}
	if (atomic_fetch_sub(&working, 1) == 1)
		contd_executor_stop(requests_pool, 1);
	return NULL;
}

static void *communicate(void *data)
{
	(void)data;
	communicates = pthread_self();
	CHECK(contd_executor_run(requests_pool, 0, -1) > 0);
	return NULL;
}

static void one_thread(bool main_thread)
{
	struct contd_executor_attr attr = {.size = sizeof(attr), .flags = CONTD_EXECUTOR_PROGRESS | CONTD_EXECUTOR_MPI};
	pthread_t worker[WORKERS], completions, communication;
	MPI_Request cr;

	check_begin("one thread calls MPI");
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr)); /* starts contd */
	CHECK_EQ(contd_executor_create(&attr, &requests_pool), 0);
	CHECK_EQ(contd_executor_create(NULL, &completions_pool), 0);
	pthread_create(&completions, NULL, lend, completions_pool);
	if (!main_thread)
		pthread_create(&communication, NULL, communicate, NULL);
	else
		communicates = pthread_self();
	for (intptr_t i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, (void *)i);
	if (main_thread)
		communicate(NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	if (!main_thread)
		pthread_join(communication, NULL);
	CHECK_EQ(atomic_load(&elsewhere), 0);
	CHECK_EQ(contd_executor_stop(completions_pool, 1), 0);
	pthread_join(completions, NULL);
	CHECK_EQ(contd_executor_drain(completions_pool), 0);
	CHECK_EQ(contd_executor_destroy(completions_pool), 0);
	CHECK_EQ(contd_executor_drain(requests_pool), 0);
	CHECK_EQ(contd_executor_destroy(requests_pool), 0);
	CHECK_OK(MPI_Request_free(&cr));
}

#endif
