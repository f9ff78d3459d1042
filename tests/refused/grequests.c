/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Grequest_start, MPIX_Gr_init and MPIX_Gr_begin where memory is refused, each block in turn, and where MPI itself
 * refuses (grequest_shim.c): the call fails and says so, no function of the program's has been called, the handle is
 * as it was, no block is lost; the next call succeeds.
 */
#include "mpi/check.h"

#include "refused/grequest_shim.h"
#include "refused/refuse.h"

#define MANY 700 /* so that the table of a template's requests grows */

static MPI_Request cr;
static int handled, handled_class;

static void on_self(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	MPI_Error_class(*error, &handled_class);
	handled++;
}

static unsigned function_of(const char *name)
{
	for (unsigned f = 0; f < refuse_functions(); f++)
		if (strcmp(refuse_name(f), name) == 0)
			return f;
	fprintf(stderr, "no function %s in calls.def\n", name);
	exit(2);
}

/* --------------------------------------------------------------------------------------- what the program gives --- */

struct operation {
	MPI_Request request;
	int starts, pushes, completes, queries, frees;
	int start_rc;
	bool ends;
};

static int query_fn(void *extra, MPI_Status *status)
{
	((struct operation *)extra)->queries++;
	MPI_Status_set_elements(status, MPI_BYTE, 3);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = 0;
	return MPI_SUCCESS;
}

static int free_fn(void *extra)
{
	((struct operation *)extra)->frees++;
	return MPI_SUCCESS;
}

static int cancel_fn(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static int start_fn(void *extra)
{
	struct operation *o = extra;

	o->starts++;
	return o->start_rc;
}

static int push_fn(void *extra)
{
	struct operation *o = extra;

	o->pushes++;
	if (o->ends) {
		o->ends = false;
		CHECK_OK(MPIX_Mark_request_complete(o->request));
	}
	return MPI_SUCCESS;
}

static int complete_fn(void *extra, MPI_Status *status)
{
	(void)status;
	((struct operation *)extra)->completes++;
	return MPI_SUCCESS;
}

static bool untouched(const struct operation *o)
{
	return !o->starts && !o->pushes && !o->completes && !o->queries && !o->frees;
}

/* ---------------------------------------------------------------------------------------------------- the calls --- */

enum call { GREQUEST, TEMPLATE, BEGIN, CALLS };
static const char *const call_name[CALLS] = {"MPI_Grequest_start", "MPIX_Gr_init", "MPIX_Gr_begin"};

static MPIX_Gr gr, made;
static struct operation o;

static int make(enum call call)
{
	switch (call) {
	case GREQUEST:
		return MPI_Grequest_start(query_fn, free_fn, cancel_fn, &o, &o.request);
	case TEMPLATE:
		return MPIX_Gr_init(start_fn, push_fn, complete_fn, NULL, &made);
	default:
		return MPIX_Gr_begin(gr, &o, &o.request);
	}
}

/* The request that was made works, and is gone then. */
static void use_up(enum call call)
{
	static int turn;
	struct seen seen = {0};

	if (call == TEMPLATE) { /* not begun: the first MPIX_Gr_begin of all has its own ladder */
		CHECK_OK(MPIX_Gr_free(&made));
		return;
	}
	if (call == GREQUEST)
		CHECK_OK(MPI_Grequest_complete(o.request));
	o.ends = true;
	if (turn++ % 2) {
		MPI_Request handle = o.request;

		CHECK_OK(MPI_Continue(&handle, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
	} else {
		CHECK_OK(MPI_Wait(&o.request, MPI_STATUS_IGNORE));
		CHECK(o.request == MPI_REQUEST_NULL);
	}
	CHECK_EQ(call == GREQUEST ? o.frees : o.completes, 1);
}

/* Refused for this reason; nothing has changed but for these blocks, which wait to be used. */
static void is_refused(int rc, int class, int handlers, int blocks, int kept)
{
	int got = -1;

	MPI_Error_class(rc, &got);
	CHECK_EQ(got, class);
	CHECK_EQ(handled, handlers);
	if (handlers)
		CHECK_EQ(handled_class, class);
	handled = 0;
	CHECK(untouched(&o));
	CHECK(o.request == MPI_REQUEST_NULL);
	CHECK(made == MPIX_GR_NULL);
	CHECK(refuse_blocks() - blocks <= kept);
}

static void clear(void)
{
	memset(&o, 0, sizeof(o));
	o.request = MPI_REQUEST_NULL;
	made = MPIX_GR_NULL;
}

/* Of each function that gives memory the first call is refused, the second, and so on, until there is none to
 * refuse. */
static int memory_ladder(enum call call)
{
	enum { FUNCTIONS = 5 };
	static const char *const name[FUNCTIONS] = {"calloc", "realloc", "malloc", "aligned_alloc", "mmap"};
	int refusals = 0;

	check_begin(call_name[call]);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		/* First what it needs the first time only: a template its place. */
		unsigned f = function_of(name[(i + (call == TEMPLATE)) % FUNCTIONS]);

		for (unsigned n = 1;; n++) {
			int blocks = refuse_blocks(), rc;

			clear();
			refuse_start(f, n, false);
			rc = make(call);
			refuse_end();
			if (refuse_refused() == 0) {
				CHECK_OK(rc);
				use_up(call);
				break;
			}
			refusals++;
			is_refused(rc, MPI_ERR_NO_MEM, 1, blocks, 0);
		}
	}
	return refusals;
}

/* MPI gives none, and has called an error handler. Its class comes out, and contd calls none on top of that. */
static void mpi_refuses(enum call call)
{
	static const int class[] = {MPI_ERR_NO_MEM, MPI_ERR_INTERN};
	int blocks = 0;

	check_begin("MPI refuses");
	for (int i = 0; i < 20; i++) {
		int rc;

		clear();
		if (i < 2) /* the first may keep a block for later */
			blocks = refuse_blocks();
		shim_refuses = class[i % 2];
		shim_refused = 0;
		rc = make(call);
		shim_refuses = MPI_SUCCESS;
		CHECK_EQ(shim_refused, 1);
		is_refused(rc, class[i % 2], 1, blocks, i == 0);
	}
	clear();
	CHECK_OK(make(call));
	use_up(call);
}

/* Templates and requests that were refused, or whose start_fn was: the template's memory goes with the template. */
static void check_references(void)
{
	int blocks;

	check_begin("a template that was refused requests is freed");
	clear();
	CHECK_OK(make(BEGIN)); /* so that whatever is kept for later is there */
	use_up(BEGIN);
	blocks = refuse_blocks();
	for (int i = 0; i < 20; i++) {
		MPIX_Gr kept = gr;

		clear();
		CHECK_OK(make(TEMPLATE));
		gr = made;
		made = MPIX_GR_NULL;
		shim_refuses = i % 4 == 0 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
		o.start_rc = i % 4 == 1 ? MPI_ERR_IO : MPI_SUCCESS;
		if (i % 4 == 2)
			refuse_start(function_of("calloc"), 1, false);
		if (i % 4 == 3) {
			CHECK_OK(make(BEGIN));
			CHECK_OK(MPIX_Mark_request_complete(o.request));
			CHECK_OK(MPI_Request_free(&o.request));
			CHECK_EQ(o.completes, 1);
		} else {
			CHECK(make(BEGIN) != MPI_SUCCESS);
			CHECK_EQ(handled, 1);
			CHECK_EQ(o.starts, i % 4 == 1);
			CHECK_EQ(o.completes, 0);
			CHECK(o.request == MPI_REQUEST_NULL);
		}
		handled = 0;
		shim_refuses = MPI_SUCCESS;
		refuse_end();
		CHECK_OK(MPIX_Gr_free(&gr));
		gr = kept;
		CHECK_EQ(refuse_blocks(), blocks);
	}
}

/* Many at a time, with one block refused to each: what the tables do without, and what they don't. */
static void check_many(enum call call)
{
	static struct operation many[MANY];
	static MPI_Request requests[MANY];
	int refusals = 0;

	check_begin("many at a time");
	for (int i = 0; i < MANY; i++) {
		struct operation *each = &many[i];
		int rc = MPI_SUCCESS;

		memset(each, 0, sizeof(*each));
		each->request = MPI_REQUEST_NULL;
		for (unsigned n = 1; n < 10; n++) {
			refuse_start(function_of("calloc"), n, false);
			rc = call == GREQUEST ? MPI_Grequest_start(query_fn, free_fn, cancel_fn, each, &each->request)
					      : MPIX_Gr_begin(gr, each, &each->request);
			refuse_end();
			if (rc == MPI_SUCCESS)
				break;
			refusals++;
			CHECK(refuse_refused() > 0);
			CHECK(untouched(each));
			CHECK(each->request == MPI_REQUEST_NULL);
		}
		CHECK_OK(rc);
		requests[i] = each->request;
	}
	CHECK(refusals >= MANY);
	CHECK_EQ(handled, refusals);
	handled = 0;
	for (int i = 0; i < MANY; i++)
		CHECK_OK(call == GREQUEST ? MPI_Grequest_complete(requests[i])
					  : MPIX_Mark_request_complete(requests[i]));
	CHECK_OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(call == GREQUEST ? many[i].frees : many[i].completes, 1);
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_create_errhandler(on_self, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	cr = check_plain_cr();
	CHECK(memory_ladder(GREQUEST) >= 2); /* what is kept of it, and its handle's entry */
	CHECK(memory_ladder(TEMPLATE) >= 2); /* it, and its place */
	CHECK_OK(MPIX_Gr_init(start_fn, push_fn, complete_fn, NULL, &gr));
	CHECK(memory_ladder(BEGIN) >= 2); /* what is kept of it, and the table */
	mpi_refuses(GREQUEST);
	mpi_refuses(BEGIN);
	check_references();
	check_many(GREQUEST);
	check_many(BEGIN);
	CHECK_OK(MPIX_Gr_free(&gr));
	CHECK_OK(MPI_Request_free(&cr));
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&handler);
	return check_fini();
}
