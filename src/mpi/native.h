/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native backend, on Open MPI's own requests.
 *
 * A CR is a request of Open MPI with separate functions req_start, req_free and req_cancel. So MPI_Start,
 * MPI_Request_free, MPI_Request_get_status, Fortran handles and all that works with requests works with it. Its
 * `complete` follows the group's count: cr_sync looks at the count under `lock` and sets the field. It is called when
 * the count leaves 0; when the count comes to 0, the next progress calls it (cr_idle). The lock is only tried: its
 * holder looks again when it lets go.
 *
 * Test* and Wait* come here because Open MPI's table of request functions is replaced; it lies below the PMPI layer, so
 * tools keep their place and calls by PMPI names come here too. An opal_progress callback runs continuations in all
 * other calls that make progress.
 */
#ifndef CONTD_MPI_NATIVE_H
#define CONTD_MPI_NATIVE_H

#include "mpi/backend.h"
#include "mpi/cr.h"
#include "mpi/ompi.h"

extern const struct contd__mpi_backend contd__mpi_native;

struct contd__native_cr {
	struct contd__ompi_request super;
	struct contd__cr cr;
	uint32_t lock;
	uint32_t again;
	uint32_t stale; /* in the list of CRs that may be complete without saying so */
	struct cds_lfs_node stale_node;
	uint32_t recheck; /* where the next look for missed callbacks begins */
};

#endif
