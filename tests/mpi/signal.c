/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Compute regions: a rank that calls nothing is interrupted, MPI makes progress there, and continuations run, the
 * async-signal-safe ones and the others. No thread level is needed for that (see signal_single.c).
 */
#include "check.h"

#ifndef LEVEL
#define LEVEL MPI_THREAD_FUNNELED
#endif

#define TAG 81
#define LARGEST (1 << 20)

static unsigned char *buffer;
static atomic_int flag, in_region, outside;
static volatile double sink;

/* Async-signal-safe: atomics only. */
static void note(MPI_Status *status, void *data)
{
	(void)data;
	if (status->MPI_ERROR != MPI_SUCCESS)
		return;
	if (contd__tls.region)
		atomic_fetch_add(&in_region, 1);
	else
		atomic_fetch_add(&outside, 1);
	atomic_fetch_add(&flag, 1);
}

/* Only an ordinary continuation may do this, in the handler as well: MPI, memory. */
static void work(MPI_Status *status, void *data)
{
	char *memory = malloc(1000);
	char answer = 1;

	note(status, data);
	memset(memory, 1, 1000);
	MPI_Send(&answer, 1, MPI_BYTE, 0, TAG + 2, MPI_COMM_WORLD);
	free(memory);
}

static void compute_until(int count)
{
	double x = 1;

	contd_compute_begin();
	while (atomic_load(&flag) < count)
		for (int i = 0; i < 1000; i++)
			x = x * 1.000001 + 1e-9;
	contd_compute_end();
	sink = x;
}

static void receiver(MPI_Request cr, MPI_Continue_cb_function *cb, int bytes, int messages)
{
	static MPI_Status status[16];
	char go = 1;

	atomic_store(&flag, 0);
	for (int i = 0; i < messages; i++) {
		MPI_Request r;

		MPI_Irecv(buffer + i * bytes, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, cb, NULL, &status[i], cr));
	}
	MPI_Send(&go, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
	compute_until(messages);
	CHECK_EQ(flag, messages);
	for (int i = 0; i < messages; i++)
		CHECK(pattern_holds(buffer + i * bytes, (size_t)bytes, (unsigned)i));
	/* Nothing is left for this. */
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, messages);
}

static void sender(int bytes, int messages, bool answers)
{
	char go;

	MPI_Recv(&go, 1, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	usleep(2000); /* most likely it is in its region by now; the test is right where it is not */
	for (int i = 0; i < messages; i++) {
		pattern_fill(buffer, (size_t)bytes, (unsigned)i);
		MPI_Send(buffer, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	}
	for (int i = 0; i < messages && answers; i++)
		MPI_Recv(&go, 1, MPI_BYTE, 1, TAG + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void check_regions(MPI_Request cr, bool ordinary)
{
	static const int sizes[] = {0, 8, 64 << 10, LARGEST};
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};

	atomic_store(&in_region, 0);
	if (check_rank == 1)
		CHECK_EQ(contd_stats_get(&before), 0);
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			int messages = sizes[i] > 1000 ? 2 : 10;

			if (check_rank == 1)
				receiver(cr, ordinary ? work : note, sizes[i], messages);
			else
				sender(sizes[i], messages, ordinary);
		}
	}
	if (check_rank == 1) {
		CHECK_EQ(contd_stats_get(&after), 0);
		CHECK(in_region > 0);
		CHECK(after.run_region > before.run_region);
		CHECK(after.ticks > before.ticks);
	}
}

int main(int argc, char **argv)
{
	MPI_Request cr;

	buffer = calloc(2, LARGEST);
	check_init(&argc, &argv, LEVEL);
	if (check_size != 2) {
		fprintf(stderr, "two ranks are needed\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	check_begin("async-signal-safe continuations in regions");
	cr = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);
	check_regions(cr, false);
	CHECK_OK(MPI_Request_free(&cr));
	check_begin("ordinary continuations in regions");
	CHECK_EQ(contd_thread_attach(NULL), 0);
	cr = check_plain_cr();
	check_regions(cr, true);
	CHECK_OK(MPI_Request_free(&cr));
	check_begin("poll-only continuations do not run in regions");
	cr = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	if (check_rank == 1) {
		MPI_Request plain = check_plain_cr(), r;
		struct seen seen = {0};
		MPI_Status status;
		char go = 1;

		atomic_store(&flag, 0);
		MPI_Irecv(buffer, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
		MPI_Irecv(buffer + 1, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, note, NULL, &status, plain));
		MPI_Send(&go, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
		compute_until(1);
		CHECK_EQ(seen.runs, 0);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_OK(MPI_Request_free(&plain));
	} else {
		sender(1, 2, false);
	}
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_EQ(contd_thread_detach(), 0);
	free(buffer);
	return check_fini();
}
