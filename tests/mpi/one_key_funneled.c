/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * Below MPI_THREAD_MULTIPLE mpi_continue_async_signal_safe alone drives nothing: a line says so and what helps, once a
 * process. Requests without the key, and contd_mpi_event(), say nothing.
 */
#include "check.h"

static char text[4096];

static void said_during(void (*f)(void))
{
	int ends[2], before = dup(STDERR_FILENO);
	ssize_t n;

	CHECK_EQ(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	f();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	close(before);
}

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what))
		n++;
	return n;
}

static void without(void)
{
	MPI_Request cr = check_cr(NULL, NULL, NULL, NULL);

	CHECK_OK(MPI_Request_free(&cr));
}

static void twice(void)
{
	for (int i = 0; i < 2; i++) {
		MPI_Request cr = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL);

		CHECK_OK(MPI_Request_free(&cr));
	}
}

int main(int argc, char **argv)
{
	int level;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	MPI_Query_thread(&level);
	said_during(without);
	CHECK_EQ(count("mpi_continue_async_signal_safe"), 0);
	said_during(twice);
	CHECK_EQ(count("mpi_continue_async_signal_safe"), level < MPI_THREAD_MULTIPLE);
	CHECK_EQ(count("rank 0"), level < MPI_THREAD_MULTIPLE);
	CHECK_EQ(count("contd_compute_begin()"), level < MPI_THREAD_MULTIPLE);
	return check_fini();
}
