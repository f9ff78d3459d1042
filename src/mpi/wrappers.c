/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's completion calls, by MPI_ and PMPI_ names, stand here before MPI's own. If another backend works, or none yet,
 * they go straight on. See intercept.h for the layers: with a tool behind contd a call by an MPI_ name goes on to the
 * tool, and contd does its work when the tool's call by the PMPI_ name comes here.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/testpoint.h"
#include "dispatch/carried.h"
#include "dispatch/classes.h"
#include "dispatch/run.h"
#include "dispatch/thread.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/cr.h"
#include "mpi/error.h"
#include "mpi/finalize.h"
#include "mpi/handles.h"
#include "mpi/intercept.h"
#include "mpi/library.h"
#include "mpi/life.h"
#include "mpi/mpich_forgets.h"
#include "mpi/op_set.h"
#include "mpi/portable.h"
#include "mpi/quirks.h"
#include "mpi/process_model.h"
#include "mpi/ring.h"
#include "mpi/state.h"
#include "mpi/templates.h"

#define NEXT contd__next_pmpi /* where a call goes on to, but for tools */

/* --------------------------------------------------------------------------------------------- completion calls --- */

static bool portable(void)
{
	return contd__load_acquire(&contd__intercept_mode) == MODE_PORTABLE;
}

static int on_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	return portable() && request && flag ? contd__calls.test(request, flag, status)
					     : NEXT.Test(request, flag, status);
}

static int on_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	return portable() && count >= 0 && (!count || requests) && index && flag
		       ? contd__calls.test_any((size_t)count, requests, index, flag, status)
		       : NEXT.Testany(count, requests, index, flag, status);
}

static int on_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	return portable() && count >= 0 && (!count || requests) && flag
		       ? contd__calls.test_all((size_t)count, requests, flag, statuses)
		       : NEXT.Testall(count, requests, flag, statuses);
}

static int on_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	return portable() && incount >= 0 && (!incount || requests) && outcount && indices
		       ? contd__calls.test_some((size_t)incount, requests, outcount, indices, statuses)
		       : NEXT.Testsome(incount, requests, outcount, indices, statuses);
}

static int on_Wait(MPI_Request *request, MPI_Status *status)
{
	return portable() && request ? contd__calls.wait(request, status) : NEXT.Wait(request, status);
}

static int on_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	return portable() && count >= 0 && (!count || requests) && index
		       ? contd__calls.wait_any((size_t)count, requests, index, status)
		       : NEXT.Waitany(count, requests, index, status);
}

static int on_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	return portable() && count >= 0 && (!count || requests)
		       ? contd__calls.wait_all((size_t)count, requests, statuses)
		       : NEXT.Waitall(count, requests, statuses);
}

static int on_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
	return portable() && incount >= 0 && (!incount || requests) && outcount && indices
		       ? contd__calls.wait_some((size_t)incount, requests, outcount, indices, statuses)
		       : NEXT.Waitsome(incount, requests, outcount, indices, statuses);
}

/* -------------------------------------------------------------------------------------- what is done to handles --- */

static struct contd__handle *handle_of(const MPI_Request *request)
{
	return request && *request != MPI_REQUEST_NULL ? contd__handle_find(*request) : NULL;
}

static void on_the_way(void);

/* Where MPI would not answer a second time. */
static int ask_once(MPI_Request request, int *flag, MPI_Status *status)
{
	MPI_Status its = contd__status_empty;
	enum contd__seen seen = contd__mpi->peek(request, &its);
	int error = its.MPI_ERROR;

	*flag = seen != SEEN_PENDING;
	if (*flag && status != MPI_STATUS_IGNORE) {
		its.MPI_ERROR = error ? error : status->MPI_ERROR;
		*status = its;
	}
	return error;
}

/* Make progress. Open MPI's own call has made none if the request is complete, and there may be no other thread that
 * calls MPI or contd. */
static void make_progress(void)
{
	contd__mpi->progress(PROGRESS);
	contd__instances_look();
	if (contd__may_run())
		contd__run_ready();
}

/* own: it is this CR, of the native backend; h: it is known to the portable one. */
static int get_status_of(MPI_Request request, int *flag, MPI_Status *status, struct contd__cr *own,
			 struct contd__handle *h, struct contd__cr *cr)
{
	/* A continuation that runs inside the call that attaches it does not make the native CR incomplete. */
	if (own && flag && contd__inside_sig(own->group)) {
		*flag = 0;
		return MPI_SUCCESS;
	}
	if (!portable() || !h || !flag || (!cr && !contd__load_acquire(&h->hooked))) {
		int rc = portable() && h && flag && contd__mpich_forgets()
				 ? ask_once(request, flag, status)
				 : NEXT.Request_get_status(request, flag, status);

		if (rc == MPI_SUCCESS && flag && *flag && contd__load(&contd__intercept_mode) == MODE_NATIVE) {
			make_progress();
			/* Events registered with the CR's group do not make the native CR incomplete either. */
			if (own)
				*flag = contd__cr_complete(own);
		}
		on_the_way(); /* what it is asked about may depend on a continuation */
		return rc;
	}
	contd__instances_look();
	contd__portable_poll(1);
	if (contd__may_run())
		contd__run_ready();
	if (!cr)
		h = handle_of(&request); /* its continuation may have freed it */
	*flag = cr ? contd__cr_complete(cr) : !h || !contd__load_acquire(&h->hooked);
	if (*flag && status != MPI_STATUS_IGNORE) {
		int error = status->MPI_ERROR;

		*status = contd__status_empty;
		status->MPI_ERROR = error;
	}
	return MPI_SUCCESS;
}

static int get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct contd__handle *h = handle_of(&request);
	struct contd__cr *own =
		contd__load(&contd__intercept_mode) == MODE_NATIVE && request ? contd__mpi->cr_of(request) : NULL;
	struct contd__cr *cr = own ? own : h && portable() ? h->cr : NULL;
	int rc;

	if (cr)
		contd__cr_ask(cr);
	rc = get_status_of(request, flag, status, own, h, cr);
	if (cr)
		contd__cr_asked(cr);
	return rc;
}

/* Its limit for a CR's continuations is that of a test. */
static int on_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	uint32_t now = contd__load_acquire(&contd__intercept_mode);
	struct contd__asking asking;
	int rc;

	if (!contd__load(&contd__cr_limited) || (now != MODE_PORTABLE && now != MODE_NATIVE))
		return get_status(request, flag, status);
	rc = contd__asking_begin(&asking, 1, &request); /* takes no memory for one */
	if (rc == MPI_SUCCESS)
		rc = get_status(request, flag, status);
	contd__asking_end(&asking);
	return rc;
}

static int on_Request_free(MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);
	int rc;

	if (portable() && request && !h && contd__instance_free(request, &rc))
		return rc;
	if (!h)
		return NEXT.Request_free(request);
	if (!h->cr) {
		if (contd__portable_free_later(h)) {
			*request = MPI_REQUEST_NULL;
			return MPI_SUCCESS;
		}
		contd__handle_remove(h);
		return NEXT.Request_free(request);
	}
	*request = MPI_REQUEST_NULL;
	contd__portable_cr_free(h->cr);
	return MPI_SUCCESS;
}

static int on_Cancel(MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);

	if (h && contd__load(&h->told))
		return MPI_SUCCESS; /* it is complete, which MPI has forgotten */
	/* A CR is no operation. */
	return h && h->cr ? contd__mpi_refuse("MPI_Cancel", MPI_ERR_REQUEST, CONTD_CANCELS_CR) : NEXT.Cancel(request);
}

/* MPI_SUCCESS, and it is known as persistent; or the error class. */
static int start_note(const MPI_Request *request)
{
	struct contd__handle *h;

	if (contd__load(&contd__intercept_mode) > MODE_PORTABLE || !request || *request == MPI_REQUEST_NULL)
		return MPI_SUCCESS;
	h = handle_of(request);
	h = h ? h : contd__handle_add(*request, NULL);
	if (!h)
		return contd__mpi_refuse("MPI_Start", MPI_ERR_NO_MEM, CONTD_NO_MEMORY);
	contd__store(&h->unstarted, 0);
	return MPI_SUCCESS;
}

/*
 * It is not persistent. Where its handle is known as such, that request is gone without MPI_Request_free: Open MPI
 * (4.1) frees a persistent request whose failure MPI_Wait has told.
 */
static inline void started_note(MPI_Request request)
{
	struct contd__handle *h;

	if (contd__load(&contd__intercept_mode) > MODE_PORTABLE)
		return;
	h = handle_of(&request);
	if (h && !h->cr)
		contd__handle_remove(h);
	contd__started_now(request);
}

#define ON_STARTED(name, parameters, arguments) \
	static int on_##name parameters \
	{ \
		int rc = NEXT.name arguments; \
\
		if (rc == MPI_SUCCESS) \
			started_note(*request); \
		return rc; \
	}
CONTD_STARTED(ON_STARTED)

/* Without memory for the note MPI_Start takes it down. */
static void made_note(const MPI_Request *request, MPI_Comm comm)
{
	struct contd__handle *h;

	if (contd__load(&contd__intercept_mode) > MODE_PORTABLE)
		return;
	h = handle_of(request);
	h = h ? h : contd__handle_add(*request, NULL);
	if (h) {
		h->comm = comm;
		contd__store(&h->unstarted, 1);
	}
}

#define ON_MADE(name, parameters, arguments) \
	static int on_##name parameters \
	{ \
		int rc = NEXT.name arguments; \
\
		if (rc == MPI_SUCCESS) \
			made_note(request, comm); \
		return rc; \
	}
CONTD_MADE(ON_MADE)

/*
 * Open MPI (4.1) starts another request in place of a buffered one whose message is still on its way, and leaves its
 * handle in the program's variable. Without memory for the note the next start takes it down.
 */
static void moved_note(MPI_Request before, MPI_Request now)
{
	struct contd__handle *h, *to;

	if (before == now || contd__load(&contd__intercept_mode) > MODE_PORTABLE || now == MPI_REQUEST_NULL)
		return;
	h = handle_of(&before);
	if (!h || h->cr)
		return;
	to = handle_of(&now);
	to = to ? to : contd__handle_add(now, NULL);
	if (to)
		to->comm = h->comm;
	contd__handle_remove(h);
}

static int on_Start(MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);
	MPI_Request before = request ? *request : MPI_REQUEST_NULL;
	int rc;

	if (h && h->cr) {
		rc = contd__cr_start(h->cr);
		return rc ? contd__mpi_refused("MPI_Start", rc) : MPI_SUCCESS;
	}
	if (h && contd__load_acquire(&h->hooked))
		return contd__mpi_refuse(
			"MPI_Start", MPI_ERR_REQUEST,
			"*request is active, and its continuation is outstanding; start it when that has run");
	contd__told_take(h, MPI_STATUS_IGNORE);
	rc = start_note(request);
	if (rc)
		return rc;
	rc = NEXT.Start(request);
	if (request)
		moved_note(before, *request);
	return rc;
}

static int on_Startall(int count, MPI_Request requests[])
{
	bool plain = true;
	int rc = MPI_SUCCESS;

	for (int i = 0; i < count && requests && !rc; i++) {
		struct contd__handle *h = handle_of(&requests[i]);

		plain = plain && !(h && h->cr);
		contd__told_take(h, MPI_STATUS_IGNORE);
		rc = start_note(&requests[i]);
	}
	/* With the portable backend start them one by one, because each may get another handle. */
	if (rc || (plain && (!portable() || count < 0 || !requests)))
		return rc ? rc : NEXT.Startall(count, requests);
	for (int i = 0; i < count && !rc; i++)
		rc = on_Start(&requests[i]);
	return rc;
}

/* MPI would go under the call of its own that is under way. */
static int refuse_end(const char *call)
{
	static const char text[] =
		"called by a continuation that runs inside another MPI call, such as MPI_Send; call it "
		"when that has returned";

	if (!contd__model_is_fatal()) /* which is said anyway */
		contd__mpi_say("%s: %s", call, text);
	return contd__mpi_refuse(call, MPI_ERR_OTHER, text);
}

/*
 * Before MPI begins to end, and not in a delete callback: MPICH (4.0) stops locking before it calls those, and a daemon
 * that is in MPI just then would never unlock.
 */
static int on_Finalize(void)
{
	int rc;

	if (contd__inside_progress)
		return refuse_end("MPI_Finalize");
	contd__mpi_drive_to_end(true);
	if (portable() && !contd__model.sessions)
		contd__mpi_end();
	contd__ring_stop();
	/* Nothing of contd's on the stack: what MPI loses in there is MPI's (tests with valgrind). */
	if (!contd__model.sessions)
		return NEXT.Finalize();
	rc = NEXT.Finalize();
	if (contd__model_is_left())
		contd__mpi_rest();
	return rc;
}

#ifdef MPI_SESSION_NULL
static int on_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	int rc = NEXT.Session_init(info, errhandler, session);

	if (rc != MPI_SUCCESS)
		return rc;
	contd__quirk_session_errhandler(*session, errhandler);
	contd__session_begun(*session);
	contd__mpi_wake();
	return rc;
}

/*
 * Before the program's last session ends, what is outstanding is driven to the end, as in MPI_Finalize. When all are
 * gone contd's own session ends, so that MPI does, as in processes that have not called contd. contd itself does not
 * end: another session may begin at any moment, on any thread.
 */
static int finalize_session(MPI_Session *session)
{
	MPI_Session handle = session ? *session : MPI_SESSION_NULL;
	bool last;
	int rc;

	if (handle == MPI_SESSION_NULL || !contd__session_leaves(handle, &last))
		return NEXT.Session_finalize(session);
	if (last && contd__load_acquire(&contd__mpi_open) && contd__model.sessions)
		contd__mpi_drive_to_end(false);
	rc = contd__session_end(session);
	if (contd__session_may_rest())
		contd__mpi_rest();
	return rc;
}

static int on_Session_finalize(MPI_Session *session)
{
	return contd__inside_progress ? refuse_end("MPI_Session_finalize") : finalize_session(session);
}
#endif

/* ----------------------------------------------------------------------------------------- other blocking calls --- */

/* While continuations wait for something, blocking calls look after it. Collective ones cannot: they go straight on. */

static void on_the_way(void)
{
	if (portable())
		contd__instances_look();
	if (!portable() || !contd__may_run())
		return;
	contd__portable_look_around();
	contd__run_ready();
}

static int on_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int rc = NEXT.Iprobe(source, tag, comm, flag, status);

	on_the_way();
	return rc;
}

static int on_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	int rc = NEXT.Improbe(source, tag, comm, flag, message, status);

	on_the_way();
	return rc;
}

static int on_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	while (portable() && contd__portable_attends()) {
		int flag = 0, rc = NEXT.Iprobe(source, tag, comm, &flag, status);

		if (rc || flag)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Probe(source, tag, comm, status);
}

static int on_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	while (portable() && contd__portable_attends()) {
		int flag = 0, rc = NEXT.Improbe(source, tag, comm, &flag, message, status);

		if (rc || flag)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Mprobe(source, tag, comm, message, status);
}

/*
 * A blocking receive that attends to pending operations meanwhile. The message is taken with the look that finds it: if
 * another thread could take it in between, this one would wait inside MPI, where it attends to nothing. Errors in the
 * arguments are found before a message is taken, and told as MPI_Recv tells them.
 */
struct receive {
	void *buf;
	MPI_Count count;
	MPI_Datatype type;
	int source, tag;
	MPI_Comm comm;
	MPI_Status *status;
	bool large; /* the call has a large count */
};

static int receive_plainly(const struct receive *r, int source, MPI_Status *status)
{
#if MPI_VERSION >= 4
	if (r->large)
		return NEXT.Recv_c(r->buf, r->count, r->type, source, r->tag, r->comm, status);
#endif
	return NEXT.Recv(r->buf, (int)r->count, r->type, source, r->tag, r->comm, status);
}

/* MPI_Recv's own judgement of all arguments but the source, which MPI_Improbe judges. */
static int receive_check(const struct receive *r)
{
	return receive_plainly(r, MPI_PROC_NULL, MPI_STATUS_IGNORE);
}

static int receive_found(const struct receive *r, MPI_Message *message)
{
#if MPI_VERSION >= 4
	if (r->large)
		return PMPI_Mrecv_c(r->buf, r->count, r->type, message, r->status);
#endif
	return PMPI_Mrecv(r->buf, (int)r->count, r->type, message, r->status);
}

/* Is the message too long? MPI_Mrecv knows no communicator: MPICH (4.0) would tell MPI_COMM_WORLD's error handler. */
static bool too_long(const struct receive *r, const MPI_Status *message, MPI_Count *bytesp)
{
	MPI_Count size;

	if (r->source == MPI_PROC_NULL || PMPI_Get_elements_x(message, MPI_BYTE, bytesp) || *bytesp == MPI_UNDEFINED ||
	    PMPI_Type_size_x(r->type, &size) || size == MPI_UNDEFINED)
		return false;
	return *bytesp > size * r->count;
}

/* The message goes, as with MPI_Recv, and what is left of it is undefined. */
static int receive_too_long(const struct receive *r, MPI_Message *message, MPI_Count bytes)
{
	void *all = bytes <= INT_MAX ? contd__zalloc((size_t)bytes) : NULL;
	int rc;

	if (!all)
		return receive_found(r, message);
	rc = PMPI_Mrecv(all, (int)bytes, MPI_BYTE, message, r->status);
	free(all);
	if (rc)
		return rc;
	PMPI_Comm_call_errhandler(r->comm, MPI_ERR_TRUNCATE);
	return MPI_ERR_TRUNCATE;
}

static int receive_attending(const struct receive *r)
{
	while (contd__portable_attends()) {
		MPI_Message message;
		MPI_Count bytes = 0;
		MPI_Status its;
		int flag = 0, rc = NEXT.Improbe(r->source, r->tag, r->comm, &flag, &message, &its);

		if (rc)
			return rc;
		if (flag) {
			CONTD_TESTPOINT("message_found");
			return too_long(r, &its, &bytes) ? receive_too_long(r, &message, bytes)
							 : receive_found(r, &message);
		}
		contd__portable_attend();
	}
	return receive_plainly(r, r->source, r->status);
}

static int receive(const struct receive *r)
{
	int rc;

	if (!portable() || !contd__portable_attends())
		return receive_plainly(r, r->source, r->status);
	rc = receive_check(r);
	return rc ? rc : receive_attending(r);
}

static int await_sent(MPI_Request *request)
{
	int flag = 0, rc = MPI_SUCCESS;

	while (!rc && !flag) {
		rc = NEXT.Test(request, &flag, MPI_STATUS_IGNORE);
		if (!rc && !flag)
			contd__portable_attend();
	}
	return rc;
}

struct send {
	const void *buf;
	MPI_Count count;
	MPI_Datatype type;
	int dest, tag;
	MPI_Comm comm;
	bool large, synchronous;
};

static int send_plainly(const struct send *s)
{
#if MPI_VERSION >= 4
	if (s->large)
		return (s->synchronous ? NEXT.Ssend_c : NEXT.Send_c)(s->buf, s->count, s->type, s->dest, s->tag,
								     s->comm);
#endif
	return (s->synchronous ? NEXT.Ssend : NEXT.Send)(s->buf, (int)s->count, s->type, s->dest, s->tag, s->comm);
}

static int send_start(const struct send *s, MPI_Request *request)
{
#if MPI_VERSION >= 4
	if (s->large)
		return (s->synchronous ? NEXT.Issend_c : NEXT.Isend_c)(s->buf, s->count, s->type, s->dest, s->tag,
								       s->comm, request);
#endif
	return (s->synchronous ? NEXT.Issend : NEXT.Isend)(s->buf, (int)s->count, s->type, s->dest, s->tag, s->comm,
							   request);
}

static int send(const struct send *s)
{
	MPI_Request request;
	int rc;

	if (!portable() || !contd__portable_attends())
		return send_plainly(s);
	rc = send_start(s, &request);
	return rc ? rc : await_sent(&request);
}

/* Nothing is sent where the receive is refused. */
static int receive_refused(const struct receive *r)
{
	int flag, rc = receive_check(r);

	return rc ? rc : NEXT.Iprobe(r->source, r->tag, r->comm, &flag, MPI_STATUS_IGNORE);
}

static int sendrecv_attending(const struct send *s, const struct receive *r)
{
	MPI_Request request;
	int rc = send_start(s, &request), sent;

	if (rc)
		return rc; /* nothing is received */
	rc = receive_attending(r);
	sent = await_sent(&request);
	return rc ? rc : sent;
}

static int sendrecv(const struct send *s, const struct receive *r)
{
	int rc;

	if (portable() && contd__portable_attends()) {
		rc = receive_refused(r);
		return rc ? rc : sendrecv_attending(s, r);
	}
#if MPI_VERSION >= 4
	if (r->large)
		return NEXT.Sendrecv_c(s->buf, s->count, s->type, s->dest, s->tag, r->buf, r->count, r->type, r->source,
				       r->tag, r->comm, r->status);
#endif
	return NEXT.Sendrecv(s->buf, (int)s->count, s->type, s->dest, s->tag, r->buf, (int)r->count, r->type, r->source,
			     r->tag, r->comm, r->status);
}

/* The send goes from a copy, which MPI makes for itself else: its length, and the copy. */
static int pack_size(const struct receive *r, MPI_Count *size)
{
	int few = 0, rc;

#if MPI_VERSION >= 4
	if (r->large)
		return PMPI_Pack_size_c(r->count, r->type, r->comm, size);
#endif
	rc = PMPI_Pack_size((int)r->count, r->type, r->comm, &few);
	*size = few;
	return rc;
}

static int pack(const struct receive *r, void *copy, MPI_Count size, MPI_Count *packed)
{
	int few = 0, rc;

	*packed = 0;
#if MPI_VERSION >= 4
	if (r->large)
		return PMPI_Pack_c(r->buf, r->count, r->type, copy, size, packed, r->comm);
#endif
	rc = PMPI_Pack(r->buf, (int)r->count, r->type, copy, (int)size, &few, r->comm);
	*packed = few;
	return rc;
}

static int sendrecv_replace(const struct receive *r, int dest, int sendtag)
{
	struct send s = {.type = MPI_PACKED, .dest = dest, .tag = sendtag, .comm = r->comm, .large = r->large};
	void *copy = NULL;
	MPI_Count size;
	int rc;

	if (portable() && contd__portable_attends()) {
		if ((rc = receive_refused(r)) != 0 || (rc = pack_size(r, &size)) != 0)
			return rc;
		copy = contd__zalloc(size > 0 ? (size_t)size : 1);
	}
	if (copy) {
		rc = pack(r, copy, size, &s.count);
		s.buf = copy;
		rc = rc ? rc : sendrecv_attending(&s, r);
		free(copy);
		return rc;
	}
#if MPI_VERSION >= 4
	if (r->large)
		return NEXT.Sendrecv_replace_c(r->buf, r->count, r->type, dest, sendtag, r->source, r->tag, r->comm,
					       r->status);
#endif
	return NEXT.Sendrecv_replace(r->buf, (int)r->count, r->type, dest, sendtag, r->source, r->tag, r->comm,
				     r->status);
}

/* With counts of type N; names that end in c. */
#define ON_BLOCKING(N, c, is_large) \
	static int on_Recv##c(void *buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, \
			      MPI_Status *status) \
	{ \
		return receive(&(struct receive){buf, count, type, source, tag, comm, status, is_large}); \
	} \
	static int on_Send##c(const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) \
	{ \
		return send(&(struct send){buf, count, type, dest, tag, comm, is_large, false}); \
	} \
	static int on_Ssend##c(const void *buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) \
	{ \
		return send(&(struct send){buf, count, type, dest, tag, comm, is_large, true}); \
	} \
	static int on_Sendrecv##c(const void *sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag, \
				  void *recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag, \
				  MPI_Comm comm, MPI_Status *status) \
	{ \
		return sendrecv( \
			&(struct send){sendbuf, sendcount, sendtype, dest, sendtag, comm, is_large, false}, \
			&(struct receive){recvbuf, recvcount, recvtype, source, recvtag, comm, status, is_large}); \
	} \
	static int on_Sendrecv_replace##c(void *buf, N count, MPI_Datatype type, int dest, int sendtag, int source, \
					  int recvtag, MPI_Comm comm, MPI_Status *status) \
	{ \
		return sendrecv_replace(&(struct receive){buf, count, type, source, recvtag, comm, status, is_large}, \
					dest, sendtag); \
	}
ON_BLOCKING(int, , false)
#if MPI_VERSION >= 4
ON_BLOCKING(MPI_Count, _c, true)
#endif

/* ---------------------------------------------------------------------------------------------------- the names --- */

/* Not ours: another backend works, or MPI calls itself. */
static inline bool passes(const void *caller)
{
	uint32_t now = contd__load(&contd__intercept_mode);

	/* With the native backend all is done below, but for calls inside a continuation or its error handler. */
	return now == MODE_OFF || (now == MODE_NATIVE && !contd__at_something_sig()) ||
	       contd__library_has(&contd__library_mpi, caller);
}

/* Only the portable backend takes note of requests that are started. */
static inline bool started_passes(const void *caller)
{
	return contd__load(&contd__intercept_mode) > MODE_PORTABLE || contd__library_has(&contd__library_mpi, caller);
}

/* The native backend's, unless something waits for progress, or may be outstanding for a CR that Open MPI does not know
 * of. */
static inline bool asked_passes(const void *caller)
{
	return passes(caller) &&
	       (contd__load(&contd__intercept_mode) != MODE_NATIVE || contd__library_has(&contd__library_mpi, caller) ||
		!(contd__load(&contd__instances_pushed) || contd__load(&contd__cr_shared) ||
		  contd__load(&contd__sets_owing) || contd__mpi->pending() || contd__waits_sig(CLASSES_ALL)));
}

/*
 * Those of Fortran's generalized requests pass, too, because their functions are called by other rules than those of C.
 * MPICH's Fortran library starts the request by the C call, and then has MPI remember that they are Fortran's.
 */
static inline bool general_passes(const void *caller)
{
	return contd__library_has(&contd__library_mpi, caller) || contd__library_has(&contd__library_fortran, caller);
}

/* Every process takes part in what the end needs, whatever it has used. */
static inline bool end_passes(const void *caller)
{
	return contd__library_has(&contd__library_mpi, caller);
}

#define NAMES_OF(name, parameters, arguments, passes, on) \
	CONTD_API int MPI_##name parameters; \
	CONTD_API int PMPI_##name parameters; \
	int MPI_##name parameters \
	{ \
		if (passes(__builtin_return_address(0))) \
			return contd__next_mpi.name arguments; \
		return contd__next_tool.name ? contd__next_tool.name arguments : on arguments; \
	} \
	int PMPI_##name parameters \
	{ \
		if (passes(__builtin_return_address(0))) \
			return NEXT.name arguments; \
		return on arguments; \
	}
#define NAMES(name, parameters, arguments) NAMES_OF(name, parameters, arguments, passes, on_##name)
#define GENERAL_NAMES(name, parameters, arguments) \
	NAMES_OF(name, parameters, arguments, general_passes, contd__on_##name)
#define ASKED_NAMES(name, parameters, arguments) NAMES_OF(name, parameters, arguments, asked_passes, on_##name)
#define STARTED_NAMES(name, parameters, arguments) NAMES_OF(name, parameters, arguments, started_passes, on_##name)
#define END_NAMES(name, parameters, arguments) NAMES_OF(name, parameters, arguments, end_passes, on_##name)
CONTD_STARTED(STARTED_NAMES)
CONTD_MADE(STARTED_NAMES)
CONTD_CALLED(NAMES)
CONTD_ASKED(ASKED_NAMES)
CONTD_ENDS(END_NAMES)
CONTD_SESSIONS(END_NAMES)
CONTD_GENERAL(GENERAL_NAMES)
