/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's completion calls, by MPI_ and PMPI_ names, stand here before MPI's own. Where another backend works, or none yet,
 * they go straight on. See portable.h for the layers.
 */
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>

#include "mpi/handles.h"
#include "mpi/portable.h"

#define FEW_PENDING 64u /* so many are polled in every call about something else; more in every EVERYth */
#define EVERY 8u

struct contd__next contd__next_pmpi;
static struct contd__next next_mpi;

/* Before the first use of contd it is not known which backend will work: what is persistent is taken down. */
enum { MODE_RECORD, MODE_PORTABLE, MODE_NATIVE, MODE_OFF };
static uint32_t mode = MODE_RECORD;

/* The layer that the call on this thread goes on to, and whether a tool behind contd may be calling from in there. */
static __thread struct contd__next *down __attribute__((tls_model("initial-exec")));
static __thread uint32_t below __attribute__((tls_model("initial-exec")));
static __thread uint32_t calls __attribute__((tls_model("initial-exec")));

/* MPI's own library: calls from there are no program's, and may be made with its locks held. */
static uintptr_t mpi_begin, mpi_end;

/* --------------------------------------------------------------------------------------------------- who is behind --- */

static int find_mpi(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t address = *(uintptr_t *)data, begin = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + p->p_vaddr < begin)
			begin = info->dlpi_addr + p->p_vaddr;
		if (info->dlpi_addr + p->p_vaddr + p->p_memsz > end)
			end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	if (address < begin || address >= end)
		return 0;
	mpi_begin = begin;
	mpi_end = end;
	return 1;
}

/* Before main and before any MPI call of the program's. */
__attribute__((constructor)) static void resolve(void)
{
	uintptr_t address;

#define RESOLVE(name, parameters, arguments)                                       \
	next_mpi.name = (int(*) parameters)dlsym(RTLD_NEXT, "MPI_" #name);         \
	contd__next_pmpi.name = (int(*) parameters)dlsym(RTLD_NEXT, "PMPI_" #name);
	CONTD_INTERCEPTED(RESOLVE)
#undef RESOLVE
	address = (uintptr_t)contd__next_pmpi.Test;
	if (address)
		dl_iterate_phdr(find_mpi, &address);
}

/* Does a call by a PMPI_ name come here? Where contd is part of the program itself it cannot be otherwise. */
const char *contd__intercept_refuses(void)
{
	Dl_info own, first;

	if (!contd__next_pmpi.Test || !next_mpi.Test)
		return "the MPI library does not stand behind contd: name contd-mpi before it when linking, and let it be a shared "
		       "library";
	if (!dladdr((void *)contd__intercept_refuses, &own) || dlsym(RTLD_DEFAULT, "PMPI_Test") == (void *)PMPI_Test)
		return NULL;
	if (dladdr(dlsym(RTLD_DEFAULT, "main"), &first) && first.dli_fbase == own.dli_fbase)
		return NULL;
	if (dlsym(RTLD_DEFAULT, "PMPI_Test") != (void *)contd__next_pmpi.Test)
		return NULL; /* a tool before us, which goes on to us */
	return "calls of MPI do not come to contd: link the program itself with contd-mpi, before the MPI library, or "
	       "preload it (LD_PRELOAD)";
}

void contd__intercept_start(void)
{
	contd__store_seq(&mode, MODE_PORTABLE);
}

void contd__intercept_native(void)
{
	contd__store_seq(&mode, MODE_NATIVE);
	contd__handles_clear();
}

void contd__intercept_off(void)
{
	contd__store_seq(&mode, MODE_OFF);
	contd__handles_clear();
}

/* ------------------------------------------------------------------------------------------------------ what MPI does --- */

/* In a call about something else: pending operations are looked at too. */
static void look_around(void)
{
	uint32_t pending = contd__mpi->pending();

	if (pending && contd__may_run() && (pending <= FEW_PENDING || ++calls % EVERY == 0))
		contd__portable_poll(1);
}

/* A thread that waits looks after what is pending. */
static bool attends(void)
{
	return contd__may_run() && contd__portable_busy();
}

static void attend(void)
{
	contd__mpi->progress(true);
	contd__run_ready();
}

#define DOWN(call)                      \
	({                              \
		int down_rc_;           \
		below++;                \
		down_rc_ = down->call;  \
		below--;                \
		down_rc_;               \
	})

static int plain_test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int rc = DOWN(Test(request, flag, status));

	look_around();
	return rc;
}

static int plain_test_any(size_t count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
	int rc = DOWN(Testany((int)count, requests, index, flag, status));

	look_around();
	return rc;
}

static int plain_test_all(size_t count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	int rc = DOWN(Testall((int)count, requests, flag, statuses));

	look_around();
	return rc;
}

static int plain_test_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	int rc = DOWN(Testsome((int)count, requests, outcount, indices, statuses));

	look_around();
	return rc;
}

static int plain_wait(MPI_Request *request, MPI_Status *status)
{
	while (attends()) {
		int flag = 0, rc = DOWN(Test(request, &flag, status));

		if (rc || flag)
			return rc;
		attend();
	}
	return DOWN(Wait(request, status));
}

static int plain_wait_any(size_t count, MPI_Request *requests, int *index, MPI_Status *status)
{
	while (attends()) {
		int flag = 0, rc = DOWN(Testany((int)count, requests, index, &flag, status));

		if (rc || flag)
			return rc;
		attend();
	}
	return DOWN(Waitany((int)count, requests, index, status));
}

static int plain_wait_all(size_t count, MPI_Request *requests, MPI_Status *statuses)
{
	while (attends()) {
		int flag = 0, rc = DOWN(Testall((int)count, requests, &flag, statuses));

		if (rc || flag)
			return rc;
		attend();
	}
	return DOWN(Waitall((int)count, requests, statuses));
}

static int plain_wait_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	while (attends()) {
		int rc = DOWN(Testsome((int)count, requests, outcount, indices, statuses));

		if (rc || *outcount)
			return rc;
		attend();
	}
	return DOWN(Waitsome((int)count, requests, outcount, indices, statuses));
}

const struct contd__request_functions contd__portable_plain = {plain_test, plain_test_any, plain_test_all, plain_test_some,
							      plain_wait, plain_wait_any, plain_wait_all, plain_wait_some};

/* ---------------------------------------------------------------------------------------------- completion calls --- */

static bool portable(void)
{
	return contd__load_acquire(&mode) == MODE_PORTABLE;
}

static int on_Test(struct contd__next *next, MPI_Request *request, int *flag, MPI_Status *status)
{
	return portable() && request && flag ? contd__calls.test(request, flag, status) : next->Test(request, flag, status);
}

static int on_Testany(struct contd__next *next, int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	return portable() && count >= 0 && (!count || requests) && index && flag
		       ? contd__calls.test_any((size_t)count, requests, index, flag, status)
		       : next->Testany(count, requests, index, flag, status);
}

static int on_Testall(struct contd__next *next, int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	return portable() && count >= 0 && (!count || requests) && flag
		       ? contd__calls.test_all((size_t)count, requests, flag, statuses)
		       : next->Testall(count, requests, flag, statuses);
}

static int on_Testsome(struct contd__next *next, int incount, MPI_Request requests[], int *outcount, int indices[],
		       MPI_Status statuses[])
{
	return portable() && incount >= 0 && (!incount || requests) && outcount && indices
		       ? contd__calls.test_some((size_t)incount, requests, outcount, indices, statuses)
		       : next->Testsome(incount, requests, outcount, indices, statuses);
}

static int on_Wait(struct contd__next *next, MPI_Request *request, MPI_Status *status)
{
	return portable() && request ? contd__calls.wait(request, status) : next->Wait(request, status);
}

static int on_Waitany(struct contd__next *next, int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	return portable() && count >= 0 && (!count || requests) && index
		       ? contd__calls.wait_any((size_t)count, requests, index, status)
		       : next->Waitany(count, requests, index, status);
}

static int on_Waitall(struct contd__next *next, int count, MPI_Request requests[], MPI_Status statuses[])
{
	return portable() && count >= 0 && (!count || requests) ? contd__calls.wait_all((size_t)count, requests, statuses)
								: next->Waitall(count, requests, statuses);
}

static int on_Waitsome(struct contd__next *next, int incount, MPI_Request requests[], int *outcount, int indices[],
		       MPI_Status statuses[])
{
	return portable() && incount >= 0 && (!incount || requests) && outcount && indices
		       ? contd__calls.wait_some((size_t)incount, requests, outcount, indices, statuses)
		       : next->Waitsome(incount, requests, outcount, indices, statuses);
}

/* ------------------------------------------------------------------------------------------ what is done to handles --- */

static struct contd__handle *handle_of(const MPI_Request *request)
{
	return request && *request != MPI_REQUEST_NULL ? contd__handle_find(*request) : NULL;
}

static int on_Request_get_status(struct contd__next *next, MPI_Request request, int *flag, MPI_Status *status)
{
	struct contd__handle *h = handle_of(&request);
	struct contd__cr *own = contd__load(&mode) == MODE_NATIVE && request ? contd__mpi->cr_of(request) : NULL;

	/* A continuation that runs inside the call that attaches it does not make the native CR incomplete. */
	if (own && flag && contd__inside_sig(own->group)) {
		*flag = 0;
		return MPI_SUCCESS;
	}
	if (!portable() || !h || !flag || (!h->cr && !contd__load_acquire(&h->hooked)))
		return next->Request_get_status(request, flag, status);
	contd__portable_poll(1);
	if (contd__may_run())
		contd__run_ready();
	*flag = h->cr ? contd__cr_complete(h->cr) : !contd__load_acquire(&h->hooked);
	if (*flag && status != MPI_STATUS_IGNORE) {
		int error = status->MPI_ERROR;

		*status = contd__status_empty;
		status->MPI_ERROR = error;
	}
	return MPI_SUCCESS;
}

static int on_Request_free(struct contd__next *next, MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);

	if (!h)
		return next->Request_free(request);
	if (!h->cr) {
		if (contd__load_acquire(&h->hooked)) /* what polls it would use it after its end */
			return contd__mpi_error(MPI_ERR_REQUEST);
		contd__handle_remove(h);
		return next->Request_free(request);
	}
	*request = MPI_REQUEST_NULL;
	contd__portable_cr_free(h->cr);
	return MPI_SUCCESS;
}

static int on_Cancel(struct contd__next *next, MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);

	/* A CR is no operation. */
	return h && h->cr ? contd__mpi_error(MPI_ERR_REQUEST) : next->Cancel(request);
}

/* MPI_SUCCESS, and whatever is given to MPI_Start is known as persistent; or the error class. */
static int start_note(const MPI_Request *request)
{
	if (contd__load(&mode) > MODE_PORTABLE || !request || *request == MPI_REQUEST_NULL || handle_of(request) || contd__handle_add(*request, NULL))
		return MPI_SUCCESS;
	return contd__mpi_error(MPI_ERR_NO_MEM);
}

static int on_Start(struct contd__next *next, MPI_Request *request)
{
	struct contd__handle *h = handle_of(request);
	int rc;

	if (h && h->cr) {
		rc = contd__cr_start(h->cr);
		return rc ? contd__mpi_error(rc) : MPI_SUCCESS;
	}
	if (h && contd__load_acquire(&h->hooked))
		return contd__mpi_error(MPI_ERR_REQUEST); /* active */
	rc = start_note(request);
	return rc ? rc : next->Start(request);
}

static int on_Startall(struct contd__next *next, int count, MPI_Request requests[])
{
	bool plain = true;
	int rc = MPI_SUCCESS;

	for (int i = 0; i < count && requests && !rc; i++) {
		struct contd__handle *h = handle_of(&requests[i]);

		plain = plain && !(h && h->cr);
		rc = start_note(&requests[i]);
	}
	if (rc || plain)
		return rc ? rc : next->Startall(count, requests);
	for (int i = 0; i < count && !rc; i++)
		rc = on_Start(next, &requests[i]);
	return rc;
}

/*
 * Before MPI begins to end, and not in a delete callback: MPICH (4.0) stops locking before it calls those, and a daemon that
 * is in MPI just then would never unlock.
 */
static int on_Finalize(struct contd__next *next)
{
	if (portable())
		contd__mpi_end();
	return next->Finalize();
}

/* ------------------------------------------------------------------------------------------------ other blocking calls --- */

/* While continuations wait for something, blocking calls look after it. Collective ones cannot: they go straight on. */

static void on_the_way(void)
{
	if (!portable() || !contd__may_run())
		return;
	look_around();
	contd__run_ready();
}

static int on_Iprobe(struct contd__next *next, int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int rc = next->Iprobe(source, tag, comm, flag, status);

	on_the_way();
	return rc;
}

static int on_Improbe(struct contd__next *next, int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		      MPI_Status *status)
{
	int rc = next->Improbe(source, tag, comm, flag, message, status);

	on_the_way();
	return rc;
}

static int on_Probe(struct contd__next *next, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	while (portable() && attends()) {
		int flag = 0, rc = contd__next_pmpi.Iprobe(source, tag, comm, &flag, status);

		if (rc || flag)
			return rc;
		attend();
	}
	return next->Probe(source, tag, comm, status);
}

static int on_Mprobe(struct contd__next *next, int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	while (portable() && attends()) {
		int flag = 0, rc = contd__next_pmpi.Improbe(source, tag, comm, &flag, message, status);

		if (rc || flag)
			return rc;
		attend();
	}
	return next->Mprobe(source, tag, comm, message, status);
}

/* Until there is a message to be received; errors are the receive's to tell. */
static void await_message(int source, int tag, MPI_Comm comm)
{
	int flag = 0;

	while (attends() && contd__next_pmpi.Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
		attend();
}

static int on_Recv(struct contd__next *next, void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
		   MPI_Status *status)
{
	if (portable() && attends() && comm != MPI_COMM_NULL && count >= 0)
		await_message(source, tag, comm);
	return next->Recv(buf, count, type, source, tag, comm, status);
}

static int await_sent(MPI_Request *request)
{
	int flag = 0, rc = MPI_SUCCESS;

	while (!rc && !flag) {
		rc = contd__next_pmpi.Test(request, &flag, MPI_STATUS_IGNORE);
		if (!rc && !flag)
			attend();
	}
	return rc;
}

/* A tool behind contd is to see the program's send: then nothing can be looked after meanwhile. */
static bool may_replace(const struct contd__next *next)
{
	return next == &contd__next_pmpi || (uintptr_t)next->Test - mpi_begin < mpi_end - mpi_begin;
}

static int on_Send(struct contd__next *next, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	MPI_Request request;
	int rc;

	if (!portable() || !attends() || !may_replace(next))
		return next->Send(buf, count, type, dest, tag, comm);
	rc = PMPI_Isend(buf, count, type, dest, tag, comm, &request);
	return rc ? rc : await_sent(&request);
}

static int on_Ssend(struct contd__next *next, const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	MPI_Request request;
	int rc;

	if (!portable() || !attends() || !may_replace(next))
		return next->Ssend(buf, count, type, dest, tag, comm);
	rc = PMPI_Issend(buf, count, type, dest, tag, comm, &request);
	return rc ? rc : await_sent(&request);
}

static int on_Sendrecv(struct contd__next *next, const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
		       int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
		       MPI_Status *status)
{
	MPI_Request request;
	int rc, sent;

	if (!portable() || !attends() || !may_replace(next))
		return next->Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
				      recvtag, comm, status);
	rc = PMPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &request);
	if (rc)
		return rc;
	await_message(source, recvtag, comm);
	rc = contd__next_pmpi.Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
	sent = await_sent(&request);
	return rc ? rc : sent;
}

/* ---------------------------------------------------------------------------------------------------- the names --- */

/* Not ours: another backend works; MPI calls itself; or a tool behind contd passes on what came from here. */
static inline bool passes(bool by_pmpi_name, const void *caller)
{
	uint32_t now = contd__load(&mode);

	/* With the native backend all is done below, but for what is asked inside a continuation. */
	return now == MODE_OFF || (now == MODE_NATIVE && !contd__self.frame) || (by_pmpi_name && below) ||
	       (uintptr_t)caller - mpi_begin < mpi_end - mpi_begin;
}

#define CONTD_MORE(...) __VA_OPT__(, ) __VA_ARGS__ /* what follows the first argument */
#define NAMES(name, parameters, arguments)                                               \
	CONTD_API int MPI_##name parameters;                                             \
	CONTD_API int PMPI_##name parameters;                                            \
	int MPI_##name parameters                                                        \
	{                                                                                \
		struct contd__next *outer = down;                                        \
		int rc;                                                                  \
                                                                                         \
		if (passes(false, __builtin_return_address(0)))                          \
			return next_mpi.name arguments;                                  \
		down = &next_mpi;                                                        \
		rc = on_##name(&next_mpi CONTD_MORE arguments);                             \
		down = outer;                                                            \
		return rc;                                                               \
	}                                                                                \
	int PMPI_##name parameters                                                       \
	{                                                                                \
		struct contd__next *outer = down;                                        \
		int rc;                                                                  \
                                                                                         \
		if (passes(true, __builtin_return_address(0)))                           \
			return contd__next_pmpi.name arguments;                          \
		down = &contd__next_pmpi;                                                \
		rc = on_##name(&contd__next_pmpi CONTD_MORE arguments);                     \
		down = outer;                                                            \
		return rc;                                                               \
	}
CONTD_INTERCEPTED(NAMES)
