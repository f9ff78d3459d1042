/* SPDX-License-Identifier: BSD-3-Clause */
/* The draft interface. Each function has its PMPI name; the MPI name is weak, for tools. */
#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/settings.h"
#include "mpi/attach.h"
#include "mpi/backend.h"
#include "mpi/binding.h"
#include "mpi/draft.h"
#include "mpi/error.h"
#include "mpi/life.h"
#include "mpi/settings.h"

CONTD_API int PMPI_Continue_init(MPI_Info info, MPI_Request *cont_req)
{
	struct contd__settings s = {.attr = CONTD_GROUP_ATTR_INIT};
	int rc;

	static const char call[] = "MPI_Continue_init";

	if (!contd__mpi_start(call, &rc))
		return rc;
	if (!cont_req)
		return contd__mpi_refuse(call, MPI_ERR_ARG, "cont_req must not be NULL");
	rc = contd__settings_read(info, &s);
	if (!rc)
		rc = contd__cr_make(&s, false, cont_req);
	return rc ? contd__mpi_refused(call, rc) : MPI_SUCCESS;
}

int MPI_Continue_init(MPI_Info info, MPI_Request *cont_req) CONTD_WEAK_FOR(PMPI_Continue_init);

CONTD_API int PMPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
			    MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {.call = "MPI_Continue",
					    .names = NAMES_ONE,
					    .count = 1,
					    .requests = op_request,
					    .cb = (void (*)(void))cb,
					    .data = cb_data,
					    .statuses = status,
					    .ignore = status == MPI_STATUS_IGNORE};

	return contd__attach_to(&a, cont_req);
}

int MPI_Continue(MPI_Request *op_request, MPI_Continue_cb_function *cb, void *cb_data, MPI_Status *status,
		 MPI_Request cont_req) CONTD_WEAK_FOR(PMPI_Continue);

CONTD_API int PMPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb,
			       void *cb_data, MPI_Status *array_of_statuses, MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {.call = "MPI_Continueall",
					    .names = NAMES_ALL,
					    .count = count,
					    .requests = array_of_op_requests,
					    .cb = (void (*)(void))cb,
					    .data = cb_data,
					    .statuses = array_of_statuses,
					    .ignore = array_of_statuses == MPI_STATUSES_IGNORE};

	return contd__attach_to(&a, cont_req);
}

int MPI_Continueall(int count, MPI_Request array_of_op_requests[], MPI_Continue_cb_function *cb, void *cb_data,
		    MPI_Status *array_of_statuses, MPI_Request cont_req) CONTD_WEAK_FOR(PMPI_Continueall);

int contd__binding_continueall_draft(int count, MPI_Request requests[], const struct contd__binding *binding,
				     MPI_Status *statuses, MPI_Request cont_req)
{
	const struct contd__mpi_attach a = {.call = binding->call,
					    .names = binding->one ? NAMES_ONE : NAMES_ALL,
					    .count = count,
					    .requests = requests,
					    .cb = (void (*)(void))binding->draft,
					    .data = binding->closure,
					    .statuses = statuses,
					    .ignore = statuses == MPI_STATUSES_IGNORE,
					    .taken = binding->taken};

	return contd__attach_to(&a, cont_req);
}
