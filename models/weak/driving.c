/* SPDX-License-Identifier: BSD-3-Clause */
/* mutants: 4 */
/*
 * MPI ends: contd is closed, and the threads that are inside are waited for. A driver says that it is inside, and looks
 * whether contd is open. The end does not pass a driver. (mpi/life.c: contd__mpi_enter, contd__mpi_end.)
 */
#include "weak.h"

static uint32_t is_open = 1, driving, gone;

static void *one(void *arg)
{
	(void)UNLESS(1, contd__add(&driving, 1), ADD_RELAXED(&driving, 1));
	if (UNLESS(2, contd__load_seq(&is_open), contd__load(&is_open)))
		assert(!contd__load(&gone));
	contd__sub(&driving, 1);
	return arg;
}

static void *two(void *arg)
{
	if (MUTANT == 3)
		contd__store(&is_open, 0);
	else
		contd__store_seq(&is_open, 0);
	if (UNLESS(4, contd__load_seq(&driving), contd__load(&driving)) == 0)
		contd__store(&gone, 1);
	return arg;
}

int main(void)
{
	run_two();
	return 0;
}
