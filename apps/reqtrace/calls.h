/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that the tool stands before. Lists: sends and receives, the same as persistent requests, and all others
 * that start an operation or make a persistent one, with their parameters. From MPI 4 on those of the lists *_COUNTED
 * have a second form, for large counts (MPI_Isend_c). The two differ in COUNT and PLACE, which the file that
 * uses a list defines.
 */
#ifndef REQTRACE_CALLS_H
#define REQTRACE_CALLS_H

/* MPICH's header does not say so, and everything else of the tool is hidden: a second copy has its own. */
#pragma GCC visibility push(default)
#include <contd/mpi.h>
#pragma GCC visibility pop

#define EXPAND(...) __VA_ARGS__

#define SENDS(X) X(Isend) X(Ibsend) X(Issend) X(Irsend)
#define SEND_INITS(X) X(Send_init) X(Bsend_init) X(Ssend_init) X(Rsend_init)

#define SEND_PARAMETERS \
	(const void *buf, COUNT count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
#define SEND_ARGUMENTS (buf, count, type, dest, tag, comm, request)
#define RECV_PARAMETERS \
	(void *buf, COUNT count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
#define RECV_ARGUMENTS (buf, count, type, source, tag, comm, request)
#define IMRECV_PARAMETERS (void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
#define IMRECV_ARGUMENTS (buf, count, type, message, request)

/* Parameters of collectives, in short: what is sent, and received; one count or several, one type or several. */
#define SB const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype
#define SV const void *sendbuf, const COUNT sendcounts[], const PLACE sdispls[], MPI_Datatype sendtype
#define SW const void *sendbuf, const COUNT sendcounts[], const PLACE sdispls[], const MPI_Datatype sendtypes[]
#define SN const void *sendbuf, const COUNT sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[]
#define RB void *recvbuf, COUNT recvcount, MPI_Datatype recvtype
#define RV void *recvbuf, const COUNT recvcounts[], const PLACE rdispls[], MPI_Datatype recvtype
#define RW void *recvbuf, const COUNT recvcounts[], const PLACE rdispls[], const MPI_Datatype recvtypes[]
#define RN void *recvbuf, const COUNT recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]
#define REDUCED const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op op
#define DEALT const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype type, MPI_Op op
#define BCAST void *buffer, COUNT count, MPI_Datatype type, int root
/* The arguments of each. */
#define B_B (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)
#define B_V (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype)
#define B_B_ROOT (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)
#define B_V_ROOT (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, root)
#define V_B_ROOT (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root)
#define V_V (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype)
#define W_W (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes)

/* FORM(X, name of the nonblocking one, of the persistent one, parameters, arguments); both without the last ones. */
#define COLLECTIVES(FORM, X) \
	FORM(X, Ibcast, Bcast_init, (BCAST), (buffer, count, type, root)) \
	FORM(X, Igather, Gather_init, (SB, RB, int root), B_B_ROOT) \
	FORM(X, Igatherv, Gatherv_init, (SB, RV, int root), B_V_ROOT) \
	FORM(X, Iscatter, Scatter_init, (SB, RB, int root), B_B_ROOT) \
	FORM(X, Iscatterv, Scatterv_init, (SV, RB, int root), V_B_ROOT) \
	FORM(X, Iallgather, Allgather_init, (SB, RB), B_B) \
	FORM(X, Iallgatherv, Allgatherv_init, (SB, RV), B_V) \
	FORM(X, Ialltoall, Alltoall_init, (SB, RB), B_B) \
	FORM(X, Ialltoallv, Alltoallv_init, (SV, RV), V_V) \
	FORM(X, Ialltoallw, Alltoallw_init, (SW, RW), W_W) \
	FORM(X, Ireduce, Reduce_init, (REDUCED, int root), (sendbuf, recvbuf, count, type, op, root)) \
	FORM(X, Iallreduce, Allreduce_init, (REDUCED), (sendbuf, recvbuf, count, type, op)) \
	FORM(X, Ireduce_scatter, Reduce_scatter_init, (DEALT), (sendbuf, recvbuf, recvcounts, type, op)) \
	FORM(X, Ireduce_scatter_block, Reduce_scatter_block_init, (REDUCED), (sendbuf, recvbuf, count, type, op)) \
	FORM(X, Iscan, Scan_init, (REDUCED), (sendbuf, recvbuf, count, type, op)) \
	FORM(X, Iexscan, Exscan_init, (REDUCED), (sendbuf, recvbuf, count, type, op)) \
	FORM(X, Ineighbor_allgather, Neighbor_allgather_init, (SB, RB), B_B) \
	FORM(X, Ineighbor_allgatherv, Neighbor_allgatherv_init, (SB, RV), B_V) \
	FORM(X, Ineighbor_alltoall, Neighbor_alltoall_init, (SB, RB), B_B) \
	FORM(X, Ineighbor_alltoallv, Neighbor_alltoallv_init, (SV, RV), V_V) \
	FORM(X, Ineighbor_alltoallw, Neighbor_alltoallw_init, (SN, RN), W_W)
#define NONBLOCKING(X, name, init, parameters, arguments) \
	X(name, (EXPAND parameters, MPI_Comm comm, MPI_Request * request), (EXPAND arguments, comm, request))
#define PERSISTENT(X, nonblocking, name, parameters, arguments) \
	X(name, (EXPAND parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request), \
	  (EXPAND arguments, comm, info, request))

#define RMA_PARAMETERS MPI_Aint disp, COUNT target_count, MPI_Datatype target_type
#define RMA_COUNTED(X) \
	X(Rput, \
	  (const void *origin, COUNT count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Win win, \
	   MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, win, request)) \
	X(Rget, \
	  (void *origin, COUNT count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Win win, \
	   MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, win, request)) \
	X(Raccumulate, \
	  (const void *origin, COUNT count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Op op, MPI_Win win, \
	   MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, op, win, request)) \
	X(Rget_accumulate, \
	  (const void *origin, COUNT count, MPI_Datatype type, void *result, COUNT result_count, \
	   MPI_Datatype result_type, int target, RMA_PARAMETERS, MPI_Op op, MPI_Win win, MPI_Request *request), \
	  (origin, count, type, result, result_count, result_type, target, disp, target_count, target_type, op, win, \
	   request))

#define FILE_PARAMETERS COUNT count, MPI_Datatype type, MPI_Request *request
#define FILES_COUNTED(X) \
	X(File_iread, (MPI_File file, void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iwrite, (MPI_File file, const void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iread_at, (MPI_File file, MPI_Offset at, void *buf, FILE_PARAMETERS), \
	  (file, at, buf, count, type, request)) \
	X(File_iwrite_at, (MPI_File file, MPI_Offset at, const void *buf, FILE_PARAMETERS), \
	  (file, at, buf, count, type, request)) \
	X(File_iread_shared, (MPI_File file, void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iwrite_shared, (MPI_File file, const void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iread_all, (MPI_File file, void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iwrite_all, (MPI_File file, const void *buf, FILE_PARAMETERS), (file, buf, count, type, request)) \
	X(File_iread_at_all, (MPI_File file, MPI_Offset at, void *buf, FILE_PARAMETERS), \
	  (file, at, buf, count, type, request)) \
	X(File_iwrite_at_all, (MPI_File file, MPI_Offset at, const void *buf, FILE_PARAMETERS), \
	  (file, at, buf, count, type, request))

/* Calls that start something without naming a peer. */
#if MPI_VERSION >= 4
#define EXCHANGES_COUNTED(X) \
	X(Isendrecv, (SB, int dest, int sendtag, RB, int source, int recvtag, MPI_Comm comm, MPI_Request *request), \
	  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request)) \
	X(Isendrecv_replace, \
	  (void *buf, COUNT count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
	   MPI_Request *request), \
	  (buf, count, type, dest, sendtag, source, recvtag, comm, request))
#define IDUP_WITH_INFO(X) \
	X(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * newcomm, MPI_Request * request), \
	  (comm, info, newcomm, request))
#define PARTITIONED(X) \
	X(Psend_init, \
	  (const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
	   MPI_Info info, MPI_Request *request), \
	  (buf, partitions, count, type, dest, tag, comm, info, request)) \
	X(Precv_init, \
	  (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
	   MPI_Info info, MPI_Request *request), \
	  (buf, partitions, count, type, source, tag, comm, info, request))
#else
#define EXCHANGES_COUNTED(X)
#define IDUP_WITH_INFO(X)
#define PARTITIONED(X)
#endif
#define STARTED_COUNTED(X) COLLECTIVES(NONBLOCKING, X) RMA_COUNTED(X) FILES_COUNTED(X) EXCHANGES_COUNTED(X)
#define STARTED(X) \
	X(Ibarrier, (MPI_Comm comm, MPI_Request * request), (comm, request)) \
	X(Comm_idup, (MPI_Comm comm, MPI_Comm * newcomm, MPI_Request * request), (comm, newcomm, request)) \
	IDUP_WITH_INFO(X) \
	X(Grequest_start, \
	  (MPI_Grequest_query_function * query, MPI_Grequest_free_function * release, \
	   MPI_Grequest_cancel_function * cancel, void *state, MPI_Request *request), \
	  (query, release, cancel, state, request))

/* Persistent collectives: MPI_ from MPI 4 on, MPIX_ where Open MPI has them before. */
#define MADE_COUNTED(X) COLLECTIVES(PERSISTENT, X)
#define MADE(X) \
	X(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request * request), (comm, info, request)) PARTITIONED(X)

/* Calls that complete requests, and other calls on handles. */
#define COMPLETING(X) \
	X(Test, (MPI_Request * request, int *flag, MPI_Status *status)) \
	X(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)) \
	X(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[])) \
	X(Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])) \
	X(Wait, (MPI_Request * request, MPI_Status * status)) \
	X(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status)) \
	X(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[])) \
	X(Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]))

#define OTHERS(X) \
	X(Init, (int *argc, char ***argv)) \
	X(Init_thread, (int *argc, char ***argv, int required, int *provided)) \
	X(Finalize, (void)) \
	X(Abort, (MPI_Comm comm, int code)) \
	X(Start, (MPI_Request * request)) \
	X(Startall, (int count, MPI_Request requests[])) \
	X(Cancel, (MPI_Request * request)) \
	X(Request_free, (MPI_Request * request)) \
	X(Continue_init, (MPI_Info info, MPI_Request * cr)) \
	X(Continue, (MPI_Request * op, MPI_Continue_cb_function * cb, void *data, MPI_Status *status, MPI_Request cr)) \
	X(Continueall, (int count, MPI_Request ops[], MPI_Continue_cb_function *cb, void *data, MPI_Status *statuses, \
			MPI_Request cr))

#endif
