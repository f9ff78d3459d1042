/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * A persistent receive has a continuation, and stands in the array of a test, with a CR or alone. Its callback, which
 * runs in that test, starts it again, without another continuation: this test and the next ones are about the operation
 * that was started, which has not completed before its message is sent.
 */
#include "check.h"
#include "mpi/backend.h"

enum call { TESTANY, TESTALL, TESTSOME, CALLS };
enum { PERSISTENT, OTHER, REQUESTS };
enum { TAG_GO = 1, TAG_MESSAGE };
#define ENOUGH 10
#define SECONDS 1

static const char *const name[CALLS] = {"MPI_Testany", "MPI_Testall", "MPI_Testsome"};
static MPI_Request requests[REQUESTS];
static int ran, in, inside; /* inside: callbacks that ran in a test that had found their request waiting */

static void starts_again(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	ran++;
	CHECK_OK(MPI_Start(&requests[PERSISTENT]));
}

/* Is it complete? */
static bool test(enum call call, int count, MPI_Status *statuses)
{
	int flag = 0, index = MPI_UNDEFINED, indices[REQUESTS];
	bool waited = contd__mpi->hooked(requests[PERSISTENT]), started = ran != 0;

	if (call == TESTANY)
		CHECK_OK(MPI_Testany(count, requests, &index, &flag, statuses));
	else if (call == TESTALL)
		CHECK_OK(MPI_Testall(count, requests, &flag, statuses));
	else
		CHECK_OK(MPI_Testsome(count, requests, &flag, indices, statuses));
	if (waited && ran)
		inside++;
	/* Between its completion and the callback it is inactive. */
	if (!ran || (!waited && !started))
		return false;
	if (call == TESTANY && flag)
		CHECK_EQ(index, PERSISTENT);
	return flag;
}

/* From the other rank. */
static void order_message(int value)
{
	MPI_Send(&value, 1, MPI_INT, 1, TAG_GO, MPI_COMM_WORLD);
}

static void again(enum call call, int count)
{
	MPI_Request cr = check_plain_cr();
	MPI_Status statuses[REQUESTS];

	check_begin(name[call]);
	ran = 0;
	requests[OTHER] = check_plain_cr();
	MPI_Recv_init(&in, 1, MPI_INT, 1, TAG_MESSAGE, MPI_COMM_WORLD, &requests[PERSISTENT]);
	MPI_Start(&requests[PERSISTENT]);
	CHECK_OK(MPI_Continue(&requests[PERSISTENT], starts_again, NULL, MPI_STATUS_IGNORE, cr));
	order_message(1);
	while (!ran)
		CHECK(!test(call, count, statuses));
	for (int i = 0; i < 10; i++)
		CHECK(!test(call, count, statuses));
	order_message(2);
	while (!test(call, count, statuses))
		;
	CHECK_EQ(in, 2);
	CHECK_EQ(statuses[0].MPI_TAG, TAG_MESSAGE);
	CHECK_EQ(ran, 1);
	CHECK_OK(MPI_Request_free(&requests[PERSISTENT]));
	CHECK_OK(MPI_Request_free(&requests[OTHER]));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
}

static void answer(void)
{
	int value = 1;

	while (value) {
		MPI_Recv(&value, 1, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (value)
			MPI_Send(&value, 1, MPI_INT, 0, TAG_MESSAGE, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int all = 0;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	if (check_rank == 1)
		answer();
	for (int call = 0; call < CALLS && check_rank == 0; call++)
		for (int count = 1; count <= REQUESTS; count++) {
			double end = MPI_Wtime() + SECONDS;

			inside = 0;
			while (inside < ENOUGH && MPI_Wtime() < end)
				again(call, count);
			all += inside;
		}
	if (check_rank == 0) {
		CHECK(all > 0);
		order_message(0);
	}
	return check_fini();
}
