/* SPDX-License-Identifier: BSD-3-Clause */
/* Between contd and MPI: an MPI that has no generalized request to give, now and then, and says so. */
#include <dlfcn.h>
#include <stddef.h>

#include "grequest_shim.h"

int shim_refuses, shim_refused;

int PMPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
			MPI_Grequest_cancel_function *cancel_fn, void *extra, MPI_Request *request)
{
	int (*next)(MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *, void *,
		    MPI_Request *);

	if (shim_refuses) {
		shim_refused++;
		PMPI_Comm_call_errhandler(MPI_COMM_SELF, shim_refuses);
		return shim_refuses;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "PMPI_Grequest_start");
	return next(query_fn, free_fn, cancel_fn, extra, request);
}
