/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where continuations run on threads that call MPI:
 *   Test*           at the exit of the call, outside progress
 *   Wait*           in a progress callback while it waits, and at its exit
 *   other blocking  in the progress callback
 * and where CRs are tested and waited for. Open MPI's table of request functions is wrapped; it lies below the PMPI
 * layer, so tools keep their place and calls by PMPI names come here too.
 */
#include <errno.h>
#include <stdlib.h>

#include "mpi/native.h"
#include "opal/runtime/opal_progress.h"
#include "rcu/memory.h"

__thread struct contd__call *contd__call __attribute__((tls_model("initial-exec")));

static ompi_request_fns_t original;

/* ------------------------------------------------------------------------------------------------------- running --- */

/*
 * May continuations run in a call that is about other things? Not inside another continuation: there only tests and waits
 * of CRs run some.
 */
static bool may_run(void)
{
	return contd__self.context == CONTEXT_THREAD && !contd__self.frame;
}

static uint32_t run_ready(void)
{
	uint32_t ran = 0;

	if (contd__put_off_any())
		contd__put_off_drain();
	if (contd__marked_sig(CLASSES_ALL)) {
		struct contd__budget budget = {.count = UINT32_MAX};
		struct contd__call *call = contd__call;

		contd__thread_ensure();
		contd__call = NULL; /* MPI_Request_free in a continuation means what it says */
		ran = contd__scan_sig(CLASSES_ALL, &budget);
		contd__call = call;
		if (contd__load(&contd__tls.flags) & CONTD__TLS_MISSED)
			contd__guard_pickup();
	}
	return ran;
}

/* Called by opal_progress, that is, in every MPI call that makes progress. */
static int progress(void)
{
	struct contd__call *call = contd__call;

	if (opal_using_threads())
		contd__recheck();
	if ((call && call->runs_itself) || !may_run())
		return 0;
	return (int)run_ready();
}

static inline void enter(struct contd__call *call, bool runs_itself)
{
	*call = (struct contd__call){runs_itself, false, contd__call};
	contd__call = call;
}

static inline void leave(struct contd__call *call)
{
	contd__call = call->outer;
}

/* ------------------------------------------------------------------------------------------------------ CRs in calls --- */

/* The CRs of a call, each with what max_poll leaves of it. */
struct crs {
	size_t count;
	struct contd__cr **cr;
	struct contd__testing *testing;
	struct contd__testing *outer;
	struct contd__cr *one;
	struct contd__testing one_testing;
	void *memory;
};

/* The caller's error handler is told through the request's status (errhandler_invoke.c). */
static int cr_error(struct contd__cr *cr, int class)
{
	cr->super.req_status.MPI_ERROR = class;
	return class;
}

/* 0, or MPI_ERR_NO_MEM, which one of them then carries. */
static int crs_find(struct crs *c, size_t count, ompi_request_t **requests)
{
	struct contd__cr *first = NULL;

	c->count = 0;
	c->memory = NULL;
	if (contd__load(&contd__cr_live) == 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!contd__cr_of(requests[i]))
			continue;
		c->count++;
		first = first ? first : contd__cr_of(requests[i]);
	}
	c->cr = &c->one;
	c->testing = &c->one_testing;
	if (c->count > 1) {
		c->memory = contd__zalloc(c->count * (sizeof(*c->cr) + sizeof(*c->testing)));
		if (!c->memory)
			return cr_error(first, MPI_ERR_NO_MEM);
		c->testing = c->memory;
		c->cr = (struct contd__cr **)(c->testing + c->count);
	}
	for (size_t i = 0, n = 0; i < count && n < c->count; i++)
		if (contd__cr_of(requests[i]))
			c->cr[n++] = contd__cr_of(requests[i]);
	return 0;
}

/* From here to the end max_poll holds for them, with a fresh budget each. */
static void crs_begin(struct crs *c)
{
	c->outer = contd__self.testing;
	for (size_t i = 0; i < c->count; i++) {
		struct contd_group *g = c->cr[i]->group;

		c->testing[i] = (struct contd__testing){g, g->max_poll < 0 ? UINT32_MAX : (uint32_t)g->max_poll,
							contd__self.testing};
		contd__self.testing = &c->testing[i];
	}
}

static void crs_end(struct crs *c)
{
	contd__self.testing = c->outer;
}

static void crs_done(struct crs *c)
{
	free(c->memory);
}

static uint32_t crs_run(struct crs *c)
{
	struct contd__call *call = contd__call;
	uint32_t ran = 0;

	contd__thread_ensure();
	contd__words_look_sig(UINT32_MAX);
	for (size_t i = 0; i < c->count; i++) {
		struct contd__budget budget = {.count = UINT32_MAX};
		struct contd_group *g = c->cr[i]->group;

		contd__group_pin_sig(g);
		contd__call = NULL;
		ran += contd__scan_group_sig(g, &budget);
		contd__call = call;
		contd__group_unpin_sig(g);
	}
	return ran + run_ready();
}

/* Would waiting for it never end? */
static bool crs_own(const struct crs *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (contd__inside_sig(c->cr[i]->group))
			return true;
	return false;
}

/*
 * One that runs inside the call that attached it was never counted as outstanding: count it while Open MPI looks, so
 * that its CR is not found complete inside it.
 */
static void crs_own_count(struct crs *c, int one)
{
	for (size_t i = 0; i < c->count; i++) {
		if (!contd__inside_sig(c->cr[i]->group))
			continue;
		contd__add(&c->cr[i]->group->life, (uint64_t)one);
		contd__cr_sync(c->cr[i]);
	}
}

/* A CR is never complete inside one of its own continuations. */
static bool cr_complete(const struct contd__cr *cr)
{
	return contd__group_outstanding_sig(cr->group) == 0 && !contd__inside_sig(cr->group);
}

static int cr_report(struct contd__cr *cr, ompi_status_public_t *status)
{
	contd__cr_reported(cr);
	if (status != MPI_STATUS_IGNORE) {
		int error = status->MPI_ERROR; /* single completion leaves it as it was: MPI 4.1, 3.2.5 */

		*status = ompi_status_empty;
		status->MPI_ERROR = error;
	}
	return OMPI_SUCCESS;
}

static int cr_test(struct contd__cr *cr, int *completed, ompi_status_public_t *status)
{
	struct crs c = {.count = 1, .cr = &cr};
	struct contd__call call;

	c.testing = &c.one_testing;
	if (cr_complete(cr) && !contd__marked_sig(CLASSES_ALL) && !contd__put_off_any()) {
		*completed = true;
		return cr_report(cr, status);
	}
	enter(&call, true);
	crs_begin(&c);
	crs_run(&c);
	if (!cr_complete(cr)) {
		opal_progress();
		crs_run(&c);
	}
	crs_end(&c);
	leave(&call);
	*completed = cr_complete(cr);
	return *completed ? cr_report(cr, status) : OMPI_SUCCESS;
}

static int cr_wait(struct contd__cr *cr, ompi_status_public_t *status)
{
	struct crs c = {.count = 1, .cr = &cr};
	struct contd__call call;

	if (contd__inside_sig(cr->group))
		return cr_error(cr, MPI_ERR_REQUEST);
	if (contd__group_outstanding_sig(cr->group)) {
		enter(&call, true);
		while (crs_run(&c), contd__group_outstanding_sig(cr->group))
			opal_progress();
		leave(&call);
	}
	return cr_report(cr, status);
}

/* ------------------------------------------------------------------------------------------------------ the calls --- */

static int test(ompi_request_t **request, int *completed, ompi_status_public_t *status)
{
	struct contd__cr *cr = contd__cr_of(*request);
	struct contd__call call;
	int rc;

	if (cr)
		return cr_test(cr, completed, status);
	enter(&call, true);
	rc = original.req_test(request, completed, status);
	if (may_run())
		run_ready();
	leave(&call);
	return rc;
}

static int wait_one(ompi_request_t **request, ompi_status_public_t *status)
{
	struct contd__cr *cr = contd__cr_of(*request);
	struct contd__call call;
	int rc;

	if (cr)
		return cr_wait(cr, status);
	enter(&call, false);
	rc = original.req_wait(request, status);
	if (may_run())
		run_ready();
	leave(&call);
	return rc;
}

/* The four array functions differ in their arguments only: one body, with the call to Open MPI's as an argument. */
struct array_call {
	size_t count;
	ompi_request_t **requests;
	int *index;    /* outcount for some */
	int *indices;
	int *completed;
	ompi_status_public_t *statuses;
};

typedef int array_fn(const struct array_call *a);

static int original_test_any(const struct array_call *a)
{
	return original.req_test_any(a->count, a->requests, a->index, a->completed, a->statuses);
}

static int original_test_all(const struct array_call *a)
{
	return original.req_test_all(a->count, a->requests, a->completed, a->statuses);
}

static int original_test_some(const struct array_call *a)
{
	int rc = original.req_test_some(a->count, a->requests, a->index, a->indices, a->statuses);

	*a->completed = *a->index != 0; /* some, or none active */
	return rc;
}

static int original_wait_any(const struct array_call *a)
{
	return original.req_wait_any(a->count, a->requests, a->index, a->statuses);
}

static int original_wait_all(const struct array_call *a)
{
	return original.req_wait_all(a->count, a->requests, a->statuses);
}

static int original_wait_some(const struct array_call *a)
{
	return original.req_wait_some(a->count, a->requests, a->index, a->indices, a->statuses);
}

static int completing(array_fn *fn, const struct array_call *a)
{
	int rc;

	contd__call->completing = true;
	rc = fn(a);
	contd__call->completing = false;
	return rc;
}

static int test_array(array_fn *fn, const struct array_call *a)
{
	struct contd__call call;
	struct crs c;
	int rc = crs_find(&c, a->count, a->requests);

	if (rc)
		return rc;
	enter(&call, true);
	if (c.count == 0) {
		rc = fn(a);
		if (may_run())
			run_ready();
	} else {
		crs_begin(&c);
		crs_run(&c);
		crs_own_count(&c, 1);
		rc = completing(fn, a);
		/* That has made progress where it found nothing: run what came of it, and look once more. */
		if (rc == OMPI_SUCCESS && !*a->completed && crs_run(&c))
			rc = completing(fn, a);
		crs_own_count(&c, -1);
		crs_end(&c);
	}
	leave(&call);
	crs_done(&c);
	return rc;
}

/*
 * With a CR among the requests, waiting is testing again and again: poll-only continuations run in this call and in no
 * other, so it must not sleep.
 */
static int wait_array(array_fn *wait_fn, array_fn *test_fn, struct array_call *a)
{
	struct contd__call call;
	struct crs c;
	int done = 0, rc = crs_find(&c, a->count, a->requests);

	if (rc)
		return rc;
	if (c.count == 0) {
		enter(&call, false);
		rc = wait_fn(a);
		if (may_run())
			run_ready();
	} else if (crs_own(&c)) {
		for (size_t i = 0; i < c.count; i++)
			if (contd__inside_sig(c.cr[i]->group))
				rc = cr_error(c.cr[i], MPI_ERR_REQUEST);
		crs_done(&c);
		return rc;
	} else {
		enter(&call, true);
		a->completed = &done;
		do {
			crs_run(&c);
			rc = completing(test_fn, a);
		} while (rc == OMPI_SUCCESS && !done);
	}
	leave(&call);
	crs_done(&c);
	return rc;
}

static int test_any(size_t count, ompi_request_t **requests, int *index, int *completed, ompi_status_public_t *status)
{
	const struct array_call a = {count, requests, index, NULL, completed, status};

	return test_array(original_test_any, &a);
}

static int test_all(size_t count, ompi_request_t **requests, int *completed, ompi_status_public_t *statuses)
{
	const struct array_call a = {count, requests, NULL, NULL, completed, statuses};

	return test_array(original_test_all, &a);
}

static int test_some(size_t count, ompi_request_t **requests, int *outcount, int *indices, ompi_status_public_t *statuses)
{
	int some;
	const struct array_call a = {count, requests, outcount, indices, &some, statuses};

	return test_array(original_test_some, &a);
}

static int wait_any(size_t count, ompi_request_t **requests, int *index, ompi_status_public_t *status)
{
	struct array_call a = {count, requests, index, NULL, NULL, status};

	return wait_array(original_wait_any, original_test_any, &a);
}

static int wait_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
	struct array_call a = {count, requests, NULL, NULL, NULL, statuses};

	return wait_array(original_wait_all, original_test_all, &a);
}

static int wait_some(size_t count, ompi_request_t **requests, int *outcount, int *indices, ompi_status_public_t *statuses)
{
	struct array_call a = {count, requests, outcount, indices, NULL, statuses};

	return wait_array(original_wait_some, original_test_some, &a);
}

int contd__calls_start(void)
{
	original = ompi_request_functions;
	if (opal_progress_register(progress) != OPAL_SUCCESS)
		return MPI_ERR_OTHER;
	ompi_request_functions = (ompi_request_fns_t){.req_test = test,
						      .req_test_any = test_any,
						      .req_test_all = test_all,
						      .req_test_some = test_some,
						      .req_wait = wait_one,
						      .req_wait_any = wait_any,
						      .req_wait_all = wait_all,
						      .req_wait_some = wait_some};
	return MPI_SUCCESS;
}

void contd__calls_stop(void)
{
	opal_progress_unregister(progress);
	/* Somebody may have wrapped ours after us; then ours goes on to work, for CRs alone find nothing to run. */
	if (ompi_request_functions.req_test == test)
		ompi_request_functions = original;
}
