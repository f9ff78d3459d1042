/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A persistent receive fails beside a CR whose continuations have not: whichever call completes it returns the error,
 * and its error handler is called, once. The same for a wait without a CR while a continuation is outstanding. (Open
 * MPI's own Testany and Testall say nothing of it, and its Waitall only if there are no statuses.)
 */
#include "errors.h"

enum call { TESTANY, WAITANY, TESTALL, WAITALL, TESTSOME, WAITSOME, CALLS };
enum { CR, FAILS, SUCCEEDS, REQUESTS };

static const char *const name[CALLS] = {"MPI_Testany", "MPI_Waitany",  "MPI_Testall",
					"MPI_Waitall", "MPI_Testsome", "MPI_Waitsome"};
static MPI_Comm comm;
static int told;

static void on_error(MPI_Comm *which, int *error, ...)
{
	(void)which, (void)error;
	told++;
}

/* Until it reports an error. */
static int complete(enum call call, int count, MPI_Request *requests, MPI_Status *statuses)
{
	int rc = MPI_SUCCESS, flag, index, indices[REQUESTS];

	for (int i = 0; i < 1000 && rc == MPI_SUCCESS; i++) {
		if (call == TESTANY)
			rc = MPI_Testany(count, requests, &index, &flag, statuses);
		else if (call == WAITANY)
			rc = MPI_Waitany(count, requests, &index, statuses);
		else if (call == TESTALL)
			rc = MPI_Testall(count, requests, &flag, statuses);
		else if (call == WAITALL)
			rc = MPI_Waitall(count, requests, statuses);
		else if (call == TESTSOME)
			rc = MPI_Testsome(count, requests, &flag, indices, statuses);
		else
			rc = MPI_Waitsome(count, requests, &flag, indices, statuses);
	}
	return rc;
}

static void fails_beside(enum call call, bool ignore, bool with_cr)
{
	MPI_Request requests[REQUESTS], send = send_too_much(1, comm), cr = check_plain_cr();
	int class, out = 1, in, unused, count = with_cr ? REQUESTS : REQUESTS - 1;
	MPI_Status statuses[REQUESTS];
	struct seen seen = {0};

	check_begin(name[call]);
	told = 0;
	requests[CR] = cr;
	MPI_Irecv(&unused, 1, MPI_INT, 0, 3, comm, &requests[SUCCEEDS]);
	if (!with_cr)
		CHECK_OK(MPI_Continue(&requests[SUCCEEDS], see, &seen, MPI_STATUS_IGNORE, cr));
	MPI_Recv_init(&in, 1, MPI_INT, 0, 1, comm, &requests[FAILS]);
	MPI_Start(&requests[FAILS]);
	if (with_cr)
		MPI_Send(&out, 1, MPI_INT, 0, 3, comm);
	make_progress(comm);
	for (int i = 0; i < REQUESTS; i++)
		statuses[i].MPI_ERROR = MPI_SUCCESS;
	class = class_of(complete(call, count, requests + !with_cr, ignore ? MPI_STATUSES_IGNORE : statuses));
	CHECK_EQ(class, call <= WAITANY ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS);
	CHECK_EQ(told, 1);
	if (!ignore && (call == TESTALL || call == WAITALL))
		CHECK_EQ(class_of(statuses[with_cr ? FAILS : FAILS - 1].MPI_ERROR), MPI_ERR_TRUNCATE);
	if (!ignore && with_cr && (call == TESTALL || call == WAITALL))
		CHECK_EQ(statuses[CR].MPI_ERROR, MPI_SUCCESS);
	if (with_cr)
		CHECK(requests[CR] == cr);
	else
		MPI_Send(&out, 1, MPI_INT, 0, 3, comm);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	MPI_Wait(&requests[SUCCEEDS], MPI_STATUS_IGNORE);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	/* Open MPI (4.1) frees it. */
	if (requests[FAILS] != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Request_free(&requests[FAILS]));
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_EQ(told, 1);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	tell_all(comm, on_error);
	for (int call = 0; call < CALLS; call++)
		for (int ignore = 0; ignore < 2; ignore++)
			fails_beside(call, ignore, true);
	fails_beside(WAITANY, false, false);
	fails_beside(WAITALL, true, false);
	fails_beside(WAITSOME, false, false);
	MPI_Comm_free(&comm);
	return check_fini();
}
