/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "mpi/quirks.h"

struct contd__quirks contd__quirks;

void contd__quirks_find(void)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	PMPI_Get_library_version(version, &length);
	contd__quirks.open_mpi = strstr(version, "Open MPI") != NULL;
	contd__quirks.mpich = strstr(version, "MPICH") != NULL;
}
