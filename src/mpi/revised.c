/* SPDX-License-Identifier: BSD-3-Clause */
/* The revised interface. Each function has its PMPIX name; the MPIX name is weak, for tools. */
#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/settings.h"
#include "mpi/attach.h"
#include "mpi/backend.h"
#include "mpi/binding.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/life.h"
#include "mpi/op_set.h"
#include "mpi/revised.h"
#include "mpi/settings.h"
#include "mpi/state.h"

CONTD_API int PMPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req)
{
	struct contd__settings s = {.attr = CONTD_GROUP_ATTR_INIT};
	int rc;

	static const char call[] = "MPIX_Continue_init";

	if (!contd__mpi_start(call, &rc))
		return rc;
	if (!cont_req)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "cont_req must not be NULL");
	if (max_poll < 0 && max_poll != MPI_UNDEFINED)
		return contd__mpi_refuse(call, MPI_ERR_ARG,
					 "max_poll must be positive, or 0 or MPI_UNDEFINED (no limit)");
	if (flags & MPIX_CONT_POLL_ONLY)
		s.attr.flags |= CONTD_POLL_ONLY;
	if (flags & MPIX_CONT_DEFER_COMPLETE)
		s.attr.flags |= CONTD_ENQUEUE_COMPLETE;
	s.attr.max_poll = max_poll > 0 ? max_poll : -1; /* 0 and MPI_UNDEFINED: no limit, in this interface */
	rc = contd__settings_read(info, &s);
	if (!rc)
		rc = contd__cr_make(&s, true, cont_req);
	return rc ? contd__mpi_refused(call, rc) : MPI_SUCCESS;
}

int MPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req)
	CONTD_WEAK_FOR(PMPIX_Continue_init);

/* Of C: its callback needs no closure. */
static int attach_c(const char *call, enum contd__names names, int count, MPI_Request requests[],
		    MPIX_Continue_cb_function *cb, void *cb_data, int flags, MPI_Status *statuses, bool ignore,
		    MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {.call = call,
					    .names = names,
					    .count = count,
					    .requests = requests,
					    .cb = (void (*)(void))cb,
					    .data = cb_data,
					    .statuses = statuses,
					    .ignore = ignore,
					    .revised = true,
					    .flags = flags,
					    .failed_data = cb_data};

	return contd__attach_to(&a, cont_req);
}

CONTD_API int PMPIX_Continue(MPI_Request *op_request, MPIX_Continue_cb_function *cb, void *cb_data, int flags,
			     MPI_Status *status, MPI_Request cont_req)
{
	/* MPI_STATUSES_IGNORE too, where it is another value: clients pass it here (pika). */
	bool ignore = status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE;

	return attach_c("MPIX_Continue", NAMES_ONE, 1, op_request, cb, cb_data, flags, status, ignore, cont_req);
}

int MPIX_Continue(MPI_Request *op_request, MPIX_Continue_cb_function *cb, void *cb_data, int flags, MPI_Status *status,
		  MPI_Request cont_req) CONTD_WEAK_FOR(PMPIX_Continue);

CONTD_API int PMPIX_Continueall(int count, MPI_Request array_of_op_requests[], MPIX_Continue_cb_function *cb,
				void *cb_data, int flags, MPI_Status *array_of_statuses, MPI_Request cont_req)
{
	return attach_c("MPIX_Continueall", NAMES_ALL, count, array_of_op_requests, cb, cb_data, flags,
			array_of_statuses, array_of_statuses == MPI_STATUSES_IGNORE, cont_req);
}

int MPIX_Continueall(int count, MPI_Request array_of_op_requests[], MPIX_Continue_cb_function *cb, void *cb_data,
		     int flags, MPI_Status *array_of_statuses, MPI_Request cont_req) CONTD_WEAK_FOR(PMPIX_Continueall);

int contd__binding_continueall(int count, MPI_Request requests[], const struct contd__binding *binding, int flags,
			       MPI_Status *statuses, MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {.call = binding->call,
					    .names = binding->one ? NAMES_ONE : NAMES_ALL,
					    .count = count,
					    .requests = requests,
					    .cb = (void (*)(void))binding->revised,
					    .data = binding->closure,
					    .statuses = statuses,
					    .ignore = statuses == MPI_STATUSES_IGNORE,
					    .revised = true,
					    .flags = flags,
					    .taken = binding->taken,
					    .failed_data = binding->data,
					    .discard = binding->discard};

	return contd__attach_to(&a, cont_req);
}

CONTD_API int PMPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data)
{
	struct contd__cr *cr;
	int rc;

	static const char call[] = "MPIX_Continue_get_failed";

	if (!contd__load_acquire(&contd__mpi_open) && !contd__mpi_start(call, &rc))
		return rc;
	if (!count)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "count must not be NULL");
	if (*count < 0)
		return contd__mpi_refuse(call, MPI_ERR_ARG,
					 "*count must not be negative: it is how many places cb_data has");
	if (*count && !cb_data)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "cb_data must not be NULL unless *count is 0");
	cr = contd__mpi->cr_of(cont_req);
	if (!cr)
		return contd__mpi_refuse(call, MPI_ERR_REQUEST, "cont_req is no continuation request");
	return contd__cr_get_failed(cr, count, cb_data);
}

int MPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data)
	CONTD_WEAK_FOR(PMPIX_Continue_get_failed);
