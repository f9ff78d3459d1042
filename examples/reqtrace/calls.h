/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that the tool stands before. Lists: sends and receives, the same as persistent requests, and all others that
 * start an operation or make a persistent one, with their parameters.
 */
#ifndef REQTRACE_CALLS_H
#define REQTRACE_CALLS_H

/* MPICH's header does not say so, and everything else of the tool is hidden: a second copy has its own. */
#pragma GCC visibility push(default)
#include <contd/mpi.h>
#pragma GCC visibility pop

#define SENDS(X) X(Isend) X(Ibsend) X(Issend) X(Irsend)
#define SEND_INITS(X) X(Send_init) X(Bsend_init) X(Ssend_init) X(Rsend_init)

#define SEND_PARAMETERS \
	(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
#define SEND_ARGUMENTS (buf, count, type, dest, tag, comm, request)
#define RECV_PARAMETERS \
	(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
#define RECV_ARGUMENTS (buf, count, type, source, tag, comm, request)

/* Parameters of collectives, in short. */
#define SB const void *sendbuf, int sendcount, MPI_Datatype sendtype
#define SV const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype
#define RB void *recvbuf, int recvcount, MPI_Datatype recvtype
#define RV void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype
#define SW const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[]
#define RW void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[]
#define SWN const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[]
#define RWN void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]
#define CR MPI_Comm comm, MPI_Request *request
#define REDUCED const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op

/* X(name, parameters, arguments) */
#define COLLECTIVES(X) \
	X(Ibarrier, (CR), (comm, request)) \
	X(Ibcast, (void *buffer, int count, MPI_Datatype type, int root, CR), \
	  (buffer, count, type, root, comm, request)) \
	X(Igather, (SB, RB, int root, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)) \
	X(Igatherv, (SB, RV, int root, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, root, comm, request)) \
	X(Iscatter, (SB, RB, int root, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)) \
	X(Iscatterv, (SV, RB, int root, CR), \
	  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm, request)) \
	X(Iallgather, (SB, RB, CR), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)) \
	X(Iallgatherv, (SB, RV, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request)) \
	X(Ialltoall, (SB, RB, CR), (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)) \
	X(Ialltoallv, (SV, RV, CR), \
	  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request)) \
	X(Ialltoallw, (SW, RW, CR), \
	  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request)) \
	X(Ireduce, (REDUCED, int root, CR), (sendbuf, recvbuf, count, type, op, root, comm, request)) \
	X(Iallreduce, (REDUCED, CR), (sendbuf, recvbuf, count, type, op, comm, request)) \
	X(Ireduce_scatter, \
	  (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype type, MPI_Op op, CR), \
	  (sendbuf, recvbuf, recvcounts, type, op, comm, request)) \
	X(Ireduce_scatter_block, (REDUCED, CR), (sendbuf, recvbuf, count, type, op, comm, request)) \
	X(Iscan, (REDUCED, CR), (sendbuf, recvbuf, count, type, op, comm, request)) \
	X(Iexscan, (REDUCED, CR), (sendbuf, recvbuf, count, type, op, comm, request)) \
	X(Ineighbor_allgather, (SB, RB, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)) \
	X(Ineighbor_allgatherv, (SB, RV, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request)) \
	X(Ineighbor_alltoall, (SB, RB, CR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)) \
	X(Ineighbor_alltoallv, (SV, RV, CR), \
	  (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request)) \
	X(Ineighbor_alltoallw, (SWN, RWN, CR), \
	  (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request)) \
	X(Comm_idup, (MPI_Comm comm, MPI_Comm * newcomm, MPI_Request * request), (comm, newcomm, request))

#define RMA_PARAMETERS MPI_Aint disp, int target_count, MPI_Datatype target_type
#define FILE_PARAMETERS int count, MPI_Datatype type, MPI_Request *request
#define MORE(X) \
	X(Rput, (const void *origin, int count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Win win, \
		 MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, win, request)) \
	X(Rget, (void *origin, int count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Win win, \
		 MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, win, request)) \
	X(Raccumulate, (const void *origin, int count, MPI_Datatype type, int target, RMA_PARAMETERS, MPI_Op op, \
			MPI_Win win, MPI_Request *request), \
	  (origin, count, type, target, disp, target_count, target_type, op, win, request)) \
	X(Rget_accumulate, (const void *origin, int count, MPI_Datatype type, void *result, int result_count, \
			    MPI_Datatype result_type, int target, RMA_PARAMETERS, MPI_Op op, MPI_Win win, \
			    MPI_Request *request), \
	  (origin, count, type, result, result_count, result_type, target, disp, target_count, target_type, op, win, \
	   request)) \
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
	  (file, at, buf, count, type, request)) \
	X(Grequest_start, \
	  (MPI_Grequest_query_function * query, MPI_Grequest_free_function * release, \
	   MPI_Grequest_cancel_function * cancel, void *state, MPI_Request *request), \
	  (query, release, cancel, state, request))

/* Persistent and partitioned ones of MPI 4. */
#if MPI_VERSION >= 4
#define CIR MPI_Comm comm, MPI_Info info, MPI_Request *request
#define MADE(X) \
	X(Barrier_init, (CIR), (comm, info, request)) \
	X(Bcast_init, (void *buffer, int count, MPI_Datatype type, int root, CIR), \
	  (buffer, count, type, root, comm, info, request)) \
	X(Gather_init, (SB, RB, int root, CIR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request)) \
	X(Scatter_init, (SB, RB, int root, CIR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request)) \
	X(Allgather_init, (SB, RB, CIR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)) \
	X(Alltoall_init, (SB, RB, CIR), \
	  (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)) \
	X(Reduce_init, (REDUCED, int root, CIR), (sendbuf, recvbuf, count, type, op, root, comm, info, request)) \
	X(Allreduce_init, (REDUCED, CIR), (sendbuf, recvbuf, count, type, op, comm, info, request)) \
	X(Psend_init, (const void *buf, int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag, CIRP), \
	  (buf, partitions, count, type, dest, tag, comm, info, request)) \
	X(Precv_init, (void *buf, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, CIRP), \
	  (buf, partitions, count, type, source, tag, comm, info, request))
#define CIRP MPI_Comm comm, MPI_Info info, MPI_Request *request
#else
#define MADE(X)
#endif

/* What completes, and what else is done to handles. */
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
	X(Imrecv, (void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)) \
	X(Start, (MPI_Request * request)) \
	X(Startall, (int count, MPI_Request requests[])) \
	X(Cancel, (MPI_Request * request)) \
	X(Request_free, (MPI_Request * request)) \
	X(Continue_init, (MPI_Info info, MPI_Request * cr)) \
	X(Continue, (MPI_Request * op, MPI_Continue_cb_function * cb, void *data, MPI_Status *status, MPI_Request cr)) \
	X(Continueall, (int count, MPI_Request ops[], MPI_Continue_cb_function *cb, void *data, MPI_Status *statuses, \
			MPI_Request cr))

#endif
