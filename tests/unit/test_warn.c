/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings: which of them CONTD_VERBOSE keeps back, and that one rank of a job says what all would say. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit.h"
#include "base/once.h"
#include "base/say.h"
#include "base/verbose.h"
#include "base/warn.h"

TestSuite(warn, .timeout = WATCHDOG);

static FILE *said;
static int saved_stderr;

static void listen_begin(void)
{
	said = tmpfile();
	cr_assert_not_null(said);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fileno(said), STDERR_FILENO);
}

/* How often the text stands in what was said since. */
static unsigned listen_end(const char *text)
{
	char all[1 << 14];
	unsigned n = 0;
	size_t size;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(said);
	size = fread(all, 1, sizeof(all) - 1, said);
	all[size] = '\0';
	fclose(said);
	for (const char *at = all; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

static unsigned warned(void)
{
	listen_begin();
	contd__warn("the %dnd warning", 2);
	contd__warn_here("the %dnd warning", 2);
	return listen_end("] the 2nd warning\n");
}

Test(warn, what_the_variable_keeps_back)
{
	cr_assert_eq(warned(), 2);
	setenv("CONTD_VERBOSE", "0", 1);
	cr_assert_eq(warned(), 0);
	setenv("CONTD_VERBOSE", "1", 1);
	cr_assert_eq(warned(), 2);
	setenv("CONTD_VERBOSE", "much", 1); /* contd_init() will say that this is wrong */
	cr_assert_eq(warned(), 2);
	listen_begin();
	setenv("CONTD_VERBOSE", "0", 1);
	contd__say("an error");
	cr_assert_eq(listen_end("] an error\n"), 1);
}

/* From contd_init() on the setting counts, until the next one. */
Test(warn, what_the_setting_keeps_back)
{
	struct contd_config c = {.size = sizeof(c), .verbose = CONTD_VERBOSE_ERRORS};

	must(contd_init(&c));
	cr_assert_eq(warned(), 0);
	cr_assert(!contd__says(CONTD_VERBOSE_WARNINGS));
	cr_assert(contd__says(CONTD_VERBOSE_ERRORS));
	c.verbose = CONTD_VERBOSE_WARNINGS;
	must(contd_configure(&c));
	cr_assert_eq(warned(), 2);
	cr_assert_eq(contd_fini(), 0);
	setenv("CONTD_VERBOSE", "0", 1);
	must(contd_init(NULL));
	cr_assert_eq(warned(), 0);
	cr_assert_eq(contd_fini(), 0);
}

/* So many ranks, all at once, of which each lives until all have warned. Returns how many have said the text. */
static unsigned of_ranks(int ranks, const char *variable, bool alike, const char *text)
{
	int go[2], ready[2];
	char c = 0;

	cr_assert_eq(pipe(go), 0);
	cr_assert_eq(pipe(ready), 0);
	listen_begin();
	for (int i = 0; i < ranks; i++) {
		char rank[16];
		pid_t child = fork();

		cr_assert_geq(child, 0);
		if (child)
			continue;
		close(go[1]);
		snprintf(rank, sizeof(rank), "%d", i);
		if (variable)
			setenv(variable, rank, 1);
		contd__warn_here(alike ? "a slower way" : "a slower way, rank %d", i);
		if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 0)
			_exit(1);
		_exit(0);
	}
	for (int i = 0; i < ranks; i++)
		cr_assert_eq(read(ready[0], &c, 1), 1);
	close(go[1]);
	for (int i = 0; i < ranks; i++) {
		int status = 1;

		cr_assert_geq(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
	close(go[0]);
	close(ready[0]);
	close(ready[1]);
	return listen_end(text);
}

Test(warn, one_rank_of_a_job_says_it)
{
	static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
	char name[64];

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		cr_assert_eq(of_ranks(4, ranks[i], true, "] a slower way"), 1, "%s", ranks[i]);
	/* What differs is said by each. */
	cr_assert_eq(of_ranks(3, "PMI_RANK", false, "] a slower way, rank "), 3);
	/* No job: programs that have nothing to do with each other. */
	cr_assert_eq(of_ranks(3, NULL, true, "] a slower way"), 3);
	snprintf(name, sizeof(name), "job.%d", (int)getpid());
	setenv("PMIX_NAMESPACE", name, 1);
	cr_assert_eq(of_ranks(2, "PMIX_RANK", true, "] a slower way"), 1);
}

Test(warn, how_many_ranks_there_are)
{
	cr_assert_eq(of_ranks(2, "PMI_RANK", true, " a slower way (said once for all ranks of the job on this host)\n"),
		     1);
	setenv("PMI_SIZE", "4", 1);
	cr_assert_eq(of_ranks(2, "PMI_RANK", true,
			      " a slower way (said once for all ranks of the job on this host; the job has 4)"),
		     1);
	setenv("PMI_SIZE", "1", 1);
	cr_assert_eq(of_ranks(1, "PMI_RANK", true, "said once"), 0);
	cr_assert_eq(of_ranks(1, NULL, true, "said once"), 0);
	setenv("PMI_SIZE", "many", 1);
	cr_assert_eq(contd__job_size(), -1);
	setenv("OMPI_COMM_WORLD_SIZE", "7", 1);
	cr_assert_eq(contd__job_size(), 7);
}

/* A rank that cannot find out whether another one has said it says it. */
Test(warn, without_descriptors)
{
	struct rlimit none = {0, 0};

	int status = 1;
	pid_t child;

	setenv("PMI_RANK", "1", 1);
	cr_assert(contd__once_here("what"));
	cr_assert(!contd__once_here("what"));
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_NOFILE, &none);
		_exit(contd__once_here("what") ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* In a program that has closed its standard descriptors, contd takes none of their numbers. */
Test(warn, standard_descriptors_stay_closed)
{
	struct contd_config c = {.size = sizeof(c), .agent = CONTD_AGENT_BLOCK};
	int kept[3], taken[3], fd;

	setenv("PMI_RANK", "1", 1);
	for (int i = 0; i < 3; i++)
		kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
	/* One at a time: each kind of descriptor would take the lowest. */
	for (int i = 0; i < 3; i++) {
		close(i);
		must(contd_init(&c));
		fd = contd_fd();
		contd__once_here(i == 0 ? "0" : i == 1 ? "1" : "2");
		taken[i] = fcntl(i, F_GETFD);
		cr_assert_gt(fd, 2);
		contd_fini();
		dup2(kept[i], i);
	}
	for (int i = 0; i < 3; i++)
		cr_assert_eq(taken[i], -1, "descriptor %d was taken", i);
	/* Now only the last of these is made while one is closed. */
	must(contd_init(NULL));
	close(0);
	contd__once_here("3");
	taken[0] = fcntl(0, F_GETFD);
	fd = contd_fd();
	taken[1] = fcntl(0, F_GETFD);
	dup2(kept[0], 0);
	contd_fini();
	for (int i = 0; i < 3; i++)
		close(kept[i]);
	cr_assert_eq(taken[0], -1);
	cr_assert_eq(taken[1], -1);
	cr_assert_gt(fd, 2);
}

/* ---------------------------------------------------------------------------------------------------- the start --- */

static void started(const char *verbose)
{
	struct contd_config c = {.size = sizeof(c), .scan_count = 9};

	if (verbose)
		setenv("CONTD_VERBOSE", verbose, 1);
	must(contd_init(&c));
	cr_assert_eq(contd_fini(), 0);
}

static unsigned start_says(const char *verbose, const char *text)
{
	listen_begin();
	started(verbose);
	return listen_end(text);
}

Test(warn, the_start)
{
	setenv("CONTD_AGENT", "tick", 1);
	cr_assert_eq(start_says(NULL, "contd"), 0);
	cr_assert_eq(start_says("0", "contd"), 0);
	cr_assert_eq(start_says("1", "contd"), 0);
	cr_assert_eq(start_says("2", "contd: ["), 1);
	cr_assert_eq(start_says("2", "agent tick, signal "), 1);
	cr_assert_eq(start_says("2", " GHz, cost of a tick: "), 1);
	cr_assert_eq(start_says("3", "agent tick, signal "), 1);
	cr_assert_eq(start_says("3", "  CONTD_AGENT=tick (environment)\n"), 1);
	cr_assert_eq(start_says("3", "  CONTD_SCAN_COUNT=9 (program)\n"), 1);
	cr_assert_eq(start_says("3", "  CONTD_SCAN_NS=50000 (default)\n"), 1);
	cr_assert_eq(start_says("3", "  CONTD_JOB= (default)\n"), 1);
	cr_assert_eq(start_says("3", "  CONTD_MPI_BACKEND=auto (default)\n"), 1);
	/* The variable wins. */
	setenv("CONTD_SCAN_COUNT", "11", 1);
	cr_assert_eq(start_says("3", "  CONTD_SCAN_COUNT=11 (environment)\n"), 1);
}

Test(warn, a_change)
{
	struct contd_config c = {.size = sizeof(c), .scan_ns = 20000};

	setenv("CONTD_VERBOSE", "3", 1);
	listen_begin();
	must(contd_init(NULL));
	cr_assert_eq(listen_end("CONTD_SCAN_NS=50000 (default)\n"), 1);
	listen_begin();
	must(contd_configure(&c));
	cr_assert_eq(listen_end("CONTD_SCAN_NS=20000 (program)\n"), 1);
	c = (struct contd_config){.size = sizeof(c), .scan_count = 7};
	listen_begin();
	must(contd_configure(&c));
	cr_assert_eq(listen_end("CONTD_SCAN_NS=20000 (program)\n"), 1, "it stays what it was");
	/* A refused change is none. */
	c.scan_ns = 1;
	listen_begin();
	must_fail(contd_configure(&c), EINVAL);
	cr_assert_eq(listen_end("contd"), 0);
	cr_assert_eq(contd_fini(), 0);
	/* The next start begins with the defaults. */
	listen_begin();
	must(contd_init(NULL));
	cr_assert_eq(listen_end("CONTD_SCAN_NS=50000 (default)\n"), 1);
	cr_assert_eq(contd_fini(), 0);
}

static unsigned start_of_ranks(int ranks)
{
	unsigned n;

	listen_begin();
	for (int i = 0; i < ranks; i++) {
		char rank[16];
		pid_t child = fork();

		if (child)
			continue;
		snprintf(rank, sizeof(rank), "%d", i);
		setenv("PMI_RANK", rank, 1);
		must(contd_init(NULL));
		sleep(1); /* the others start meanwhile */
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	n = listen_end("] version ");
	return n;
}

Test(warn, one_rank_tells_how_the_job_has_started)
{
	setenv("CONTD_VERBOSE", "2", 1);
	cr_assert_eq(start_of_ranks(3), 1);
}

/* -------------------------------------------------------------------------------------------- unknown variables --- */

Test(warn, unknown_variables)
{
	setenv("CONTD_OVERHEAD_PRECENT", "3", 1);
	cr_assert_eq(start_says("0", "contd"), 0);
	/* Not said is not reported: it comes as soon as warnings are wanted. */
	setenv("CONTD_FINALISE", "alone", 1);
	setenv("CONTD_TEST_LEVEL", "single", 1);
	setenv("CONTD_CHAOS_SECONDS", "3", 1);
	setenv("CONTD", "not ours", 1);
	setenv("CONTDX_AGENT", "not ours", 1);
	listen_begin();
	started("1");
	started("1");
	cr_assert_eq(
		listen_end("the variable CONTD_OVERHEAD_PRECENT is unknown and has no effect; the nearest one that "
			   "is known is CONTD_OVERHEAD_PERCENT\n"),
		1, "once in a process");
}

/* Of all that is in the environment these are reported, and nothing else. */
Test(warn, unknown_variables_alone)
{
	setenv("CONTD_FINALISE", "alone", 1);
	setenv("CONTD_PROGRESS_BYE", "tick", 1);
	setenv("CONTD_PROGRESS_BY", "tick", 1);
	setenv("CONTD_JOB", "mine", 1);
	setenv("CONTD_TEST_LEVEL", "single", 1);
	setenv("CONTD_TORTURE_SECONDS", "3", 1);
	setenv("CONTDX_AGENT", "not ours", 1);
	cr_assert_eq(start_says("1", " is unknown"), 2);
}

/* Variables of the project's own tests and tools. */
Test(warn, variables_that_are_read)
{
	static const char *const read[] = {"CONTD_MPI_BACKEND", "CONTD_CHAOS_SECONDS", "CONTD_FABRIC_LOAD",
					   "CONTD_LAB_STATE",   "CONTD_CLUSTER_RUN",   "CONTD_DEPS"};

	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
		setenv(read[i], "1", 1);
	cr_assert_eq(start_says("1", "contd"), 0);
}
