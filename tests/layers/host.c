/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host PLUGIN works|refused: linked with MPI alone, it loads the plug-in for itself. The native backend stands below
 * MPI's functions and works, in MPI_Finalize too; calls of the portable one would not come to contd, and it must say so
 * instead of hanging.
 */
#include <dlfcn.h>

#include <mpi.h>

#include "said.h"

int main(int argc, char **argv)
{
	int works = argc == 3 && strcmp(argv[2], "works") == 0, ran = 0, received = 0, rc, lines;
	int (*run)(int *, int *), (*leave)(int *);
	void *plugin;

	alarm(60);
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&run = dlsym(plugin, "plugin_run");
	for (int i = 0; i < 2; i++) {
		ran = received = 0;
		said_begin();
		rc = run(&ran, &received);
		lines = said_end();
		CHECK(rc == (works ? MPI_SUCCESS : MPI_ERR_OTHER));
		CHECK(ran == works && received == (works ? 42 : 0));
		CHECK(lines == !works);
		CHECK(works || (strstr(said, "do not come to contd") && strstr(said, "LD_PRELOAD")));
	}
	ran = 0;
	*(void **)&leave = dlsym(plugin, "plugin_leave");
	if (works)
		CHECK(leave(&ran) == MPI_SUCCESS && ran == 0);
	MPI_Finalize();
	CHECK(ran == works);
	return failures != 0;
}
