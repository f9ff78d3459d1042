/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/atomic.h"
#include "mpi/handles.h"
#include "mpi/intercept.h"
#include "mpi/mpich_forgets.h"
#include "mpi/state.h"

#define NEXT contd__next_pmpi

static bool forgets;

/* With a message to itself: what comes from MPI_PROC_NULL may not even be active. */
void contd__forgets_start(MPI_Comm comm)
{
	MPI_Status first = contd__status_empty, second = contd__status_empty;
	MPI_Request request;
	int flag = 0;

	forgets = false;
	if (NEXT.Recv_init(NULL, 0, MPI_BYTE, 0, 0, comm, &request))
		return;
	if (NEXT.Start(&request) == MPI_SUCCESS && NEXT.Send(NULL, 0, MPI_BYTE, 0, 0, comm) == MPI_SUCCESS) {
		while (NEXT.Request_get_status(request, &flag, &first) == MPI_SUCCESS && !flag)
			;
		NEXT.Request_get_status(request, &flag, &second);
		forgets = first.MPI_SOURCE == 0 && second.MPI_SOURCE != 0;
		NEXT.Wait(&request, MPI_STATUS_IGNORE);
	}
	if (request != MPI_REQUEST_NULL)
		NEXT.Request_free(&request);
}

bool contd__mpich_forgets(void)
{
	return forgets;
}

static struct contd__handle *told_of(MPI_Request request)
{
	struct contd__handle *h = request == MPI_REQUEST_NULL ? NULL : contd__handle_find(request);

	return h && contd__load(&h->told) ? h : NULL;
}

bool contd__forgets_among(size_t count, const MPI_Request *requests)
{
	if (contd__load(&contd__handles_told) == 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (told_of(requests[i]))
			return true;
	return false;
}

int contd__forgets_one(MPI_Request *request, MPI_Status *status)
{
	struct contd__handle *h = told_of(*request);
	int class = h->status.MPI_ERROR;

	contd__told_take(h, status);
	return class;
}

int contd__forgets_any(size_t count, const MPI_Request *requests, int *index, MPI_Status *status)
{
	for (size_t i = 0; i < count; i++) {
		struct contd__handle *h = told_of(requests[i]);
		int class;

		if (!h)
			continue;
		class = h->status.MPI_ERROR;
		contd__told_take(h, status);
		*index = (int)i;
		return class;
	}
	*index = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

/* All statuses say how it went, where one says that something failed: MPI 4.1, 3.7.5. */
static int errors_told(MPI_Status *statuses, size_t others, int rc, bool failed)
{
	if (!failed)
		return rc;
	if (statuses != MPI_STATUSES_IGNORE && rc == MPI_SUCCESS)
		for (size_t i = 0; i < others; i++)
			statuses[i].MPI_ERROR = MPI_SUCCESS;
	return MPI_ERR_IN_STATUS;
}

int contd__forgets_some(size_t count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
	int rc = NEXT.Testsome((int)count, requests, outcount, indices, statuses), n, others;
	bool failed = false;

	if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
		return rc;
	n = others = *outcount == MPI_UNDEFINED ? 0 : *outcount;
	for (size_t i = 0; i < count; i++) {
		struct contd__handle *h = told_of(requests[i]);

		if (!h)
			continue;
		failed |= h->status.MPI_ERROR != MPI_SUCCESS;
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[n].MPI_ERROR = MPI_SUCCESS;
		contd__told_take(h, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[n]);
		indices[n++] = (int)i;
	}
	*outcount = n;
	return errors_told(statuses, (size_t)others, rc, failed);
}

int contd__forgets_all(size_t count, const MPI_Request *requests, MPI_Status *statuses, int rc)
{
	bool failed = false;

	if (rc != MPI_SUCCESS && rc != MPI_ERR_IN_STATUS)
		return rc;
	for (size_t i = 0; i < count; i++) {
		struct contd__handle *h = told_of(requests[i]);

		failed |= h && h->status.MPI_ERROR != MPI_SUCCESS;
	}
	rc = errors_told(statuses, count, rc, failed);
	for (size_t i = 0; i < count; i++) {
		struct contd__handle *h = told_of(requests[i]);

		if (h)
			contd__told_take(h, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
	}
	return rc;
}
