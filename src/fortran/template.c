/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates of generalized requests. A program's handle of a template is the C handle, and so may go from one language
 * to the other; extra_state goes through C as a pointer.
 */
#include <alloca.h>

#include "fortran/callback.h"
#include "fortran/fortran.h"
#include "template/template.h"

/* The program's functions. ierror is their result. */
typedef void start_function(MPI_Aint *extra_state, MPI_Fint *ierror); /* push_fn too */
typedef void complete_function(MPI_Aint *extra_state, MPI_Fint *status, MPI_Fint *ierror);
typedef void cancel_function(MPI_Aint *extra_state, const MPI_Fint *complete, MPI_Fint *ierror);

static int call_start(const struct contd__gr_functions *functions, void *extra_state)
{
	MPI_Aint state = (MPI_Aint)extra_state;
	MPI_Fint ierror = MPI_SUCCESS;

	((start_function *)functions->start)(&state, &ierror);
	return (int)ierror;
}

static int call_push(const struct contd__gr_functions *functions, void *extra_state)
{
	MPI_Aint state = (MPI_Aint)extra_state;
	MPI_Fint ierror = MPI_SUCCESS;

	((start_function *)functions->push)(&state, &ierror);
	return (int)ierror;
}

/* If the request was freed C gives no status; the program gets `freed`, which may be NULL: an absent argument. */
static int call_complete(const struct contd__gr_functions *functions, void *extra_state, MPI_Status *status,
			 const MPI_Status *freed)
{
	MPI_Fint *f = alloca((size_t)contd__f_status_size * sizeof(*f));
	const MPI_Status *c = status ? status : freed;
	MPI_Aint state = (MPI_Aint)extra_state;
	MPI_Fint ierror = MPI_SUCCESS;

	if (c)
		PMPI_Status_c2f(c, f);
	((complete_function *)functions->complete)(&state, c ? f : NULL, &ierror);
	if (status)
		PMPI_Status_f2c(f, status);
	return (int)ierror;
}

static int call_complete_f08(const struct contd__gr_functions *functions, void *extra_state, MPI_Status *status)
{
	return call_complete(functions, extra_state, status, NULL);
}

/* A program of the older binding can't ask whether an argument is present. */
static int call_complete_mpif(const struct contd__gr_functions *functions, void *extra_state, MPI_Status *status)
{
	const MPI_Status unread = {.MPI_SOURCE = MPI_UNDEFINED, .MPI_TAG = MPI_UNDEFINED, .MPI_ERROR = MPI_SUCCESS};

	return call_complete(functions, extra_state, status, &unread);
}

static int call_cancel(const struct contd__gr_functions *functions, void *extra_state, int complete)
{
	MPI_Fint fortran_complete = complete ? FORTRAN_TRUE : 0, ierror = MPI_SUCCESS;
	MPI_Aint state = (MPI_Aint)extra_state;

	((cancel_function *)functions->cancel)(&state, &fortran_complete, &ierror);
	return (int)ierror;
}

static const struct contd__gr_calls calls_f08 = {call_start, call_push, call_complete_f08, call_cancel};
static const struct contd__gr_calls calls_mpif = {call_start, call_push, call_complete_mpif, call_cancel};

/* A program names these if there is no push_fn or cancel_fn. They are compared, and never called. */
CONTD_API void mpix_gr_push_fn_null_(MPI_Aint *extra_state, MPI_Fint *ierror);
CONTD_API void mpix_gr_push_fn_null_(MPI_Aint *extra_state, MPI_Fint *ierror)
{
	*ierror = MPI_SUCCESS;
}

CONTD_API void mpix_gr_cancel_fn_null_(MPI_Aint *extra_state, const MPI_Fint *complete, MPI_Fint *ierror);
CONTD_API void mpix_gr_cancel_fn_null_(MPI_Aint *extra_state, const MPI_Fint *complete, MPI_Fint *ierror)
{
	*ierror = MPI_SUCCESS;
}

static int init(const struct contd__gr_calls *calls, start_function *start_fn, start_function *push_fn,
		complete_function *complete_fn, cancel_function *cancel_fn, MPI_Aint *gr)
{
	const struct contd__gr_functions functions = {
		(void (*)(void))start_fn, (void (*)(void))(push_fn == mpix_gr_push_fn_null_ ? NULL : push_fn),
		(void (*)(void))complete_fn, (void (*)(void))(cancel_fn == mpix_gr_cancel_fn_null_ ? NULL : cancel_fn)};
	MPIX_Gr c_gr;
	int rc;

	contd__f_constants();
	rc = contd__binding_gr_init(&functions, calls, &c_gr);
	if (!rc)
		*gr = (MPI_Aint)c_gr;
	return rc;
}

/* The two bindings differ in complete_fn. */
#define GR_INIT \
	start_function *start_fn, start_function *push_fn, complete_function *complete_fn, cancel_function *cancel_fn, \
		MPI_Aint *gr, MPI_Fint *ierror

CONTD_API void pmpix_gr_init_(GR_INIT);
CONTD_API void pmpix_gr_init_(GR_INIT)
{
	contd__f_report(ierror, init(&calls_mpif, start_fn, push_fn, complete_fn, cancel_fn, gr));
}

CONTD_API void pmpix_gr_init_f08_(GR_INIT);
CONTD_API void pmpix_gr_init_f08_(GR_INIT)
{
	contd__f_report(ierror, init(&calls_f08, start_fn, push_fn, complete_fn, cancel_fn, gr));
}

CONTD_API void mpix_gr_init_(GR_INIT) WEAK_ALIAS(pmpix_gr_init_);
CONTD_API void mpix_gr_init_f08_(GR_INIT) WEAK_ALIAS(pmpix_gr_init_f08_);

/* start_fn finds the handle in the program's variable. */
static void made(MPI_Request request, void *req)
{
	*(MPI_Fint *)req = PMPI_Request_c2f(request);
}

F_CALL(x_gr_begin, const MPI_Aint *gr, const MPI_Aint *extra_state, MPI_Fint *req, MPI_Fint *ierror)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Fint before = *req;
	int rc = contd__binding_gr_begin((MPIX_Gr)*gr, (void *)*extra_state, &request, made, req);

	if (rc)
		*req = before;
	contd__f_report(ierror, rc);
}

F_CALL(x_gr_free, MPI_Aint *gr, MPI_Fint *ierror)
{
	MPIX_Gr c_gr = (MPIX_Gr)*gr;
	int rc = PMPIX_Gr_free(&c_gr);

	if (!rc)
		*gr = (MPI_Aint)c_gr;
	contd__f_report(ierror, rc);
}

F_CALL(x_mark_request_complete, const MPI_Fint *req, MPI_Fint *ierror)
{
	MPI_Request request = contd__f_mpi_runs() ? PMPI_Request_f2c(*req) : MPI_REQUEST_NULL;

	contd__f_report(ierror, PMPIX_Mark_request_complete(request));
}

F_CALL(x_cancel, const MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request c_request = contd__f_mpi_runs() ? PMPI_Request_f2c(*request) : MPI_REQUEST_NULL;

	contd__f_report(ierror, PMPIX_Cancel(&c_request));
}
