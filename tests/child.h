/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child process and a socket to talk to it, for tests that need two. Made before anything is started that threads
 * belong to. The file that includes this has CHECK(condition), which ends the process.
 */
#ifndef CONTD_TESTS_CHILD_H
#define CONTD_TESTS_CHILD_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	pid_t pid; /* 0 in the child */
	int fd;    /* this side's end */
};

/* Returns in both; the child ends with the thread that made it. */
static inline struct child child_fork(void)
{
	struct child c;
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	fflush(NULL);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (c.pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pair[c.pid ? 1 : 0]);
	c.fd = pair[c.pid ? 0 : 1];
	return c;
}

static inline void child_put(int fd, const void *what, size_t size)
{
	const char *at = what;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		CHECK(n > 0);
		at += n;
		size -= (size_t)n;
	}
}

/* false: the other side has ended. */
static inline bool child_get(int fd, void *what, size_t size)
{
	char *at = what;

	while (size) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static inline void tell(int fd, char what)
{
	child_put(fd, &what, 1);
}

/* The message; 0 if the other process has ended. */
static inline char hear(int fd)
{
	char what;

	return child_get(fd, &what, 1) ? what : 0;
}

/* How it ended, waitpid(2). */
static inline int child_end(const struct child *c)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR)
		;
	CHECK(pid == c->pid);
	close(c->fd);
	return status;
}

#endif
