/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures what contd writes on stderr during a call; and checks that print where they fail. */
#ifndef CONTD_TESTS_LAYERS_SAID_H
#define CONTD_TESTS_LAYERS_SAID_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

#define CHECK(cond) \
	((cond) ? (void)0 : (failures++, (void)fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #cond)))

static int said_fd = -1, said_stderr = -1;
static char said[4096];

static inline void said_begin(void)
{
	char name[] = "/tmp/contd-said-XXXXXX";

	fflush(stderr);
	said_fd = mkstemp(name);
	if (said_fd < 0)
		exit(2);
	unlink(name);
	said_stderr = dup(STDERR_FILENO);
	dup2(said_fd, STDERR_FILENO);
}

/* How many lines; the text is in said. */
static inline int said_end(void)
{
	int lines = 0;
	ssize_t n;

	fflush(stderr);
	dup2(said_stderr, STDERR_FILENO);
	close(said_stderr);
	n = pread(said_fd, said, sizeof(said) - 1, 0);
	close(said_fd);
	said[n > 0 ? n : 0] = 0;
	fputs(said, stderr);
	for (const char *at = said; *at; at++)
		lines += *at == '\n';
	return lines;
}

#endif
