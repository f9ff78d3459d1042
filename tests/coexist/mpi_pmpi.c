/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library that is linked statically calls PMPI_ itself (pmpi_part.c), in a program whose threads are ticked: between
 * regions, with continuations of either kind pending all the time, and from a callback in a region.
 */
#include "coexist.h"

#include <contd/mpi.h>

#include "pmpi_part.h"

static int rank, size;
static atomic_int arrived;

static void on_arrival(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	atomic_fetch_add(&arrived, 1);
}

static long from_callback;
static MPI_Comm callback_comm;

static void calls_the_library(MPI_Status *status, void *data)
{
	from_callback = part_sum(callback_comm, rank);
	on_arrival(status, data);
}

static void use_the_library(MPI_Comm comm, int i)
{
	long all = (long)size * (size - 1) / 2;
	int from = (rank + size - 1) % size;

	CHECK_EQ(part_sum(comm, rank + i), all + (long)size * i);
	CHECK_EQ(part_ring(comm, rank + i), all + (long)size * i);
	CHECK_EQ(part_nonblocking(comm, from == rank ? i : rank + i, i % 8 ? 100 : 100000), (from + i) % 100);
}

int main(int argc, char **argv)
{
	MPI_Request safe, plain;
	struct contd_stats s;
	MPI_Comm comm;
	MPI_Info info;
	int level, expected = 0;
	static int in[2];

	MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &callback_comm);
	ticking_begin();
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	CHECK_EQ(MPI_Continue_init(info, &safe), MPI_SUCCESS);
	MPI_Info_free(&info);
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &plain), MPI_SUCCESS);
	for (int i = 0; i < 150; i++) {
		MPI_Request r[2];
		int out[2] = {i, -i}, from = (rank + size - 1) % size;

		MPI_Irecv(&in[0], 1, MPI_INT, from, 10, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(&in[1], 1, MPI_INT, from, 11, MPI_COMM_WORLD, &r[1]);
		CHECK_EQ(MPI_Continue(&r[0], on_arrival, NULL, MPI_STATUS_IGNORE, safe), MPI_SUCCESS);
		CHECK_EQ(MPI_Continue(&r[1], on_arrival, NULL, MPI_STATUS_IGNORE, plain), MPI_SUCCESS);
		use_the_library(comm, i);
		MPI_Send(&out[0], 1, MPI_INT, (rank + 1) % size, 10, MPI_COMM_WORLD);
		use_the_library(comm, i + 1);
		MPI_Send(&out[1], 1, MPI_INT, (rank + 1) % size, 11, MPI_COMM_WORLD);
		contd_compute_begin();
		COMPUTE_UNTIL(atomic_load(&arrived) == 2 * (i + 1));
		contd_compute_end();
		CHECK_EQ(in[0], i);
		CHECK_EQ(in[1], -i);
		CHECK_EQ(MPI_Wait(&safe, MPI_STATUS_IGNORE), MPI_SUCCESS);
		CHECK_EQ(MPI_Wait(&plain, MPI_STATUS_IGNORE), MPI_SUCCESS);
		expected += 2;
	}
	/* The library is called where the handler has interrupted a region. All ranks are there, so collectives
	 * work. */
	for (int i = 0; i < 30; i++) {
		MPI_Request r;

		from_callback = -1;
		MPI_Irecv(&in[0], 1, MPI_INT, (rank + size - 1) % size, 12, MPI_COMM_WORLD, &r);
		MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 12, MPI_COMM_WORLD);
		/* After the send, because it may run in this call, and wait there for the others' callbacks. */
		CHECK_EQ(MPI_Continue(&r, calls_the_library, NULL, MPI_STATUS_IGNORE, plain), MPI_SUCCESS);
		expected++;
		contd_compute_begin();
		COMPUTE_UNTIL(atomic_load(&arrived) == expected);
		contd_compute_end();
		CHECK_EQ(from_callback, (long)size * (size - 1) / 2);
		CHECK_EQ(MPI_Wait(&plain, MPI_STATUS_IGNORE), MPI_SUCCESS);
	}
	s = stats_now();
	CHECK_EQ(atomic_load(&arrived), expected);
	CHECK(s.run_region > 0);
	CHECK_EQ(MPI_Request_free(&safe), MPI_SUCCESS);
	CHECK_EQ(MPI_Request_free(&plain), MPI_SUCCESS);
	MPI_Comm_free(&comm);
	MPI_Comm_free(&callback_comm);
	MPI_Finalize();
	return 0;
}
