/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry points of continuations, of the draft and of the revised interface.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "dispatch/group.h"
#include "fortran/callback.h"
#include "fortran/fortran.h"
#include "mpi/binding.h"
#include "mpi/draft.h"
#include "mpi/revised.h"

/* ---------------------------------------------------------------------------------------------------- attaching --- */

static void collect(void)
{
	struct contd__f_record *r, *next;

	for (r = contd__f_spent_take(); r; r = next) {
		next = r->next;
		free(r);
	}
}

/* The arguments of a call that attaches. */
struct given {
	const char *call; /* the name of it without binding */
	bool one;         /* request: else an array */
	int count;
	MPI_Fint *requests;
	void (*cb)(void);
	MPI_Aint data;
	MPI_Fint *statuses;
	MPI_Fint cont_request;
	bool revised;
	int flags;
};

/*
 * The program may reuse its variables in the callback, which may run on another thread, in a handler even: so they are
 * written before it can run. It must not wait for this thread. An error handler that attaching has called may have
 * begun another operation with a variable: that stays.
 */
static void write_handles(void *data)
{
	const struct contd__f_handles *h = ((struct contd__f_record *)data)->handles;
	MPI_Fint null = PMPI_Request_c2f(MPI_REQUEST_NULL);

	for (int i = 0; i < h->count; i++)
		if (h->c[i] == MPI_REQUEST_NULL && h->fortran[i] == h->before[i])
			h->fortran[i] = null;
}

/* By the interface that is asked for. */
static int attach_c(const struct given *g, MPI_Request requests[], struct contd__f_record *r, MPI_Status *statuses)
{
	MPI_Request cont_request = PMPI_Request_f2c(g->cont_request);
	const struct contd__binding binding = {.call = g->call,
					       .one = g->one,
					       .draft = contd__f_run,
					       .revised = contd__f_run_revised,
					       .taken = write_handles,
					       .discard = contd__f_discard,
					       .closure = r,
					       .data = (void *)g->data};

	return g->revised ? contd__binding_continueall(g->count, requests, &binding, g->flags, statuses, cont_request)
			  : contd__binding_continueall_draft(g->count, requests, &binding, statuses, cont_request);
}

/* Without MPI, and with a negative count, nothing is converted: the C interface says what is wrong. */
static int refused_in_c(const struct given *g)
{
	const struct contd__binding binding = {.call = g->call, .one = g->one, .draft = contd__f_run};

	return contd__binding_continueall_draft(g->count, NULL, &binding, NULL, MPI_REQUEST_NULL);
}

/* Something that is not there: the text, or NULL. */
static const char *missing(const struct given *g)
{
	if (!g->cb)
		return "cb must be a procedure";
	if (g->count && !g->requests)
		return g->one ? "op_request must be a request" : "array_of_op_requests must be an array of requests";
	if (g->count && !g->statuses)
		return g->one ? "status must be a status, or MPI_STATUS_IGNORE"
			      : "array_of_statuses must be an array of statuses, or MPI_STATUSES_IGNORE";
	return NULL;
}

/* An MPI error class; on failure nothing has changed. */
static int attach(const struct given *g)
{
	MPI_Request few[FEW], *requests = few;
	MPI_Fint few_before[FEW], *before = few_before;
	struct contd__f_handles handles = {.count = g->count, .fortran = g->requests};
	bool ignore = contd__f_is_ignored(g->statuses);
	struct contd__f_record *r;
	const char *text;
	int rc;

	if (!contd__f_mpi_runs() || g->count < 0)
		return refused_in_c(g);
	text = missing(g);
	if (text)
		return contd__f_refuse(g->call, MPI_ERR_ARG, text);
	collect();
	r = malloc(sizeof(*r) + (ignore ? 0 : (size_t)g->count * sizeof(r->statuses[0])));
	if (r && g->count > FEW)
		requests = malloc((size_t)g->count * (sizeof(requests[0]) + sizeof(before[0])));
	if (!r || !requests) {
		free(r);
		return contd__f_refuse(g->call, MPI_ERR_NO_MEM, "out of memory");
	}
	if (requests != few)
		before = (MPI_Fint *)(void *)(requests + g->count);
	for (int i = 0; i < g->count; i++) {
		before[i] = g->requests[i];
		requests[i] = PMPI_Request_f2c(before[i]);
	}
	handles.before = before;
	handles.c = requests;
	*r = (struct contd__f_record){.cb.any = g->cb,
				      .data = g->data,
				      .fortran_statuses = g->statuses,
				      .count = ignore ? 0 : g->count,
				      .handles = &handles};
	rc = attach_c(g, requests, r, ignore ? MPI_STATUSES_IGNORE : r->statuses);
	if (rc)
		free(r); /* nothing has been attached */
	if (requests != few)
		free(requests);
	return rc;
}

/* struct given of both interfaces, from the parameters' names. */
#define GIVEN_ONE(of) \
	.call = of, .one = true, .count = 1, .requests = op_request, .cb = (void (*)(void))cb, .data = *cb_data, \
	.statuses = status, .cont_request = *cont_request
#define GIVEN_ALL(of) \
	.call = of, .count = *count, .requests = array_of_op_requests, .cb = (void (*)(void))cb, .data = *cb_data, \
	.statuses = array_of_statuses, .cont_request = *cont_request
#define GIVEN_REVISED .revised = true, .flags = *flags

/* ------------------------------------------------------------------------------------------ the draft interface --- */

F_CALL(_continue_init, const MPI_Fint *info, MPI_Fint *cont_req, MPI_Fint *ierror)
{
	bool runs = contd__f_mpi_runs();
	MPI_Request c_cont_req;
	int rc = PMPI_Continue_init(runs ? PMPI_Info_f2c(*info) : MPI_INFO_NULL, &c_cont_req);

	if (!rc)
		*cont_req = PMPI_Request_c2f(c_cont_req);
	contd__f_report(ierror, rc);
}

#define CONTINUE \
	MPI_Fint *op_request, contd__f_draft *cb, const MPI_Aint *cb_data, MPI_Fint *status, \
		const MPI_Fint *cont_request, MPI_Fint *ierror

F_CALL(_continue, CONTINUE)
{
	const struct given g = {GIVEN_ONE("MPI_Continue")};

	contd__f_report(ierror, attach(&g));
}
F_SCALAR(_continue, CONTINUE);

F_CALL(_continueall, const MPI_Fint *count, MPI_Fint array_of_op_requests[], contd__f_draft *cb,
       const MPI_Aint *cb_data, MPI_Fint array_of_statuses[], const MPI_Fint *cont_request, MPI_Fint *ierror)
{
	const struct given g = {GIVEN_ALL("MPI_Continueall")};

	contd__f_report(ierror, attach(&g));
}

/* ---------------------------------------------------------------------------------------- the revised interface --- */

F_CALL(x_continue_init, const MPI_Fint *flags, const MPI_Fint *max_poll, const MPI_Fint *info, MPI_Fint *cont_req,
       MPI_Fint *ierror)
{
	bool runs = contd__f_mpi_runs();
	MPI_Request c_cont_req;
	int rc = PMPIX_Continue_init(*flags, *max_poll, runs ? PMPI_Info_f2c(*info) : MPI_INFO_NULL, &c_cont_req);

	if (!rc)
		*cont_req = PMPI_Request_c2f(c_cont_req);
	contd__f_report(ierror, rc);
}

#define X_CONTINUE \
	MPI_Fint *op_request, contd__f_revised *cb, const MPI_Aint *cb_data, const MPI_Fint *flags, MPI_Fint *status, \
		const MPI_Fint *cont_request, MPI_Fint *ierror

F_CALL(x_continue, X_CONTINUE)
{
	const struct given g = {GIVEN_ONE("MPIX_Continue"), GIVEN_REVISED};

	contd__f_report(ierror, attach(&g));
}
F_SCALAR(x_continue, X_CONTINUE);

F_CALL(x_continueall, const MPI_Fint *count, MPI_Fint array_of_op_requests[], contd__f_revised *cb,
       const MPI_Aint *cb_data, const MPI_Fint *flags, MPI_Fint array_of_statuses[], const MPI_Fint *cont_request,
       MPI_Fint *ierror)
{
	const struct given g = {GIVEN_ALL("MPIX_Continueall"), GIVEN_REVISED};

	contd__f_report(ierror, attach(&g));
}

_Static_assert(sizeof(MPI_Aint) == sizeof(void *), "a program's data goes through C as a pointer");

F_CALL(x_continue_get_failed, const MPI_Fint *cont_request, MPI_Fint *count, MPI_Aint cb_data[], MPI_Fint *ierror)
{
	bool runs = contd__f_mpi_runs();
	int n = *count, rc;

	rc = PMPIX_Continue_get_failed(runs ? PMPI_Request_f2c(*cont_request) : MPI_REQUEST_NULL, &n,
				       (void **)(void *)cb_data);
	if (!rc)
		*count = n;
	contd__f_report(ierror, rc);
}
