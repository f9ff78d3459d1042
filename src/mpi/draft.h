/* SPDX-License-Identifier: BSD-3-Clause */
/* The draft interface with the callback of a binding. Contexts and errors are those of the public call. */
#ifndef CONTD_MPI_DRAFT_H
#define CONTD_MPI_DRAFT_H

#include <contd/mpi.h>

#include "base/api.h"
#include "mpi/binding.h"

/* As MPI_Continueall. If it fails nothing is called. */
CONTD_INTERNAL_API int contd__binding_continueall_draft(int count, MPI_Request requests[],
							const struct contd__binding *binding, MPI_Status *statuses,
							MPI_Request cont_req);

#endif
