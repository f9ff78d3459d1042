/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* one host: the ranks have memory in common */
/*
 * With MPI_THREAD_MULTIPLE one info key is enough: threads that know of contd nothing but MPI_Continue_init with
 * mpi_continue_async_signal_safe, and MPI_Continue, are interrupted while all of them compute, outside any region.
 * tests/coexist runs it with OpenMP's threads as well.
 */
#ifdef _OPENMP
#include <omp.h>
#endif

#include "one_key_common.h"

#define ROUNDS 4

static void arrived(MPI_Status *status, void *data)
{
	note_run(data, status);
	atomic_fetch_add(&total, 1);
}

/* A continuation request of the thread's own. Threads need not be the same ones in each round. */
static void receiver(int i)
{
	struct mine *m = &mine[i];
	MPI_Request r, cr;

	m->thread = pthread_self();
	cr = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	MPI_Irecv(m->buffer, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, arrived, m, &m->status, cr));
	CHECK(compute(i));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	static const int sizes[] = {0, 8, 64 << 10, LARGE};
	struct contd_stats s = {.size = sizeof(s)};

	one_key_begin(&argc, &argv, MPI_THREAD_MULTIPLE, THREADS_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		check_begin("all threads compute");
		round_begin(i + 1, sizes[i % 4]);
		if (check_rank == 0)
			send_when_all_compute();
		else
			run_threads(receiver);
		if (check_rank == 1)
			round_check();
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (check_rank == 1) {
		CHECK_EQ(contd_stats_get(&s), 0);
		CHECK_EQ(s.run_handler, ROUNDS * THREADS_MAX);
		CHECK_EQ(s.run, s.run_handler);
		CHECK_EQ(s.run_daemon, 0);
	}
	return check_fini();
}
