/* SPDX-License-Identifier: BSD-3-Clause */
/* Status queries of several requests. Indices count from 1. */
#include <stdlib.h>

#include "fortran/callback.h"
#include "fortran/fortran.h"

/* The arguments for the C interface. */
struct query {
	int count;
	MPI_Request *requests;
	MPI_Status *statuses, *wanted; /* where they go to; and what the call is given: to be ignored, perhaps */
	MPI_Fint *fortran_statuses;
	MPI_Request few[FEW];
	MPI_Status few_statuses[FEW];
};

/* `room` for statuses, one or as many as requests. MPI_SUCCESS or an error class, told. Without MPI, and with a
 * negative count, nothing is converted: the C interface says what is wrong. */
static int query_begin(struct query *q, const char *call, int count, const MPI_Fint requests[], MPI_Fint statuses[],
		       int room)
{
	bool ignore = contd__f_is_ignored(statuses);

	q->count = count;
	q->requests = q->few;
	q->statuses = q->few_statuses;
	q->fortran_statuses = ignore ? NULL : statuses;
	q->wanted = ignore ? MPI_STATUSES_IGNORE : q->few_statuses;
	if (!contd__f_mpi_runs() || count < 0)
		return MPI_SUCCESS;
	if ((count && !requests) || !statuses)
		return contd__f_refuse(call, MPI_ERR_ARG,
				       statuses ? "requests must be an array of requests"
						: "statuses must be statuses, or ignored");
	if (count > FEW) {
		q->requests = malloc((size_t)count * sizeof(q->requests[0]));
		q->statuses = malloc((size_t)room * sizeof(q->statuses[0]));
		if (!q->requests || !q->statuses) {
			free(q->requests);
			free(q->statuses);
			return contd__f_refuse(call, MPI_ERR_NO_MEM, "out of memory");
		}
		q->wanted = ignore ? MPI_STATUSES_IGNORE : q->statuses;
	}
	for (int i = 0; i < count; i++)
		q->requests[i] = PMPI_Request_f2c(requests[i]);
	return MPI_SUCCESS;
}

/* So many statuses are to be given. */
static void query_end(struct query *q, int given)
{
	for (int i = 0; q->fortran_statuses && i < given; i++)
		PMPI_Status_c2f(&q->statuses[i], &q->fortran_statuses[(size_t)i * (size_t)contd__f_status_size]);
	if (q->requests == q->few)
		return;
	free(q->requests);
	free(q->statuses);
}

/* Also by the names that begin with MPIX. */
#define QUERY(which, ...) \
	CONTD_API void pmpix_request_get_status_##which##_(__VA_ARGS__) ALIAS(pmpi_request_get_status_##which##_); \
	CONTD_API void mpix_request_get_status_##which##_(__VA_ARGS__) WEAK_ALIAS(pmpi_request_get_status_##which##_); \
	F_CALL(_request_get_status_##which, __VA_ARGS__)

QUERY(all, const MPI_Fint *count, const MPI_Fint requests[], MPI_Fint *flag, MPI_Fint statuses[], MPI_Fint *ierror)
{
	struct query q;
	int all = 0, rc = query_begin(&q, "MPI_Request_get_status_all", *count, requests, statuses, *count);

	if (!rc) {
		rc = PMPIX_Request_get_status_all(*count, q.requests, &all, q.wanted);
		if (!rc)
			*flag = all ? FORTRAN_TRUE : 0;
		query_end(&q, !rc && all ? *count : 0);
	}
	contd__f_report(ierror, rc);
}

QUERY(any, const MPI_Fint *count, const MPI_Fint requests[], MPI_Fint *index, MPI_Fint *flag, MPI_Fint status[],
      MPI_Fint *ierror)
{
	struct query q;
	int any = 0, which = 0, rc = query_begin(&q, "MPI_Request_get_status_any", *count, requests, status, 1);

	if (!rc) {
		rc = PMPIX_Request_get_status_any(*count, q.requests, &which, &any,
						  q.fortran_statuses ? q.wanted : MPI_STATUS_IGNORE);
		if (!rc) {
			*flag = any ? FORTRAN_TRUE : 0;
			*index = which == MPI_UNDEFINED ? MPI_UNDEFINED : which + 1;
		}
		query_end(&q, !rc && any);
	}
	contd__f_report(ierror, rc);
}

QUERY(some, const MPI_Fint *incount, const MPI_Fint requests[], MPI_Fint *outcount, MPI_Fint indices[],
      MPI_Fint statuses[], MPI_Fint *ierror)
{
	struct query q;
	int some = 0, rc = query_begin(&q, "MPI_Request_get_status_some", *incount, requests, statuses, *incount);

	if (!rc) {
		rc = PMPIX_Request_get_status_some(*incount, q.requests, &some, indices, q.wanted);
		if (!rc)
			*outcount = some;
		for (int i = 0; !rc && i < some; i++)
			indices[i]++;
		query_end(&q, !rc && some > 0 ? some : 0);
	}
	contd__f_report(ierror, rc);
}
