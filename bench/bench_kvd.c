/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps/kvd beside the same service as a bare polling loop (kvd/bare.c), as their client sees them: median latency
 * and 99th percentile of gets and puts, one at a time, and requests a second with 16 under way. The servers take turns:
 * each is started, `kv bench` uses it twice for a fraction of a second, and it is ended. Two of them never run at the
 * same time.
 *
 * If there are two processors, the client has processor 0, and the server with all its threads has processor 1. So no
 * server gets more than the bare loop, which has one thread.
 *
 * Which kvd:
 *   default  agent "region": the thread polls, and sleeps if nothing has come for 50 us
 *   looking  the same, but it never sleeps while there are requests (spin_us=1000000): what the bare loop does
 *   spin     CONTD_AGENT=spin: a daemon that never sleeps, which needs a processor of its own: with two processors it
 *            shares one with the client, or with the thread that it serves (both are open to it). Only where compaction
 *            is idle, in fewer turns
 *
 * Compaction: "idle", the arena is larger than what is ever written to it; "running", most requests are answered while
 * some segment is half compacted, by kvd in a compute region (at a checkpoint, or in the handler) and by the bare loop
 * between two slices of 16 records each.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define WINDOW "16"
#define ARGS 32
#define TEXT 16384

enum { BARE, DEFAULT, LOOKING, SPIN, SERVERS };
static const char *const names[SERVERS] = {"bare", "default", "looking", "spin"};

static const char *const providers[] = {"tcp;ofi_rxm", "shm"};

enum { GET50, GET99, PUT50, PUT99, RATE, COMPUTING, FIGURES };
static const char *const figures[FIGURES] = {"get p50", "get p99", "put p50", "put p99", "per second"};
static const char *const units[FIGURES] = {"us", "us", "us", "us", "per_second"};

/* The result of one turn for a server: us, requests a second, share of answers that were given while it compacted. */
struct turn {
	double figure[FIGURES];
};

struct load {
	const char *provider;
	bool running; /* compaction */
	bool quick;
	const char *seconds;
};

static int processors;

static void die(const char *what)
{
	fprintf(stderr, "bench_kvd: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* cpu -1: any. */
static pid_t start(char *const argv[], int cpu, const char *agent, int fd, int as)
{
	cpu_set_t set;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (processors > 1 && cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	if (agent)
		setenv("CONTD_AGENT", agent, 1);
	dup2(fd, as);
	execv(argv[0], argv);
	_exit(127);
}

static int ended(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Until `until` (or the end, where that is NULL) is there, at most 60 s. */
static bool read_text(int fd, char *text, const char *until)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	ssize_t more;

	text[0] = 0;
	while (n < TEXT - 1 && poll(&polled, 1, 60000) == 1) {
		more = read(fd, text + n, TEXT - 1 - n);
		if (more <= 0)
			return !until && more == 0;
		n += (size_t)more;
		text[n] = 0;
		if (until && strstr(text, until))
			return true;
	}
	return false;
}

static void make_pipe(int fd[2])
{
	if (pipe2(fd, O_CLOEXEC))
		die("pipe");
}

/* kv with these arguments, up to NULL: what it prints. */
static void kv(const char *provider, const char *at, const char *const more[], char *text)
{
	const char *argv[ARGS] = {KVD_CLIENT, "--provider", provider, "--server", at, "--timeout", "20000"};
	int fd[2], n = 7, rc;
	pid_t pid;

	for (int i = 0; more[i]; i++)
		argv[n++] = more[i];
	make_pipe(fd);
	pid = start((char *const *)argv, 0, "caller", fd[1], 1);
	close(fd[1]);
	if (!read_text(fd[0], text, NULL))
		kill(pid, SIGKILL);
	close(fd[0]);
	rc = ended(pid);
	if (rc) {
		fprintf(stderr, "bench_kvd: kv %s with %s failed: %d\n%s\n", more[0], provider, rc, text);
		exit(1);
	}
}

/* The number behind `name`, the first one after `after`. */
static double number(const char *text, const char *after, const char *name)
{
	const char *at = after ? strstr(text, after) : text;

	at = at ? strstr(at, name) : NULL;
	if (!at) {
		fprintf(stderr, "bench_kvd: no %s %s in: %s\n", after ? after : "", name, text);
		exit(1);
	}
	return strtod(at + strlen(name), NULL);
}

static pid_t start_server(int which, const struct load *l, int *errors, char *at, size_t size)
{
	/* 4.5 MB are alive of 12, or 60 KB of 512. */
	const char *arena = l->running ? "12" : "512", *percent = l->running ? "10" : "100";
	const char *bare[] = {KVD_BARE, l->provider, at, arena, "1024", percent, "16", NULL};
	char set_arena[32], set_percent[32], text[TEXT];
	const char *daemon[] = {KVD_SERVER,
				"--provider",
				l->provider,
				"--listen",
				at,
				"--set",
				set_arena,
				"--set",
				"slots=262144",
				"--set",
				set_percent,
				"--set",
				which == LOOKING ? "spin_us=1000000" : "spin_us=50",
				NULL};
	static unsigned count;
	char *end, *begin;
	int fd[2];
	pid_t pid;

	snprintf(set_arena, sizeof(set_arena), "arena_mb=%s", arena);
	snprintf(set_percent, sizeof(set_percent), "compact_percent=%s", percent);
	if (strcmp(l->provider, "shm") == 0)
		snprintf(at, size, "benchkvd%d:%u", getpid(), ++count);
	else
		snprintf(at, size, "127.0.0.1:0");
	make_pipe(fd);
	pid = start((char *const *)(which == BARE ? bare : daemon), which == SPIN ? -1 : 1,
		    which == SPIN ? "spin" : "region", fd[1], 2);
	close(fd[1]);
	if (!read_text(fd[0], text, "\n") || !(begin = strstr(text, "listens on ")) ||
	    !(end = strstr(begin, " with "))) {
		fprintf(stderr, "bench_kvd: %s with %s does not start: %s\n", names[which], l->provider, text);
		exit(1);
	}
	*end = 0;
	snprintf(at, size, "%s", begin + strlen("listens on "));
	*errors = fd[0];
	return pid;
}

/* The output of `kv bench`, with so many requests at a time. */
static void drive(const struct load *l, const char *at, const char *depth, char *text)
{
	const char *bench[] = {"bench",
			       "--seconds",
			       l->seconds,
			       "--depth",
			       depth,
			       "--mix",
			       "50/50/0",
			       "--prefix",
			       "b/",
			       "--keys",
			       l->running ? "4000" : "200",
			       "--size",
			       l->running ? "1024" : "256",
			       "--keep",
			       "--json",
			       NULL};

	kv(l->provider, at, bench, text);
}

/* Both loads on one server: most of a turn is libfabric's start in each process. */
static struct turn measure(int which, const struct load *l, bool counts)
{
	const char *stat[] = {"stat", NULL};
	char at[128], text[TEXT];
	struct turn t = {0};
	int errors, rc;
	pid_t pid = start_server(which, l, &errors, at, sizeof(at));

	drive(l, at, WINDOW, text);
	t.figure[RATE] = number(text, "}}, ", "\"per_second\": ");
	drive(l, at, "1", text);
	t.figure[GET50] = number(text, "\"get\"", "\"p50_us\": ");
	t.figure[GET99] = number(text, "\"get\"", "\"p99_us\": ");
	t.figure[PUT50] = number(text, "\"put\"", "\"p50_us\": ");
	t.figure[PUT99] = number(text, "\"put\"", "\"p99_us\": ");
	if (counts) {
		kv(l->provider, at, stat, text);
		t.figure[COMPUTING] = number(text, NULL, "\nanswered_computing ") / number(text, NULL, "\nanswered ");
	}
	kill(pid, SIGTERM);
	rc = ended(pid);
	close(errors);
	if (rc) {
		fprintf(stderr, "bench_kvd: %s with %s ended with %d\n", names[which], l->provider, rc);
		exit(1);
	}
	return t;
}

/* ------------------------------------------------------------------------------------------------------ figures --- */

static void print(const struct load *l, int which, int figure, const struct bench_pairs *p, double computing)
{
	char name[120];

	snprintf(name, sizeof(name), "%s, %s, compaction %s, kvd %s", figures[figure], l->provider,
		 l->running ? "running" : "idle", names[which]);
	bench_print(&(struct bench_line){.bench = "bench_kvd",
					 .name = name,
					 .figure = bench_pairs_ratio(p),
					 .unit = "ratio",
					 .direction = figure == RATE ? "min" : "max"},
		    "\"contd_%s\":%.4g,\"bare_%s\":%.4g,\"answered_computing\":%.2g", units[figure], bench_pairs_a(p),
		    units[figure], bench_pairs_b(p), computing);
}

static bool takes_part(int which, const struct load *l, unsigned turn)
{
	return which != SPIN || (!l->running && !l->quick && turn < 3);
}

static void compare(const struct load *l, unsigned turns)
{
	struct bench_pairs pairs[SERVERS][FIGURES];
	double computing[SERVERS] = {0};

	for (int s = 0; s < SERVERS; s++)
		for (int f = 0; f < COMPUTING; f++)
			bench_pairs_init(&pairs[s][f], turns);
	for (unsigned i = 0; i < turns; i++) {
		struct turn t[SERVERS];

		/* Forth and back: so that the first server is not always the same. */
		for (int k = 0; k < SERVERS; k++) {
			int s = i % 2 ? SERVERS - 1 - k : k;

			if (takes_part(s, l, i))
				t[s] = measure(s, l, i == 0);
		}
		for (int s = DEFAULT; s < SERVERS; s++) {
			if (!takes_part(s, l, i))
				continue;
			if (i == 0)
				computing[s] = t[s].figure[COMPUTING];
			for (int f = 0; f < COMPUTING; f++)
				if (t[s].figure[f] > 0) /* a short turn may be without any */
					bench_pairs_add(&pairs[s][f], t[s].figure[f], t[BARE].figure[f]);
		}
	}
	for (int s = DEFAULT; s < SERVERS; s++)
		for (int f = 0; f < COMPUTING; f++)
			if (pairs[s][f].n)
				print(l, s, f, &pairs[s][f], computing[s]);
	for (int s = 0; s < SERVERS; s++)
		for (int f = 0; f < COMPUTING; f++)
			bench_pairs_fini(&pairs[s][f]);
}

int main(int argc, char **argv)
{
	struct bench_options o = bench_options(argc, argv, "[--mode long]");
	unsigned turns = o.quick ? 1 : o.mode && strcmp(o.mode, "long") == 0 ? 12 : 3;

	processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (size_t p = 0; p < sizeof(providers) / sizeof(providers[0]); p++)
		for (int running = 0; running < (o.quick ? 1 : 2); running++)
			compare(&(struct load){.provider = providers[p],
					       .running = running,
					       .quick = o.quick,
					       .seconds = o.quick ? "0.02" : "0.2"},
				turns);
	return 0;
}
