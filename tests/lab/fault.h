/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the programs that get faults from outside (see faults): a count of continuations, and where
 * they stand when nothing comes any more.
 *
 *	fault_count(good)     a continuation has run; "flowing HOST PID" is printed, a few times a second
 *	fault_over()          it is over: the file FOLDER/end is there
 * fault_late()          nothing more is expected: the file FOLDER/lost is there, or nothing has come for very long; or
 *                        SIGTERM came: report and go
 *	fault_report(left)    where the continuations stand; 0 if that adds up
 */
#ifndef TESTS_LAB_FAULT_H
#define TESTS_LAB_FAULT_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>

#define FAULT_FLOWING 300 /* continuations that have run by then */
#define FAULT_TELL_MS 200 /* between two lines */
#define FAULT_LATE_MS 50000

static const char *fault_folder, *fault_who = "";
static long fault_started, fault_ran, fault_failed;
static volatile sig_atomic_t fault_terminated;
static int64_t fault_last, fault_told;

static inline int64_t fault_now(void) /* ms */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void fault_on_term(int signo)
{
	(void)signo;
	fault_terminated = 1;
}

static inline void fault_init(const char *folder)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = fault_on_term;
	sigaction(SIGTERM, &action, NULL);
	fault_folder = folder;
	fault_last = fault_now();
}

static inline bool fault_there(const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", fault_folder, file);
	return access(path, F_OK) == 0;
}

static inline bool fault_over(void)
{
	return fault_there("end");
}

static inline void fault_count(bool good)
{
	char host[64] = "";

	fault_ran++;
	fault_failed += !good;
	if (!good)
		return;
	fault_last = fault_now();
	if (fault_ran < FAULT_FLOWING || fault_last - fault_told < FAULT_TELL_MS)
		return;
	fault_told = fault_last;
	gethostname(host, sizeof(host) - 1);
	printf("flowing %s %d\n", host, (int)getpid());
	fflush(stdout);
}

static inline bool fault_late(void)
{
	return fault_terminated || fault_there("lost") || fault_now() - fault_last > FAULT_LATE_MS;
}

/*
 * Started, run, failed: counted here. `left`: what contd says has not run. In the file FOLDER/report, as what is
 * printed may be lost with the launcher.
 */
static inline int fault_report(long left)
{
	bool good = fault_started == fault_ran + left;
	char path[4096], line[256];
	int fd;

	snprintf(line, sizeof(line), "%s%s: started %ld, ran %ld, of these with an error %ld, never run %ld%s\n",
		 fault_who, fault_terminated ? ", terminated" : "", fault_started, fault_ran, fault_failed, left,
		 good ? "" : ": DOES NOT ADD UP");
	snprintf(path, sizeof(path), "%s/report", fault_folder);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		perror(path);
	return good ? 0 : 1;
}

#endif
