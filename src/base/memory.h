/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for ordinary threads. Builds for tests can make any one request fail (out-of-memory ladders). */
#ifndef CONTD_BASE_MEMORY_H
#define CONTD_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/atomic.h"

#ifdef CONTD_TESTPOINTS
/* Requests that still succeed; negative: all do. */
extern long contd__alloc_budget;
static inline bool contd__alloc_refused(void)
{
	if (contd__load(&contd__alloc_budget) > 0)
		contd__sub(&contd__alloc_budget, 1);
	else
		return contd__load(&contd__alloc_budget) == 0;
	return false;
}
#else
static inline bool contd__alloc_refused(void)
{
	return false;
}
#endif

static inline void *contd__zalloc(size_t bytes)
{
	return contd__alloc_refused() ? NULL : calloc(1, bytes);
}

static inline void *contd__memalign(size_t align, size_t bytes)
{
	return contd__alloc_refused() ? NULL : aligned_alloc(align, bytes);
}

static inline void *contd__map(size_t bytes)
{
	void *p = contd__alloc_refused()
			  ? MAP_FAILED
			  : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#endif
