/* SPDX-License-Identifier: BSD-3-Clause */
/* CONTD_STATS: one line of JSON with all counters when contd ends; where it goes, and what if it cannot. */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "unit.h"
#include "base/say.h"

TestSuite(stats_exit, .timeout = WATCHDOG);

static char folder[] = "/tmp/contd-stats-XXXXXX", got[1 << 16];
static FILE *said;
static int saved_stderr;

static void folder_make(void)
{
	cr_assert_not_null(mkdtemp(folder));
}

static void folder_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

static void read_all(FILE *file)
{
	got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
	fclose(file);
}

/* What stands in the file of the folder; or nothing. */
static const char *in_file(const char *name)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	got[0] = '\0';
	if (file)
		read_all(file);
	return got;
}

static void listen_begin(void)
{
	said = tmpfile();
	saved_stderr = dup(STDERR_FILENO);
	dup2(fileno(said), STDERR_FILENO);
}

static void listen_end(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(said);
	read_all(said);
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return n;
}

/* How many of them are contd's. (A leak checker may have said something, too.) */
static unsigned lines_of_contd(const char *text)
{
	unsigned n = strncmp(text, "contd: ", 7) == 0;

	for (; (text = strstr(text, "\ncontd: ")) != NULL; text++)
		n++;
	return n;
}

/* The value of a key, as it stands there. */
static const char *value(const char *key)
{
	static char text[256];
	char wanted[64];
	const char *at;

	snprintf(wanted, sizeof(wanted), "\"%s\":", key);
	at = strstr(got, wanted);
	cr_assert_not_null(at, "%s is not in %s", key, got);
	at += strlen(wanted);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, ",}"), at);
	return text;
}

static void nothing(int status, void *data)
{
	(void)status, (void)data;
}

/* So many run inline, and one event never completes. */
static void work(unsigned n)
{
	struct contd_event done = CONTD_EVENT_INIT;
	static struct contd_event never = CONTD_EVENT_INIT;
	struct contd_event *d = &done, *e = &never;
	struct contd_group *group = group_new(0, -1);

	contd_event_complete(&done, 0);
	for (unsigned i = 0; i < n; i++)
		must(contd_event_continue(1, &d, nothing, NULL, group, NULL) < 0 ? -1 : 0);
	contd_event_init(e);
	must(contd_event_continue(1, &e, nothing, NULL, group, NULL) < 0 ? -1 : 0);
}

static void one_life(const char *stats, unsigned n)
{
	struct contd_config c = {.size = sizeof(c), .stats = stats, .agent = CONTD_AGENT_CALLER, .verbose = 1};

	must(contd_init(&c));
	work(n);
	cr_assert_eq(contd_fini(), 1);
}

Test(stats_exit, to_stderr)
{
	struct utsname host;
	char text[64];

	uname(&host);
	contd__say_rank(3);
	listen_begin();
	one_life("exit", 5);
	listen_end();
	cr_assert_eq(lines(got), 1, "%s", got);
	cr_assert_not_null(strstr(got, " rank 3] stats {\"contd\":\""), "%s", got);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	cr_assert_str_eq(value("pid"), text);
	cr_assert_str_eq(value("rank"), "3");
	snprintf(text, sizeof(text), "\"%.60s\"", host.nodename);
	cr_assert_str_eq(value("host"), text);
	cr_assert_str_eq(value("agent"), "\"caller\"");
	cr_assert_str_eq(value("mpi_backend"), "null");
	cr_assert_str_eq(value("registered"), "6");
	cr_assert_str_eq(value("run"), "5");
	cr_assert_str_eq(value("run_inline"), "5");
	cr_assert_str_eq(value("never_ran"), "1");
	cr_assert_str_eq(value("life"), "1");
	cr_assert_gt(atof(value("seconds")), 0);
	cr_assert_lt(atof(value("seconds")), WATCHDOG);
	value("handler_max_ns");
	value("latency_p99_ns");
	cr_assert_not_null(strstr(got, "\"latency\":["));
	cr_assert_str_eq(strstr(got, "]}"), "]}\n");
}

/* By the variable, and without it nothing. */
Test(stats_exit, by_the_variable)
{
	listen_begin();
	one_life(NULL, 1);
	listen_end();
	cr_assert_str_eq(got, "");
	setenv("CONTD_STATS", "exit", 1);
	listen_begin();
	one_life(NULL, 1);
	listen_end();
	cr_assert_eq(lines(got), 1);
	cr_assert_str_eq(value("life"), "2");
	cr_assert_str_eq(value("rank"), "null");
	setenv("PMIX_RANK", "12", 1);
	listen_begin();
	one_life(NULL, 1);
	listen_end();
	cr_assert_str_eq(value("rank"), "12", "by the launcher's variable");
}

Test(stats_exit, names, .init = folder_make, .fini = folder_remove)
{
	char stats[128], name[64];

	snprintf(stats, sizeof(stats), "exit:%s/s.%%p.%%r.%%%%", folder);
	one_life(stats, 2);
	snprintf(name, sizeof(name), "s.%d.x.%%", (int)getpid());
	cr_assert_eq(lines(in_file(name)), 1);
	cr_assert_eq(strncmp(got, "{\"contd\":\"", 10), 0, "the object alone");
	contd__say_rank(7);
	one_life(stats, 2);
	snprintf(name, sizeof(name), "s.%d.7.%%", (int)getpid());
	cr_assert_eq(lines(in_file(name)), 1);
}

/* Processes that write to one file at the same time: whole lines, each once. */
Test(stats_exit, one_file_of_many, .init = folder_make, .fini = folder_remove)
{
	enum { PROCESSES = 24 };
	char stats[128];
	const char *at;
	int go[2], status;

	snprintf(stats, sizeof(stats), "exit:%s/all", folder);
	cr_assert_eq(pipe(go), 0);
	for (int i = 0; i < PROCESSES; i++) {
		char c;

		if (fork())
			continue;
		close(go[1]);
		contd__say_rank(i);
		if (read(go[0], &c, 1) != 0)
			_exit(1);
		one_life(stats, 1);
		_exit(0);
	}
	close(go[1]);
	for (int i = 0; i < PROCESSES; i++) {
		cr_assert_geq(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
	cr_assert_eq(lines(in_file("all")), PROCESSES);
	at = got;
	for (int i = 0; i < PROCESSES; i++, at = strchr(at, '\n') + 1) {
		cr_assert_eq(strncmp(at, "{\"contd\":\"", 10), 0);
		cr_assert_eq(strncmp(strchr(at, '\n') - 2, "]}\n", 3), 0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		char rank[32];

		snprintf(rank, sizeof(rank), ",\"rank\":%d,", i);
		cr_assert_not_null(strstr(got, rank), "rank %d", i);
		cr_assert_null(strstr(strstr(got, rank) + 1, rank), "rank %d, again", i);
	}
}

static void must_be_on_stderr(const char *stats, const char *why)
{
	listen_begin();
	one_life(stats, 4);
	listen_end();
	cr_assert_eq(lines(got), 2, "%s", got);
	cr_assert_not_null(strstr(got, why), "%s", got);
	cr_assert_not_null(strstr(got, "] CONTD_STATS: the file "), "%s", got);
	cr_assert_not_null(strstr(got, "] stats {\"contd\":\""), "%s", got);
	cr_assert_str_eq(value("run"), "4");
	cr_assert_str_eq(strstr(got, "]}"), "]}\n");
}

Test(stats_exit, not_writable, .init = folder_make, .fini = folder_remove)
{
	struct contd_config c = {.size = sizeof(c), .verbose = 1};
	struct rlimit some = {100, 100};
	char stats[128];
	int ends[2];
	ssize_t n;

	must_be_on_stderr("exit:/nowhere/at/all", "No such file or directory");
	must_be_on_stderr("exit:/tmp", "Is a directory");
	must_be_on_stderr("exit:/dev/full", "No space left on device");
	/* A part of it has been written: all of it is said. To a pipe, because no file can have so much. */
	signal(SIGXFSZ, SIG_IGN);
	snprintf(stats, sizeof(stats), "exit:%s/short", folder);
	cr_assert_eq(pipe(ends), 0);
	c.stats = stats;
	must(contd_init(&c));
	work(4);
	saved_stderr = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	setrlimit(RLIMIT_FSIZE, &some);
	cr_assert_eq(contd_fini(), 1);
	dup2(saved_stderr, STDERR_FILENO);
	close(ends[1]);
	n = read(ends[0], got, sizeof(got) - 1);
	got[n > 0 ? n : 0] = '\0';
	cr_assert_not_null(strstr(got, "No space left on device"), "%s", got);
	cr_assert_str_eq(value("run"), "4");
	cr_assert_str_eq(strstr(got, "]}"), "]}\n");
}

static void in_callback(int status, void *data)
{
	(void)status, (void)data;
	exit(0);
}

/* exit() without contd_fini(). how: 0 plain, 1 in a callback, 2 in the child of a fork, 3 contd_fini() in an atexit()
 * function that is called first, 4 and one that is called last. */
static void late(void)
{
	contd_fini();
}

static void exits(int how)
{
	struct contd_event event = CONTD_EVENT_INIT, *e = &event;
	struct contd_config c = {.size = sizeof(c), .stats = "exit", .verbose = 1};
	int status = 1;
	pid_t child;

	listen_begin();
	child = fork();
	if (child == 0) {
		if (how == 4)
			atexit(late);
		if (contd_init(&c))
			_exit(1);
		if (how == 3)
			atexit(late);
		if (how == 2 && fork() == 0)
			exit(0);
		while (how == 2 && wait(NULL) > 0)
			;
		contd_event_complete(&event, 0);
		if (how == 1)
			contd_event_continue(1, &e, in_callback, NULL, group_new(0, -1), NULL);
		exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	listen_end();
	cr_assert_eq(status, 0);
	cr_assert_eq(lines_of_contd(got), 1, "%d: %s", how, got);
}

Test(stats_exit, without_an_end)
{
	exits(0);
	cr_assert_str_eq(value("never_ran"), "null");
	exits(1);
	cr_assert_not_null(strstr(got, "no statistics, because exit() was called in a continuation"), "%s", got);
	exits(2);
	cr_assert_str_eq(value("never_ran"), "null");
	exits(3);
	cr_assert_str_eq(value("never_ran"), "0");
	exits(4);
	cr_assert_str_eq(value("never_ran"), "null");
}
