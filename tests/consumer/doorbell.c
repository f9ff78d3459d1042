/* SPDX-License-Identifier: BSD-3-Clause */
/* Knows nothing of contd; linked with the doorbell library, its sends go through it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

int main(int argc, char **argv)
{
	int sent = 42;
	int received = 0;
	Dl_info info = {0};

	MPI_Init(&argc, &argv);
	MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (!dladdr(dlsym(RTLD_DEFAULT, "MPI_Send"), &info) || !strstr(info.dli_fname, "libcontd-doorbell")) {
		fprintf(stderr, "MPI_Send is in %s\n", info.dli_fname ? info.dli_fname : "?");
		return 1;
	}
	return sent == received ? 0 : 1;
}
