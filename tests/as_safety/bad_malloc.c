/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that allocates deadlocks when it interrupted malloc. */
/* rejected: malloc */
#include <stdlib.h>

void *bad_malloc(size_t size);

void *bad_malloc(size_t size)
{
	return malloc(size);
}
