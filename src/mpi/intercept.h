/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which calls of MPI contd stands before, and what is behind it.
 *
 * Layers, from the program down: a tool that was linked before contd; contd; a tool that was linked behind it; MPI. The
 * functions of the next layer are found with dlsym(3), by MPI_ names and by PMPI_ names. If a tool behind contd has a
 * function, a call by its MPI_ name goes straight on to the tool. So the tool sees the program's calls and no more.
 * Its own PMPI_ call comes to contd again, and there the work is done. (A tool that finds MPI's functions with dlsym
 * and goes past contd must stand in front of it: otherwise it would wait for CRs for ever.) contd itself uses the PMPI_
 * names of MPI, so no tool sees its calls. What contd does in a call is in wrappers.c.
 */
#ifndef CONTD_MPI_INTERCEPT_H
#define CONTD_MPI_INTERCEPT_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "base/atomic.h"
#include "mpi/library.h"
#include "mpi/persistent.h"

/*
 * X(name, parameters, arguments): what is intercepted. Operations that are started, of which it is known then that they
 * are not persistent; persistent requests, of which it is known before they are first started; and all the rest.
 */
#define CONTD_STARTED_INT(X) \
	X(Isend, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Ibsend, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Issend, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Irsend, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Irecv, (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, source, tag, comm, request)) \
	X(Imrecv, (void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request), \
	  (buf, count, type, message, request))

#define CONTD_MADE_TO_SEND(X) \
	X(Send_init, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Bsend_init, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Ssend_init, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Rsend_init, \
	  (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, dest, tag, comm, request)) \
	X(Recv_init, \
	  (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request), \
	  (buf, count, type, source, tag, comm, request))

/* With large counts, too, from MPI 4 on. Open MPI 5.0 has none of these, and says that it is of MPI 3.1. */
#if MPI_VERSION >= 4
#include "mpi/large.h"
#define CONTD_STARTED(X) \
	CONTD_STARTED_INT(X) \
	CONTD_STARTED_LARGE(X)
#define CONTD_MADE(X) \
	CONTD_MADE_TO_SEND(X) \
	CONTD_MADE_COLLECTIVE(X) \
	CONTD_MADE_PARTITIONED(X) \
	CONTD_MADE_LARGE(X)
#define CONTD_CALLED(X) \
	CONTD_CALLED_INT(X) \
	CONTD_CALLED_LARGE(X)
#elif defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
#define CONTD_STARTED CONTD_STARTED_INT
#define CONTD_MADE(X) \
	CONTD_MADE_TO_SEND(X) \
	CONTD_MADE_COLLECTIVE(X) \
	CONTD_MADE_PARTITIONED(X)
#define CONTD_CALLED CONTD_CALLED_INT
#else
#define CONTD_STARTED CONTD_STARTED_INT
#define CONTD_MADE CONTD_MADE_TO_SEND
#define CONTD_CALLED CONTD_CALLED_INT
#endif

#define CONTD_CALLED_INT(X) \
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
	X(Request_free, (MPI_Request * request), (request)) \
	X(Cancel, (MPI_Request * request), (request)) \
	X(Start, (MPI_Request * request), (request)) \
	X(Startall, (int count, MPI_Request requests[]), (count, requests)) \
	X(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), \
	  (source, tag, comm, flag, status)) \
	X(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status), \
	  (source, tag, comm, flag, message, status)) \
	X(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status)) \
	X(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status), \
	  (source, tag, comm, message, status)) \
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
	X(Sendrecv_replace, \
	  (void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
	   MPI_Status *status), \
	  (buf, count, type, dest, sendtag, source, recvtag, comm, status))

#define CONTD_ENDS(X) X(Finalize, (void), ())

#ifdef MPI_SESSION_NULL
#include "mpi/sessions.h"
#else
#define CONTD_SESSIONS(X)
#endif

#define CONTD_INTERCEPTED(X) \
	CONTD_STARTED(X) \
	CONTD_MADE(X) \
	CONTD_CALLED(X) \
	CONTD_ENDS(X) \
	CONTD_SESSIONS(X)

/* With each backend, where continuations or templates wait: Open MPI makes no progress in it for what is complete. */
#define CONTD_ASKED(X) \
	X(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status))

/* Generalized requests, with each backend: grequest.c. */
#define CONTD_GENERAL(X) \
	X(Grequest_start, \
	  (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function * free_fn, \
	   MPI_Grequest_cancel_function * cancel_fn, void *extra, MPI_Request *request), \
	  (query_fn, free_fn, cancel_fn, extra, request)) \
	X(Grequest_complete, (MPI_Request request), (request))

/* Read in each call: the address is known without a look into the table of offsets. */
#define CONTD_HIDDEN __attribute__((visibility("hidden")))

struct contd__next {
#define CONTD_NEXT_FIELD(name, parameters, arguments) int(*name) parameters;
	CONTD_INTERCEPTED(CONTD_NEXT_FIELD)
	CONTD_ASKED(CONTD_NEXT_FIELD)
	CONTD_GENERAL(CONTD_NEXT_FIELD)
#undef CONTD_NEXT_FIELD
};

/* The functions behind contd's, by PMPI_ names, and by MPI_ names. */
extern struct contd__next contd__next_pmpi CONTD_HIDDEN, contd__next_mpi CONTD_HIDDEN;

/* Those by MPI_ names that are a tool's: NULL where the next definition is MPI's own. */
extern struct contd__next contd__next_tool CONTD_HIDDEN;

/* MPI's library, and its Fortran's. */
extern struct contd__library contd__library_mpi CONTD_HIDDEN, contd__library_fortran CONTD_HIDDEN;

/* Before the first use of contd it is not known which backend will work: what is persistent is taken down. */
enum contd__intercept { MODE_RECORD, MODE_PORTABLE, MODE_NATIVE, MODE_OFF };
extern uint32_t contd__intercept_mode CONTD_HIDDEN;

/* NULL, or why calls do not come to contd, and what to do. The text lasts until the next call: for life.c, locked. */
const char *contd__intercept_refuses(void);

/* Are MPI's functions known? They may be where calls do not come to contd. */
bool contd__intercept_knows_mpi(void);

/* From now on calls look for CRs. _off: they go straight on. _native: nearly all do. */
static inline void contd__intercept_start(void)
{
	contd__store_seq(&contd__intercept_mode, MODE_PORTABLE);
}

static inline void contd__intercept_native(void)
{
	contd__store_seq(&contd__intercept_mode, MODE_NATIVE);
}

static inline void contd__intercept_off(void)
{
	contd__store_seq(&contd__intercept_mode, MODE_OFF);
}

#endif
