/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool as in figure 3 of the paper on status queries: consistent, but the program is another one with it, because
 * what the completion of one request brings about completes others in the same call.
 */
#include <mpi.h>

int MPI_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	MPI_Status status;
	int flag, active = 0;

	*outcount = 0;
	for (int i = 0; i < incount; i++) {
		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		active = 1;
		PMPI_Request_get_status(requests[i], &flag, &status);
		if (!flag)
			continue;
		PMPI_Wait(&requests[i], &status);
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[*outcount] = status;
		indices[(*outcount)++] = i;
	}
	if (!active)
		*outcount = MPI_UNDEFINED;
	return MPI_SUCCESS;
}
