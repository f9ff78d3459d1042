/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/once.h"
#include "base/say.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/live.h"
#include "dispatch/settings.h"
#include "dispatch/thread.h"
#include "life/ending.h"

#define NOT_KNOWN (-1) /* how many never ran: contd_fini() was not called */

static const char *backend;
static uint32_t written;  /* in this life of contd the line has been written */
static uint64_t tick_ns;  /* of the thread that has called contd_fini() */
static int64_t begun;     /* CLOCK_MONOTONIC */
static uint32_t begun_in; /* of the life that `begun` is of */

void contd__ending_backend(const char *name)
{
	contd__store(&backend, name);
}

static int rank(void)
{
	int n = contd__say_rank_known();

	return n >= 0 ? n : contd__job_rank();
}

/* --------------------------------------------------------------------------------------------------- the object --- */

struct line {
	char text[8192];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - line->n;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line->text + line->n, room, format, arguments);
	va_end(arguments);
	line->n += n > 0 ? (size_t)n < room ? (size_t)n : room - 1 : 0;
}

static void put_number(struct line *line, const char *key, uint64_t n)
{
	put(line, ",\"%s\":%" PRIu64, key, n);
}

/* A negative one is not known. */
static void put_signed(struct line *line, const char *key, int64_t n)
{
	if (n < 0)
		put(line, ",\"%s\":null", key);
	else
		put_number(line, key, (uint64_t)n);
}

static void put_text(struct line *line, const char *key, const char *text)
{
	if (!text) {
		put(line, ",\"%s\":null", key);
		return;
	}
	put(line, ",\"%s\":\"", key);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			put(line, "\\%c", *text);
		else
			put(line, "%c", (unsigned char)*text < ' ' ? '?' : *text);
	put(line, "\"");
}

/* The smallest time that so much of all waits were shorter than; the end of its bucket. */
static void put_percentile(struct line *line, const char *key, double share, const struct contd_stats *s, uint64_t all)
{
	uint64_t sum = 0;
	unsigned b = 0;

	for (; b < CONTD_HISTOGRAM_BUCKETS - 1; b++) {
		sum += s->latency[b];
		if ((double)sum >= share * (double)all)
			break;
	}
	put_signed(line, key, all ? (int64_t)((2ull << b) - 1) : -1);
}

#define COUNTERS(X) \
	X(registered) \
	X(run) \
	X(run_handler) \
	X(run_region) \
	X(run_daemon) \
	X(run_inline) \
	X(cancelled) \
	X(ticks) \
	X(notifications) \
	X(notify_failed) \
	X(guarded) \
	X(overruns) \
	X(handler_ns) \
	X(lost_ns) \
	X(tick_cost_ns) \
	X(tick_ns) \
	X(scans) \
	X(grown) \
	X(rings) \
	X(rings_sent) \
	X(put_off) \
	X(handler_max_ns)

#define COUNT(name) +1
_Static_assert(sizeof(size_t) + sizeof(uint64_t) * ((COUNTERS(COUNT)) + CONTD_HISTOGRAM_BUCKETS) ==
		       sizeof(struct contd_stats),
	       "each counter is written");

static void put_stats(struct line *line, const struct contd_stats *s)
{
	uint64_t all = 0;

#define PUT(name) put_number(line, #name, s->name);
	COUNTERS(PUT)
	for (unsigned b = 0; b < CONTD_HISTOGRAM_BUCKETS; b++)
		all += s->latency[b];
	put_percentile(line, "latency_p50_ns", 0.5, s, all);
	put_percentile(line, "latency_p90_ns", 0.9, s, all);
	put_percentile(line, "latency_p99_ns", 0.99, s, all);
	put_percentile(line, "latency_max_ns", 1, s, all);
	put(line, ",\"latency\":[");
	for (unsigned b = 0; b < CONTD_HISTOGRAM_BUCKETS; b++)
		put(line, "%s%" PRIu64, b ? "," : "", s->latency[b]);
	put(line, "]");
}

static void make(struct line *line, int64_t left)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	struct contd__setting_now agent;
	struct utsname host;
	int64_t now = contd__now_ns();

	uname(&host);
	contd_stats_get(&stats);
	if (left != NOT_KNOWN)
		stats.tick_ns = tick_ns;
	contd__setting_now("CONTD_AGENT", &agent);
	line->n = 0;
	put(line, "{\"contd\":\"%d.%d.%d\"", CONTD_VERSION_MAJOR, CONTD_VERSION_MINOR, CONTD_VERSION_PATCH);
	put_signed(line, "rank", rank());
	put_text(line, "host", host.nodename);
	put_number(line, "pid", (uint64_t)getpid());
	put_number(line, "life", contd__load(&contd__live.lives));
	put(line, ",\"seconds\":%.6f", (double)(now - begun) / 1e9);
	put_text(line, "agent", agent.value);
	put_text(line, "mpi_backend", contd__load(&backend));
	put_signed(line, "never_ran", left);
	put_stats(line, &stats);
	put(line, "}\n");
}

/* ---------------------------------------------------------------------------------------------------- the place --- */

/* false: it is too long. */
static bool expand(const char *name, char path[PATH_MAX])
{
	size_t n = 0;

	for (; *name && n < PATH_MAX; name++) {
		size_t room = PATH_MAX - n;

		if (*name != '%')
			path[n++] = *name;
		else if (*++name == 'p')
			n += (size_t)snprintf(path + n, room, "%d", (int)getpid());
		else if (*name == 'r' && rank() >= 0)
			n += (size_t)snprintf(path + n, room, "%d", rank());
		else
			path[n++] = *name == 'r' ? 'x' : '%';
	}
	if (n >= PATH_MAX)
		return false;
	path[n] = '\0';
	return true;
}

/* In one write(2) behind what is there: other ranks may write to the same file. 0 or errno. */
static int append(const char *path, const struct line *line)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), err = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	do
		n = write(fd, line->text, line->n);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		err = errno;
	else if ((size_t)n < line->n)
		err = ENOSPC;
	if (close(fd) && !err)
		err = errno;
	return err;
}

static void give(struct line *line, const char *wanted)
{
	char path[PATH_MAX];
	int err;

	if (wanted[strlen("exit")] == ':') {
		err = expand(wanted + strlen("exit:"), path) ? append(path, line) : ENAMETOOLONG;
		if (!err)
			return;
		line->text[line->n - 1] = '\0';
		contd__say("CONTD_STATS: the file %s cannot be written: %s. The statistics follow here\nstats %s",
			   wanted + strlen("exit:"), strerror(err), line->text);
		return;
	}
	line->text[line->n - 1] = '\0';
	contd__say("stats %s", line->text);
}

static void write_stats(int64_t left)
{
	struct line line;

	if (!contd__config.stats || contd__xchg(&written, 1))
		return;
	make(&line, left);
	give(&line, contd__config.stats);
}

/* ----------------------------------------------------------------------------------------------------- the ends --- */

static void at_exit(void)
{
	if (!contd__is_live() || !contd__config.stats || contd__load(&written))
		return;
	/* The code that this one has interrupted may hold a lock that the statistics need. */
	if (!contd__on_thread_sig() || contd__in_continuation_sig())
		contd__say("CONTD_STATS: no statistics, because exit() was called in a continuation");
	else
		write_stats(NOT_KNOWN);
}

void contd__ending_prepare_locked(void)
{
	static bool registered;

	if (begun_in != contd__load(&contd__live.lives)) {
		begun_in = contd__load(&contd__live.lives);
		begun = contd__now_ns();
		contd__store(&written, 0);
	}
	if (contd__config.stats && !registered)
		registered = atexit(at_exit) == 0;
}

void contd__ending_begins_locked(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	tick_ns = ops ? ops->tick_ns() : 0;
}

void contd__ending_locked(uint32_t left)
{
	write_stats(left);
}
