/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the five completion modes: an exchange of two ranks, or of one with itself, by each of
 * them. */
#ifndef CONTD_TESTS_MPI_MODES_H
#define CONTD_TESTS_MPI_MODES_H

#include <pthread.h>

#include <contd/modes.h>

#include "check.h"

#define MODES 5
#define EACH 3 /* messages of one operation at most, each way */

static const char *const mode_name[MODES] = {"yield-while", "suspend", "new task", "continuation", "mpix"};

struct exchange {
	struct contd_mpi_op op;
	MPI_Request requests[2 * EACH];
	MPI_Status statuses[2 * EACH];
	int messages; /* each way */
	int tag;
	int out[EACH], in[EACH];
	atomic_int done;
	int status;
	pthread_t where, issued;
};

static struct contd_executor *requests_pool __attribute__((unused)), *completions_pool __attribute__((unused));

static int exchange_issue(struct contd_mpi_op *op)
{
	struct exchange *x = op->data;
	int partner = check_size - 1 - check_rank;

	x->issued = pthread_self();
	for (int i = 0; i < x->messages; i++) {
		MPI_Irecv(&x->in[i], 1, MPI_INT, partner, x->tag + i, MPI_COMM_WORLD, &x->requests[2 * i]);
		MPI_Isend(&x->out[i], 1, MPI_INT, partner, x->tag + i, MPI_COMM_WORLD, &x->requests[2 * i + 1]);
	}
	return MPI_SUCCESS;
}

static void exchange_done(struct contd_mpi_op *op, int status)
{
	struct exchange *x = op->data;

	x->status = status;
	x->where = pthread_self();
	atomic_fetch_add(&x->done, 1);
}

static void exchange_prepare(struct exchange *x, int tag, int messages, bool ignore)
{
	memset(x, 0, sizeof(*x));
	x->messages = messages;
	x->tag = tag;
	for (int i = 0; i < EACH; i++) {
		x->out[i] = 1000 * check_rank + tag + i;
		x->in[i] = -1;
	}
	x->op = (struct contd_mpi_op){.count = 2 * messages,
				      .requests = x->requests,
				      .statuses = ignore ? MPI_STATUSES_IGNORE : x->statuses,
				      .issue = exchange_issue,
				      .done = exchange_done,
				      .data = x};
}

__attribute__((unused)) static void exchange_check(const struct exchange *x)
{
	int partner = check_size - 1 - check_rank;

	CHECK_EQ(atomic_load(&x->done), 1);
	CHECK_EQ(x->status, MPI_SUCCESS);
	for (int i = 0; i < x->messages; i++) {
		CHECK_EQ(x->in[i], 1000 * partner + x->tag + i);
		CHECK(x->requests[2 * i] == MPI_REQUEST_NULL && x->requests[2 * i + 1] == MPI_REQUEST_NULL);
		if (x->op.statuses != MPI_STATUSES_IGNORE)
			CHECK_EQ(x->statuses[2 * i].MPI_TAG, x->tag + i);
	}
}

__attribute__((unused)) static void *lend(void *executor)
{
	CHECK(contd_executor_run(executor, 0, -1) >= 0);
	return NULL;
}

/* Until it is done, as a thread of the program that does nothing else. */
CHECK_HELPER void exchange_await(struct exchange *x)
{
	while (!atomic_load(&x->done))
		contd_poll(0);
}

#endif
