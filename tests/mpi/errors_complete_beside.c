/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * A callback has failed, and so has a receive that stands beside its CR in an array. Each is reported once, with its
 * own error and to the error handler that MPI itself calls for such a receive (in MPICH not its communicator's),
 * whichever stands first. A thread may just be completing the receive: what it has written is still there afterwards.
 */
#include "errors.h"
#ifdef OPEN_MPI
#include "mpi/ompi.h"
#endif

#define TAG 80
#define MOST 8 /* calls that report */

enum call { TESTANY, WAITANY, TESTSOME, WAITSOME, CALLS };

static const char *const name[CALLS] = {"MPI_Testany", "MPI_Waitany", "MPI_Testsome", "MPI_Waitsome"};

/* How many it reports: errors[] is what was reported of each request, once. */
static int report(enum call call, MPI_Request *requests, int *errors)
{
	int rc, flag = 1, count = 1, indices[2] = {-1, -1};
	MPI_Status statuses[2];

	memset(statuses, 0, sizeof(statuses));
	if (call == TESTANY)
		rc = MPI_Testany(2, requests, indices, &flag, statuses);
	else if (call == WAITANY)
		rc = MPI_Waitany(2, requests, indices, statuses);
	else if (call == TESTSOME)
		rc = MPI_Testsome(2, requests, &count, indices, statuses);
	else
		rc = MPI_Waitsome(2, requests, &count, indices, statuses);
	if (!flag || count <= 0 || indices[0] < 0)
		return 0;
	for (int i = 0; i < count; i++) {
		CHECK_EQ(errors[indices[i]], MPI_SUCCESS);
		errors[indices[i]] = class_of(call <= WAITANY ? rc : statuses[i].MPI_ERROR);
	}
	return count;
}

static bool self_is_told; /* of the receive */

static void both_failed(enum call call, int cr_at)
{
	MPI_Request requests[2];
	int in, two[2] = {1, 2}, errors[2] = {MPI_SUCCESS, MPI_SUCCESS}, reported = 0;

	check_begin(name[call]);
	if (check_rank == 1) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(two, 2, MPI_INT, 0, TAG, MPI_COMM_WORLD);
		MPI_Send(NULL, 0, MPI_INT, 0, TAG + 1, MPI_COMM_WORLD);
		return;
	}
	MPI_Irecv(&in, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[!cr_at]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(NULL, 0, MPI_INT, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* after that one */
	requests[cr_at] = failed_cr();
	on_self_count = on_world_count = 0;
	for (int i = 0; i < MOST && reported < 2; i++)
		reported += report(call, requests, errors);
	CHECK_EQ(reported, 2);
	CHECK_EQ(errors[cr_at], MPI_ERR_OTHER);
	CHECK_EQ(errors[!cr_at], MPI_ERR_TRUNCATE);
	CHECK(requests[!cr_at] == MPI_REQUEST_NULL);
	if (call <= WAITANY) {
		CHECK_EQ(on_self_count, 1 + self_is_told);
		CHECK_EQ(on_world_count, !self_is_told);
	}
	free_failed(requests[cr_at]);
}

/* As Open MPI completes a receive that has failed: first its status, and some time later it is complete. */
static void completing(enum call call, int cr_at)
{
#ifdef OPEN_MPI
	struct contd__ompi_request *r;
	MPI_Request requests[2], receive;
	int in, errors[2] = {MPI_SUCCESS, MPI_SUCCESS}, reported = 0;

	if (!check_native())
		return;
	if (check_rank == 1) {
		in = 7;
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(&in, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
		return;
	}
	check_begin(name[call]);
	MPI_Irecv(&in, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &receive);
	requests[!cr_at] = receive;
	requests[cr_at] = failed_cr();
	r = (struct contd__ompi_request *)(void *)receive;
	r->status.MPI_ERROR = MPI_ERR_TRUNCATE;
	for (int i = 0; i < MOST && !reported; i++)
		reported = report(call, requests, errors);
	CHECK_EQ(reported, 1);
	CHECK_EQ(errors[cr_at], MPI_ERR_OTHER);
	CHECK_EQ(r->status.MPI_ERROR, MPI_ERR_TRUNCATE);
	CHECK(requests[!cr_at] == receive);
	r->status.MPI_ERROR = MPI_SUCCESS;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_OK(MPI_Wait(&requests[!cr_at], MPI_STATUS_IGNORE));
	CHECK_EQ(in, 7);
	free_failed(requests[cr_at]);
#else
	(void)call, (void)cr_at;
#endif
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	count_errors();
	self_is_told = mpi_tells_self_in_arrays();
	for (int call = 0; call < CALLS; call++)
		for (int cr_at = 0; cr_at < 2; cr_at++) {
			both_failed(call, cr_at);
			completing(call, cr_at);
		}
	return check_fini();
}
