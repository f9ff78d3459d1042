/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For bindings of other languages (src/fortran): the public calls of continuations and templates, with the callbacks of
 * such a language. Contexts and errors are those of the public calls.
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

/* As MPIX_Continueall. If it fails neither cb nor discard is called. */
CONTD_INTERNAL_API int contd__binding_continueall(int count, MPI_Request requests[],
						  const struct contd__binding *binding, int flags, MPI_Status *statuses,
						  MPI_Request cont_req);

/* The functions of a template, of any language. */
struct contd__gr_functions {
	void (*start)(void), (*push)(void), (*complete)(void), (*cancel)(void);
};

/* How a language calls them. */
struct contd__gr_calls {
	int (*start)(const struct contd__gr_functions *functions, void *extra_state);
	int (*push)(const struct contd__gr_functions *functions, void *extra_state);
	int (*complete)(const struct contd__gr_functions *functions, void *extra_state, MPI_Status *status);
	int (*cancel)(const struct contd__gr_functions *functions, void *extra_state, int complete);
};

/* As MPIX_Gr_init; `calls` must stay as long as the template. */
CONTD_INTERNAL_API int contd__binding_gr_init(const struct contd__gr_functions *functions,
					      const struct contd__gr_calls *calls, MPIX_Gr *gr);

/* As MPIX_Gr_begin, of any template; there(request, arg) is called before start_fn. */
CONTD_INTERNAL_API int contd__binding_gr_begin(MPIX_Gr gr, void *extra_state, MPI_Request *req,
					       void (*there)(MPI_Request request, void *arg), void *arg);

#endif
