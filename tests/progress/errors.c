/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's errors of the loader. dlerror(3) says what has failed, as without the progress library: it may ask the
 * loader in between, for itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(const char *what, bool error)
{
	const char *text = dlerror();

	if ((text != NULL) != error) {
		printf("%s: %s\n", what, text ? text : "no error");
		failures++;
	}
	if (dlerror()) {
		printf("%s: the error comes twice\n", what);
		failures++;
	}
}

static void refuse(const char *path)
{
	if (dlopen(path, RTLD_NOW)) {
		printf("%s is there\n", path);
		failures++;
	}
}

int main(int argc, char **argv)
{
	struct dirent **list = NULL;
	int n, flag;

	MPI_Init(&argc, &argv);
	refuse("libthere-is-no-such.so.1");
	check("by name", true);
	refuse("libthere-is-no-such.so.1");
	refuse("/there/is/no/such.so");
	check("by path", true);
	refuse("libthere-is-no-such.so.2");
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	check("after a call of MPI", true);
	refuse("libthere-is-no-such.so.3");
	n = scandir("/", &list, NULL, NULL); /* for the first time */
	check("after another function", true);
	refuse("libthere-is-no-such.so.4");
	MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	if (!dlopen("libc.so.6", RTLD_NOW))
		failures++;
	check("after a success", false);
	dlsym(RTLD_DEFAULT, "there_is_no_such_function");
	check("dlsym", true);
	while (n > 0)
		free(list[--n]);
	free(list);
	MPI_Finalize();
	return failures != 0;
}
