/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell library: MPI's calls, by MPI_ and by PMPI_ names, that do what MPI does and then ring the peers that
 * something was sent to. The program need not know of it; it stands before MPI when linked, or is preloaded.
 *
 * A call by an MPI_ name goes on to the PMPI_ name, which this library has, or contd-mpi if that stands before it.
 * There it goes on to the next library's function of that name (dlsym(3), RTLD_NEXT), and rings. So it does not matter
 * which of the two comes first, and a tool in front is rung for as well. So is Fortran on Open MPI: its wrappers call
 * PMPI_ functions (MPICH's call MPI_ ones). Calls from inside the MPI library pass through.
 *
 * A call may wait for a peer that is known to be on this host and to have contd. Such a call is taken apart, if MPI
 * lets that be done: begun, rung for, and waited for with a ring now and then (transfers.h). Those of one-sided
 * communication cannot be; a ring just before makes the peer look when the call has sent what it sends at once, and for
 * the rest there is the helper thread.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "doorbell/targets.h"
#include "doorbell/transfers.h"
#include "mpi/library.h"
#include "mpi/signatures.h"

#define EVERYBODY (-1)
#define PACKED_MOST (INT_MAX / 2) /* MPI_Pack_size adds something, and counts in int */
#define INLINE static inline __attribute__((always_inline))

/* ----------------------------------------------------------------------------------------------- what is behind --- */

#define NEXT(S, name) next_##name##S

#define DECLARE(S, name) static __typeof__(&MPI_##name##S) NEXT(S, name);
#define DECLARE_X(S, name, parameters, arguments) DECLARE(S, name)
#define DECLARE_Y(S, name, nonblocking, parameters, arguments) DECLARE(S, name)
#if CONTD_RING_MPI4
#define DECLARE_Z(S, name, nonblocking, parameters, arguments) \
	DECLARE(S, name) DECLARE(S, nonblocking) DECLARE(_init##S, name)
#else
#define DECLARE_Z(S, name, nonblocking, parameters, arguments) DECLARE(S, name) DECLARE(S, nonblocking)
#endif
#define DECLARE_W(name, parameters, arguments, who) DECLARE(, name)
CONTD_RING_CALLS(DECLARE_X, DECLARE_Y, DECLARE_Z, DECLARE_W)

#define RESOLVE(S, name) NEXT(S, name) = (__typeof__(NEXT(S, name)))dlsym(RTLD_NEXT, "PMPI_" #name #S);
#define RESOLVE_X(S, name, parameters, arguments) RESOLVE(S, name)
#define RESOLVE_Y(S, name, nonblocking, parameters, arguments) RESOLVE(S, name)
#if CONTD_RING_MPI4
#define RESOLVE_Z(S, name, nonblocking, parameters, arguments) \
	RESOLVE(S, name) RESOLVE(S, nonblocking) RESOLVE(_init##S, name)
#else
#define RESOLVE_Z(S, name, nonblocking, parameters, arguments) RESOLVE(S, name) RESOLVE(S, nonblocking)
#endif
#define RESOLVE_W(name, parameters, arguments, who) RESOLVE(, name)

static struct contd__library mpi_library;

/* Before main and before any MPI call of the program's. */
__attribute__((constructor)) static void resolve(void)
{
	CONTD_RING_CALLS(RESOLVE_X, RESOLVE_Y, RESOLVE_Z, RESOLVE_W)
	/* Of MPI itself, whichever libraries stand between. */
	contd__library_find(&mpi_library, (uintptr_t)dlsym(RTLD_NEXT, "PMPI_Get_library_version"));
}

/* Between MPI_Init and MPI_Finalize. With MPI sessions alone there is no MPI_COMM_WORLD to know peers by. */
static uint32_t rings;

INLINE bool ringing(void)
{
	return __builtin_expect(contd__load(&rings), 1);
}

/* ----------------------------------------------------------------------------------------------- point to point --- */

INLINE struct contd__place *peer_of(int rank, MPI_Comm comm)
{
	return ringing() ? contd__ring_find(rank, comm) : NULL;
}

/* MPI may not have checked the arguments yet. Of a type that is none MPI_Type_size would tell another error handler. */
static int64_t bytes_of(int64_t count, MPI_Datatype type)
{
	int size = 0;

	if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size))
		return 0;
	return size < 0 ? INT64_MAX / 2 : count * size; /* MPI_UNDEFINED: over 2 GiB each */
}

/* Something was sent to the peer; a long message goes on being sent. */
INLINE void sent(int dest, MPI_Comm comm, int64_t count, MPI_Datatype type)
{
	struct contd__place *p = peer_of(dest, comm);
	int64_t bytes;

	if (!p)
		return;
	bytes = bytes_of(count, type);
	if (bytes >= CONTD_LONG_BYTES)
		contd__owe(p, bytes);
	contd__ring_place(p);
}

#define ON_SENT(S, name, parameters, arguments) \
	static int on_##name##S parameters \
	{ \
		int rc = NEXT(S, name) arguments; \
\
		if (rc == MPI_SUCCESS) \
			sent(dest, comm, count, type); \
		return rc; \
	}
CONTD_RING_SENT(ON_SENT, , int)
#if CONTD_RING_LARGE_COUNTS
CONTD_RING_SENT(ON_SENT, _c, MPI_Count)
#endif

/* Waits for a request that this library has made. */
static int finish(MPI_Request *request, struct contd__place *p, MPI_Status *status)
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc = MPI_SUCCESS;

	while (rc == MPI_SUCCESS && !flag) {
		rc = NEXT(, Test)(request, &flag, status);
		if (rc == MPI_SUCCESS && !flag)
			contd__stall_turn(&stall, p);
	}
	return rc;
}

enum { SYNC_Send = 0, SYNC_Ssend = 1, SYNC_Rsend = 0 };

#define ON_BLOCKING(S, name, nonblocking, parameters, arguments) \
	static int on_##name##S parameters \
	{ \
		struct contd__place *p = peer_of(dest, comm); \
		MPI_Request request; \
		int rc; \
\
		if (!p || (!SYNC_##name && bytes_of(count, type) < CONTD_LONG_BYTES)) { \
			rc = NEXT(S, name) arguments; \
			if (p) \
				contd__ring_place(p); \
			return rc; \
		} \
		rc = NEXT(S, nonblocking)(buf, count, type, dest, tag, comm, &request); \
		if (rc == MPI_SUCCESS) { \
			contd__ring_place(p); \
			rc = finish(&request, p, MPI_STATUS_IGNORE); \
			contd__ring_place(p); \
		} \
		return rc; \
	}
CONTD_RING_BLOCKING(ON_BLOCKING, , int)
#if CONTD_RING_LARGE_COUNTS
CONTD_RING_BLOCKING(ON_BLOCKING, _c, MPI_Count)
#endif

/* A long message may need the sender's progress to come; a short one comes when it was sent. */
static int received(MPI_Request *request, struct contd__place *from, int64_t bytes, MPI_Status *status)
{
	return from && bytes >= CONTD_LONG_BYTES ? finish(request, from, status) : NEXT(, Wait)(request, status);
}

/* The send was refused. A receive that has met its message cannot be cancelled: then it completes by itself. */
static void withdraw(MPI_Request *receive, struct contd__place *from)
{
	PMPI_Cancel(receive);
	finish(receive, from, MPI_STATUS_IGNORE);
}

/*
 * With both parts begun, the peer that a message goes to is rung before the other part is waited for, because mostly
 * that is an answer. For MPI_Sendrecv's status the rules of MPI_Wait apply.
 *
 * MPI checks the arguments of both parts before it begins either. Here a send to MPI_PROC_NULL checks those of the
 * send: its destination is a rank of the communicator, because a peer was found by it. Beginning the receive checks the
 * receive's. MPI can still refuse a send if it lacks memory.
 */
#define ON_SENDRECV(S, N) \
	static int on_Sendrecv##S(const void *sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
				  void *recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag, \
				  MPI_Comm comm, MPI_Status *status) \
	{ \
		struct contd__place *to = peer_of(dest, comm), *from = to ? peer_of(source, comm) : NULL; \
		MPI_Request receive, send; \
		int rc, other; \
\
		if (!to) \
			return NEXT(S, Sendrecv)(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, \
						 recvtype, source, recvtag, comm, status); \
		rc = NEXT(S, Send)(sendbuf, sendcount, sendtype, MPI_PROC_NULL, sendtag, comm); \
		if (rc == MPI_SUCCESS) \
			rc = NEXT(S, Irecv)(recvbuf, recvcount, recvtype, source, recvtag, comm, &receive); \
		if (rc) \
			return rc; \
		rc = NEXT(S, Isend)(sendbuf, sendcount, sendtype, dest, sendtag, comm, &send); \
		if (rc) { \
			withdraw(&receive, from); \
			return rc; \
		} \
		contd__ring_place(to); \
		rc = finish(&send, to, MPI_STATUS_IGNORE); \
		other = received(&receive, from, bytes_of(recvcount, recvtype), status); \
		contd__ring_place(to); \
		if (from && from != to) \
			contd__ring_place(from); \
		return rc ? rc : other; \
	}
ON_SENDRECV(, int)
#if CONTD_RING_LARGE_COUNTS
ON_SENDRECV(_c, MPI_Count)
#endif

/*
 * The message is packed, and received as any type. If that needs more room than MPI_Pack can say, or than there is, the
 * peer is rung too early.
 */
static int on_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
			       MPI_Comm comm, MPI_Status *status)
{
	struct contd__place *to = peer_of(dest, comm);
	void *copy = NULL;
	int room = 0, at = 0, rc;

	if (to) {
		/* Before anything else is asked about them: the arguments are checked, as for MPI_Sendrecv. */
		rc = NEXT(, Send)(buf, count, type, MPI_PROC_NULL, sendtag, comm);
		if (rc)
			return rc;
		if (bytes_of(count, type) <= PACKED_MOST && PMPI_Pack_size(count, type, comm, &room) == MPI_SUCCESS)
			copy = malloc((size_t)room + 1);
	}
	if (!copy || PMPI_Pack(buf, count, type, copy, room, &at, comm)) {
		if (to)
			contd__ring_place(to);
		rc = NEXT(, Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, status);
		if (to)
			contd__ring_place(to);
	} else {
		rc = on_Sendrecv(copy, at, MPI_PACKED, dest, sendtag, buf, count, type, source, recvtag, comm, status);
	}
	free(copy);
	return rc;
}

#if CONTD_RING_LARGE_COUNTS
static int on_Sendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype type, int dest, int sendtag, int source,
				 int recvtag, MPI_Comm comm, MPI_Status *status)
{
	int rc;

	if (count <= INT_MAX)
		return on_Sendrecv_replace(buf, (int)count, type, dest, sendtag, source, recvtag, comm, status);
	contd__ring_rank(ringing() ? dest : MPI_PROC_NULL, comm);
	rc = NEXT(_c, Sendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, status);
	contd__ring_rank(ringing() ? dest : MPI_PROC_NULL, comm);
	return rc;
}
#endif

/* To a long message the sender gets an answer, and goes on. */
#define ON_RECEIVE(S, N) \
	static int on_Recv##S(void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
			      MPI_Status *status) \
	{ \
		struct contd__place *from = peer_of(source, comm); \
		MPI_Request request; \
		int rc; \
\
		if (!from || bytes_of(count, type) < CONTD_LONG_BYTES) { \
			rc = NEXT(S, Recv)(buf, count, type, source, tag, comm, status); \
		} else { \
			rc = NEXT(S, Irecv)(buf, count, type, source, tag, comm, &request); \
			if (rc == MPI_SUCCESS) \
				rc = finish(&request, from, status); \
		} \
		if (from) \
			contd__ring_place(from); \
		contd__owed_ring(); \
		return rc; \
	} \
	static int on_Irecv##S(void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
			       MPI_Request *request) \
	{ \
		int rc = NEXT(S, Irecv)(buf, count, type, source, tag, comm, request); \
		struct contd__place *from; \
		int64_t bytes; \
\
		if (rc == MPI_SUCCESS && (from = peer_of(source, comm)) != NULL && \
		    (bytes = bytes_of(count, type)) >= CONTD_LONG_BYTES) { \
			contd__owe(from, bytes); \
			contd__ring_place(from); \
		} \
		return rc; \
	} \
	static int on_Recv_init##S(void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
				   MPI_Request *request) \
	{ \
		int rc = NEXT(S, Recv_init)(buf, count, type, source, tag, comm, request); \
\
		if (rc == MPI_SUCCESS && ringing()) \
			made(*request, source, comm, count, type, false); \
		return rc; \
	} \
	static int on_Mrecv##S(void *buf, N count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) \
	{ \
		int rc = NEXT(S, Mrecv)(buf, count, type, message, status); \
\
		contd__owed_ring(); \
		return rc; \
	} \
	static int on_Imrecv##S(void *buf, N count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) \
	{ \
		int rc = NEXT(S, Imrecv)(buf, count, type, message, request); \
\
		contd__owed_ring(); \
		return rc; \
	}

/* ------------------------------------------------------------------------------------------ persistent requests --- */

/* A short receive does nothing for its sender. */
static void made(MPI_Request request, int rank, MPI_Comm comm, int64_t count, MPI_Datatype type, bool sends)
{
	struct contd__members *m;
	int64_t bytes = bytes_of(count, type);
	int world = MPI_PROC_NULL;

	if (rank >= 0 && contd__ring_ready() && (sends || bytes >= CONTD_LONG_BYTES)) {
		m = contd__ring_comm(comm);
		if (!m)
			return; /* not known: all peers are rung */
		world = rank < m->count ? m->rank[rank] : MPI_PROC_NULL;
	}
	contd__made_add(request, world, NULL, bytes);
}

ON_RECEIVE(, int)
#if CONTD_RING_LARGE_COUNTS
ON_RECEIVE(_c, MPI_Count)
#endif

#define ON_MADE(S, name, parameters, arguments) \
	static int on_##name##S parameters \
	{ \
		int rc = NEXT(S, name) arguments; \
\
		if (rc == MPI_SUCCESS && ringing()) \
			made(*request, dest, comm, count, type, true); \
		return rc; \
	}
CONTD_RING_MADE(ON_MADE, , int)
#if CONTD_RING_LARGE_COUNTS
CONTD_RING_MADE(ON_MADE, _c, MPI_Count)
#endif

static int on_Start(MPI_Request *request)
{
	int rc = NEXT(, Start)(request);

	if (rc == MPI_SUCCESS && ringing())
		contd__made_start(*request);
	return rc;
}

static int on_Startall(int count, MPI_Request requests[])
{
	int rc = NEXT(, Startall)(count, requests);

	for (int i = 0; rc == MPI_SUCCESS && ringing() && i < count; i++)
		contd__made_start(requests[i]);
	return rc;
}

static int on_Request_free(MPI_Request *request)
{
	if (ringing() && request && *request != MPI_REQUEST_NULL)
		contd__made_remove(*request);
	return NEXT(, Request_free)(request);
}

#if CONTD_RING_MPI4
static int on_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag,
			 MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	int rc = NEXT(, Psend_init)(buf, partitions, count, type, dest, tag, comm, info, request);

	if (rc == MPI_SUCCESS && ringing())
		made(*request, dest, comm, partitions * (int64_t)count, type, true);
	return rc;
}

static int on_Pready(int partition, MPI_Request request)
{
	int rc = NEXT(, Pready)(partition, request);

	if (rc == MPI_SUCCESS && ringing())
		contd__made_start(request);
	return rc;
}

static int on_Pready_range(int low, int high, MPI_Request request)
{
	int rc = NEXT(, Pready_range)(low, high, request);

	if (rc == MPI_SUCCESS && ringing())
		contd__made_start(request);
	return rc;
}

static int on_Pready_list(int length, CONTD_RING_PARTITIONS partitions[], MPI_Request request)
{
	int rc = NEXT(, Pready_list)(length, partitions, request);

	if (rc == MPI_SUCCESS && ringing())
		contd__made_start(request);
	return rc;
}

#define ON_ISENDRECV(S, N) \
	static int on_Isendrecv##S(const void *sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
				   void *recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag, \
				   MPI_Comm comm, MPI_Request *request) \
	{ \
		int rc = NEXT(S, Isendrecv)(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, \
					    source, recvtag, comm, request); \
\
		if (rc == MPI_SUCCESS) \
			sent(dest, comm, sendcount, sendtype); \
		return rc; \
	} \
	static int on_Isendrecv_replace##S(void *buf, N count, MPI_Datatype type, int dest, int sendtag, int source, \
					   int recvtag, MPI_Comm comm, MPI_Request *request) \
	{ \
		int rc = NEXT(S, Isendrecv_replace)(buf, count, type, dest, sendtag, source, recvtag, comm, request); \
\
		if (rc == MPI_SUCCESS) \
			sent(dest, comm, count, type); \
		return rc; \
	}
ON_ISENDRECV(, int)
#if CONTD_RING_LARGE_COUNTS
ON_ISENDRECV(_c, MPI_Count)
#endif
#endif

/* -------------------------------------------------------------------------------------------------- collectives --- */

/* Others may have left the call, or not have come to it yet. */
static void all_told(MPI_Comm comm)
{
	if (ringing() && contd__ring_ready())
		contd__ring_all(comm);
	contd__owed_ring();
}

/* It goes in rounds, of which the next begin while this process waits for its end. */
static void begun(MPI_Comm comm)
{
	struct contd__members *m = ringing() ? contd__ring_comm(comm) : NULL;

	if (!m)
		return;
	contd__ring_members(m); /* first: it looks for those that have not been found, or are there again */
	for (int i = 0; contd__load(&contd__ring.known_count) && i < m->count; i++) {
		int world = m->rank[i];

		if (world >= 0 && world < contd__ring.count && contd__load(&contd__ring.place[world].bell))
			contd__owe(&contd__ring.place[world], 0);
	}
}

#if CONTD_RING_MPI4
static void made_for_all(MPI_Request request, MPI_Comm comm)
{
	struct contd__members *m = ringing() ? contd__ring_comm(comm) : NULL;

	if (m)
		contd__made_add(request, MPI_PROC_NULL, m, 0);
}
#endif

#define ON_COLLECTIVE(S, name, nonblocking, parameters, arguments) \
	static int on_##name##S parameters \
	{ \
		int rc = NEXT(S, name) arguments; \
\
		all_told(comm); \
		return rc; \
	} \
	static int on_##nonblocking##S(UNPACK parameters, MPI_Request *request) \
	{ \
		int rc = NEXT(S, nonblocking)(UNPACK arguments, request); \
\
		if (rc == MPI_SUCCESS) \
			begun(comm); \
		return rc; \
	}
#define ON_COLLECTIVE_INIT(S, name, nonblocking, parameters, arguments) \
	static int on_##name##_init##S(UNPACK parameters, MPI_Info info, MPI_Request *request) \
	{ \
		int rc = NEXT(_init##S, name)(UNPACK arguments, info, request); \
\
		if (rc == MPI_SUCCESS) \
			made_for_all(*request, comm); \
		return rc; \
	}
CONTD_RING_COLLECTIVE_COUNTED(ON_COLLECTIVE, , int, int)
CONTD_RING_COLLECTIVE_PLAIN(ON_COLLECTIVE)
#if CONTD_RING_LARGE_COUNTS
CONTD_RING_COLLECTIVE_COUNTED(ON_COLLECTIVE, _c, MPI_Count, MPI_Aint)
CONTD_RING_COLLECTIVE_COUNTED(ON_COLLECTIVE_INIT, _c, MPI_Count, MPI_Aint)
#endif
#if CONTD_RING_MPI4
CONTD_RING_COLLECTIVE_COUNTED(ON_COLLECTIVE_INIT, , int, int)
CONTD_RING_COLLECTIVE_PLAIN(ON_COLLECTIVE_INIT)
#endif

static int on_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
	int rc = NEXT(, Comm_idup)(comm, newcomm, request);

	if (rc == MPI_SUCCESS)
		begun(comm);
	return rc;
}

/* ---------------------------------------------------------------------------------------------------- one-sided --- */

/* The target's place, if it was found. */
static struct contd__place *target_of(int rank, MPI_Win win)
{
	struct contd__members *m = ringing() && rank >= 0 ? contd__window(win) : NULL;

	return m && rank < m->count ? contd__ring_world(m->rank[rank]) : NULL;
}

/* Some operations wait for the target themselves: Open MPI's accumulate over UCX. */
static int operation_enter(int rank, MPI_Win win, struct contd__place **pp)
{
	struct contd__place *p = target_of(rank, win);

	*pp = p;
	return p ? contd__aside_enter((int)(p - contd__ring.place)) : -1;
}

/* `from`: that many bytes, and the target answers, which is owed then. */
static void operation_leave(int slot, int rc, struct contd__place *p, int64_t bytes, int64_t from)
{
	contd__aside_leave(slot);
	if (!p || rc)
		return;
	if (bytes >= from)
		contd__owe(p, bytes);
	contd__ring_place(p);
}

#define ON_OPERATION(S, name, parameters, arguments, bytes, from) \
	static int on_##name##S parameters \
	{ \
		struct contd__place *p; \
		int slot = operation_enter(target, win, &p), rc = NEXT(S, name) arguments; \
		operation_leave(slot, rc, p, p ? bytes : 0, from); \
		return rc; \
	}

#define ON_RMA(S, name, parameters, arguments) \
	ON_OPERATION(S, name, parameters, arguments, bytes_of(target_count, target_type), CONTD_LONG_BYTES)
/* The request completes only after the target has granted the lock and has then acknowledged. */
#define ON_RMA_REQUEST(S, name, parameters, arguments) \
	ON_OPERATION(S, name, parameters, arguments, bytes_of(target_count, target_type), 0)
#define ON_RMA_ONE(S, name, parameters, arguments) ON_OPERATION(S, name, parameters, arguments, 0, CONTD_LONG_BYTES)

CONTD_RING_RMA(ON_RMA, , int)
CONTD_RING_RMA_REQUEST(ON_RMA_REQUEST, , int)
#if CONTD_RING_LARGE_COUNTS
CONTD_RING_RMA(ON_RMA, _c, MPI_Count)
CONTD_RING_RMA_REQUEST(ON_RMA_REQUEST, _c, MPI_Count)
#endif
CONTD_RING_RMA_ONE(ON_RMA_ONE)

static void sync_ring(int who, MPI_Win win)
{
	struct contd__members *m;
	struct contd__place *p;

	if (!ringing())
		return;
	if (who == EVERYBODY) {
		m = contd__window(win);
		if (m)
			contd__ring_members(m);
	} else {
		p = target_of(who, win);
		if (p)
			contd__ring_place(p);
	}
}

static int sync_enter(int who, MPI_Win win)
{
	struct contd__place *p;

	sync_ring(who, win);
	if (!ringing())
		return -1;
	if (who == EVERYBODY)
		return contd__aside_enter(-1);
	p = target_of(who, win);
	return p ? contd__aside_enter((int)(p - contd__ring.place)) : -1;
}

#define ON_SYNC(name, parameters, arguments, who) \
	static int on_##name parameters \
	{ \
		int slot = sync_enter(who, win), rc; \
\
		rc = NEXT(, name) arguments; \
		contd__aside_leave(slot); \
		sync_ring(who, win); \
		return rc; \
	}
CONTD_RING_SYNC(ON_SYNC)

#define ON_SYNC_SHORT(name, parameters, arguments, who) \
	static int on_##name parameters \
	{ \
		int rc = NEXT(, name) arguments; \
\
		sync_ring(who, win); \
		return rc; \
	}
CONTD_RING_SYNC_SHORT(ON_SYNC_SHORT)

/* --------------------------------------------------------------------------------------------------- completion --- */

/* Are peers owed rings? Then ask instead of waiting, and ring meanwhile. */
static inline bool owes(void)
{
	return __builtin_expect(contd__load(&contd__owed) > 0, 0);
}

static __thread struct contd__stall asking __attribute__((tls_model("initial-exec")));

/* A call that asks has told that nothing is complete: its caller asks again and again. */
static void asked(bool complete)
{
	if (!owes())
		return;
	if (complete) {
		asking = (struct contd__stall){0, 0};
		contd__owed_ring_all();
	} else {
		contd__stall_turn(&asking, NULL);
	}
}

static int on_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int rc = NEXT(, Test)(request, flag, status);

	asked(rc == MPI_SUCCESS && *flag);
	return rc;
}

static int on_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	int rc = NEXT(, Testany)(count, requests, index, flag, status);

	asked(rc == MPI_SUCCESS && *flag);
	return rc;
}

static int on_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	int rc = NEXT(, Testall)(count, requests, flag, statuses);

	asked(rc == MPI_SUCCESS && *flag);
	return rc;
}

static int on_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	int rc = NEXT(, Testsome)(incount, requests, outcount, indices, statuses);

	asked(rc == MPI_SUCCESS && *outcount);
	return rc;
}

static int on_Wait(MPI_Request *request, MPI_Status *status)
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc;

	while (owes()) {
		rc = NEXT(, Test)(request, &flag, status);
		if (rc || flag) {
			contd__owed_ring();
			return rc;
		}
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Wait)(request, status);
}

static int on_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc;

	while (owes()) {
		rc = NEXT(, Testany)(count, requests, index, &flag, status);
		if (rc || flag) {
			contd__owed_ring();
			return rc;
		}
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Waitany)(count, requests, index, status);
}

static int on_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc;

	while (owes()) {
		rc = NEXT(, Testall)(count, requests, &flag, statuses);
		if (rc || flag) {
			contd__owed_ring();
			return rc;
		}
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Waitall)(count, requests, statuses);
}

static int on_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	struct contd__stall stall = {0, 0};
	int rc;

	while (owes()) {
		rc = NEXT(, Testsome)(incount, requests, outcount, indices, statuses);
		if (rc || *outcount) {
			contd__owed_ring();
			return rc;
		}
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Waitsome)(incount, requests, outcount, indices, statuses);
}

static int on_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int rc = NEXT(, Iprobe)(source, tag, comm, flag, status);

	asked(rc == MPI_SUCCESS && *flag);
	return rc;
}

static int on_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	int rc = NEXT(, Improbe)(source, tag, comm, flag, message, status);

	asked(rc == MPI_SUCCESS && *flag);
	return rc;
}

static int on_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc;

	while (owes()) {
		rc = NEXT(, Iprobe)(source, tag, comm, &flag, status);
		if (rc || flag)
			return rc;
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Probe)(source, tag, comm, status);
}

static int on_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	struct contd__stall stall = {0, 0};
	int flag = 0, rc;

	while (owes()) {
		rc = NEXT(, Improbe)(source, tag, comm, &flag, message, status);
		if (rc || flag)
			return rc;
		contd__stall_turn(&stall, NULL);
	}
	return NEXT(, Mprobe)(source, tag, comm, message, status);
}

/* ------------------------------------------------------------------------------------------------ begin and end --- */

static void in_child(void)
{
	contd__store(&rings, 0);
	contd__owed_none();
	contd__aside_forked();
}

static void open_up(void)
{
	if (contd__load(&rings) || pthread_atfork(NULL, NULL, in_child))
		return;
	contd__ring_start();
	contd__store(&rings, 1);
}

static int on_Init(int *argc, char ***argv)
{
	int rc = NEXT(, Init)(argc, argv);

	if (rc == MPI_SUCCESS)
		open_up();
	return rc;
}

static int on_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc = NEXT(, Init_thread)(argc, argv, required, provided);

	if (rc == MPI_SUCCESS)
		open_up();
	return rc;
}

static int on_Finalize(void)
{
	if (contd__xchg(&rings, 0)) {
		contd__owed_none();
		contd__aside_end();
		contd__ring_known(); /* the last messages that were only buffered may go now */
	}
	return NEXT(, Finalize)();
}

/* ---------------------------------------------------------------------------------------------------- the names --- */

INLINE bool from_mpi(const void *caller)
{
	return contd__library_has(&mpi_library, caller);
}

#define NAMES(S, name, parameters, arguments) \
	CONTD_RING_BOTH_NAMES(S, name, parameters, arguments, \
			      if (from_mpi(__builtin_return_address(0))) return NEXT(S, name) arguments)
CONTD_RING_NAMES
