/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library between contd and MPI that makes of it what MPICH is from 4.2 on: the call that asks for a persistent
 * request's status makes it inactive, as a test does. `forgets_told` counts how often it did.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#include <mpi.h>

#define PERSISTENT 64

extern int forgets_told;
int forgets_told;

static MPI_Request persistent[PERSISTENT];
static int count;

/* The MPI's own, by a name; dlsym(3) gives what is no function pointer in ISO C. */
#define REAL(name, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, "PMPI_" #name))

static int find(MPI_Request request)
{
	int i = 0;

	while (i < count && persistent[i] != request)
		i++;
	return i;
}

static void known(MPI_Request request)
{
	if (find(request) < count)
		return;
	if (count == PERSISTENT)
		abort();
	persistent[count++] = request;
}

int PMPI_Start(MPI_Request *request)
{
	known(*request);
	return REAL(Start, MPI_Request *)(request);
}

int PMPI_Startall(int n, MPI_Request requests[])
{
	for (int i = 0; i < n; i++)
		known(requests[i]);
	return REAL(Startall, int, MPI_Request[])(n, requests);
}

int PMPI_Request_free(MPI_Request *request)
{
	int i = find(*request);

	if (i < count)
		persistent[i] = persistent[--count];
	return REAL(Request_free, MPI_Request *)(request);
}

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	MPI_Request copy = request;
	int rc;

	if (request == MPI_REQUEST_NULL || find(request) == count)
		return REAL(Request_get_status, MPI_Request, int *, MPI_Status *)(request, flag, status);
	rc = REAL(Test, MPI_Request *, int *, MPI_Status *)(&copy, flag, status);
	forgets_told += *flag;
	return rc;
}
