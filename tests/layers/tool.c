/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool as MPI's profiling interface has them: it defines MPI_ names, counts, and goes on by PMPI_ names. */
#include "tool.h"

/* TOOL_COUNTS: front_counts or behind_counts, so that one program can have both. */
extern int TOOL_COUNTS[TOOL_COUNT];
int TOOL_COUNTS[TOOL_COUNT];

#define TOOL_DEFINE(name, parameters, arguments) \
	int MPI_##name parameters \
	{ \
		__atomic_fetch_add(&TOOL_COUNTS[TOOL_##name], 1, __ATOMIC_RELAXED); \
		return PMPI_##name arguments; \
	}
TOOL_CALLS(TOOL_DEFINE)
