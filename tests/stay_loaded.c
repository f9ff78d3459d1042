/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI 4.1's MPI_Finalize unloads a component while its event thread may still run code of it. Any program may
 * crash then, though seldom (docs/clusters.md). This file is linked into tests and keeps the component in memory:
 * they fail only for reasons of contd's.
 */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((constructor)) static void stay_loaded(void)
{
	if (!dlopen(STAY_LOADED, RTLD_LAZY | RTLD_NODELETE))
		fprintf(stderr, "stay_loaded: %s\n", dlerror());
}
