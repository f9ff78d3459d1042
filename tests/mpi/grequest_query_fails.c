/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 */
/*
 * A query_fn that returns an error: each reader of the status finds the code in MPI_ERROR, status queries and
 * continuations alike, asked once or again, and whether query_fn writes MPI_ERROR itself or not.
 */
#include "check.h"

static int code;
static bool writes;
static int queries, frees;

static int query_fn(void *extra, MPI_Status *status)
{
	(void)extra;
	queries++;
	MPI_Status_set_elements(status, MPI_BYTE, 3);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 4;
	status->MPI_TAG = 5;
	if (writes)
		status->MPI_ERROR = code;
	return code;
}

static int free_fn(void *extra)
{
	(void)extra;
	frees++;
	return MPI_SUCCESS;
}

static int cancel_fn(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static int class_of(int error)
{
	int class = -1;

	MPI_Error_class(error, &class);
	return class;
}

static void check_status(MPI_Status *status)
{
	CHECK_EQ(class_of(status->MPI_ERROR), code);
	CHECK_EQ(status->MPI_SOURCE, 4);
	CHECK_EQ(status->MPI_TAG, 5);
}

static MPI_Request start(void)
{
	MPI_Request r;

	frees = 0;
	CHECK_OK(MPI_Grequest_start(query_fn, free_fn, cancel_fn, NULL, &r));
	return r;
}

static void check_queries(void)
{
	MPI_Request r[2] = {start(), MPI_REQUEST_NULL};
	MPI_Status status[2];
	int flag, at[2];

	check_begin(code ? "status queries of one that fails" : "status queries");
	CHECK_OK(MPI_Grequest_complete(r[0]));
	for (int i = 0; i < 2; i++) {
		memset(status, POISON, sizeof(status));
		CHECK_OK(MPIX_Request_get_status_all(2, r, &flag, status));
		CHECK(flag);
		check_status(&status[0]);
		CHECK_EQ(status[1].MPI_ERROR, MPI_SUCCESS);
		status_poison(&status[0]);
		CHECK_OK(MPIX_Request_get_status_any(2, r, &at[0], &flag, status));
		CHECK(flag);
		CHECK_EQ(at[0], 0);
		check_status(&status[0]);
		status_poison(&status[0]);
		CHECK_OK(MPIX_Request_get_status_some(2, r, &flag, at, status));
		CHECK_EQ(flag, 1);
		CHECK_EQ(at[0], 0);
		check_status(&status[0]);
	}
	CHECK_EQ(frees, 0);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE); /* the result is MPI's own */
	CHECK_EQ(frees, 1);
}

static int rc_seen;

static int revised(int rc, void *data)
{
	(void)data;
	rc_seen = rc;
	return MPI_SUCCESS;
}

/* Complete before it is attached (when is 0), or afterwards. */
static void check_continuation(int when, bool is_revised)
{
	MPI_Request r = start(), keep = r, cr;
	MPI_Status status;
	struct seen seen = {0};

	check_begin(is_revised ? "a continuation of the revised interface" : "a continuation");
	status_poison(&status);
	rc_seen = -1;
	if (when == 0)
		CHECK_OK(MPI_Grequest_complete(keep));
	if (is_revised) {
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
		CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPIX_Continue(&r, revised, NULL, MPIX_CONT_INVOKE_FAILED, &status, cr));
	} else {
		cr = check_plain_cr();
		CHECK_OK(MPI_Continue(&r, see, &seen, &status, cr));
	}
	if (when)
		CHECK_OK(MPI_Grequest_complete(keep));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	check_status(&status);
	if (is_revised)
		CHECK_EQ(rc_seen, code);
	else
		CHECK_EQ(seen.runs, 1);
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_EQ(frees, 1);
}

static int start_fn(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int push_fn(void *extra)
{
	(void)extra;
	return MPI_ERR_FILE;
}

static int complete_fn(void *extra, MPI_Status *status)
{
	(void)extra, (void)status;
	return MPI_SUCCESS;
}

/* The request of a template whose push_fn has failed: complete_fn has not run, but the query reports the failure. */
static void check_template(void)
{
	MPI_Status status;
	MPI_Request r;
	MPIX_Gr gr;
	int flag = 0;

	check_begin("status queries of a template's");
	code = MPI_ERR_FILE;
	CHECK_OK(MPIX_Gr_init(start_fn, push_fn, complete_fn, NULL, &gr));
	CHECK_OK(MPIX_Gr_begin(gr, NULL, &r));
	while (!flag)
		CHECK_OK(MPIX_Request_get_status_all(1, &r, &flag, &status));
	CHECK_EQ(class_of(status.MPI_ERROR), code);
	CHECK_EQ(class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)), code);
	CHECK_OK(MPIX_Gr_free(&gr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		writes = i == 1;
		code = i < 2 ? MPI_ERR_FILE : MPI_SUCCESS;
		check_queries();
		for (int way = 0; way < 4; way++)
			check_continuation(way / 2, way % 2);
	}
	check_template();
	return check_fini();
}
