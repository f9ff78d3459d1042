/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's completion calls for requests that are no CRs: pending operations are looked after meanwhile. */
#include "base/atomic.h"
#include "mpi/backend.h"
#include "mpi/calls.h"
#include "mpi/grequest.h"
#include "mpi/intercept.h"
#include "mpi/mpich_forgets.h"
#include "mpi/portable.h"
#include "mpi/templates.h"

#define FEW_PENDING 64u /* so many are polled in every call about something else; more in every EVERYth */
#define EVERY 8u
#define NEXT contd__next_pmpi

static __thread uint32_t calls __attribute__((tls_model("initial-exec")));

/* In a call about something else: pending operations are looked at too. */
void contd__portable_look_around(void)
{
	uint32_t pending = contd__mpi->pending();

	if (contd__general_any() && contd__may_run())
		contd__general_drain();
	if (pending && contd__may_run() && (pending <= FEW_PENDING || ++calls % EVERY == 0))
		contd__portable_poll(1);
}

/* A thread that waits looks after what is pending. */
bool contd__portable_attends(void)
{
	return contd__may_run() ? contd__portable_busy() : contd__load(&contd__instances_pushed) && !contd__pushing;
}

void contd__portable_attend(void)
{
	contd__mpi->progress(PROGRESS_WAITING);
	contd__instances_look();
	if (contd__may_run())
		contd__run_ready();
}

static int plain_test(MPI_Request *request, int *flag, MPI_Status *status)
{
	bool told = contd__forgets_among(1, request);
	int rc = told ? contd__forgets_one(request, status) : NEXT.Test(request, flag, status);

	if (told)
		*flag = 1;
	contd__portable_look_around();
	return rc;
}

static int plain_test_any(size_t count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
	bool told = contd__forgets_among(count, requests);
	int rc = told ? contd__forgets_any(count, requests, index, status)
		      : NEXT.Testany((int)count, requests, index, flag, status);

	if (told)
		*flag = 1;
	contd__portable_look_around();
	return rc;
}

static int plain_test_all(size_t count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	int rc = NEXT.Testall((int)count, requests, flag, statuses);

	if ((*flag || rc) && contd__forgets_among(count, requests))
		rc = contd__forgets_all(count, requests, statuses, rc);
	contd__portable_look_around();
	return rc;
}

static int plain_test_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	int rc = contd__forgets_among(count, requests)
			 ? contd__forgets_some(count, requests, outcount, indices, statuses)
			 : NEXT.Testsome((int)count, requests, outcount, indices, statuses);

	contd__portable_look_around();
	return rc;
}

static int plain_wait(MPI_Request *request, MPI_Status *status)
{
	if (contd__forgets_among(1, request))
		return contd__forgets_one(request, status);
	while (contd__portable_attends()) {
		int flag = 0, rc = NEXT.Test(request, &flag, status);

		if (rc || flag)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Wait(request, status);
}

static int plain_wait_any(size_t count, MPI_Request *requests, int *index, MPI_Status *status)
{
	if (contd__forgets_among(count, requests))
		return contd__forgets_any(count, requests, index, status);
	while (contd__portable_attends()) {
		int flag = 0, rc = contd__portable_test_any(count, requests, index, &flag, status);

		if (rc || flag)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Waitany((int)count, requests, index, status);
}

static int wait_all(size_t count, MPI_Request *requests, MPI_Status *statuses)
{
	while (contd__portable_attends()) {
		int flag = 0, rc = contd__portable_test_all(count, requests, &flag, statuses);

		if (rc || flag)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Waitall((int)count, requests, statuses);
}

static int plain_wait_all(size_t count, MPI_Request *requests, MPI_Status *statuses)
{
	int rc = wait_all(count, requests, statuses);

	return contd__forgets_among(count, requests) ? contd__forgets_all(count, requests, statuses, rc) : rc;
}

static int plain_wait_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	if (contd__forgets_among(count, requests))
		return contd__forgets_some(count, requests, outcount, indices, statuses);
	while (contd__portable_attends()) {
		int rc = NEXT.Testsome((int)count, requests, outcount, indices, statuses);

		if (rc || *outcount)
			return rc;
		contd__portable_attend();
	}
	return NEXT.Waitsome((int)count, requests, outcount, indices, statuses);
}

const struct contd__request_functions contd__portable_plain = {plain_test,      plain_test_any, plain_test_all,
							       plain_test_some, plain_wait,     plain_wait_any,
							       plain_wait_all,  plain_wait_some};
