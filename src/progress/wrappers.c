/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of MPI that this library stands in front of, by their MPI_ and PMPI_ names, as in src/doorbell/wrappers.c.
 * Each is marked while it is under way (inside.h), and counts what it begins or completes. A call that is made below
 * another one, by MPI or by a function that MPI calls back, goes on to the next library as it is.
 */
#include <dlfcn.h>
#include <stddef.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "progress/begin.h"
#include "progress/call.h"
#include "progress/calls.h"
#include "progress/closure.h"
#include "progress/inside.h"
#include "progress/outstanding.h"
#include "progress/turns.h"

#define P contd__progress

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* MPI_Attr_put */

/* ----------------------------------------------------------------------------------------------- what is behind --- */

#define NEXT(S, name) next_##name##S

#define DECLARE(S, name, parameters, arguments) static __typeof__(&MPI_##name##S) NEXT(S, name);
#define DECLARE_Y(S, name, nonblocking, parameters, arguments) DECLARE(S, name, parameters, arguments)
#define DECLARE_BOTH(S, name, nonblocking, parameters, arguments) \
	DECLARE(S, name, parameters, arguments) DECLARE(S, nonblocking, parameters, arguments)
#if CONTD_RING_MPI4
#define DECLARE_Z(S, name, nonblocking, parameters, arguments) \
	DECLARE_BOTH(S, name, nonblocking, parameters, arguments) DECLARE(_init##S, name, parameters, arguments)
#else
#define DECLARE_Z DECLARE_BOTH
#endif
#define DECLARE_W(name, parameters, arguments, who) DECLARE(, name, parameters, arguments)

/* Each list again, with a macro for each shape. */
#if CONTD_RING_LARGE_COUNTS
#define LARGE(list, ...) list(__VA_ARGS__, _c, MPI_Count)
#define LARGE_WINDOWS(X) CONTD_PROGRESS_WINDOW_COUNTED(X, _c, MPI_Aint)
#else
#define LARGE(list, ...)
#define LARGE_WINDOWS(X)
#endif
#define EXTRA_CALLS(X) \
	CONTD_PROGRESS_BACK_PLAIN(X) \
	CONTD_PROGRESS_BACK_COUNTED(X, , int) \
	LARGE(CONTD_PROGRESS_BACK_COUNTED, X) \
	CONTD_PROGRESS_BEGINS_COUNTED(X, , int) \
	LARGE(CONTD_PROGRESS_BEGINS_COUNTED, X) \
	CONTD_PROGRESS_WINDOW_COUNTED(X, , int) \
	LARGE_WINDOWS(X) \
	CONTD_PROGRESS_WINDOW_PLAIN(X) \
	CONTD_PROGRESS_USER(X) \
	X(, Win_free, (MPI_Win * win), (win)) \
	X(, Abort, (MPI_Comm comm, int code), (comm, code)) \
	X4(X) \
	X4_LARGE(X)
#if CONTD_RING_MPI4
#define X4(X) \
	X(, Session_create_errhandler, (MPI_Session_errhandler_function * function, MPI_Errhandler * handler), \
	  (function, handler)) \
	X(, Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * newcomm, MPI_Request * request), \
	  (comm, info, newcomm, request)) \
	X(, Precv_init, \
	  (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
	   MPI_Info info, MPI_Request *request), \
	  (buf, partitions, count, type, source, tag, comm, info, request))
#else
#define X4(X)
#endif
#if CONTD_RING_LARGE_COUNTS
#define X4_LARGE(X) \
	X(_c, Register_datarep, \
	  (const char *name, MPI_Datarep_conversion_function_c *from, MPI_Datarep_conversion_function_c *to, \
	   MPI_Datarep_extent_function *extent, void *state), \
	  (name, from, to, extent, state)) \
	X(, T_event_register_callback, \
	  (MPI_T_event_registration event, MPI_T_cb_safety safety, MPI_Info info, void *data, \
	   MPI_T_event_cb_function function), \
	  (event, safety, info, data, function))
#else
#define X4_LARGE(X)
#endif

CONTD_RING_CALLS(DECLARE, DECLARE_Y, DECLARE_Z, DECLARE_W)
EXTRA_CALLS(DECLARE)

#define RESOLVE(S, name, parameters, arguments) \
	NEXT(S, name) = (__typeof__(NEXT(S, name)))dlsym(RTLD_NEXT, "PMPI_" #name #S);
#define RESOLVE_Y(S, name, nonblocking, parameters, arguments) RESOLVE(S, name, parameters, arguments)
#define RESOLVE_BOTH(S, name, nonblocking, parameters, arguments) \
	RESOLVE(S, name, parameters, arguments) RESOLVE(S, nonblocking, parameters, arguments)
#if CONTD_RING_MPI4
#define RESOLVE_Z(S, name, nonblocking, parameters, arguments) \
	RESOLVE_BOTH(S, name, nonblocking, parameters, arguments) RESOLVE(_init##S, name, parameters, arguments)
#else
#define RESOLVE_Z RESOLVE_BOTH
#endif
#define RESOLVE_W(name, parameters, arguments, who) RESOLVE(, name, parameters, arguments)

/* Persistent collectives under MPIX_ names. */
#ifdef OMPI_MAJOR_VERSION
#define COLLECTIVES_X(X) CONTD_RING_COLLECTIVE_COUNTED(X, , int, int) CONTD_RING_COLLECTIVE_PLAIN(X)
#define NEXT_X(name) next_x_##name
#define DECLARE_X(S, name, nonblocking, parameters, arguments) \
	static int (*NEXT_X(name))(UNPACK parameters, MPI_Info info, MPI_Request * request);
#define RESOLVE_X(S, name, nonblocking, parameters, arguments) \
	NEXT_X(name) = (__typeof__(NEXT_X(name)))dlsym(RTLD_NEXT, "PMPIX_" #name "_init");
COLLECTIVES_X(DECLARE_X)
#else
#define COLLECTIVES_X(X)
#endif

/* clang-format off */
__attribute__((constructor)) static void resolve(void)
{
	CONTD_RING_CALLS(RESOLVE, RESOLVE_Y, RESOLVE_Z, RESOLVE_W)
	EXTRA_CALLS(RESOLVE)
	COLLECTIVES_X(RESOLVE_X)
}
/* clang-format on */

/* ------------------------------------------------------------------------------------------- shapes of wrappers --- */

#define INLINE static inline __attribute__((always_inline))

/* always: also below another call, in code of MPI's or in a callback of the program's. */
#define CALL_ALWAYS(S, name, parameters, arguments, always, afterwards) \
	static int on_##name##S parameters \
	{ \
		struct contd__mark mark; \
		enum contd__entered how = contd__call_in(CONTD__FRAME, &mark); \
		int rc; \
\
		if (how == ENTERED_UNSEEN) \
			return NEXT(S, name) arguments; \
		rc = NEXT(S, name) arguments; \
		if (rc == MPI_SUCCESS) { \
			always; \
		} \
		if (!contd__call_counts(how)) \
			return rc; \
		if (rc == MPI_SUCCESS) { \
			afterwards; \
		} \
		contd__call_out(how, &mark); \
		return rc; \
	}
#define CALL(S, name, parameters, arguments, afterwards) \
	CALL_ALWAYS(S, name, parameters, arguments, (void)0, afterwards)
#define CALL_PLAIN(S, name, parameters, arguments) CALL(S, name, parameters, arguments, (void)0)
#define CALL_BEGINS(S, name, parameters, arguments) CALL(S, name, parameters, arguments, begun(*request))
#define CALL_MADE(S, name, parameters, arguments) \
	CALL(S, name, parameters, arguments, contd__persistent_made(*request, false))
#define CALL_WINDOW(S, name, parameters, arguments) CALL(S, name, parameters, arguments, contd__more(&P.windows))
#define CALL_USER(S, name, parameters, arguments) \
	CALL_ALWAYS(S, name, parameters, arguments, user_made(how, (uintptr_t)(function)), (void)0)

/* Something with a function that MPI may call at any time later. MPI makes such things for itself, too. */
static void user_made(enum contd__entered how, uintptr_t function)
{
	if (how != ENTERED_INNER || !contd__is_of_mpi(function))
		contd__store(&P.user_code, 1);
}

INLINE void begun(MPI_Request request)
{
	if (request != MPI_REQUEST_NULL)
		contd__more(&P.requests);
}

/* Did the program make it? */
static bool is_users(MPI_Op op)
{
	static const MPI_Op of_mpi[] = {MPI_OP_NULL, MPI_SUM,    MPI_MAX,    MPI_MIN,     MPI_PROD,
					MPI_LAND,    MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR,
					MPI_BXOR,    MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};

	for (size_t i = 0; i < sizeof(of_mpi) / sizeof(of_mpi[0]); i++)
		if (op == of_mpi[i])
			return false;
	return true;
}

/* The operation that a collective reduces by. */
#define OP_OF_Barrier MPI_OP_NULL
#define OP_OF_Bcast MPI_OP_NULL
#define OP_OF_Gather MPI_OP_NULL
#define OP_OF_Gatherv MPI_OP_NULL
#define OP_OF_Scatter MPI_OP_NULL
#define OP_OF_Scatterv MPI_OP_NULL
#define OP_OF_Allgather MPI_OP_NULL
#define OP_OF_Allgatherv MPI_OP_NULL
#define OP_OF_Alltoall MPI_OP_NULL
#define OP_OF_Alltoallv MPI_OP_NULL
#define OP_OF_Alltoallw MPI_OP_NULL
#define OP_OF_Neighbor_allgather MPI_OP_NULL
#define OP_OF_Neighbor_allgatherv MPI_OP_NULL
#define OP_OF_Neighbor_alltoall MPI_OP_NULL
#define OP_OF_Neighbor_alltoallv MPI_OP_NULL
#define OP_OF_Neighbor_alltoallw MPI_OP_NULL
#define OP_OF_Reduce op
#define OP_OF_Allreduce op
#define OP_OF_Reduce_scatter op
#define OP_OF_Reduce_scatter_block op
#define OP_OF_Scan op
#define OP_OF_Exscan op

INLINE void reduces(MPI_Op op, MPI_Request request)
{
	if (is_users(op))
		contd__reduction_begun(request);
}

/* Made below another call it counts, too: it may be started outside. */
INLINE void reduction_made(MPI_Op op, MPI_Request request)
{
	if (is_users(op))
		contd__persistent_made(request, true);
}

/* ------------------------------------------------------------------------------------------ the calls, by lists --- */

/* In these lists are calls with a request, calls without, and calls that make a persistent one. */
#define SHAPE_Bsend CALL_PLAIN
#define SHAPE_Isend CALL_BEGINS
#define SHAPE_Ibsend CALL_BEGINS
#define SHAPE_Issend CALL_BEGINS
#define SHAPE_Irsend CALL_BEGINS
#define SHAPE_Sendrecv CALL_PLAIN
#define SHAPE_Sendrecv_replace CALL_PLAIN
#define SHAPE_Recv CALL_PLAIN
#define SHAPE_Irecv CALL_BEGINS
#define SHAPE_Recv_init CALL_MADE
#define SHAPE_Mrecv CALL_PLAIN
#define SHAPE_Imrecv CALL_BEGINS
#define CALL_SHAPED(S, name, parameters, arguments) SHAPE_##name(S, name, parameters, arguments)

#define CALL_Y(S, name, nonblocking, parameters, arguments) CALL_PLAIN(S, name, parameters, arguments)
#define CALL_BOTH(S, name, nonblocking, parameters, arguments) \
	CALL_PLAIN(S, name, parameters, arguments) \
	CALL_ALWAYS(S, nonblocking, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request), \
		    reduces(OP_OF_##name, *request), begun(*request))
#define CALL_INIT(S, name, parameters, arguments, op) \
	CALL_ALWAYS(S, name, (UNPACK parameters, MPI_Info info, MPI_Request * request), \
		    (UNPACK arguments, info, request), reduction_made(op, *request), \
		    contd__persistent_made(*request, false))
#if CONTD_RING_MPI4
#define CALL_Z(S, name, nonblocking, parameters, arguments) \
	CALL_BOTH(S, name, nonblocking, parameters, arguments) \
	CALL_INIT(_init##S, name, parameters, arguments, OP_OF_##name)
#else
#define CALL_Z CALL_BOTH
#endif
#define CALL_W(name, parameters, arguments, who) CALL_PLAIN(, name, parameters, arguments)

#define COUNTED(S, N, V) \
	CONTD_RING_SENT(CALL_SHAPED, S, N) \
	CONTD_RING_BLOCKING(CALL_Y, S, N) \
	CONTD_RING_COLLECTIVE_COUNTED(CALL_Z, S, N, V) \
	CONTD_RING_MADE(CALL_MADE, S, N) \
	CONTD_RING_RMA(CALL_PLAIN, S, N) \
	CONTD_RING_RMA_REQUEST(CALL_BEGINS, S, N) \
	CONTD_RING_OTHER_COUNTED(CALL_SHAPED, S, N) \
	CONTD_RING_SENDRECV(CALL_BEGINS, S, N) \
	CONTD_PROGRESS_BACK_COUNTED(CALL_PLAIN, S, N) \
	CONTD_PROGRESS_BEGINS_COUNTED(CALL_BEGINS, S, N)
COUNTED(, int, int)
CONTD_PROGRESS_WINDOW_COUNTED(CALL_WINDOW, , int)
#if CONTD_RING_LARGE_COUNTS
COUNTED(_c, MPI_Count, MPI_Aint)
LARGE_WINDOWS(CALL_WINDOW)
#endif
CONTD_RING_COLLECTIVE_PLAIN(CALL_Z)
CONTD_RING_RMA_ONE(CALL_PLAIN)
CONTD_RING_SYNC(CALL_W)
CONTD_RING_SYNC_SHORT(CALL_W)
CONTD_PROGRESS_BACK_PLAIN(CALL_PLAIN)
CONTD_PROGRESS_WINDOW_PLAIN(CALL_WINDOW)

#define SHAPE_Comm_create_errhandler CALL_USER
#define SHAPE_Win_create_errhandler CALL_USER
#define SHAPE_File_create_errhandler CALL_USER
#define SHAPE_Register_datarep CALL_USER
/* MPI calls its functions in calls that complete or cancel the request, which are marked; never in others' progress. */
#define SHAPE_Grequest_start CALL_BEGINS
CONTD_PROGRESS_USER(CALL_SHAPED)
CALL(, Win_free, (MPI_Win * win), (win), contd__fewer(&P.windows, 1))
#if CONTD_RING_LARGE_COUNTS
CALL_USER(_c, Register_datarep,
	  (const char *name, MPI_Datarep_conversion_function_c *from, MPI_Datarep_conversion_function_c *to,
	   MPI_Datarep_extent_function *function, void *state),
	  (name, from, to, function, state))
CALL_USER(, T_event_register_callback,
	  (MPI_T_event_registration event, MPI_T_cb_safety safety, MPI_Info info, void *data,
	   MPI_T_event_cb_function function),
	  (event, safety, info, data, function))
#endif
#if CONTD_RING_MPI4
CALL_USER(, Session_create_errhandler, (MPI_Session_errhandler_function * function, MPI_Errhandler *handler),
	  (function, handler))
CALL_BEGINS(, Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
	    (comm, info, newcomm, request))
CALL_MADE(, Precv_init,
	  (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
	   MPI_Info info, MPI_Request *request),
	  (buf, partitions, count, type, source, tag, comm, info, request))
#endif
CALL_PLAIN(, Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
	   (source, tag, comm, flag, status))
CALL_PLAIN(, Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
	   (source, tag, comm, flag, message, status))
CALL_PLAIN(, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status))
CALL_PLAIN(, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
	   (source, tag, comm, message, status))
CALL_BEGINS(, Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request))
#define SHAPE_Psend_init CALL_MADE
#define SHAPE_Pready CALL_PLAIN
#define SHAPE_Pready_range CALL_PLAIN
#define SHAPE_Pready_list CALL_PLAIN
CONTD_RING_PARTITIONED(CALL_SHAPED)

/* --------------------------------------------------------------------------------------------------- completion --- */

static int not_null(int count, const MPI_Request requests[])
{
	int n = 0;

	for (int i = 0; requests && i < count; i++)
		n += requests[i] != MPI_REQUEST_NULL;
	return n;
}

/* One that is not MPI_REQUEST_NULL any more was complete; one that still is not, persistent. */
static void completed(int before, int count, const MPI_Request requests[])
{
	contd__fewer(&P.requests, before - not_null(count, requests));
}

static void all_persistent(int count, const MPI_Request requests[])
{
	for (int i = 0; contd__persistents && i < count; i++)
		contd__persistent_complete(requests[i]);
}

static void some_persistent(int count, const int indices[], const MPI_Request requests[])
{
	for (int i = 0; contd__persistents && i < count; i++)
		if (indices[i] >= 0)
			contd__persistent_complete(requests[indices[i]]);
}

/* `n` requests, which are `these`. When they are complete, `then`. */
#define COMPLETES(name, parameters, arguments, n, these, is_complete, then) \
	static int on_##name parameters \
	{ \
		struct contd__mark mark; \
		enum contd__entered how = contd__call_in(CONTD__FRAME, &mark); \
		struct contd__looked_at looked_at; \
		int rc, before; \
\
		if (how == ENTERED_UNSEEN) \
			return NEXT(, name) arguments; \
		before = not_null(n, these); \
		contd__look_at(&looked_at, n, these); \
		rc = NEXT(, name) arguments; \
		contd__looked(&looked_at, these); \
		if (!contd__call_counts(how)) \
			return rc; \
		completed(before, n, these); \
		if (rc == MPI_SUCCESS && (is_complete)) \
			then; \
		contd__call_out(how, &mark); \
		return rc; \
	}

COMPLETES(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), 1, request, *flag,
	  contd__persistent_complete(*request))
COMPLETES(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
	  (count, requests, index, flag, status), count, requests, *flag, some_persistent(1, index, requests))
COMPLETES(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
	  (count, requests, flag, statuses), count, requests, *flag, all_persistent(count, requests))
COMPLETES(Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
	  (incount, requests, outcount, indices, statuses), incount, requests, *outcount > 0,
	  some_persistent(*outcount, indices, requests))
COMPLETES(Wait, (MPI_Request * request, MPI_Status *status), (request, status), 1, request, true,
	  contd__persistent_complete(*request))
COMPLETES(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
	  (count, requests, index, status), count, requests, true, some_persistent(1, index, requests))
COMPLETES(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses), count,
	  requests, true, all_persistent(count, requests))
COMPLETES(Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
	  (incount, requests, outcount, indices, statuses), incount, requests, *outcount > 0,
	  some_persistent(*outcount, indices, requests))

static void started(int count, const MPI_Request requests[])
{
	for (int i = 0; i < count; i++)
		contd__persistent_started(requests[i]);
}
CALL(, Start, (MPI_Request * request), (request), started(1, request))
CALL(, Startall, (int count, MPI_Request requests[]), (count, requests), started(count, requests))

/* An operation that goes on without its request is not counted: nothing would say when it is complete. */
static int on_Request_free(MPI_Request *request)
{
	struct contd__mark mark;
	enum contd__entered how = contd__call_in(CONTD__FRAME, &mark);
	struct contd__persistent persistent;
	MPI_Request before;
	int rc;

	if (!contd__call_counts(how))
		return NEXT(, Request_free)(request);
	before = request ? *request : MPI_REQUEST_NULL;
	/* Before the call: another thread may get a request with this handle as soon as it is free. */
	persistent = contd__persistent_freed(before);
	rc = NEXT(, Request_free)(request);
	if (rc != MPI_SUCCESS)
		contd__persistent_kept(before, persistent);
	else if (before != MPI_REQUEST_NULL && !persistent.is)
		contd__fewer(&P.requests, 1);
	contd__call_out(how, &mark);
	return rc;
}

/* -------------------------------------------------------------------------------------- MPIX_Bcast_init() ... --- */

#ifdef OMPI_MAJOR_VERSION
#define CALL_X(S, name, nonblocking, parameters, arguments) \
	CONTD_API int MPIX_##name##_init(UNPACK parameters, MPI_Info info, MPI_Request *request); \
	CONTD_API int PMPIX_##name##_init(UNPACK parameters, MPI_Info info, MPI_Request *request); \
	int MPIX_##name##_init(UNPACK parameters, MPI_Info info, MPI_Request *request) \
	{ \
		return PMPIX_##name##_init(UNPACK arguments, info, request); \
	} \
	int PMPIX_##name##_init(UNPACK parameters, MPI_Info info, MPI_Request *request) \
	{ \
		struct contd__mark mark; \
		enum contd__entered how; \
		int rc; \
\
		if (!NEXT_X(name)) /* this MPI has no such call */ \
			return MPI_ERR_OTHER; \
		how = contd__call_in(CONTD__FRAME, &mark); \
		rc = NEXT_X(name)(UNPACK arguments, info, request); \
		if (rc == MPI_SUCCESS && how != ENTERED_UNSEEN) \
			reduction_made(OP_OF_##name, *request); \
		if (!contd__call_counts(how)) \
			return rc; \
		if (rc == MPI_SUCCESS) \
			contd__persistent_made(*request, false); \
		contd__call_out(how, &mark); \
		return rc; \
	}
COLLECTIVES_X(CALL_X)
#endif

/* ------------------------------------------------------------------------------------------------ begin and end --- */

/* In the constructor of another library this library's may not have run yet. */
INLINE void resolve_now(void)
{
	if (__builtin_expect(!NEXT(, Init), 0))
		resolve();
}

static int on_Init(int *argc, char ***argv)
{
	int rc;

	resolve_now();
	contd__progress_before_init();
	rc = NEXT(, Init)(argc, argv);
	if (rc == MPI_SUCCESS)
		contd__progress_begin();
	return rc;
}

static int on_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	resolve_now();
	contd__progress_before_init();
	rc = NEXT(, Init_thread)(argc, argv, required, provided);
	if (rc == MPI_SUCCESS)
		contd__progress_begin();
	return rc;
}

/* Below MPI_THREAD_MULTIPLE it must not be beside a tick on another thread. */
static int on_Abort(MPI_Comm comm, int code)
{
	resolve_now();
	contd__program_ends();
	return NEXT(, Abort)(comm, code);
}

static int on_Finalize(void)
{
	contd__progress_end();
	return NEXT(, Finalize)();
}

/* ---------------------------------------------------------------------------------------------------- the names --- */

#define NAMES(S, name, parameters, arguments) CONTD_RING_BOTH_NAMES(S, name, parameters, arguments, )
CONTD_RING_NAMES
EXTRA_CALLS(NAMES)
