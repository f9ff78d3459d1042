/* SPDX-License-Identifier: BSD-3-Clause */
/* A header that an example includes. */
#ifndef CALL_GRAPH_INLINED_H
#define CALL_GRAPH_INLINED_H

#include <stdlib.h>

static inline __attribute__((always_inline)) void *inlined_get(size_t bytes)
{
	return malloc(bytes);
}

#endif
