/* SPDX-License-Identifier: BSD-3-Clause */
/* The parent's side: begins the process, reads what it tells and prints, and ends it if it takes too long. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command/libraries.h"
#include "command/probe.h"
#include "command/status.h"

#define ARGUMENTS 8

const char *found(const struct findings *f, const char *key)
{
	const char *value = NULL;

	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->fact[i].key, key))
			value = f->fact[i].value;
	return value;
}

void probe_end(struct findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->fact[i].key); /* the value is in the same memory */
	free(f->fact);
	*f = (struct findings){.count = 0};
}

/* ---------------------------------------------------------------------------------------------------- the pipes --- */

/* Keeps or frees the line. "\n" and "\\" stand for a newline and a backslash. */
static void take_line(struct findings *f, char *line)
{
	char *value = strchr(line, '='), *to;

	if (value && f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 64;
		struct fact *more = realloc(f->fact, room * sizeof(*more));

		if (more) {
			f->fact = more;
			f->room = room;
		}
	}
	if (!value || f->count == f->room) {
		free(line);
		return;
	}
	*value++ = '\0';
	f->fact[f->count++] = (struct fact){line, value};
	for (to = value; *value; value++) {
		if (*value == '\\' && value[1])
			*to++ = *++value == 'n' ? '\n' : *value;
		else
			*to++ = *value;
	}
	*to = '\0';
}

/* The beginning of a line that has no end yet. */
struct rest {
	char *text;
	size_t bytes;
};

static void take(struct findings *f, struct rest *r, const char *bytes, size_t n)
{
	for (const char *end; n; n -= (size_t)(end - bytes) + 1, bytes = end + 1) {
		const char *newline = memchr(bytes, '\n', n);
		size_t part = newline ? (size_t)(newline - bytes) : n;
		char *more = realloc(r->text, r->bytes + part + 1);

		if (!more)
			return;
		memcpy(more + r->bytes, bytes, part);
		r->text = more;
		r->bytes += part;
		if (!newline)
			return;
		end = newline;
		more[r->bytes] = '\0';
		*r = (struct rest){NULL, 0};
		take_line(f, more);
	}
}

static void take_said(struct findings *f, const char *bytes, size_t n)
{
	size_t room = sizeof(f->said) - 1 - f->said_bytes;

	n = n < room ? n : room;
	memcpy(f->said + f->said_bytes, bytes, n);
	f->said_bytes += n;
	f->said[f->said_bytes] = '\0';
}

/* -------------------------------------------------------------------------------------------------- the process --- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

__attribute__((noreturn)) static void become(const char *library, const char *preload, int facts, int said,
					     const char *const *what)
{
	const char *argument[ARGUMENTS + 5] = {"contd", ".probe"};
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit none = {0, 0}; /* a crash leaves no file behind */
	char number[16];
	size_t n = 2;

	setpgid(0, 0); /* so that its children end with it */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", facts);
	argument[n++] = number;
	argument[n++] = library;
	for (size_t i = 0; i < ARGUMENTS && what[i]; i++)
		argument[n++] = what[i];
	if (dup2(nothing, 0) == 0 && dup2(said, 1) == 1 && dup2(said, 2) == 2 && fcntl(facts, F_SETFD, 0) == 0 &&
	    setenv("LD_PRELOAD", preload, 1) == 0 && setenv("IPATH_NO_BACKTRACE", "1", 0) == 0 &&
	    setenv("HFI_NO_BACKTRACE", "1", 0) == 0) /* PSM would catch signals, and write files */
		execv("/proc/self/exe", (char **)(uintptr_t)argument);
	_exit(STATUS_CANNOT_RUN);
}

/* Reads what there is; false: the end of that pipe. */
static bool read_some(int fd, struct findings *f, struct rest *r)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0 && r)
		take(f, r, bytes, (size_t)n);
	else if (n > 0)
		take_said(f, bytes, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void read_all(int fd, struct findings *f, struct rest *r)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (poll(&p, 1, 0) > 0 && p.revents & POLLIN && read_some(fd, f, r))
		;
}

/* Its pipes may stay open beyond its end, in processes that it has left behind. */
static bool follow(struct findings *f, pid_t child, int facts, int said, unsigned limit_ms, int *statusp)
{
	struct pollfd p[2] = {{.fd = facts, .events = POLLIN}, {.fd = said, .events = POLLIN}};
	int64_t end = now_ms() + limit_ms, left;
	struct rest rest = {NULL, 0};
	bool ended = false;

	while (!ended && (left = end - now_ms()) > 0) {
		int wait = p[0].fd < 0 ? 2 : 50; /* once it has told all, it is about to end */

		poll(p, 2, left < wait ? (int)left : wait);
		if (p[0].revents && !read_some(facts, f, &rest))
			p[0].fd = -1;
		if (p[1].revents && !read_some(said, f, NULL))
			p[1].fd = -1;
		ended = waitpid(child, statusp, WNOHANG) == child;
	}
	if (!ended) {
		kill(-child, SIGKILL);
		while (waitpid(child, statusp, 0) < 0 && errno == EINTR)
			;
	}
	read_all(facts, f, &rest);
	read_all(said, f, NULL);
	free(rest.text);
	return ended;
}

static void judge(struct findings *f, bool ended, int status, unsigned limit_ms)
{
	const char *doing = found(f, "doing"), *error = found(f, "error");

	if (!doing && ended && WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND) {
		/* The loader's own: "contd: error while loading shared libraries: libmpi.so.40: ...". */
		const char *line = strstr(f->said, ": ");

		line = line ? line + 2 : "(it does not say why)";
		snprintf(f->wrong, sizeof(f->wrong), "it cannot be loaded: %.*s", (int)strcspn(line, "\n"), line);
		return;
	}
	doing = doing ? doing : "its start";
	if (!ended)
		snprintf(f->wrong, sizeof(f->wrong), "%s did not end within %g s", doing, limit_ms / 1000.0);
	else if (WIFSIGNALED(status))
		snprintf(f->wrong, sizeof(f->wrong), "%s ended by signal %d (%s)", doing, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (error)
		snprintf(f->wrong, sizeof(f->wrong), "%s", error);
	else if (!found(f, "end"))
		snprintf(f->wrong, sizeof(f->wrong), "%s ended the process, with status %d", doing,
			 WEXITSTATUS(status));
}

void probe(struct findings *f, const char *library, unsigned limit_ms, const char *const *what)
{
	int facts[2] = {-1, -1}, said[2] = {-1, -1}, status = 0;
	const char *why = "";
	char *preload = library_preload(library, &why);
	pid_t child = -1;
	bool ended;

	*f = (struct findings){.count = 0};
	if (!preload) {
		snprintf(f->wrong, sizeof(f->wrong), "%s: %s", library, why ? why : "no memory");
		return;
	}
	if (!pipe2(facts, O_CLOEXEC) && !pipe2(said, O_CLOEXEC)) {
		fflush(NULL);
		child = fork();
	}
	if (child == 0)
		become(library, preload, facts[1], said[1], what);
	if (child > 0) {
		setpgid(child, child); /* this process or the child, whichever is first */
		close(facts[1]);
		close(said[1]);
		facts[1] = said[1] = -1;
		ended = follow(f, child, facts[0], said[0], limit_ms, &status);
		judge(f, ended, status, limit_ms);
	} else {
		snprintf(f->wrong, sizeof(f->wrong), "no process can be made: %s", strerror(errno));
	}
	for (int i = 0; i < 2; i++) {
		if (facts[i] >= 0)
			close(facts[i]);
		if (said[i] >= 0)
			close(said[i]);
	}
	free(preload);
}
