/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the MPI test programs: counted checks, a watchdog that says where a rank hung, and small helpers.
 * A check that fails is printed and counted; the program goes on. check_fini sums up over all ranks.
 */
#ifndef CONTD_TESTS_MPI_CHECK_H
#define CONTD_TESTS_MPI_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <execinfo.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <contd/contd.h>
#include <contd/mpi.h>

#define CHECK_HELPER __attribute__((unused)) static
#define CHECK_WATCHDOG_SECONDS 60
#define CHECK_SKIPPED 77

static int check_rank, check_size = 1;
static atomic_int check_failures, check_count;
static const char *volatile check_section = "start";
static atomic_int check_line;

/* ------------------------------------------------------------------------------------------------------- checks --- */

static inline bool check_that(bool good, const char *what, const char *file, int line)
{
	const char *slash = strrchr(file, '/');

	atomic_store_explicit(&check_line, line, memory_order_relaxed);
	atomic_fetch_add(&check_count, 1);
	if (!good && atomic_fetch_add(&check_failures, 1) < 50)
		fprintf(stderr, "%s:%d: rank %d: %s: CHECK(%s) failed\n", slash ? slash + 1 : file, line, check_rank,
			check_section, what);
	return good;
}

static inline bool check_equal(long long a, long long b, const char *what, const char *file, int line)
{
	const char *slash = strrchr(file, '/');

	atomic_store_explicit(&check_line, line, memory_order_relaxed);
	atomic_fetch_add(&check_count, 1);
	if (a != b && atomic_fetch_add(&check_failures, 1) < 50)
		fprintf(stderr, "%s:%d: rank %d: %s: CHECK_EQ(%s) failed: %lld, %lld\n", slash ? slash + 1 : file, line,
			check_rank, check_section, what, a, b);
	return a == b;
}

#define CHECK(cond) check_that((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check_equal((long long)(a), (long long)(b), #a ", " #b, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_EQ((call), MPI_SUCCESS)

/* ----------------------------------------------------------------------------------------------------- watchdog --- */

/* Async-signal-safe, but for the backtrace: its library is loaded beforehand. */
static void check_hung(int signo)
{
	char line[256];
	void *frames[40];
	int n, length;

	(void)signo;
	length = snprintf(line, sizeof(line), "HUNG: rank %d in \"%s\", after line %d\n", check_rank, check_section,
			  atomic_load(&check_line));
	(void)!write(STDERR_FILENO, line, (size_t)length);
	n = backtrace(frames, (int)(sizeof(frames) / sizeof(frames[0])));
	backtrace_symbols_fd(frames, n, STDERR_FILENO);
	_exit(98);
}

/* Names what follows, and gives it CHECK_WATCHDOG_SECONDS. */
static inline void check_begin(const char *section)
{
	check_section = section;
	alarm(CHECK_WATCHDOG_SECONDS);
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "rank %d: %s\n", check_rank, section);
}

static inline void check_watchdog(void)
{
	void *frames[2];

	backtrace(frames, 2);
	signal(SIGALRM, check_hung);
	alarm(CHECK_WATCHDOG_SECONDS);
}

/* ------------------------------------------------------------------------------------------------ begin and end --- */

/* MPI_Init_thread at this level at least; ends the program as skipped where MPI does not grant it. */
CHECK_HELPER void check_init(int *argc, char ***argv, int level)
{
	int provided;

	check_watchdog();
	if (level == MPI_THREAD_SINGLE) {
		MPI_Init(argc, argv);
		MPI_Query_thread(&provided);
	} else {
		MPI_Init_thread(argc, argv, level, &provided);
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check_size);
	if (provided < level) {
		fprintf(stderr, "skipped: MPI grants thread level %d, %d is needed\n", provided, level);
		MPI_Finalize();
		exit(CHECK_SKIPPED);
	}
}

/* Sums up over all ranks; the program's exit status. */
CHECK_HELPER int check_sum(void)
{
	int mine[2] = {atomic_load(&check_failures), atomic_load(&check_count)}, all[2];

	check_begin("sum");
	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (check_rank == 0)
		printf("%d ranks: %d checks, %d failed\n", check_size, all[1], all[0]);
	fflush(stdout);
	return all[0] != 0;
}

/* MPI_Finalize in a callback, after which nothing may be summed up: returns check_sum(). It reports no continuation. */
CHECK_HELPER int check_finalize_inside(void)
{
	FILE *said = tmpfile();
	int err = dup(STDERR_FILENO), failed = check_sum();
	char line[256];

	check_begin("MPI_Finalize");
	dup2(fileno(said), STDERR_FILENO);
	MPI_Finalize();
	dup2(err, STDERR_FILENO);
	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		CHECK(!strstr(line, "never ran"));
	}
	fclose(said);
	return failed;
}

CHECK_HELPER int check_fini(void)
{
	int rc = check_sum();

	check_begin("MPI_Finalize");
	MPI_Finalize();
	return rc || atomic_load(&check_failures);
}

/* ------------------------------------------------------------------------------------------------------ helpers --- */

/* mpirun binds a rank, and so all of its threads, to one core; races need two. For threads that are made later, too. */
CHECK_HELPER void check_unbind(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	sched_setaffinity(0, sizeof(all), &all);
}

CHECK_HELPER int check_next(void)
{
	return (check_rank + 1) % check_size;
}

CHECK_HELPER int check_previous(void)
{
	return (check_rank + check_size - 1) % check_size;
}

/* Is it the native backend that these tests run on? */
CHECK_HELPER bool check_native(void)
{
#ifdef OPEN_MPI
	const char *backend = getenv("CONTD_MPI_BACKEND");

	return !backend || strcmp(backend, "portable") != 0;
#else
	return false;
#endif
}

/* A CR with up to two info keys; NULL ends them. */
CHECK_HELPER MPI_Request check_cr(const char *key1, const char *value1, const char *key2, const char *value2)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Info info;

	MPI_Info_create(&info);
	if (key1)
		MPI_Info_set(info, key1, value1);
	if (key2)
		MPI_Info_set(info, key2, value2);
	CHECK_OK(MPI_Continue_init(info, &cr));
	MPI_Info_free(&info);
	CHECK(cr != MPI_REQUEST_NULL);
	return cr;
}

CHECK_HELPER MPI_Request check_plain_cr(void)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK(cr != MPI_REQUEST_NULL);
	return cr;
}

/* A callback's record. */
struct seen {
	atomic_int runs;
	MPI_Status *status; /* the pointer it was given */
};

CHECK_HELPER void see(MPI_Status *status, void *data)
{
	struct seen *seen = data;

	seen->status = status;
	atomic_fetch_add(&seen->runs, 1);
}

#define POISON 0x5a

CHECK_HELPER void status_poison(MPI_Status *status)
{
	memset(status, POISON, sizeof(*status));
}

CHECK_HELPER bool status_is_poison(const MPI_Status *status)
{
	MPI_Status poison;

	status_poison(&poison);
	return memcmp(status, &poison, sizeof(poison)) == 0;
}

/* The empty status of MPI 4.1, 3.7.3; what MPI_ERROR is depends on the call. */
CHECK_HELPER bool status_is_empty(MPI_Status *status)
{
	int count = -1, cancelled = 1;

	MPI_Get_count(status, MPI_BYTE, &count);
	MPI_Test_cancelled(status, &cancelled);
	return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

/* A receive that has not failed. */
CHECK_HELPER void status_is_of(MPI_Status *s, int source, int tag, size_t bytes)
{
	int count = -1, cancelled = 1;

	MPI_Get_count(s, MPI_BYTE, &count);
	MPI_Test_cancelled(s, &cancelled);
	CHECK_EQ(s->MPI_SOURCE, source);
	CHECK_EQ(s->MPI_TAG, tag);
	CHECK_EQ(s->MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(count, bytes);
	CHECK(!cancelled);
}

CHECK_HELPER void pattern_fill(unsigned char *buffer, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

CHECK_HELPER bool pattern_holds(const unsigned char *buffer, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (buffer[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

#endif
