/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdlib.h>

#include <mpi.h>

#include "behind.h"

int behind_refuse;
void (*behind_on_wait)(void);

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	int (*next)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *), code = behind_refuse;

	if (code && count) {
		behind_refuse = 0;
		PMPI_Comm_call_errhandler(comm, code);
		return code;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Isend");
	if (!next)
		abort();
	return next(buf, count, type, dest, tag, comm, request);
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int (*next)(MPI_Request *, MPI_Status *);

	if (behind_on_wait)
		behind_on_wait();
	*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Wait");
	if (!next)
		abort();
	return next(request, status);
}
