/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of the doorbell library while no bell is armed: two ranks that listen, and are in no region, toss a small
 * message
 * to and fro; by MPI's functions through the library, against MPI's own (of the MPI library itself), on MPI_COMM_WORLD
 * and on another communicator; and with one rank a message to oneself. The reaction to rings is bench_mpi_compute's.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <contd/contd.h>
#include <mpi.h>

#include "bench.h"

#define ROUNDS 100
#define TAG 7

struct functions {
	int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
	int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	int (*waitall)(int, MPI_Request *, MPI_Status *);
};

static const struct functions through = {MPI_Send, MPI_Recv, MPI_Isend, MPI_Irecv, MPI_Waitall};
static struct functions own;
static int rank, size;

static void find_own(void)
{
	Dl_info info;
	void *mpi;

	if (!dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &info) ||
	    !(mpi = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		exit(1);
	*(void **)&own.send = dlsym(mpi, "MPI_Send");
	*(void **)&own.recv = dlsym(mpi, "MPI_Recv");
	*(void **)&own.isend = dlsym(mpi, "MPI_Isend");
	*(void **)&own.irecv = dlsym(mpi, "MPI_Irecv");
	*(void **)&own.waitall = dlsym(mpi, "MPI_Waitall");
	if (!own.send || !own.recv || !own.isend || !own.irecv || !own.waitall || own.send == through.send)
		exit(1);
}

/* Nanoseconds a message. */
static double batch(const struct functions *f, MPI_Comm comm)
{
	uint64_t begin = bench_now();
	int in, out = 1;

	for (int r = 0; r < ROUNDS; r++) {
		MPI_Request requests[2];

		if (size == 1) {
			f->irecv(&in, 1, MPI_INT, 0, TAG, comm, &requests[0]);
			f->isend(&out, 1, MPI_INT, 0, TAG, comm, &requests[1]);
			f->waitall(2, requests, MPI_STATUSES_IGNORE);
			continue;
		}
		if (rank == 0)
			f->send(&out, 1, MPI_INT, 1, TAG, comm);
		f->recv(&in, 1, MPI_INT, 1 - rank, TAG, comm, MPI_STATUS_IGNORE);
		if (rank == 1)
			f->send(&out, 1, MPI_INT, 0, TAG, comm);
	}
	return (double)(bench_now() - begin) / ROUNDS / (size == 1 ? 1 : 2);
}

static void measure(const char *name, MPI_Comm comm, unsigned pairs)
{
	struct bench_line line = {.bench = "bench_mpi_ring",
				  .name = name,
				  .unit = "ratio",
				  .has_target = size > 1,
				  .target = 1.1,
				  .direction = "max"};
	struct bench_pairs p;

	bench_pairs_init(&p, pairs);
	for (unsigned i = 0; i < pairs + pairs / 4; i++) {
		double a = batch(&through, comm), b = batch(&own, comm);

		if (i >= pairs / 4) /* the first ones warm up processor and caches */
			bench_pairs_add(&p, a, b);
	}
	line.figure = bench_pairs_ratio(&p);
	if (rank == 0)
		bench_print(&line, "\"ring_ns\":%.1f,\"plain_ns\":%.1f", bench_pairs_a(&p), bench_pairs_b(&p));
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, NULL);
	unsigned pairs = o.quick ? 500 : 10000;
	MPI_Comm dup;

	/* contd-mpi would do this, but it is not here. */
	setenv("CONTD_JOB", "bench_mpi_ring", 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	bench_check(contd_init(NULL), "contd_init");
	bench_check(contd_bell_listen(getenv("CONTD_JOB"), (uint32_t)rank), "contd_bell_listen");
	find_own();
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	measure(size == 1 ? "self" : "world", MPI_COMM_WORLD, pairs);
	if (size > 1)
		measure("communicator", dup, pairs);
	MPI_Comm_free(&dup);
	MPI_Finalize();
	return 0;
}
