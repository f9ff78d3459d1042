/* SPDX-License-Identifier: BSD-3-Clause */
/* A tool that is linked with contd, and asks about requests before it has MPI wait for them. */
#include <contd/mpi.h>

int asker_asked(void);
int asker_cr(void);

static int asked;

int asker_asked(void)
{
	return asked;
}

/* Makes a CR and frees it: the error class. */
int asker_cr(void)
{
	MPI_Request cr;
	int rc = MPI_Continue_init(MPI_INFO_NULL, &cr);

	return rc == MPI_SUCCESS ? MPI_Request_free(&cr) : rc;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	int flag = 0, rc = MPI_SUCCESS;

	while (!rc && !flag)
		rc = MPIX_Request_get_status_all(count, requests, &flag, MPI_STATUSES_IGNORE);
	asked++;
	return rc ? rc : PMPI_Waitall(count, requests, statuses);
}

/* MPI must find the same. */
int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	int flag = 0, rc = MPI_SUCCESS, found;

	while (!rc && !flag)
		rc = MPIX_Request_get_status_any(count, requests, &found, &flag, MPI_STATUS_IGNORE);
	if (!rc)
		rc = PMPI_Waitany(count, requests, index, status);
	asked += !rc && found == *index;
	return rc;
}

int MPI_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	int found = 0, rc = MPI_SUCCESS;

	while (!rc && !found)
		rc = MPIX_Request_get_status_some(incount, requests, &found, indices, statuses);
	if (!rc)
		rc = PMPI_Waitsome(incount, requests, outcount, indices, statuses);
	asked += !rc && found == *outcount;
	return rc;
}
