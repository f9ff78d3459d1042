/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For bindings of other languages (src/fortran): the public calls of continuations, with the callbacks of such a
 * language. Contexts and errors are those of the public calls.
 */
#ifndef CONTD_MPI_BINDING_H
#define CONTD_MPI_BINDING_H

#include <contd/mpi.h>

#include "base/api.h"
#include "base/atomic.h"

/*
 * A continuation of the revised interface that a binding attaches. The binding keeps memory for it until it has run, so
 * it must also learn that it does not run.
 */
struct contd__binding {
	MPIX_Continue_cb_function *cb;
	void (*discard)(void *closure); /* called in place of cb if that does not run; contexts as of cb */
	void *closure;                  /* what both are given */
	void *data;                     /* what MPIX_Continue_get_failed() gives */
};

/* Can MPI be called: between MPI_Init and MPI_Finalize, or with a session of the program's? */
CONTD_INTERNAL_API bool contd__binding_mpi_is_open(void);

/* To the error handler of errors without an object; returns the class. */
CONTD_INTERNAL_API int contd__binding_error(int class);

/* As MPIX_Continueall. If it fails neither cb nor discard is called. */
CONTD_INTERNAL_API int contd__binding_continueall(int count, MPI_Request requests[],
						  const struct contd__binding *binding, int flags, MPI_Status *statuses,
						  MPI_Request cont_req);

#endif
