/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wrappers. A call that completes requests first queries them, which changes nothing: so both the handle and the
 * status of each complete request are known. It notes their ends, and then completes exactly these requests.
 *
 * Each call goes on to the next definition of its MPI_ name (dlsym, RTLD_NEXT), and so does the query: to another tool,
 * to contd, or to MPI itself. Of two copies of this tool the inner one sees, in place of the program's Testsome, one
 * Test for each request that the outer one has found complete.
 *
 * Only a test completes a continuation request that is poll-only, a query does not. So a call that has a continuation
 * request among its requests goes on as it is, and the tool notes afterwards what it has completed, by the handles that
 * it saved before.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"
#include "output.h"

/* --------------------------------------------------------------------------------------------- who is behind us --- */

/* Persistent collectives have another name in an MPI before version 4. */
#if MPI_VERSION >= 4
#define MADE_NAME(name) MPI_##name
#else
#define MADE_NAME(name) MPIX_##name
#pragma GCC visibility push(default)
#define COUNT int
#define PLACE int
#define PROTOTYPE(name, parameters, ...) int MPIX_##name parameters;
MADE(PROTOTYPE)
MADE_COUNTED(PROTOTYPE)
#undef COUNT
#undef PLACE
#pragma GCC visibility pop
#endif
#define STRING(name) STRING_OF(name)
#define STRING_OF(name) #name

#define SEND_FIELD(name) int(*name) SEND_PARAMETERS;
#define FIELD(name, parameters, ...) int(*name) parameters;
#define COUNTED_FIELDS \
	SENDS(SEND_FIELD) \
	SEND_INITS(SEND_FIELD) \
	FIELD(Irecv, RECV_PARAMETERS) \
	FIELD(Recv_init, RECV_PARAMETERS) FIELD(Imrecv, IMRECV_PARAMETERS) STARTED_COUNTED(FIELD) MADE_COUNTED(FIELD)

static struct {
#define COUNT int
#define PLACE int
	COUNTED_FIELDS
#undef COUNT
#undef PLACE
	STARTED(FIELD) MADE(FIELD) COMPLETING(FIELD) OTHERS(FIELD)
} NEXT;

#if MPI_VERSION >= 4
static struct {
#define COUNT MPI_Count
#define PLACE MPI_Aint
	COUNTED_FIELDS
#undef COUNT
#undef PLACE
} NEXT_LARGE;
#endif

static int (*next_query_all)(int, const MPI_Request[], int *, MPI_Status[]);
static int (*next_query_some)(int, const MPI_Request[], int *, int[], MPI_Status[]);
static int (*next_Continue_init)(int, int, MPI_Info, MPI_Request *);
static int (*next_Continue)(MPI_Request *, MPIX_Continue_cb_function *, void *, int, MPI_Status *, MPI_Request);
static int (*next_Continueall)(int, MPI_Request[], MPIX_Continue_cb_function *, void *, int, MPI_Status[], MPI_Request);
static int (*next_get_failed)(MPI_Request, int *, void **);

static void resolve(void *function, const char *name, const char *other)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found && other)
		found = dlsym(RTLD_NEXT, other);
	memcpy(function, &found, sizeof(found));
}

__attribute__((constructor)) static void resolve_all(void)
{
#define RESOLVE(name, ...) resolve(&NEXT.name, "MPI_" #name, NULL);
#define RESOLVE_MADE(name, ...) resolve(&NEXT.name, STRING(MADE_NAME(name)), NULL);
	/* clang-format off */
	SENDS(RESOLVE)
	SEND_INITS(RESOLVE)
	RESOLVE(Irecv)
	RESOLVE(Recv_init)
	RESOLVE(Imrecv)
	STARTED_COUNTED(RESOLVE)
	STARTED(RESOLVE)
	MADE_COUNTED(RESOLVE_MADE)
	MADE(RESOLVE_MADE)
	COMPLETING(RESOLVE)
	OTHERS(RESOLVE)
#if MPI_VERSION >= 4
#define RESOLVE_LARGE(name, ...) resolve(&NEXT_LARGE.name, "MPI_" #name "_c", NULL);
	SENDS(RESOLVE_LARGE)
	SEND_INITS(RESOLVE_LARGE)
	RESOLVE_LARGE(Irecv)
	RESOLVE_LARGE(Recv_init)
	RESOLVE_LARGE(Imrecv)
	STARTED_COUNTED(RESOLVE_LARGE)
	MADE_COUNTED(RESOLVE_LARGE)
#endif
	/* clang-format on */
	resolve(&next_query_all, "MPI_Request_get_status_all", "MPIX_Request_get_status_all");
	resolve(&next_query_some, "MPI_Request_get_status_some", "MPIX_Request_get_status_some");
	resolve(&next_Continue_init, "MPIX_Continue_init", NULL);
	resolve(&next_Continue, "MPIX_Continue", NULL);
	resolve(&next_Continueall, "MPIX_Continueall", NULL);
	resolve(&next_get_failed, "MPIX_Continue_get_failed", NULL);
}

static bool following; /* from MPI_Init to MPI_Finalize */
static bool begun;     /* MPI_Init was seen */

static bool follows(void)
{
	return __atomic_load_n(&following, __ATOMIC_ACQUIRE);
}

/* ---------------------------------------------------------------------------------------- calls, and their time --- */

static __thread int running __attribute__((tls_model("initial-exec"))); /* continuations */

/* A continuation may have interrupted the program: it writes no file. */
static int leave(struct call *c, bool waits, int rc)
{
	bool followed = follows();
	uint64_t now = call_end(c, waits, followed);

	if (followed && !running)
		output_flush(now);
	return rc;
}

/* ----------------------------------------------------------------------------------------------------- starting --- */

static long long bytes_of(long long count, MPI_Datatype type)
{
	int size = 0;

	return PMPI_Type_size(type, &size) == MPI_SUCCESS ? count * size : -1;
}

#define STARTS(function, next, name, parameters, arguments, peer, tag, bytes) \
	int function parameters \
	{ \
		struct call call; \
		int rc; \
\
		call_begin(&call, #name); \
		rc = next.name arguments; \
		if (rc == MPI_SUCCESS && follows()) \
			op_started(KIND_##name, *request, peer, tag, bytes, call.start); \
		return leave(&call, false, rc); \
	}
#define MAKES(function, next, name, parameters, arguments, peer, tag, bytes) \
	int function parameters \
	{ \
		int rc = next.name arguments; \
\
		if (rc == MPI_SUCCESS && follows()) \
			op_made(KIND_##name, *request, peer, tag, bytes); \
		return rc; \
	}

#define BYTES bytes_of((long long)count, type)
#define SEND(name) STARTS(MPI_##name, NEXT, name, SEND_PARAMETERS, SEND_ARGUMENTS, dest, tag, BYTES)
#define SEND_INIT(name) MAKES(MPI_##name, NEXT, name, SEND_PARAMETERS, SEND_ARGUMENTS, dest, tag, BYTES)
#define START(name, parameters, arguments) STARTS(MPI_##name, NEXT, name, parameters, arguments, MPI_UNDEFINED, 0, -1)
#define MAKE(name, parameters, arguments) \
	MAKES(MADE_NAME(name), NEXT, name, parameters, arguments, MPI_UNDEFINED, 0, -1)

#define COUNT int
#define PLACE int
SENDS(SEND)
SEND_INITS(SEND_INIT)
STARTS(MPI_Irecv, NEXT, Irecv, RECV_PARAMETERS, RECV_ARGUMENTS, source, tag, BYTES)
MAKES(MPI_Recv_init, NEXT, Recv_init, RECV_PARAMETERS, RECV_ARGUMENTS, source, tag, BYTES)
STARTS(MPI_Imrecv, NEXT, Imrecv, IMRECV_PARAMETERS, IMRECV_ARGUMENTS, MPI_UNDEFINED, 0, BYTES)
STARTED_COUNTED(START)
STARTED(START)
MADE_COUNTED(MAKE)
MADE(MAKE)
#undef COUNT
#undef PLACE

#if MPI_VERSION >= 4
#define SEND_LARGE(name) STARTS(MPI_##name##_c, NEXT_LARGE, name, SEND_PARAMETERS, SEND_ARGUMENTS, dest, tag, BYTES)
#define SEND_INIT_LARGE(name) MAKES(MPI_##name##_c, NEXT_LARGE, name, SEND_PARAMETERS, SEND_ARGUMENTS, dest, tag, BYTES)
#define START_LARGE(name, parameters, arguments) \
	STARTS(MPI_##name##_c, NEXT_LARGE, name, parameters, arguments, MPI_UNDEFINED, 0, -1)
#define MAKE_LARGE(name, parameters, arguments) \
	MAKES(MPI_##name##_c, NEXT_LARGE, name, parameters, arguments, MPI_UNDEFINED, 0, -1)
#define COUNT MPI_Count
#define PLACE MPI_Aint
SENDS(SEND_LARGE)
SEND_INITS(SEND_INIT_LARGE)
STARTS(MPI_Irecv_c, NEXT_LARGE, Irecv, RECV_PARAMETERS, RECV_ARGUMENTS, source, tag, BYTES)
MAKES(MPI_Recv_init_c, NEXT_LARGE, Recv_init, RECV_PARAMETERS, RECV_ARGUMENTS, source, tag, BYTES)
STARTS(MPI_Imrecv_c, NEXT_LARGE, Imrecv, IMRECV_PARAMETERS, IMRECV_ARGUMENTS, MPI_UNDEFINED, 0, BYTES)
STARTED_COUNTED(START_LARGE)
MADE_COUNTED(MAKE_LARGE)
#undef COUNT
#undef PLACE
#endif

int MPI_Start(MPI_Request *request)
{
	struct call call;
	int rc;

	call_begin(&call, "Start");
	rc = NEXT.Start(request);
	if (rc == MPI_SUCCESS && follows())
		op_restarted(*request, call.start);
	return leave(&call, false, rc);
}

int MPI_Startall(int count, MPI_Request requests[])
{
	struct call call;
	int rc;

	call_begin(&call, "Startall");
	rc = NEXT.Startall(count, requests);
	for (int i = 0; rc == MPI_SUCCESS && follows() && i < count; i++)
		op_restarted(requests[i], call.start);
	return leave(&call, false, rc);
}

int MPI_Cancel(MPI_Request *request)
{
	int rc = NEXT.Cancel(request);

	if (rc == MPI_SUCCESS && follows())
		op_cancel(*request);
	return rc;
}

int MPI_Request_free(MPI_Request *request)
{
	/* Before: afterwards another thread's request may have this handle. */
	if (follows() && request && *request != MPI_REQUEST_NULL)
		op_free(*request);
	return NEXT.Request_free(request);
}

/* --------------------------------------------------------------------------------------------------- completing --- */

#define FEW 16

/* Room for what a call needs: calls may be made within calls, by continuations. */
struct room {
	MPI_Status few_statuses[FEW], *statuses;
	MPI_Request few_handles[FEW], *handles;
	struct op *few_ops[FEW], **ops;
};

static bool room_make(struct room *r, int count)
{
	r->statuses = r->few_statuses;
	r->handles = r->few_handles;
	r->ops = r->few_ops;
	if (count > FEW) {
		size_t n = (size_t)count;

		r->statuses = malloc(n * sizeof(MPI_Status));
		r->handles = malloc(n * sizeof(MPI_Request));
		r->ops = malloc(n * sizeof(struct op *));
	}
	return r->statuses && r->handles && r->ops;
}

static void room_end(struct room *r)
{
	if (r->statuses != r->few_statuses)
		free(r->statuses);
	if (r->handles != r->few_handles)
		free(r->handles);
	if (r->ops != r->few_ops)
		free(r->ops);
}

static MPI_Status *at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* May the tool look? Not at what is no array. */
static bool looks(int count, const MPI_Request *requests)
{
	return follows() && count >= 0 && (!count || requests) && next_query_all && next_query_some &&
	       !unseen_among(count, requests);
}

/* 1: all are complete, their statuses in r; 0: not yet; -1: the query has failed, and the call itself must tell why. */
static int look_all(int count, const MPI_Request *requests, struct room *r)
{
	int flag = 0;

	for (int i = 0; i < count; i++)
		r->statuses[i].MPI_ERROR = MPI_SUCCESS;
	return next_query_all(count, requests, &flag, r->statuses) == MPI_SUCCESS ? flag : -1;
}

/* How many are complete, their places in indices; MPI_UNDEFINED: none is active; -1: as above. */
static int look_some(int count, const MPI_Request *requests, int *indices, struct room *r)
{
	int n = 0;

	for (int i = 0; i < count; i++)
		r->statuses[i].MPI_ERROR = MPI_SUCCESS;
	return next_query_some(count, requests, &n, indices, r->statuses) == MPI_SUCCESS ? n : -1;
}

/* Their ends, while handles and statuses are there: before the call that completes them. */
static void note_all(int count, const MPI_Request *requests, struct room *r, const char *by)
{
	for (int i = 0; i < count; i++) {
		r->ops[i] = op_take(requests[i]);
		op_done(r->ops[i], &r->statuses[i], by);
	}
}

/*
 * After the call. statuses: where rc is MPI_ERR_IN_STATUS they tell of each. Behind one that has failed MPICH leaves
 * others as they are, complete or not, with MPI_ERR_PENDING.
 */
static void close_all(int count, const MPI_Request *requests, struct room *r, int rc, const MPI_Status *statuses)
{
	for (int i = 0; i < count; i++) {
		int error = rc == MPI_ERR_IN_STATUS && statuses ? statuses[i].MPI_ERROR : rc;

		if (error == MPI_ERR_PENDING)
			op_back(r->ops[i], requests[i]);
		else
			op_close(r->ops[i], error);
	}
}

/* ------------------------------------------------------ the call as it is, and what it completed, by saved handles */

static void save(int count, const MPI_Request *requests, struct room *r)
{
	memcpy(r->handles, requests, (size_t)count * sizeof(MPI_Request));
}

/* Active requests that were completed by this call are those that the tool knows as active. */
static void note_saved(struct room *r, int i, MPI_Request now, const MPI_Status *status, int rc, const char *by)
{
	struct op *op;
	MPI_Status plain;

	if (r->handles[i] == MPI_REQUEST_NULL || cr_is(r->handles[i]))
		return;
	(void)now;
	op = op_take(r->handles[i]);
	if (status) {
		plain = *status;
		plain.MPI_ERROR = MPI_SUCCESS;
	}
	op_done(op, status ? &plain : NULL, by);
	op_close(op, rc);
}

static int saved_all(int count, MPI_Request *requests, int *flag, MPI_Status *statuses, const char *by)
{
	struct room r;
	MPI_Status *own = statuses;
	int rc, done = 1;

	if (!follows() || count < 0 || (count && !requests) || !room_make(&r, count))
		return flag ? NEXT.Testall(count, requests, flag, statuses) : NEXT.Waitall(count, requests, statuses);
	if (at(statuses, 0) == MPI_STATUS_IGNORE)
		own = r.statuses;
	if (count)
		save(count, requests, &r);
	rc = flag ? NEXT.Testall(count, requests, &done, own) : NEXT.Waitall(count, requests, own);
	if (flag)
		*flag = done;
	for (int i = 0; i < count && (rc == MPI_ERR_IN_STATUS || (rc == MPI_SUCCESS && done)); i++) {
		int error = rc == MPI_ERR_IN_STATUS ? own[i].MPI_ERROR : MPI_SUCCESS;

		if (error != MPI_ERR_PENDING)
			note_saved(&r, i, requests[i], &own[i], error, by);
	}
	room_end(&r);
	return rc;
}

static int saved_any(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status, const char *by)
{
	struct room r;
	MPI_Status own, *its = at(status, 0) == MPI_STATUS_IGNORE ? &own : status;
	int rc, done = 1;

	if (!follows() || count < 0 || (count && !requests) || !index || !room_make(&r, count))
		return flag ? NEXT.Testany(count, requests, index, flag, status)
			    : NEXT.Waitany(count, requests, index, status);
	if (count)
		save(count, requests, &r);
	*index = MPI_UNDEFINED;
	rc = flag ? NEXT.Testany(count, requests, index, &done, its) : NEXT.Waitany(count, requests, index, its);
	if (flag)
		*flag = done;
	if (done && *index != MPI_UNDEFINED && *index >= 0 && *index < count)
		note_saved(&r, *index, requests[*index], its, rc, by);
	room_end(&r);
	return rc;
}

static int saved_some(int count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses, bool wait,
		      const char *by)
{
	struct room r;
	MPI_Status *own = statuses;
	int rc;

	if (!follows() || count < 0 || (count && !requests) || !outcount || !room_make(&r, count))
		return wait ? NEXT.Waitsome(count, requests, outcount, indices, statuses)
			    : NEXT.Testsome(count, requests, outcount, indices, statuses);
	if (at(statuses, 0) == MPI_STATUS_IGNORE)
		own = r.statuses;
	if (count)
		save(count, requests, &r);
	rc = wait ? NEXT.Waitsome(count, requests, outcount, indices, own)
		  : NEXT.Testsome(count, requests, outcount, indices, own);
	if ((rc == MPI_SUCCESS || rc == MPI_ERR_IN_STATUS) && *outcount != MPI_UNDEFINED)
		for (int i = 0; i < *outcount; i++)
			note_saved(&r, indices[i], requests[indices[i]], &own[i],
				   rc == MPI_ERR_IN_STATUS ? own[i].MPI_ERROR : MPI_SUCCESS, by);
	room_end(&r);
	return rc;
}

static int saved_one(MPI_Request *request, int *flag, MPI_Status *status, const char *by)
{
	MPI_Status own, *its = at(status, 0) == MPI_STATUS_IGNORE ? &own : status;
	struct room r;
	int rc, done = 1;

	if (!follows() || !request || !room_make(&r, 1))
		return flag ? NEXT.Test(request, flag, status) : NEXT.Wait(request, status);
	save(1, request, &r);
	rc = flag ? NEXT.Test(request, &done, its) : NEXT.Wait(request, its);
	if (flag)
		*flag = done;
	if (done || rc)
		note_saved(&r, 0, *request, its, rc, by);
	return rc;
}

/* ------------------------------------------------------------------------------------------------- one request --- */

static int test_it(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct room r;
	int seen, rc;

	if (!request || !flag || !looks(1, request))
		return saved_one(request, flag, status, "Test");
	room_make(&r, 1);
	seen = look_all(1, request, &r);
	if (seen < 0)
		return saved_one(request, flag, status, "Test");
	*flag = seen;
	if (!seen)
		return MPI_SUCCESS;
	note_all(1, request, &r, "Test");
	rc = NEXT.Test(request, flag, status);
	op_close(r.ops[0], rc);
	return rc;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct call call;

	call_begin(&call, "Test");
	return leave(&call, false, test_it(request, flag, status));
}

static int wait_it(MPI_Request *request, MPI_Status *status)
{
	struct room r;
	int seen, rc;

	if (!request || !looks(1, request))
		return saved_one(request, NULL, status, "Wait");
	room_make(&r, 1);
	while (!(seen = look_all(1, request, &r)))
		sched_yield();
	if (seen < 0)
		return saved_one(request, NULL, status, "Wait");
	note_all(1, request, &r, "Wait");
	rc = NEXT.Wait(request, status);
	op_close(r.ops[0], rc);
	return rc;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct call call;

	call_begin(&call, "Wait");
	return leave(&call, true, wait_it(request, status));
}

/* --------------------------------------------------------------------------------------------------------- all --- */

/* All are complete, so that the call itself completes exactly those, with its own words where one has failed. */
static int testall_it(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	struct room r;
	int seen, rc;

	if (!flag || !looks(count, requests) || !room_make(&r, count))
		return flag ? saved_all(count, requests, flag, statuses, "Testall")
			    : NEXT.Testall(count, requests, flag, statuses);
	seen = look_all(count, requests, &r);
	if (seen == 1) {
		note_all(count, requests, &r, "Testall");
		statuses = at(statuses, 0) == MPI_STATUS_IGNORE ? r.statuses : statuses;
		rc = NEXT.Testall(count, requests, flag, statuses);
		close_all(count, requests, &r, rc, statuses);
	} else if (seen == 0) {
		*flag = 0;
		rc = MPI_SUCCESS;
	} else {
		rc = saved_all(count, requests, flag, statuses, "Testall");
	}
	room_end(&r);
	return rc;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	struct call call;

	call_begin(&call, "Testall");
	return leave(&call, false, testall_it(count, requests, flag, statuses));
}

static int waitall_it(int count, MPI_Request requests[], MPI_Status statuses[])
{
	struct room r;
	int seen, rc;

	if (!looks(count, requests) || !room_make(&r, count))
		return saved_all(count, requests, NULL, statuses, "Waitall");
	while (!(seen = look_all(count, requests, &r)))
		sched_yield();
	if (seen == 1) {
		note_all(count, requests, &r, "Waitall");
		statuses = at(statuses, 0) == MPI_STATUS_IGNORE ? r.statuses : statuses;
		rc = NEXT.Waitall(count, requests, statuses);
		close_all(count, requests, &r, rc, statuses);
	} else {
		rc = saved_all(count, requests, NULL, statuses, "Waitall");
	}
	room_end(&r);
	return rc;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	struct call call;

	call_begin(&call, "Waitall");
	return leave(&call, true, waitall_it(count, requests, statuses));
}

/* -------------------------------------------------------------------------------------------------------- some --- */

/*
 * The n that were found, and only those, by Test; or, where one has failed, by Testsome of them alone: so that MPI
 * tells it as it does of several, in the statuses. (Open MPI writes MPI_ERROR of every one in any case.)
 */
static int complete_some(int n, MPI_Request *requests, const int *indices, MPI_Status *statuses, struct room *r,
			 const char *by)
{
	int rc = MPI_SUCCESS, flag = 0;
	bool failed = false;

	for (int i = 0; i < n; i++) {
		r->handles[i] = requests[indices[i]];
		failed |= r->statuses[i].MPI_ERROR != MPI_SUCCESS;
	}
	note_all(n, r->handles, r, by);
	if (failed) {
		int places[FEW], *where = n <= FEW ? places : malloc((size_t)n * sizeof(int)), m = 0;

		rc = where ? NEXT.Testsome(n, r->handles, &m, where, statuses) : MPI_ERR_NO_MEM;
		for (int i = 0; i < n; i++) {
			requests[indices[i]] = r->handles[i];
			op_close(r->ops[i], MPI_SUCCESS); /* what the query has said stays */
		}
		if (where != places)
			free(where);
		return rc;
	}
	for (int i = 0; i < n; i++) {
		MPI_Status *its = at(statuses, i);
		int its_rc = NEXT.Test(&requests[indices[i]], &flag, its);

#ifdef OPEN_MPI
		if (its != MPI_STATUS_IGNORE)
			its->MPI_ERROR = MPI_SUCCESS;
#endif
		op_close(r->ops[i], its_rc);
		if (its_rc != MPI_SUCCESS) { /* of which the query knew nothing */
			rc = MPI_ERR_IN_STATUS;
			for (int k = 0; its != MPI_STATUS_IGNORE && k < i && !failed; k++)
				statuses[k].MPI_ERROR = MPI_SUCCESS;
			failed = true;
		}
		if (failed && its != MPI_STATUS_IGNORE)
			its->MPI_ERROR = its_rc;
	}
	return rc;
}

static int some(int count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses, bool wait,
		const char *by)
{
	struct room r;
	int n, rc;

	if (!outcount || (count > 0 && !indices) || !looks(count, requests) || !room_make(&r, count))
		return saved_some(count, requests, outcount, indices, statuses, wait, by);
	while (!(n = look_some(count, requests, indices, &r)) && wait)
		sched_yield();
	if (n == -1) {
		rc = saved_some(count, requests, outcount, indices, statuses, wait, by);
	} else {
		*outcount = n;
		rc = n > 0 ? complete_some(n, requests, indices, statuses, &r, by) : MPI_SUCCESS;
	}
	room_end(&r);
	return rc;
}

int MPI_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	struct call call;

	call_begin(&call, "Testsome");
	return leave(&call, false, some(incount, requests, outcount, indices, statuses, false, "Testsome"));
}

int MPI_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	struct call call;

	call_begin(&call, "Waitsome");
	return leave(&call, true, some(incount, requests, outcount, indices, statuses, true, "Waitsome"));
}

/* --------------------------------------------------------------------------------------------------------- any --- */

/*
 * Asked is which are complete, not for any one of them: the query may name another one each time, where both MPIs'
 * Testany and Waitany complete the first in the array, and a program shall see the order that it sees without the tool.
 */
static int any(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status, const char *by)
{
	struct room r;
	int few[FEW], *indices = count <= FEW ? few : malloc((size_t)count * sizeof(int)), n, rc, done = 1;

	if (!index || !looks(count, requests) || !indices || !room_make(&r, count)) {
		if (indices != few)
			free(indices);
		return saved_any(count, requests, index, flag, status, by);
	}
	while (!(n = look_some(count, requests, indices, &r)) && !flag)
		sched_yield();
	if (n > 0) {
		note_all(1, &requests[indices[0]], &r, by);
		rc = NEXT.Test(&requests[indices[0]], &done, status);
		op_close(r.ops[0], rc);
		*index = indices[0];
		if (flag)
			*flag = 1;
	} else if (!n) {
		*index = MPI_UNDEFINED;
		*flag = 0;
		rc = MPI_SUCCESS;
	} else { /* none is active, or an error: the call itself says it best */
		rc = saved_any(count, requests, index, flag, status, by);
	}
	if (indices != few)
		free(indices);
	room_end(&r);
	return rc;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	struct call call;

	if (!flag)
		return NEXT.Testany(count, requests, index, flag, status);
	call_begin(&call, "Testany");
	return leave(&call, false, any(count, requests, index, flag, status, "Testany"));
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	struct call call;

	call_begin(&call, "Waitany");
	return leave(&call, true, any(count, requests, index, NULL, status, "Waitany"));
}

/* ------------------------------------------------------------------------------------------------ continuations --- */

int MPI_Continue_init(MPI_Info info, MPI_Request *cr)
{
	int rc = NEXT.Continue_init(info, cr);

	if (rc == MPI_SUCCESS && follows())
		cr_made(*cr);
	return rc;
}

int MPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cr)
{
	int rc = next_Continue_init(flags, max_poll, info, cr);

	if (rc == MPI_SUCCESS && follows())
		cr_made(*cr);
	return rc;
}

static void draft_runs(MPI_Status *statuses, void *data)
{
	struct attached *a = data;
	MPI_Continue_cb_function *cb = a->draft;
	MPI_Status *given = a->given;
	void *own = a->data;

	(void)statuses;
	attached_runs(a);
	running++;
	cb(given, own);
	running--;
	attached_done(a, MPI_SUCCESS);
}

static int revised_runs(int rc, void *data)
{
	struct attached *a = data;
	MPIX_Continue_cb_function *cb = a->revised;
	void *own = a->data;

	attached_runs(a);
	running++;
	rc = cb(rc, own);
	running--;
	attached_done(a, rc);
	return rc;
}

static bool crs_among(int count, const MPI_Request *requests)
{
	for (int i = 0; i < count; i++)
		if (cr_is(requests[i]))
			return true;
	return false;
}

static struct attached *attaches(int count, MPI_Request *ops, MPI_Status *statuses, void *data)
{
	struct attached *a;

	if (!follows() || count < 0 || (count && !ops) || crs_among(count, ops))
		return NULL;
	a = attached_make(count, ops, statuses);
	if (a)
		a->data = data;
	return a;
}

int MPI_Continue(MPI_Request *op, MPI_Continue_cb_function *cb, void *data, MPI_Status *status, MPI_Request cr)
{
	struct call call;
	struct attached *a = cb ? attaches(1, op, status, data) : NULL;
	int rc;

	if (!a)
		return NEXT.Continue(op, cb, data, status, cr);
	a->draft = cb;
	call_begin(&call, "Continue");
	rc = NEXT.Continue(op, draft_runs, a, a->own, cr);
	if (rc)
		attached_undo(a);
	return leave(&call, false, rc);
}

int MPI_Continueall(int count, MPI_Request ops[], MPI_Continue_cb_function *cb, void *data, MPI_Status *statuses,
		    MPI_Request cr)
{
	struct call call;
	struct attached *a = cb ? attaches(count, ops, statuses, data) : NULL;
	int rc;

	if (!a)
		return NEXT.Continueall(count, ops, cb, data, statuses, cr);
	a->draft = cb;
	call_begin(&call, "Continueall");
	rc = NEXT.Continueall(count, ops, draft_runs, a, a->own, cr);
	if (rc)
		attached_undo(a);
	return leave(&call, false, rc);
}

int MPIX_Continue(MPI_Request *op, MPIX_Continue_cb_function *cb, void *data, int flags, MPI_Status *status,
		  MPI_Request cr)
{
	struct call call;
	struct attached *a = cb ? attaches(1, op, status, data) : NULL;
	int rc;

	if (!a)
		return next_Continue(op, cb, data, flags, status, cr);
	a->revised = cb;
	call_begin(&call, "Continue");
	rc = next_Continue(op, revised_runs, a, flags, a->own, cr);
	if (rc)
		attached_undo(a);
	return leave(&call, false, rc);
}

int MPIX_Continueall(int count, MPI_Request ops[], MPIX_Continue_cb_function *cb, void *data, int flags,
		     MPI_Status statuses[], MPI_Request cr)
{
	struct call call;
	struct attached *a = cb ? attaches(count, ops, statuses, data) : NULL;
	int rc;

	if (!a)
		return next_Continueall(count, ops, cb, data, flags, statuses, cr);
	a->revised = cb;
	call_begin(&call, "Continueall");
	rc = next_Continueall(count, ops, revised_runs, a, flags, a->own, cr);
	if (rc)
		attached_undo(a);
	return leave(&call, false, rc);
}

int MPIX_Continue_get_failed(MPI_Request cr, int *count, void **data)
{
	int rc = next_get_failed(cr, count, data);

	for (int i = 0; rc == MPI_SUCCESS && follows() && i < *count; i++)
		data[i] = attached_failed(data[i]);
	return rc;
}

/* -------------------------------------------------------------------------------------------- beginning and end --- */

/*
 * Behind MPI contd sees no call of the program's: its queries do not know all generalized requests. And an MPI's own
 * queries make no progress beside what is complete, and MPICH's (4.2) make persistent requests inactive.
 */
static bool misplaced(void)
{
	Dl_info query, test;
	void *ours = dlsym(RTLD_DEFAULT, "PMPIX_Request_get_status_some"), *first = dlsym(RTLD_DEFAULT, "PMPI_Test");

	return !ours || (first && dladdr(ours, &query) && dladdr(first, &test) && query.dli_fbase != test.dli_fbase);
}

static void begin(void)
{
	int initialized = 0, finalized = 0, rank = 0;

	PMPI_Initialized(&initialized);
	PMPI_Finalized(&finalized);
	begun = true;
	if (!initialized || finalized || follows())
		return;
	if (!next_query_all || !next_query_some || misplaced()) {
		PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
		if (rank)
			return;
		fprintf(stderr, "reqtrace: contd does not stand before MPI: nothing is followed. Preload it as well: "
				"LD_PRELOAD=libreqtrace.so:libcontd-mpi.so (MPICH: -mpich)\n");
		return;
	}
	output_begin();
	__atomic_store_n(&following, true, __ATOMIC_RELEASE);
}

int MPI_Init(int *argc, char ***argv)
{
	int rc = NEXT.Init(argc, argv);

	if (rc == MPI_SUCCESS)
		begin();
	return rc;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc = NEXT.Init_thread(argc, argv, required, provided);

	if (rc == MPI_SUCCESS)
		begin();
	return rc;
}

/* The others are ended without a word. */
int MPI_Abort(MPI_Comm comm, int code)
{
	if (follows() && !running)
		output_last();
	return NEXT.Abort(comm, code);
}

/* A program has run, and its calls did not come here: said once, if the launcher tells of ranks. */
static void say_unseen(void)
{
	static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
	int finalized = 0;

	PMPI_Finalized(&finalized);
	for (unsigned i = 0; finalized && i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *rank = getenv(variables[i]);

		if (rank && strcmp(rank, "0"))
			return;
	}
	if (finalized)
		fprintf(stderr,
			"reqtrace: the program has not called MPI_Init by that name (in Fortran, or a session): "
			"nothing was followed\n");
}

__attribute__((destructor)) static void exits(void)
{
	if (follows())
		output_last();
	else if (!begun)
		say_unseen();
}

int MPI_Finalize(void)
{
	if (follows()) {
		__atomic_store_n(&following, false, __ATOMIC_RELEASE);
		ops_end();
		output_end();
	}
	return NEXT.Finalize();
}
