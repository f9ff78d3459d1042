/* SPDX-License-Identifier: BSD-3-Clause */
/* The backend that a program gets that is linked with contd-mpi. Exits with 3 if contd cannot begin. */
#include <stdio.h>

#include <contd/mpi.h>

int main(int argc, char **argv)
{
	MPI_Request cr;
	int begun, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	begun = MPI_Continue_init(MPI_INFO_NULL, &cr) == MPI_SUCCESS;
	if (begun) {
		printf("%s\n", contd_mpi_backend(NULL));
		MPI_Request_free(&cr);
	}
	MPI_Finalize();
	return begun ? 0 : 3;
}
