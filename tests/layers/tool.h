/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that the tool counts (tool.c), one library in front of contd and one behind it, from the same source. */
#ifndef CONTD_TESTS_LAYERS_TOOL_H
#define CONTD_TESTS_LAYERS_TOOL_H

#include <mpi.h>

/* X(name, parameters, arguments) */
#define TOOL_CALLS(X) \
	X(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status)) \
	X(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status), \
	  (count, requests, index, flag, status)) \
	X(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]), \
	  (count, requests, flag, statuses)) \
	X(Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]), \
	  (incount, requests, outcount, indices, statuses)) \
	X(Wait, (MPI_Request * request, MPI_Status * status), (request, status)) \
	X(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status), \
	  (count, requests, index, status)) \
	X(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses)) \
	X(Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]), \
	  (incount, requests, outcount, indices, statuses)) \
	X(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status)) \
	X(Request_free, (MPI_Request * request), (request)) \
	X(Start, (MPI_Request * request), (request)) \
	X(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), \
	  (source, tag, comm, flag, status)) \
	X(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status)) \
	X(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status), \
	  (source, tag, comm, message, status)) \
	X(Isend, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Irecv, (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, source, tag, comm, request)) \
	X(Recv, (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status), \
	  (buf, count, type, source, tag, comm, status)) \
	X(Send, (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm)) \
	X(Ssend, (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
	  (buf, count, type, dest, tag, comm)) \
	X(Sendrecv, \
	  (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, \
	   int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status), \
	  (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status)) \
	X(Finalize, (void), ())

enum tool_call {
#define TOOL_ENUM(name, parameters, arguments) TOOL_##name,
	TOOL_CALLS(TOOL_ENUM)
#undef TOOL_ENUM
		TOOL_COUNT
};

#endif
