/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Finalize with everything still under way: continuations outstanding, a CR not freed, timers armed, threads
 * attached, the daemon ticking. One line says what never ran, nothing runs afterwards, nothing hangs.
 */
#include <pthread.h>
#include <time.h>

#include "check.h"

#define TAG 111
#define LEFT 7

static atomic_int runs;
static atomic_int stop, started;
static volatile double sink;

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	atomic_fetch_add(&runs, 1);
}

static void some_computing(void)
{
	double x = 1;

	contd_compute_begin();
	for (int i = 0; i < 3000000; i++)
		x = x * 1.000001 + 1e-9;
	contd_compute_end();
	for (int i = 0; i < 3000000; i++)
		x = x * 1.000001 + 1e-9;
	sink = x;
}

static void *attached(void *arg)
{
	(void)arg;
	CHECK_EQ(contd_thread_attach(NULL), 0);
	atomic_fetch_add(&started, 1);
	while (!atomic_load(&stop))
		some_computing();
	return NULL;
}

static FILE *captured;
static int saved = -1;

/* An MPI that ends the program in MPI_Finalize says why to stderr, which is being captured. */
static void tell_captured(void)
{
	char line[1024];

	if (saved < 0)
		return;
	dup2(saved, STDERR_FILENO);
	rewind(captured);
	while (fgets(line, sizeof(line), captured))
		fputs(line, stderr);
}

int main(int argc, char **argv)
{
	static const char *const keys[] = {"mpi_continue_async_signal_safe", "mpi_continue_poll_only",
					   "mpi_continue_enqueue_complete"};
	char in[LEFT], line[1024], text[4096] = "", expected[128];
	MPI_Request cr[4], r, none = MPI_REQUEST_NULL;
	pthread_t thread;
	int provided, before, lines = 0, sum;

	captured = tmpfile();
	atexit(tell_captured);
	check_watchdog();
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	check_begin("before");
	cr[0] = check_plain_cr();
	for (int i = 0; i < 3; i++)
		cr[i + 1] = check_cr(keys[i], "true", NULL, NULL);
	/* Receives without a message, and one that is ready and runs in tests of its CR only. */
	for (int i = 0; i < LEFT - 1; i++) {
		MPI_Irecv(&in[i], 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, count, NULL, MPI_STATUS_IGNORE, cr[i % 4]));
	}
	CHECK_OK(MPI_Continue(&none, count, NULL, MPI_STATUS_IGNORE, cr[2]));
	/* One of the CRs is given back before, with something outstanding. */
	CHECK_OK(MPI_Request_free(&cr[3]));
	pthread_create(&thread, NULL, attached, NULL);
	while (!atomic_load(&started))
		usleep(100);
	some_computing();
	CHECK_EQ(runs, 0);
	sum = check_sum();

	check_begin("MPI_Finalize");
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
	before = atomic_load(&runs);
	MPI_Finalize();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	saved = -1;

	check_begin("after MPI_Finalize");
	for (int i = 0; i < 5; i++)
		some_computing();
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(runs, before);
	CHECK_EQ(runs, 0);
	rewind(captured);
	while (fgets(line, sizeof(line), captured)) {
		if (strncmp(line, "contd: [", 8) == 0 && strstr(line, "] MPI_Finalize: "))
			lines++;
		strncat(text, line, sizeof(text) - strlen(text) - 1);
	}
	fclose(captured);
	CHECK_EQ(lines, 1);
	snprintf(expected, sizeof(expected), " %d continuations never ran", LEFT);
	if (!CHECK(strstr(text, expected) != NULL))
		fputs(text, stderr);
	/* contd is stopped with MPI. */
	CHECK(contd_poll(0) < 0);
	CHECK(contd_thread_detach() < 0);
	CHECK_EQ(MPI_Continue(&none, count, NULL, MPI_STATUS_IGNORE, cr[0]), MPI_ERR_OTHER);
	CHECK_EQ(runs, 0);
	return sum || atomic_load(&check_failures);
}
