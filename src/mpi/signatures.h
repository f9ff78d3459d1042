/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of MPI with their parameters, in lists by what the doorbell library does about them; it stands in front of all
 * of them. The progress library (src/progress) uses the same lists. The compiler compares each with mpi.h. `suffix` is
 * nothing or _c: then counts are MPI_Count, displacements MPI_Aint (MPI 4's large counts). Users know what a call is
 * about by the names of its parameters.
 *
 *     X(suffix, name, parameters, arguments)
 *       CONTD_RING_SENT        something goes to `dest`, and the call does not wait for it
 *       CONTD_RING_MADE        persistent requests: what MPI_Start will send to `dest`
 *       CONTD_RING_RMA         an operation on `target` of `win`
 *       CONTD_RING_RMA_REQUEST the same, with a request to wait for
 *       CONTD_RING_OTHER, _SENDRECV, _PARTITIONED   each has a separate function
 *     Y(suffix, name, nonblocking sibling, parameters, arguments)
 *       CONTD_RING_BLOCKING    something goes to `dest`, and the call may wait until `dest` makes progress
 *     Z(suffix, name, nonblocking sibling, parameters, arguments)
 *       CONTD_RING_COLLECTIVE  blocking, nonblocking and, in MPI 4, persistent (name_init) ones
 *     W(name, parameters, arguments, who)
 *       CONTD_RING_SYNC        waits until `who` makes progress: a rank of `win`, or EVERYBODY
 *       CONTD_RING_SYNC_SHORT  the same, and does not wait
 */
#ifndef CONTD_MPI_SIGNATURES_H
#define CONTD_MPI_SIGNATURES_H

#include <mpi.h>

/* What this MPI has of MPI 4. Open MPI says 3.1 and has much of it. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define CONTD_RING_MPI4 1
#else
#define CONTD_RING_MPI4 0
#endif
#if MPI_VERSION >= 4
#define CONTD_RING_LARGE_COUNTS 1
#else
#define CONTD_RING_LARGE_COUNTS 0
#endif

#define CONTD_RING_SENT(X, S, N) \
	X(S, Bsend, (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm)) \
	X(S, Isend, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Ibsend, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Issend, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Irsend, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request))

#define CONTD_RING_BLOCKING(Y, S, N) \
	Y(S, Send, Isend, (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm)) \
	Y(S, Ssend, Issend, (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm)) \
	Y(S, Rsend, Irsend, (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm))

/* MPI 3.1 has no persistent collectives, and MPI_Barrier no large count. */
#define CONTD_RING_COLLECTIVE_COUNTED(Z, S, N, V) \
	Z(S, Bcast, Ibcast, (void *buf, N count, MPI_Datatype type, int root, MPI_Comm comm), \
	  (buf, count, type, root, comm)) \
	Z(S, Gather, Igather, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   int root, MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)) \
	Z(S, Gatherv, Igatherv, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, const N recvcounts[], \
	   const V displs[], MPI_Datatype recvtype, int root, MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm)) \
	Z(S, Scatter, Iscatter, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   int root, MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)) \
	Z(S, Scatterv, Iscatterv, \
	  (const void *sendbuf, const N sendcounts[], const V displs[], MPI_Datatype sendtype, void *recvbuf, \
	   N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm), \
	  (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm)) \
	Z(S, Allgather, Iallgather, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)) \
	Z(S, Allgatherv, Iallgatherv, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, const N recvcounts[], \
	   const V displs[], MPI_Datatype recvtype, MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)) \
	Z(S, Alltoall, Ialltoall, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)) \
	Z(S, Alltoallv, Ialltoallv, \
	  (const void *sendbuf, const N sendcounts[], const V sdispls[], MPI_Datatype sendtype, void *recvbuf, \
	   const N recvcounts[], const V rdispls[], MPI_Datatype recvtype, MPI_Comm comm), \
	  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)) \
	Z(S, Alltoallw, Ialltoallw, \
	  (const void *sendbuf, const N sendcounts[], const V sdispls[], const MPI_Datatype sendtypes[], \
	   void *recvbuf, const N recvcounts[], const V rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm), \
	  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)) \
	Z(S, Reduce, Ireduce, \
	  (const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm), \
	  (sendbuf, recvbuf, count, type, op, root, comm)) \
	Z(S, Allreduce, Iallreduce, \
	  (const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (sendbuf, recvbuf, count, type, op, comm)) \
	Z(S, Reduce_scatter, Ireduce_scatter, \
	  (const void *sendbuf, void *recvbuf, const N recvcounts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (sendbuf, recvbuf, recvcounts, type, op, comm)) \
	Z(S, Reduce_scatter_block, Ireduce_scatter_block, \
	  (const void *sendbuf, void *recvbuf, N recvcount, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (sendbuf, recvbuf, recvcount, type, op, comm)) \
	Z(S, Scan, Iscan, (const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (sendbuf, recvbuf, count, type, op, comm)) \
	Z(S, Exscan, Iexscan, \
	  (const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (sendbuf, recvbuf, count, type, op, comm)) \
	Z(S, Neighbor_allgather, Ineighbor_allgather, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)) \
	Z(S, Neighbor_allgatherv, Ineighbor_allgatherv, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, const N recvcounts[], \
	   const V displs[], MPI_Datatype recvtype, MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)) \
	Z(S, Neighbor_alltoall, Ineighbor_alltoall, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, \
	   MPI_Comm comm), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)) \
	Z(S, Neighbor_alltoallv, Ineighbor_alltoallv, \
	  (const void *sendbuf, const N sendcounts[], const V sdispls[], MPI_Datatype sendtype, void *recvbuf, \
	   const N recvcounts[], const V rdispls[], MPI_Datatype recvtype, MPI_Comm comm), \
	  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)) \
	Z(S, Neighbor_alltoallw, Ineighbor_alltoallw, \
	  (const void *sendbuf, const N sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], \
	   void *recvbuf, const N recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], \
	   MPI_Comm comm), \
	  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))

#define CONTD_RING_COLLECTIVE_PLAIN(Z) Z(, Barrier, Ibarrier, (MPI_Comm comm), (comm))

#define CONTD_RING_MADE(X, S, N) \
	X(S, Send_init, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Bsend_init, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Ssend_init, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(S, Rsend_init, \
	  (const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request))

#define CONTD_RING_RMA(X, S, N) \
	X(S, Put, \
	  (const void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Win win), \
	  (origin, count, type, target, target_disp, target_count, target_type, win)) \
	X(S, Get, \
	  (void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Win win), \
	  (origin, count, type, target, target_disp, target_count, target_type, win)) \
	X(S, Accumulate, \
	  (const void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Op op, MPI_Win win), \
	  (origin, count, type, target, target_disp, target_count, target_type, op, win)) \
	X(S, Get_accumulate, \
	  (const void *origin, N count, MPI_Datatype type, void *result, N result_count, MPI_Datatype result_type, \
	   int target, MPI_Aint target_disp, N target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win), \
	  (origin, count, type, result, result_count, result_type, target, target_disp, target_count, target_type, op, \
	   win))

#define CONTD_RING_RMA_REQUEST(X, S, N) \
	X(S, Rput, \
	  (const void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Win win, MPI_Request *request), \
	  (origin, count, type, target, target_disp, target_count, target_type, win, request)) \
	X(S, Rget, \
	  (void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Win win, MPI_Request *request), \
	  (origin, count, type, target, target_disp, target_count, target_type, win, request)) \
	X(S, Raccumulate, \
	  (const void *origin, N count, MPI_Datatype type, int target, MPI_Aint target_disp, N target_count, \
	   MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request *request), \
	  (origin, count, type, target, target_disp, target_count, target_type, op, win, request)) \
	X(S, Rget_accumulate, \
	  (const void *origin, N count, MPI_Datatype type, void *result, N result_count, MPI_Datatype result_type, \
	   int target, MPI_Aint target_disp, N target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, \
	   MPI_Request *request), \
	  (origin, count, type, result, result_count, result_type, target, target_disp, target_count, target_type, op, \
	   win, request))

#define CONTD_RING_RMA_ONE(X) \
	X(, Fetch_and_op, \
	  (const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint target_disp, MPI_Op op, \
	   MPI_Win win), \
	  (origin, result, type, target, target_disp, op, win)) \
	X(, Compare_and_swap, \
	  (const void *origin, const void *compare, void *result, MPI_Datatype type, int target, MPI_Aint target_disp, \
	   MPI_Win win), \
	  (origin, compare, result, type, target, target_disp, win))

/* Flushing locally waits for the target where data went by request, so that these are among them. */
#define CONTD_RING_SYNC(X) \
	X(Win_fence, (int assert, MPI_Win win), (assert, win), EVERYBODY) \
	X(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), EVERYBODY) \
	X(Win_complete, (MPI_Win win), (win), EVERYBODY) \
	X(Win_wait, (MPI_Win win), (win), EVERYBODY) \
	X(Win_lock, (int lock_type, int target, int assert, MPI_Win win), (lock_type, target, assert, win), target) \
	X(Win_lock_all, (int assert, MPI_Win win), (assert, win), EVERYBODY) \
	X(Win_unlock, (int target, MPI_Win win), (target, win), target) \
	X(Win_unlock_all, (MPI_Win win), (win), EVERYBODY) \
	X(Win_flush, (int target, MPI_Win win), (target, win), target) \
	X(Win_flush_all, (MPI_Win win), (win), EVERYBODY) \
	X(Win_flush_local, (int target, MPI_Win win), (target, win), target) \
	X(Win_flush_local_all, (MPI_Win win), (win), EVERYBODY)

/* After MPI_Win_sync stores into a shared window are to be seen: memory words may wait for them. */
#define CONTD_RING_SYNC_SHORT(X) \
	X(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), EVERYBODY) \
	X(Win_sync, (MPI_Win win), (win), EVERYBODY)

#define CONTD_RING_OTHER_COUNTED(X, S, N) \
	X(S, Sendrecv, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, N recvcount, \
	   MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status), \
	  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status)) \
	X(S, Sendrecv_replace, \
	  (void *buf, N count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
	   MPI_Status *status), \
	  (buf, count, type, dest, sendtag, source, recvtag, comm, status)) \
	X(S, Recv, (void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status), \
	  (buf, count, type, source, tag, comm, status)) \
	X(S, Irecv, (void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, source, tag, comm, request)) \
	X(S, Recv_init, \
	  (void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, source, tag, comm, request)) \
	X(S, Mrecv, (void *buf, N count, MPI_Datatype type, MPI_Message *message, MPI_Status *status), \
	  (buf, count, type, message, status)) \
	X(S, Imrecv, (void *buf, N count, MPI_Datatype type, MPI_Message *message, MPI_Request *request), \
	  (buf, count, type, message, request))

#define CONTD_RING_OTHER_PLAIN(X) \
	X(, Init, (int *argc, char ***argv), (argc, argv)) \
	X(, Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided)) \
	X(, Finalize, (void), ()) \
	X(, Start, (MPI_Request * request), (request)) \
	X(, Startall, (int count, MPI_Request requests[]), (count, requests)) \
	X(, Request_free, (MPI_Request * request), (request)) \
	X(, Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status)) \
	X(, Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status), \
	  (count, requests, index, flag, status)) \
	X(, Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]), \
	  (count, requests, flag, statuses)) \
	X(, Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]), \
	  (incount, requests, outcount, indices, statuses)) \
	X(, Wait, (MPI_Request * request, MPI_Status * status), (request, status)) \
	X(, Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status), \
	  (count, requests, index, status)) \
	X(, Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses)) \
	X(, Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]), \
	  (incount, requests, outcount, indices, statuses)) \
	X(, Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), \
	  (source, tag, comm, flag, status)) \
	X(, Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status), \
	  (source, tag, comm, flag, message, status)) \
	X(, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status)) \
	X(, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status), \
	  (source, tag, comm, message, status)) \
	X(, Comm_idup, (MPI_Comm comm, MPI_Comm * newcomm, MPI_Request * request), (comm, newcomm, request))

#if CONTD_RING_MPI4
#define CONTD_RING_PARTITIONED(X) \
	X(, Psend_init, \
	  (const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
	   MPI_Info info, MPI_Request *request), \
	  (buf, partitions, count, type, dest, tag, comm, info, request)) \
	X(, Pready, (int partition, MPI_Request request), (partition, request)) \
	X(, Pready_range, (int low, int high, MPI_Request request), (low, high, request)) \
	X(, Pready_list, (int length, CONTD_RING_PARTITIONS partitions[], MPI_Request request), \
	  (length, partitions, request))
/* MPI 4.0 has `const`; MPICH 4.0 and Open MPI 5.0 have not. */
#define CONTD_RING_PARTITIONS \
	__typeof__(*_Generic(&MPI_Pready_list, int (*)(int, int *, MPI_Request) : (int *)0, default : (const int *)0))
#define CONTD_RING_SENDRECV(X, S, N) \
	X(S, Isendrecv, \
	  (const void *sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, N recvcount, \
	   MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request), \
	  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request)) \
	X(S, Isendrecv_replace, \
	  (void *buf, N count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
	   MPI_Request *request), \
	  (buf, count, type, dest, sendtag, source, recvtag, comm, request))
#else
#define CONTD_RING_PARTITIONED(X)
#define CONTD_RING_SENDRECV(X, S, N)
#endif

/* Every call, each list with a macro of its shape. */
#define CONTD_RING_COUNTED(X, Y, Z, S, N, V) \
	CONTD_RING_SENT(X, S, N) \
	CONTD_RING_BLOCKING(Y, S, N) \
	CONTD_RING_COLLECTIVE_COUNTED(Z, S, N, V) \
	CONTD_RING_MADE(X, S, N) \
	CONTD_RING_RMA(X, S, N) \
	CONTD_RING_RMA_REQUEST(X, S, N) \
	CONTD_RING_OTHER_COUNTED(X, S, N) \
	CONTD_RING_SENDRECV(X, S, N)
#if CONTD_RING_LARGE_COUNTS
#define CONTD_RING_COUNTED_LARGE(X, Y, Z) CONTD_RING_COUNTED(X, Y, Z, _c, MPI_Count, MPI_Aint)
#else
#define CONTD_RING_COUNTED_LARGE(X, Y, Z)
#endif
#define CONTD_RING_CALLS(X, Y, Z, W) \
	CONTD_RING_COUNTED(X, Y, Z, , int, int) \
	CONTD_RING_COUNTED_LARGE(X, Y, Z) \
	CONTD_RING_COLLECTIVE_PLAIN(Z) \
	CONTD_RING_RMA_ONE(X) \
	CONTD_RING_SYNC(W) \
	CONTD_RING_SYNC_SHORT(W) \
	CONTD_RING_OTHER_PLAIN(X) \
	CONTD_RING_PARTITIONED(X)

#define UNPACK(...) __VA_ARGS__

/* For all of them, each name with its own parameters: NAMES(suffix, name, parameters, arguments), which the includer
 * defines. */
#define NAMES_Y(S, name, nonblocking, parameters, arguments) NAMES(S, name, parameters, arguments)
#define NAMES_BOTH(S, name, nonblocking, parameters, arguments) \
	NAMES(S, name, parameters, arguments) \
	NAMES(S, nonblocking, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request))
#if CONTD_RING_MPI4
#define NAMES_Z(S, name, nonblocking, parameters, arguments) \
	NAMES_BOTH(S, name, nonblocking, parameters, arguments) \
	NAMES(_init##S, name, (UNPACK parameters, MPI_Info info, MPI_Request * request), \
	      (UNPACK arguments, info, request))
#else
#define NAMES_Z NAMES_BOTH
#endif
#define NAMES_W(name, parameters, arguments, who) NAMES(, name, parameters, arguments)
#define CONTD_RING_NAMES CONTD_RING_CALLS(NAMES, NAMES_Y, NAMES_Z, NAMES_W)

/* Both names of a call: the MPI_ name goes on to the PMPI_ name; that does `first`, and then calls on_<name>. */
#define CONTD_RING_BOTH_NAMES(S, name, parameters, arguments, first) \
	CONTD_API int MPI_##name##S parameters; \
	CONTD_API int PMPI_##name##S parameters; \
	int MPI_##name##S parameters \
	{ \
		return PMPI_##name##S arguments; \
	} \
	int PMPI_##name##S parameters \
	{ \
		first; \
		return on_##name##S arguments; \
	}

#endif
