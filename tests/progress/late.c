/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late LIBRARY: a program that is not linked with MPI, and loads it later, as an interpreter does. The progress library
 * stands in front of its calls all the same.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*init)(int *, char ***), (*finalize)(void);

	if (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
		printf("no library: %s\n", dlerror());
		return 1;
	}
	init = (int (*)(int *, char ***))dlsym(RTLD_DEFAULT, "MPI_Init");
	finalize = (int (*)(void))dlsym(RTLD_DEFAULT, "MPI_Finalize");
	if (!init || !finalize) {
		printf("no MPI_Init\n");
		return 1;
	}
	return init(NULL, NULL) || finalize();
}
