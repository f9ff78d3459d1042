/* SPDX-License-Identifier: BSD-3-Clause */
/* One process a rung: what one leaves behind disturbs no other. */
#ifndef CONTD_TESTS_CHILD_H
#define CONTD_TESTS_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCHDOG 120 /* s; a rung that takes this long hangs */

/* Where a failed check's report begins. */
extern char child_title[];

#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s: %s:%d: %s: ", child_title, __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			fflush(NULL); \
			_exit(1); \
		} \
	} while (0)

/* Runs it in a child: its exit status, 128 + the signal that ended it. */
static inline int child_run(int (*rung)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(WATCHDOG);
		exit(rung());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 127;
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "%s: ended by signal %d\n", child_title, WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

/* Open file descriptors of this process; its timers, -1 where the kernel does not tell. */
int child_descriptors(void);
int child_timers(void);

#endif
