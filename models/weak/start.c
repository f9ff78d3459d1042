/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 2 */
/*
 * MPI starts contd: the backend is stored before contd is open. A thread that has seen contd open calls the backend.
 * (mpi/life.c: contd__store, contd__store_release(contd__mpi_open); all callers: contd__load_acquire.)
 */
#include "weak.h"

static int native;
static int *backend;
static uint32_t is_open;

static void *one(void *arg)
{
	contd__store(&backend, &native);
	if (MUTANT == 1)
		contd__store(&is_open, 1);
	else
		contd__store_release(&is_open, 1);
	return arg;
}

static void *two(void *arg)
{
	if (MUTANT == 2 ? contd__load(&is_open) : contd__load_acquire(&is_open))
		assert(contd__load(&backend) == &native);
	return arg;
}

int main(void)
{
	run_two();
	return 0;
}
