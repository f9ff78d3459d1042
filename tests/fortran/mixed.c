/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of f08_mixed.f90 that is in C, with handles of Fortran's. */
#include <contd/mpi.h>

int mixed_attach(MPI_Fint cr, MPI_Aint data);
int mixed_get_failed(MPI_Fint cr, int *count, void **data);
int mixed_begin(MPI_Aint gr, MPI_Aint extra_state, MPI_Fint *request);

static int fails(int rc, void *data)
{
	(void)rc, (void)data;
	return MPI_ERR_BUFFER;
}

int mixed_attach(MPI_Fint cr, MPI_Aint data)
{
	MPI_Request none = MPI_REQUEST_NULL;

	return MPIX_Continue(&none, fails, (void *)data, 0, MPI_STATUS_IGNORE, MPI_Request_f2c(cr));
}

int mixed_get_failed(MPI_Fint cr, int *count, void **data)
{
	return MPIX_Continue_get_failed(MPI_Request_f2c(cr), count, data);
}

int mixed_begin(MPI_Aint gr, MPI_Aint extra_state, MPI_Fint *request)
{
	MPI_Request c_request = MPI_REQUEST_NULL;
	int rc = MPIX_Gr_begin((MPIX_Gr)gr, (void *)extra_state, &c_request);

	*request = MPI_Request_c2f(c_request);
	return rc;
}
