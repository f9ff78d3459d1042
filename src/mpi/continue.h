/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching a continuation, the same for both backends and both interfaces. */
#ifndef CONTD_MPI_CONTINUE_H
#define CONTD_MPI_CONTINUE_H

#include <stdbool.h>

#include "dispatch/slot.h"
#include "mpi/backend.h"
#include "mpi/cr.h"

/* What is wrong with the arguments: an MPI error class, and its text; or MPI_SUCCESS. */
int contd__attach_wrong(const struct contd__mpi_attach *a);

/* The same: usable ones are found to be so at once. */
static inline int contd__attach_check(const struct contd__mpi_attach *a)
{
	bool usable = a->count >= 0 && (uint32_t)a->count <= SLOT_REMAINING_MAX - 8 && a->cb &&
		      (a->count == 0 || (a->requests && (a->statuses || a->ignore)));

	return __builtin_expect(usable, 1) ? MPI_SUCCESS : contd__attach_wrong(a);
}

/* MPI error class, and the text; on failure nothing has changed. cr may be NULL: then the group is the loose one. */
int contd__attach(const struct contd__mpi_attach *a, struct contd__cr *cr, struct contd_group *group);

#endif
