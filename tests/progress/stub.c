/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that has MPI in it, as one that is linked with a static library. */
#include <mpi.h>
#include <stdio.h>

int MPI_Init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	if (MPI_Init(&argc, &argv) || MPI_Finalize())
		return 1;
	printf("done\n");
	return 0;
}
