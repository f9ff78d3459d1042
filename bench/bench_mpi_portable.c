/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks, each with a window of receives from the other (or one rank, from itself). For each message its receive is
 * posted again, and another message is sent. This is done by continuations on the portable backend, and by a loop of
 * MPI's own Testsome over the same window. Both sides have as many messages under way as the window has places. All
 * messages have one tag, because the time that MPI takes to find the matching receive is not to be measured here.
 *
 * bench_mpi_portable uses Open MPI, with the portable backend instead of the native one; bench_mpi_portable_mpich uses
 * MPICH.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <contd/mpi.h>

#include "bench.h"

#define WIDEST 1024
#define TAG 7
#define BATCH 256 /* so many messages come in a batch, or ROUNDS times the window */
#define ROUNDS 4

static const int out = TAG;
static int rank, size, peer, width;
static MPI_Request cr = MPI_REQUEST_NULL;
static int in[WIDEST], places[WIDEST];
static MPI_Request requests[WIDEST];
static int indices[WIDEST];
static int messages, to_post; /* in this batch */
static unsigned long came, expected, wrong;

typedef int(send_function)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

/* MPI's own, not those of contd that stand before them. */
static int (*bare_testsome)(int, MPI_Request[], int *, int[], MPI_Status[]);
static send_function *bare_send;

static void find_bare(void)
{
	Dl_info info;
	/* contd does not stand before this one. */
	void *mpi = dladdr((void *)MPI_Comm_rank, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;

	if (mpi) {
		*(void **)&bare_testsome = dlsym(mpi, "PMPI_Testsome");
		*(void **)&bare_send = dlsym(mpi, "PMPI_Send");
	}
	if (!bare_testsome || !bare_send || (void *)bare_testsome == (void *)PMPI_Testsome) {
		fprintf(stderr, "bench_mpi_portable: cannot find MPI's own functions\n");
		exit(1);
	}
}

static void post(int place, MPI_Request *request)
{
	MPI_Irecv(&in[place], 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, request);
}

/* False: enough are under way. */
static bool goes_on(int place)
{
	came++;
	wrong += in[place] != TAG;
	in[place] = 0;
	return to_post > 0 && to_post--;
}

static void send_first(send_function *send)
{
	for (int i = 0; i < width; i++)
		send(&out, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
}

/* ----------------------------------------------------------------------------------------------------- variants --- */

static void callback(MPI_Status *status, void *data);

static void post_and_attach(int place)
{
	MPI_Request request;

	post(place, &request);
	MPI_Continue(&request, callback, &places[place], MPI_STATUS_IGNORE, cr);
}

static void callback(MPI_Status *status, void *data)
{
	int place = *(int *)data;

	(void)status;
	if (goes_on(place)) {
		post_and_attach(place);
		MPI_Send(&out, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
	}
}

static void by_continuations(void)
{
	int done = 0;

	for (int i = 0; i < width; i++)
		post_and_attach(i);
	send_first(MPI_Send);
	while (!done)
		MPI_Test(&cr, &done, MPI_STATUS_IGNORE);
}

static void by_testsome(void)
{
	int missing = messages, found;

	for (int i = 0; i < width; i++)
		post(i, &requests[i]);
	send_first(bare_send);
	while (missing) {
		bare_testsome(width, requests, &found, indices, MPI_STATUSES_IGNORE);
		for (int i = 0; i < found; i++) {
			missing--;
			if (goes_on(indices[i])) {
				post(indices[i], &requests[indices[i]]);
				bare_send(&out, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
			}
		}
	}
}

/* ns a message. */
static double batch(void (*variant)(void))
{
	uint64_t start;

	to_post = messages - width;
	expected += (unsigned long)messages;
	MPI_Barrier(MPI_COMM_WORLD);
	start = bench_now();
	variant();
	return (double)(bench_now() - start) / messages;
}

/* --------------------------------------------------------------------------------------------------------- main --- */

static void measure(unsigned pairs)
{
	struct bench_pairs p;
	char name[64];

	messages = width * ROUNDS < BATCH ? BATCH : width * ROUNDS;
	batch(by_continuations);
	batch(by_testsome);
	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs; i++) {
		double a = batch(by_continuations);

		bench_pairs_add(&p, a, batch(by_testsome));
	}
#ifdef OPEN_MPI
	snprintf(name, sizeof(name), "Open MPI, %d rank%s, %d pending", size, size == 1 ? "" : "s", width);
#else
	snprintf(name, sizeof(name), "MPICH, %d rank%s, %d pending", size, size == 1 ? "" : "s", width);
#endif
	if (rank == 0)
		bench_print(&(struct bench_line){.bench = "bench_mpi_portable",
						 .name = name,
						 .figure = bench_pairs_ratio(&p),
						 .unit = "ratio",
						 .has_target = true,
						 .target = 2.0,
						 .direction = "max"},
			    "\"contd_ns\":%.1f,\"testsome_ns\":%.1f", bench_pairs_a(&p), bench_pairs_b(&p));
	bench_pairs_fini(&p);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	unsigned pairs = o.quick ? 5 : 101;
	unsigned long wrong_all;

	find_bare();
	setenv("CONTD_MPI_BACKEND", "portable", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > 2) {
		fprintf(stderr, "bench_mpi_portable: needs 1 or 2 ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	peer = size - 1 - rank;
	for (int i = 0; i < WIDEST; i++)
		places[i] = i;
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	for (width = 1; width <= WIDEST; width *= width == 1 ? 16 : 4)
		measure(pairs);
	MPI_Request_free(&cr);
	wrong += came != expected;
	MPI_Reduce(&wrong, &wrong_all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0 && wrong_all)
		fprintf(stderr, "bench_mpi_portable: %lu messages were wrong or missing\n", wrong_all);
	return wrong || (rank == 0 && wrong_all);
}
