/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates of generalized requests for bindings of other languages; mpi.h has what programs in C call. */
#ifndef CONTD_TEMPLATE_TEMPLATE_H
#define CONTD_TEMPLATE_TEMPLATE_H

#include <mpi.h>

#include <contd/template.h>

#include "base/api.h"

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
