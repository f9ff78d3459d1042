/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of apps/reqtrace: messages to oneself by MPI's functions with the tool before them, against what the tool
 * itself calls, in turns in one run. pair: a receive, a send and Waitall; many: 64 of each at a time; idle: a Testsome
 * of 64 receives that finds nothing. All operations are in the timeline. The program starts itself again, with the tool
 * preloaded.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/mpi.h>

#include "bench.h"

#define MANY 64
#define EVENTS 200000 /* of the tool's timeline: it keeps as many */

struct functions {
	int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*waitall)(int, MPI_Request *, MPI_Status *);
	int (*testsome)(int, MPI_Request *, int *, int *, MPI_Status *);
};

static const struct functions through = {MPI_Isend, MPI_Irecv, MPI_Waitall, MPI_Testsome};
static struct functions behind;

/* contd's, or what it leaves to MPI: the library that has the name next after the tool's. */
static void find_behind(void)
{
	Dl_info info;
	void *library;

	if (!dladdr(dlsym(RTLD_DEFAULT, "MPIX_Continue_init"), &info) || !strstr(info.dli_fname, "reqtrace") ||
	    !dladdr(dlsym(RTLD_DEFAULT, "PMPIX_Continue_init"), &info) ||
	    !(library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD))) {
		fprintf(stderr, "bench_mpi_self_reqtrace: the tool is not there\n");
		exit(1);
	}
	*(void **)&behind.isend = dlsym(library, "MPI_Isend");
	*(void **)&behind.irecv = dlsym(library, "MPI_Irecv");
	*(void **)&behind.waitall = dlsym(library, "MPI_Waitall");
	*(void **)&behind.testsome = dlsym(library, "MPI_Testsome");
	if (!behind.isend || !behind.irecv || !behind.waitall || !behind.testsome || behind.isend == through.isend)
		exit(1);
}

/* Nanoseconds a pair. */
static double messages(const struct functions *f, int count, int rounds)
{
	uint64_t begin = bench_now();
	MPI_Request requests[2 * MANY];
	int in[MANY], out = 1;

	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < count; i++)
			f->irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
		for (int i = 0; i < count; i++)
			f->isend(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[count + i]);
		f->waitall(2 * count, requests, MPI_STATUSES_IGNORE);
	}
	return (double)(bench_now() - begin) / rounds / count;
}

/* Nanoseconds a call. */
static double idle(const struct functions *f, MPI_Request *requests, int rounds)
{
	uint64_t begin = bench_now();
	int n, indices[MANY];

	for (int r = 0; r < rounds; r++)
		f->testsome(MANY, requests, &n, indices, MPI_STATUSES_IGNORE);
	return (double)(bench_now() - begin) / rounds;
}

static void tell(const char *name, const struct bench_pairs *p)
{
	struct bench_line line = {
		.bench = "bench_mpi_self_reqtrace", .name = name, .unit = "ratio", .direction = "max"};

	line.figure = bench_pairs_ratio(p);
	bench_print(&line, "\"with_ns\":%.1f,\"without_ns\":%.1f", bench_pairs_a(p), bench_pairs_b(p));
}

static void measure(unsigned batches)
{
	MPI_Request requests[MANY];
	struct bench_pairs pair, many, none;
	int in[MANY];

	bench_pairs_init(&pair, batches);
	bench_pairs_init(&many, batches);
	bench_pairs_init(&none, batches);
	messages(&through, MANY, 10);
	messages(&behind, MANY, 10);
	for (unsigned i = 0; i < batches; i++)
		bench_pairs_add(&pair, messages(&through, 1, 50), messages(&behind, 1, 50));
	for (unsigned i = 0; i < batches; i++)
		bench_pairs_add(&many, messages(&through, MANY, 1), messages(&behind, MANY, 1));
	for (int i = 0; i < MANY; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
	for (unsigned i = 0; i < batches; i++)
		bench_pairs_add(&none, idle(&through, requests, 20), idle(&behind, requests, 20));
	for (int i = 0; i < MANY; i++)
		MPI_Cancel(&requests[i]);
	MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
	tell("pair", &pair);
	tell("many", &many);
	tell("idle", &none);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--thread single|multiple]");
	const char *suffixes[] = {"txt", "json"};
	char prefix[64], path[80];
	int level;

	if (!getenv("BENCH_REQTRACE")) {
		snprintf(prefix, sizeof(prefix), "/tmp/bench_reqtrace.%ld", (long)getpid());
		setenv("BENCH_REQTRACE", prefix, 1);
		setenv("REQTRACE", prefix, 1);
		setenv("REQTRACE_FLUSH", "0", 1);
		setenv("LD_PRELOAD", REQTRACE_TOOL, 1);
		execv("/proc/self/exe", argv);
		perror("bench_mpi_self_reqtrace");
		return 1;
	}
	MPI_Init_thread(&argc, &argv,
			o.thread && !strcmp(o.thread, "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	find_behind();
	/* Each batch adds 2 x (50 + 64) operations. */
	measure(o.quick ? 100 : EVENTS / 250);
	MPI_Finalize();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s.%s", getenv("BENCH_REQTRACE"), suffixes[i]);
		unlink(path);
	}
	return 0;
}
