/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank, many pending receives from itself, each with a separate tag and continuation: from the sending of a
 * message that one of them waits for, until its continuation has run and the call that ran it has returned, against the
 * same where it is the only one. Beside it, what a loop of PMPI_Testsome over all the requests takes to find that one.
 *
 * Open MPI's own search for the receive that matches is the same in both: the receive that is measured is the only one
 * on its communicator, and all the others are on another, where nothing is sent meanwhile. Queues are per communicator
 * and sender. The others are fulfilled in the order in which they were posted, so that each is found first then.
 *
 * "One" and "many" are measured in turns. The cost of one clock reading is subtracted from both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/mpi.h>

#include "bench.h"

#define MANY 100000 /* the one that is measured among them */
#define TAG 7

static MPI_Comm quiet = MPI_COMM_NULL; /* of the others */
static MPI_Comm busy = MPI_COMM_NULL;  /* of the one */
static MPI_Request cr = MPI_REQUEST_NULL;
static bool revised; /* cr is of the revised interface */
static MPI_Request requests[MANY];
static int values[MANY];
static int value, ran;
static unsigned wrong;
static double clock_ns;

static void callback(MPI_Status *status, void *data)
{
	(void)status;
	ran++;
	wrong += *(int *)data != TAG;
}

static int revised_callback(int rc, void *data)
{
	(void)rc;
	callback(MPI_STATUS_IGNORE, data);
	return MPI_SUCCESS;
}

/* Mean of the middle half of the samples: a clock may tick as slowly as every 10 ns, and a median with it. */
static double middle(double *v, unsigned n)
{
	unsigned from = n / 4, to = n - n / 4;
	double sum = 0;

	bench_median(v, n); /* sorts */
	for (unsigned i = from; i < to; i++)
		sum += v[i];
	return sum / (to - from);
}

static void measure_clock(void)
{
	double v[4000];

	for (int i = 0; i < 4000; i++) {
		uint64_t begin = bench_now();

		v[i] = (double)(bench_now() - begin);
	}
	clock_ns = middle(v, 4000);
}

/* ----------------------------------------------------------------------------------------------- continuations --- */

static void attach(MPI_Request *request, int *data)
{
	if (revised)
		MPIX_Continue(request, revised_callback, data, 0, MPI_STATUS_IGNORE, cr);
	else
		MPI_Continue(request, callback, data, MPI_STATUS_IGNORE, cr);
}

/* A revised one becomes inactive when it is reported complete. */
static void start_again(int reported)
{
	if (revised && reported)
		MPI_Start(&cr);
}

static void attach_others(int n)
{
	for (int i = 1; i < n; i++) {
		MPI_Request request;

		MPI_Irecv(&values[i], 1, MPI_INT, 0, i, quiet, &request);
		attach(&request, &values[i]);
	}
}

static void fulfil_others(int n)
{
	const int out = TAG;

	ran = 0;
	for (int i = 1; i < n; i++)
		MPI_Send(&out, 1, MPI_INT, 0, i, quiet);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	wrong += ran != n - 1;
}

/* ns. n: how many are pending, the one that is measured included. */
static double continuations(int n, double *samples, unsigned count)
{
	const int out = TAG;

	attach_others(n);
	for (unsigned s = 0; s < count; s++) {
		MPI_Request request;
		uint64_t begin;
		int done = 0;

		value = 0;
		MPI_Irecv(&value, 1, MPI_INT, 0, TAG, busy, &request);
		attach(&request, &value);
		ran = 0;
		begin = bench_now();
		MPI_Send(&out, 1, MPI_INT, 0, TAG, busy);
		while (!ran)
			MPI_Test(&cr, &done, MPI_STATUS_IGNORE);
		samples[s] = (double)(bench_now() - begin) - clock_ns;
		start_again(done);
	}
	fulfil_others(n);
	start_again(true);
	return middle(samples, count);
}

/* ---------------------------------------------------------------------------------------------------- Testsome --- */

static double testsome(int n, double *samples, unsigned count)
{
	static int indices[MANY];
	const int out = TAG;
	int found;

	for (int i = 1; i < n; i++)
		MPI_Irecv(&values[i], 1, MPI_INT, 0, i, quiet, &requests[i]);
	for (unsigned s = 0; s < count; s++) {
		uint64_t begin;

		MPI_Irecv(&value, 1, MPI_INT, 0, TAG, busy, &requests[0]);
		begin = bench_now();
		MPI_Send(&out, 1, MPI_INT, 0, TAG, busy);
		do
			PMPI_Testsome(n, requests, &found, indices, MPI_STATUSES_IGNORE);
		while (found == 0);
		samples[s] = (double)(bench_now() - begin) - clock_ns;
		wrong += found != 1 || indices[0] != 0;
	}
	for (int i = 1; i < n; i++)
		MPI_Send(&out, 1, MPI_INT, 0, i, quiet);
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	return middle(samples, count);
}

/* --------------------------------------------------------------------------------------------------------- main --- */

/* One line: MANY pending against one. */
static void compare(const char *level, unsigned turns, double *v, unsigned samples)
{
	struct bench_pairs p;
	char name[64];

	continuations(MANY, v, samples); /* memory is there after this */
	bench_pairs_init(&p, turns);
	for (unsigned i = 0; i < turns; i++) {
		double many = continuations(MANY, v, samples);

		bench_pairs_add(&p, many, continuations(1, v, samples));
	}
	snprintf(name, sizeof(name), "%s%s", level, revised ? ", revised" : "");
	bench_print(&(struct bench_line){.bench = "bench_mpi_one_of_many",
					 .name = name,
					 .figure = bench_pairs_ratio(&p),
					 .unit = "ratio",
					 .has_target = true,
					 .target = 1.1,
					 .direction = "max"},
		    "\"many\":%d,\"many_ns\":%.1f,\"one_ns\":%.1f", MANY, bench_pairs_a(&p), bench_pairs_b(&p));
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple]");
	unsigned turns = o.quick ? 3 : 60, samples = 2000, some_turns = o.quick ? 1 : 10, some_samples = 20;
	bool multiple = o.thread && strcmp(o.thread, "multiple") == 0;
	int want = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level;
	double *v = malloc(samples * sizeof(v[0]));
	struct bench_pairs some;

	MPI_Init_thread(&argc, &argv, want, &level);
	if (level < want || !v) {
		fprintf(stderr, "bench_mpi_one_of_many: needs the thread level that was asked for, and memory\n");
		return 1;
	}
	MPI_Comm_dup(MPI_COMM_SELF, &quiet);
	MPI_Comm_dup(MPI_COMM_SELF, &busy);
	measure_clock();
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	compare(multiple ? "multiple" : "single", turns, v, samples);
	MPI_Request_free(&cr);
	revised = true;
	MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr);
	MPI_Start(&cr);
	compare(multiple ? "multiple" : "single", turns, v, samples);
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	MPI_Request_free(&cr);

	testsome(MANY, v, 1);
	bench_pairs_init(&some, some_turns);
	for (unsigned i = 0; i < some_turns; i++) {
		double many = testsome(MANY, v, some_samples);

		bench_pairs_add(&some, many, testsome(1, v, samples));
	}
	bench_print(&(struct bench_line){.bench = "bench_mpi_one_of_many",
					 .name = multiple ? "multiple, Testsome" : "single, Testsome",
					 .figure = bench_pairs_ratio(&some),
					 .unit = "ratio",
					 .direction = "max"},
		    "\"many\":%d,\"many_ns\":%.1f,\"one_ns\":%.1f", MANY, bench_pairs_a(&some), bench_pairs_b(&some));

	MPI_Comm_free(&busy);
	MPI_Comm_free(&quiet);
	MPI_Finalize();
	free(v);
	if (wrong) {
		fprintf(stderr, "bench_mpi_one_of_many: %u messages or continuations went wrong\n", wrong);
		return 1;
	}
	return 0;
}
