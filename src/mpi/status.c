/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status queries of several requests, MPI 4.1, 3.7.6, for an MPI that has none; and for one that has: those of Open MPI
 * and MPICH make no progress beside an entry that is complete. Each has its PMPI name; the MPI name is weak, for tools.
 * Each call attempts progress once, and then looks at each entry once: so that no entry waits for others. Progress may
 * run continuations: what these leave in the array is what the call answers for.
 */
#include "base/api.h"
#include "base/atomic.h"
#include "dispatch/wait.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/intercept.h"
#include "mpi/life.h"
#include "mpi/op_set.h"
#include "mpi/process_model.h"
#include "mpi/source.h"
#include "mpi/state.h"
#include "mpi/templates.h"

/* While something is ready the portable backend's progress leaves MPI alone; what MPI has completed makes others
 * ready. */
static void run(void)
{
	if (contd__may_run())
		contd__run_ready();
}

/*
 * MPI_SUCCESS: progress was attempted, and *backend can be asked until end(); or the error class, told. `missing`: the
 * text of a pointer of the call's own that is NULL, or NULL.
 */
struct query {
	const char *call, *negative, *none;
};
#define QUERY(which, count) \
	{ \
		"MPI_Request_get_status_" which, count " must not be negative", \
			"requests must not be NULL unless " count " is 0" \
	}
#define NO_STATUSES "statuses must not be NULL; MPI_STATUSES_IGNORE says that none are wanted"
#define ZERO "requests: " CONTD_ZERO_HANDLE

static int begin(const struct query *q, int count, const MPI_Request requests[], const char *missing,
		 const struct contd__mpi_backend **backend)
{
	bool open = contd__load_acquire(&contd__mpi_open);
	struct contd__asking asking;
	int rc = MPI_SUCCESS, flag;

	if (__builtin_expect(!open, 0)) {
		*backend = contd__mpi_start_asking(q->call, &rc);
		if (!*backend)
			return rc;
		open = contd__load_acquire(&contd__mpi_open);
	}
	if (count < 0)
		return contd__mpi_refuse(q->call, MPI_ERR_COUNT, q->negative);
	if (missing || (count && !requests))
		return contd__mpi_refuse(q->call, MPI_ERR_ARG, count && !requests ? q->none : missing);
	if (__builtin_expect(!open, 0)) {
		contd__next_pmpi.Iprobe(MPI_ANY_SOURCE, 0, contd__model.self, &flag, MPI_STATUS_IGNORE);
		contd__cr_query_begin();
		return MPI_SUCCESS;
	}
	*backend = contd__mpi;
	rc = contd__asking_begin(&asking, (size_t)count, requests);
	if (rc)
		return contd__mpi_refuse(q->call, rc, CONTD_NO_MEMORY);
	contd__cr_query_begin();
	if (contd__load(&contd__cr_live))
		contd__look_beside(&contd__mpi_source);
	run();
	contd__mpi->progress(PROGRESS);
	contd__instances_look();
	run();
	contd__asking_end(&asking);
	return MPI_SUCCESS;
}

/* Is it the pointer of an array of statuses, or says that none is wanted? */
static bool usable(const MPI_Status *statuses)
{
	return statuses || statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE;
}

static MPI_Status *at(MPI_Status statuses[], int i)
{
	return statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE ? NULL : &statuses[i];
}

/* After begin(). Returns rc. */
static int end(int rc)
{
	contd__cr_query_end();
	return rc;
}

/* After begin(). Have continuations freed CRs, or ended MPI? */
static bool some_gone(void)
{
	return contd__cr_any_freed_here() || contd__mpi_over();
}

/* Has one freed this request, or ended MPI? Then it counts as MPI_REQUEST_NULL. */
static bool is_gone(MPI_Request request)
{
	return contd__cr_freed_here(request) || contd__mpi_is_gone();
}

static enum contd__seen peek(const struct contd__mpi_backend *backend, MPI_Request request, MPI_Status *status)
{
	return some_gone() && is_gone(request) ? SEEN_NOTHING : backend->peek(request, status);
}

/* As peek_next() of the backend. */
static int peek_next(const struct contd__mpi_backend *backend, const MPI_Request *requests, int from, int count,
		     bool *active, MPI_Status *status)
{
	if (__builtin_expect(!some_gone(), 1))
		return backend->peek_next(requests, from, count, active, status);
	for (int i = from; i < count; i++) {
		int found = is_gone(requests[i]) ? count : backend->peek_next(requests, i, i + 1, active, status);

		if (found <= i)
			return found;
	}
	return count;
}

static int query_all(const struct query *q, const struct contd__mpi_backend *backend, int count,
		     const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	*flag = 0;
	for (int i = 0; i < count; i++) {
		MPI_Status *status = at(statuses, i);
		enum contd__seen seen;

		if (!requests[i]) /* zero is no handle in either of the great implementations */
			return contd__mpi_refuse(q->call, MPI_ERR_REQUEST, ZERO);
		seen = peek(backend, requests[i], status);
		if (seen == SEEN_PENDING)
			return MPI_SUCCESS;
		if (seen == SEEN_NOTHING && status)
			*status = contd__status_empty;
	}
	*flag = 1;
	return MPI_SUCCESS;
}

CONTD_API int PMPIX_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	const struct contd__mpi_backend *backend;
	static const struct query q = QUERY("all", "count");
	int rc = begin(&q, count, requests,
		       !flag                        ? "flag must not be NULL"
		       : count && !usable(statuses) ? NO_STATUSES
						    : NULL,
		       &backend);

	return rc ? rc : end(query_all(&q, backend, count, requests, flag, statuses));
}

/*
 * Where a search begins, of so many: elsewhere each time, so that no entry is always named before another one.
 * Multiples of the golden ratio's fraction: they come everywhere soon, and so does every second or third of them, where
 * a program asks for several arrays in turn. (That threads may take the same one does no harm.)
 */
static int turn(int count)
{
	static uint32_t place; /* in units of 2^-32 */
	uint32_t now = contd__load(&place);

	contd__store(&place, now + 0x9e3779b9u);
	return (int)((uint64_t)now * (uint32_t)count >> 32);
}

static int query_any(const struct query *q, const struct contd__mpi_backend *backend, int count,
		     const MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	int start = turn(count), found;
	bool active = false;

	found = peek_next(backend, requests, start, count, &active, at(status, 0));
	if (found == count)
		found = peek_next(backend, requests, 0, start, &active, at(status, 0));
	else
		start = count;
	if (found < 0)
		return contd__mpi_refuse(q->call, MPI_ERR_REQUEST, ZERO);
	*index = found < start ? found : MPI_UNDEFINED;
	*flag = found < start || !active;
	if (!active && at(status, 0))
		*status = contd__status_empty;
	return MPI_SUCCESS;
}

CONTD_API int PMPIX_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
					   MPI_Status *status)
{
	const struct contd__mpi_backend *backend;
	static const struct query q = QUERY("any", "count");
	int rc = begin(&q, count, requests,
		       !index            ? "index must not be NULL"
		       : !flag           ? "flag must not be NULL"
		       : !usable(status) ? "status must not be NULL; MPI_STATUS_IGNORE says that none is wanted"
					 : NULL,
		       &backend);

	return rc ? rc : end(query_any(&q, backend, count, requests, index, flag, status));
}

static int query_some(const struct query *q, const struct contd__mpi_backend *backend, int incount,
		      const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	bool active = false;
	int n = 0;

	for (int i = 0; i < incount; i++) {
		i = peek_next(backend, requests, i, incount, &active, at(statuses, n));
		if (i < 0)
			return contd__mpi_refuse(q->call, MPI_ERR_REQUEST, ZERO);
		if (i < incount)
			indices[n++] = i;
	}
	*outcount = active ? n : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

CONTD_API int PMPIX_Request_get_status_some(int incount, const MPI_Request requests[], int *outcount, int indices[],
					    MPI_Status statuses[])
{
	const struct contd__mpi_backend *backend;
	static const struct query q = QUERY("some", "incount");
	int rc = begin(&q, incount, requests,
		       !outcount           ? "outcount must not be NULL"
		       : !incount          ? NULL
		       : !indices          ? "indices must not be NULL unless incount is 0"
		       : !usable(statuses) ? NO_STATUSES
					   : NULL,
		       &backend);

	return rc ? rc : end(query_some(&q, backend, incount, requests, outcount, indices, statuses));
}

#define ALL (int count, const MPI_Request requests[], int *flag, MPI_Status statuses[])
#define ANY (int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status)
#define SOME (int incount, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])

int MPIX_Request_get_status_all ALL CONTD_WEAK_FOR(PMPIX_Request_get_status_all);
int MPIX_Request_get_status_any ANY CONTD_WEAK_FOR(PMPIX_Request_get_status_any);
int MPIX_Request_get_status_some SOME CONTD_WEAK_FOR(PMPIX_Request_get_status_some);

/*
 * By MPI's own names too, in front of MPI's own functions. The mpi.h of an MPI 4.1 may declare them without `const`, so
 * the declarations here have other names; only the symbols have MPI's.
 */
#define NAME(mpi, name, parameters) \
	int contd__##mpi##_##name parameters __asm__(#mpi "_Request_get_status_" #name) \
		CONTD_WEAK_FOR(PMPIX_Request_get_status_##name);
NAME(MPI, all, ALL)
NAME(MPI, any, ANY)
NAME(MPI, some, SOME)
NAME(PMPI, all, ALL)
NAME(PMPI, any, ANY)
NAME(PMPI, some, SOME)
