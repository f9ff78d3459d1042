/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A callback that a test of a CR runs waits for the same CR: max_poll bounds the test, not the wait, which would never
 * end.
 */
#include "check.h"

#include <unistd.h>

enum { READY = 4, WAYS = 3 };
static MPI_Request limited;
static int runs, way;
static bool waited;

static void run(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	runs++;
}

static void waits(MPI_Status *status, void *data)
{
	MPI_Request both[2] = {MPI_REQUEST_NULL, limited};
	int index;

	(void)status;
	(void)data;
	if (way == 0)
		CHECK_OK(MPI_Wait(&limited, MPI_STATUS_IGNORE));
	else if (way == 1)
		CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
	else
		CHECK_OK(MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, READY);
	waited = true;
}

static void test_that_waits(int max_poll, MPI_Request other)
{
	int flag;

	for (way = 0; way < WAYS; way++) {
		MPI_Request none = MPI_REQUEST_NULL;

		runs = 0;
		waited = false;
		for (int i = 0; i < READY; i++, none = MPI_REQUEST_NULL)
			CHECK_OK(MPI_Continue(&none, run, NULL, MPI_STATUS_IGNORE, limited));
		CHECK_OK(MPI_Continue(&none, waits, NULL, MPI_STATUS_IGNORE, other));
		CHECK_EQ(runs, 0);
		CHECK_OK(MPI_Test(&limited, &flag, MPI_STATUS_IGNORE));
		CHECK(waited);
		CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
		/* The limit is there again. */
		for (int i = 0; i < READY; i++, none = MPI_REQUEST_NULL)
			CHECK_OK(MPI_Continue(&none, run, NULL, MPI_STATUS_IGNORE, limited));
		CHECK_OK(MPI_Test(&limited, &flag, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, READY + max_poll);
		CHECK_OK(MPI_Wait(&limited, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, 2 * READY);
	}
}

int main(int argc, char **argv)
{
	MPI_Request other;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	alarm(60); /* a wait that does not end */
	other = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	for (int max_poll = 0; max_poll < 3; max_poll++) {
		char text[2] = {(char)('0' + max_poll), 0};

		check_begin(text);
		limited = check_cr("mpi_continue_enqueue_complete", "true", "mpi_continue_max_poll", text);
		test_that_waits(max_poll, other);
		CHECK_OK(MPI_Request_free(&limited));
	}
	CHECK_OK(MPI_Request_free(&other));
	return check_fini();
}
