/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that closure.c has loaded before MPI_Init, and that MPI opens, too. */
#include <stdint.h>

void driver_computes(unsigned n, volatile uint32_t *flag);

void driver_computes(unsigned n, volatile uint32_t *flag)
{
	*flag = *flag + 1;
	for (volatile unsigned i = 0; i < n; i++)
		;
	*flag = *flag - 1;
}
