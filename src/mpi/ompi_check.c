/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled where Open MPI's development headers are: is the description in ompi.h right for them? */
#include "ompi_config.h"
#include "ompi/request/request.h"

#include "mpi/calls.h"
#include "mpi/ompi.h"

#define SAME(ours, theirs) \
	_Static_assert(offsetof(struct contd__ompi_request, ours) == offsetof(struct ompi_request_t, theirs) && \
			       sizeof(((struct contd__ompi_request *)0)->ours) == \
				       sizeof(((struct ompi_request_t *)0)->theirs), \
		       "src/mpi/ompi.h does not describe this Open MPI: " #theirs)

SAME(type, req_type);
SAME(status, req_status);
SAME(complete, req_complete);
SAME(state, req_state);
SAME(persistent, req_persistent);
SAME(f_to_c_index, req_f_to_c_index);
SAME(start, req_start);
SAME(free, req_free);
SAME(cancel, req_cancel);
SAME(complete_cb, req_complete_cb);
SAME(complete_cb_data, req_complete_cb_data);
SAME(object, req_mpi_object);
_Static_assert(sizeof(struct contd__ompi_request) == sizeof(struct ompi_request_t), "size of a request");
_Static_assert(sizeof(struct contd__request_functions) == sizeof(ompi_request_fns_t), "table of request functions");
_Static_assert(OMPI_TYPE_PML == (int)OMPI_REQUEST_PML && OMPI_TYPE_GEN == (int)OMPI_REQUEST_GEN &&
		       OMPI_TYPE_IO == (int)OMPI_REQUEST_IO && OMPI_TYPE_NULL == (int)OMPI_REQUEST_NULL,
	       "types of requests");
_Static_assert(OMPI_INVALID == (int)OMPI_REQUEST_INVALID && OMPI_INACTIVE == (int)OMPI_REQUEST_INACTIVE &&
		       OMPI_ACTIVE == (int)OMPI_REQUEST_ACTIVE,
	       "states of requests");
_Static_assert((uintptr_t)REQUEST_PENDING == (uintptr_t)OMPI_PENDING &&
		       (uintptr_t)REQUEST_COMPLETED == (uintptr_t)OMPI_COMPLETED,
	       "completion of requests");
