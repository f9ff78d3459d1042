/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that attach a continuation, of both interfaces (draft.c, revised.c), after they have put their arguments
 * together. Inline, so that the compiler knows a->revised in each of them.
 *
 *     operation          thread  region's handler  progress
 *     contd__attach_to     yes         yes         as MPI_Continueall
 */
#ifndef CONTD_MPI_ATTACH_H
#define CONTD_MPI_ATTACH_H

#include "base/atomic.h"
#include "mpi/backend.h"
#include "mpi/continue.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/life.h"
#include "mpi/state.h"

/* MPI_SUCCESS, or what the call returns. Only the revised interface knows continuations without a CR. */
static inline int contd__attach_to(const struct contd__mpi_attach *a, MPI_Request cont_req)
{
	struct contd__cr *cr = NULL;
	struct contd_group *group;
	int rc;

	if (__builtin_expect(!contd__load_acquire(&contd__mpi_open), 0) && !contd__mpi_start(a->call, &rc))
		return rc;
	rc = contd__attach_check(a);
	if (__builtin_expect(rc, 0))
		return contd__mpi_refused(a->call, rc);
	if (a->revised && cont_req == MPI_REQUEST_NULL) {
		group = contd__mpi_loose(a->flags & CONTD_CONT_THREAD_ANY ? LOOSE_ANY : LOOSE);
		if (!group)
			return contd__mpi_refused(a->call, MPI_ERR_NO_MEM);
	} else {
		cr = contd__mpi->cr_of(cont_req);
		if (!cr)
			return contd__mpi_refuse(
				a->call, MPI_ERR_REQUEST,
				a->revised ? "cont_req is no continuation request; make it with MPIX_Continue_init, "
					     "or give MPI_REQUEST_NULL"
					   : "cont_req is no continuation request; make it with MPI_Continue_init");
		group = cr->group;
	}
	rc = contd__attach(a, cr, group);
	return __builtin_expect(rc, 0) ? contd__mpi_refused(a->call, rc) : MPI_SUCCESS;
}

#endif
