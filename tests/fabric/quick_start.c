/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that start libfabric very often: its verbs provider (1.17) reads the kernel's whole table of symbols
 * when it is loaded, 0.1 s of processor time in each process, to learn whether the memory of graphics cards can be
 * registered. No test uses such memory; so it is told that there is no table. This takes the place of libc's function
 * in the program that it is linked to and in its libraries.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *);

	if (strcmp(path, "/proc/kallsyms") == 0) {
		errno = ENOENT;
		return NULL;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "fopen");
	return next(path, mode);
}
