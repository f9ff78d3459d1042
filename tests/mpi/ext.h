/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the programs for Open MPI's continuations branch (ext_*.c): they know mpi-ext.h and mpi.h, in this
 * order, and nothing of contd. They are compiled as C and as C++, so check.h with its atomics is not for them.
 */
#ifndef CONTD_TESTS_MPI_EXT_H
#define CONTD_TESTS_MPI_EXT_H

/* Open MPI's and MPICH's C++ bindings would need further libraries. */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1

#include <mpi-ext.h>
#include <mpi.h>

#ifndef OMPI_HAVE_MPI_EXT_CONTINUE
#error "mpi-ext.h does not say that continuations are there"
#endif
/* The declarations of the MPI's own file must not be lost. */
#if defined(OPEN_MPI) && !defined(OMPI_HAVE_MPI_EXT)
#error "mpi-ext.h did not go on to Open MPI's own"
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXT_HELPER __attribute__((unused)) static

static int ext_rank, ext_size, ext_failures;

EXT_HELPER void ext_expect(long long got, long long wanted, const char *what, int line)
{
	if (got == wanted)
		return;
	if (__atomic_fetch_add(&ext_failures, 1, __ATOMIC_RELAXED) < 50)
		fprintf(stderr, "line %d: rank %d: %s is %lld, not %lld\n", line, ext_rank, what, got, wanted);
}

#define EXPECT_EQ(got, wanted) ext_expect((long long)(got), (long long)(wanted), #got, __LINE__)
#define EXPECT(cond) ext_expect(!!(cond), 1, #cond, __LINE__)
#define EXPECT_OK(call) EXPECT_EQ(call, MPI_SUCCESS)

/* Callbacks may run on any thread that calls MPI. */
EXT_HELPER int ext_add(int *counter, int n)
{
	return __atomic_add_fetch(counter, n, __ATOMIC_ACQ_REL);
}

EXT_HELPER int ext_read(const int *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* A program that hangs ends with SIGALRM. */
EXT_HELPER void ext_init(int *argc, char ***argv, int level)
{
	int provided;

	alarm(120);
	MPI_Init_thread(argc, argv, level, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &ext_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ext_size);
	if (provided < level) {
		MPI_Finalize();
		exit(77);
	}
}

EXT_HELPER int ext_fini(void)
{
	int mine = ext_read(&ext_failures), all = 0;

	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}

#endif
