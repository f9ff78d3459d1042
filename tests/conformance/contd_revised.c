/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promises of contd's beyond the revised interface: PMPIX names, which the branch of Open MPI does not have, and
 * contd's mpi-ext.h, which may come before mpi.h.
 */
#include <mpi-ext.h>

#ifndef OMPI_HAVE_MPI_EXT_CONTINUE
#error "mpi-ext.h does not say that there are continuations"
#endif

#include "conformance.h"

#define TAG 92

static int count(int rc, void *data)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	atomic_fetch_add((atomic_int *)data, 1);
	return MPI_SUCCESS;
}

CONFORMANCE_TEST(s1_3_pmpix_names, 1, single, "The revised interface's functions have PMPIX names, which do the same")
{
	MPI_Request cr = MPI_REQUEST_NULL, op = pending(TAG);
	atomic_int runs = 0;
	void *data[1];
	int n = 1;

	face = face_revised;
	CHECK_OK(PMPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	again(&cr);
	CHECK_OK(PMPIX_Continue(&op, count, &runs, 0, MPI_STATUS_IGNORE, cr));
	CHECK(op == MPI_REQUEST_NULL);
	CHECK_OK(PMPIX_Continueall(1, &op, count, &runs, 0, MPI_STATUSES_IGNORE, cr));
	complete_pending(TAG);
	wait_cr(&cr);
	CHECK_EQ(runs, 2);
	CHECK_OK(PMPIX_Continue_get_failed(cr, &n, data));
	CHECK_EQ(n, 0);
	free_cr(&cr);
}

/* That this file was compiled is most of it. */
CONFORMANCE_TEST(s1_2_mpi_ext_header, 1, single,
		 "mpi-ext.h alone declares everything and defines OMPI_HAVE_MPI_EXT_CONTINUE")
{
	int (*init)(int, int, MPI_Info, MPI_Request *) = MPIX_Continue_init;
	MPI_Request cr = MPI_REQUEST_NULL;

	CHECK_EQ(OMPI_HAVE_MPI_EXT_CONTINUE, 1);
	CHECK_OK(init(MPIX_CONT_POLL_ONLY, 0, MPI_INFO_NULL, &cr));
	free_cr(&cr);
}
