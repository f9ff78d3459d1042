/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For bindings of other languages (src/fortran): what a binding hands to the calls of draft.h and revised.h, and what
 * it asks of MPI.
 */
#ifndef CONTD_MPI_BINDING_H
#define CONTD_MPI_BINDING_H

#include <stdbool.h>

#include <contd/mpi.h>

#include "base/api.h"
#include "base/atomic.h"

/*
 * A continuation that a binding attaches. The binding keeps memory for it until it has run, so in the revised interface
 * it must also learn that it does not run.
 */
struct contd__binding {
	const char *call; /* the program's, for texts of errors: MPI_Continue or MPI_Continueall, or those with MPIX_ */
	bool one;         /* the former */
	MPI_Continue_cb_function *draft; /* the callback, of one of the interfaces */
	MPIX_Continue_cb_function *revised;
	/* Called inside the call that attaches, when the requests are as they stay, before all others. */
	void (*taken)(void *closure);
	void (*discard)(void *closure); /* called in place of `revised` if that does not run; contexts as of it */
	void *closure;                  /* what all are given */
	void *data;                     /* what MPIX_Continue_get_failed() gives */
};

/* Can MPI be called: between MPI_Init and MPI_Finalize, or with a session of the program's? */
CONTD_INTERNAL_API bool contd__binding_mpi_is_open(void);

/* A call fails: its name and what is wrong become the text, and the error handler of errors without an object is
 * called. Returns the class. */
CONTD_INTERNAL_API int contd__binding_refuse(const char *call, int class, const char *text);

#endif
