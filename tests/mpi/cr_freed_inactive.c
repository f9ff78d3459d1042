/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A CR of the revised interface that is freed while it is inactive: what was registered with it never runs, so the
 * program may free the statuses. The operations go on, and end without touching them.
 */
#include "check.h"

#define TAG 98
#define LOOKS 100 /* by then each backend has found that the operations are complete */

static int runs;

static int count(int rc, void *data)
{
	(void)rc, (void)data;
	runs++;
	return MPI_SUCCESS;
}

static bool is_filled(const void *memory, size_t size)
{
	const unsigned char *byte = memory;

	for (size_t i = 0; i < size; i++)
		if (byte[i] != 0xa5)
			return false;
	return true;
}

/* `started`: it was active before. */
static void one(int n, int flags, bool started)
{
	static int in[2];
	MPI_Status statuses[2];
	MPI_Request r[2], cr;
	int out = 1;

	runs = 0;
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	if (started) {
		CHECK_OK(MPI_Start(&cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	}
	for (int i = 0; i < n; i++) {
		in[i] = 0;
		MPI_Irecv(&in[i], 1, MPI_INT, check_rank, TAG + i, MPI_COMM_WORLD, &r[i]);
	}
	CHECK_OK(n == 1 ? MPIX_Continue(r, count, NULL, flags, statuses, cr)
			: MPIX_Continueall(n, r, count, NULL, flags, statuses, cr));
	CHECK_OK(MPI_Request_free(&cr));
	memset(statuses, 0xa5, sizeof(statuses)); /* it is other memory now */
	for (int i = 0; i < n; i++)
		CHECK_OK(MPI_Send(&out, 1, MPI_INT, check_rank, TAG + i, MPI_COMM_WORLD));
	for (int i = 0; i < n; i++)
		while (!in[i])
			CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, TAG + n, MPI_COMM_WORLD, &(int){0}, MPI_STATUS_IGNORE));
	for (int i = 0; i < LOOKS; i++)
		CHECK_EQ(contd_poll(0), 0);
	CHECK(is_filled(statuses, sizeof(statuses)));
	CHECK_EQ(runs, 0);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	for (int started = 0; started < 2; started++) {
		check_begin(started ? "one, inactive again" : "one, never started");
		one(1, 0, started);
		one(1, MPIX_CONT_INVOKE_FAILED, started);
		check_begin(started ? "two, inactive again" : "two, never started");
		one(2, 0, started);
	}
	return check_fini();
}
