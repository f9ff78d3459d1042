/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry points of continuations. What mpi_f08 calls are other names of the same functions: see fortran.h.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fortran/fortran.h"
#include "rcu/atomic.h"

/* -------------------------------------------------------------------------------------- what only Fortran knows --- */

void contd__f_constants_mpif(void);
void contd__f_constants_f08(void);
void contd__f_ignored_(const void *status_ignore, const void *statuses_ignore, const MPI_Fint *status_size);

static pthread_once_t constants_once = PTHREAD_ONCE_INIT;
static const void *ignored[4]; /* MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE of both bindings, which may be the same */
static int ignored_count;

/* Called by the two of constants.f90. */
void contd__f_ignored_(const void *status_ignore, const void *statuses_ignore, const MPI_Fint *status_size)
{
	ignored[ignored_count++] = status_ignore;
	ignored[ignored_count++] = statuses_ignore;
	contd__f_status_size = *status_size;
}

static void constants_get(void)
{
	contd__f_constants_mpif();
	contd__f_constants_f08();
}

bool contd__f_is_ignored(const void *statuses)
{
	pthread_once(&constants_once, constants_get);
	for (int i = 0; i < ignored_count; i++)
		if (statuses == ignored[i])
			return true;
	return false;
}

/* ------------------------------------------------------------------------------------------------------- errors --- */

bool contd__f_mpi_runs(void)
{
	int initialized = 0, finalized = 0;

	PMPI_Initialized(&initialized);
	PMPI_Finalized(&finalized);
	return initialized && !finalized;
}

int contd__f_error(int class)
{
	PMPI_Comm_call_errhandler(MPI_COMM_SELF, class);
	return class;
}

/* ---------------------------------------------------------------------------------------------------- attaching --- */

/* All at once, so that none is taken out that another thread is just looking at; pairs with contd__f_release. */
static void collect(void)
{
	struct contd__f_record *r, *next;

	if (!contd__load(&contd__f_spent))
		return;
	for (r = contd__xchg(&contd__f_spent, NULL); r; r = next) {
		next = r->next;
		free(r);
	}
}

/* An MPI error class; on failure nothing has changed. */
static int attach(int count, MPI_Fint requests[], contd__f_callback *cb, MPI_Aint data, MPI_Fint statuses[],
		  MPI_Fint cont_request)
{
	MPI_Request few[FEW], *c_requests = few;
	struct contd__f_handles handles = {.count = count, .c_null = MPI_REQUEST_NULL, .fortran = requests};
	bool ignore = contd__f_is_ignored(statuses);
	struct contd__f_record *r;
	int rc;

	if (!contd__f_mpi_runs() || count < 0)
		return PMPI_Continueall(count, NULL, contd__f_run, NULL, NULL, MPI_REQUEST_NULL);
	if (!cb || (count && (!requests || !statuses)))
		return contd__f_error(MPI_ERR_ARG);
	collect();
	r = malloc(sizeof(*r) + (ignore ? 0 : (size_t)count * sizeof(r->statuses[0])));
	if (r && count > FEW)
		c_requests = malloc((size_t)count * sizeof(c_requests[0]));
	if (!r || !c_requests) {
		free(r);
		return contd__f_error(MPI_ERR_NO_MEM);
	}
	for (int i = 0; i < count; i++)
		c_requests[i] = PMPI_Request_f2c(requests[i]);
	handles.c = c_requests;
	handles.null = PMPI_Request_c2f(MPI_REQUEST_NULL);
	*r = (struct contd__f_record){.cb = cb,
				      .data = data,
				      .fortran_statuses = statuses,
				      .count = ignore ? 0 : count,
				      .holders = 2,
				      .written = F_NOT_WRITTEN,
				      .handles = &handles};
	rc = PMPI_Continueall(count, c_requests, contd__f_run, r, ignore ? MPI_STATUSES_IGNORE : r->statuses,
			      PMPI_Request_f2c(cont_request));
	if (rc) {
		free(r); /* nothing has been attached */
	} else {
		contd__f_write_handles(r);
		contd__f_release(r);
	}
	if (c_requests != few)
		free(c_requests);
	return rc;
}

/* ------------------------------------------------------------------------------------------------- entry points --- */

#define INIT_ARGUMENTS const MPI_Fint *info, MPI_Fint *cont_req, MPI_Fint *ierror

CONTD_API void pmpi_continue_init_(INIT_ARGUMENTS);
CONTD_API void pmpi_continue_init_(INIT_ARGUMENTS)
{
	MPI_Request c_cont_req;
	int rc;

	if (contd__f_mpi_runs()) {
		rc = PMPI_Continue_init(PMPI_Info_f2c(*info), &c_cont_req);
		if (!rc)
			*cont_req = PMPI_Request_c2f(c_cont_req);
	} else {
		rc = PMPI_Continue_init(MPI_INFO_NULL, &c_cont_req);
	}
	contd__f_report(ierror, rc);
}

CONTD_API void mpi_continue_init_(INIT_ARGUMENTS) WEAK_ALIAS(pmpi_continue_init_);
CONTD_API void pmpi_continue_init_f08_(INIT_ARGUMENTS) ALIAS(pmpi_continue_init_);
CONTD_API void mpi_continue_init_f08_(INIT_ARGUMENTS) WEAK_ALIAS(pmpi_continue_init_);

#define CONTINUE_ARGUMENTS \
	MPI_Fint *op_request, contd__f_callback *cb, const MPI_Aint *cb_data, MPI_Fint *status, \
		const MPI_Fint *cont_request, MPI_Fint *ierror

CONTD_API void pmpi_continue_(CONTINUE_ARGUMENTS);
CONTD_API void pmpi_continue_(CONTINUE_ARGUMENTS)
{
	contd__f_report(ierror, attach(1, op_request, cb, *cb_data, status, *cont_request));
}

CONTD_API void mpi_continue_(CONTINUE_ARGUMENTS) WEAK_ALIAS(pmpi_continue_);
CONTD_API void pmpi_continue_f08_(CONTINUE_ARGUMENTS) ALIAS(pmpi_continue_);
CONTD_API void mpi_continue_f08_(CONTINUE_ARGUMENTS) WEAK_ALIAS(pmpi_continue_);
/* To Fortran these are of another kind: status is no array. */
CONTD_API void pmpi_continue_scalar_f08_(CONTINUE_ARGUMENTS) ALIAS(pmpi_continue_);
CONTD_API void mpi_continue_scalar_f08_(CONTINUE_ARGUMENTS) WEAK_ALIAS(pmpi_continue_);

#define CONTINUEALL_ARGUMENTS \
	const MPI_Fint *count, MPI_Fint array_of_op_requests[], contd__f_callback *cb, const MPI_Aint *cb_data, \
		MPI_Fint array_of_statuses[], const MPI_Fint *cont_request, MPI_Fint *ierror

CONTD_API void pmpi_continueall_(CONTINUEALL_ARGUMENTS);
CONTD_API void pmpi_continueall_(CONTINUEALL_ARGUMENTS)
{
	contd__f_report(ierror, attach(*count, array_of_op_requests, cb, *cb_data, array_of_statuses, *cont_request));
}

CONTD_API void mpi_continueall_(CONTINUEALL_ARGUMENTS) WEAK_ALIAS(pmpi_continueall_);
CONTD_API void pmpi_continueall_f08_(CONTINUEALL_ARGUMENTS) ALIAS(pmpi_continueall_);
CONTD_API void mpi_continueall_f08_(CONTINUEALL_ARGUMENTS) WEAK_ALIAS(pmpi_continueall_);
