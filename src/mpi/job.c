/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes of the job contd is part of. MPI cannot be asked: a call that all processes must take part in hangs
 * if one of them does not know of it. So it is looked for outside MPI.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/job.h"

#define LINE (PATH_MAX + 128)

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Open MPI's launcher says how many commands the job consists of, and the name of this one. If it is this program, and
 * not a script that has started it, every process has been started as this one was: with the same libraries.
 */
static bool one_command(void)
{
	const char *commands = getenv("OMPI_NUM_APP_CTX"), *command = getenv("OMPI_COMMAND");
	char program[PATH_MAX];
	ssize_t n;

	if (!commands || strcmp(commands, "1") != 0 || !command)
		return false;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n < 0)
		return false;
	program[n] = '\0';
	return strcmp(last_part(program), last_part(command)) == 0;
}

static FILE *maps_of(long pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	return fopen(path, "re");
}

/* One mapping: its addresses, and device, inode and path of its file. NULL: there are no more. */
static const char *mapping(FILE *maps, char line[LINE], unsigned long *from, unsigned long *to)
{
	while (fgets(line, LINE, maps)) {
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %*s %*s %n", from, to, &at) == 2 && at)
			return line + at;
	}
	return NULL;
}

/* The file of this library, or of the program that contains it. */
static bool own_file(char line[LINE], char file[LINE])
{
	static const char inside[] = "contd";
	uintptr_t here = (uintptr_t)inside;
	FILE *maps = maps_of((long)getpid());
	unsigned long from, to;
	const char *its = NULL;

	if (!maps)
		return false;
	while ((its = mapping(maps, line, &from, &to)) != NULL && !(from <= here && here < to))
		;
	fclose(maps);
	if (its)
		strcpy(file, its);
	return its != NULL;
}

static bool has(long pid, char line[LINE], const char *file)
{
	FILE *maps = maps_of(pid);
	unsigned long from, to;
	const char *its = NULL;

	if (!maps)
		return false;
	while ((its = mapping(maps, line, &from, &to)) != NULL && strcmp(its, file) != 0)
		;
	fclose(maps);
	return its != NULL;
}

/*
 * Does the process belong to another job than this one? MPI_Comm_spawn begins one with the same launcher. Open MPI
 * names the job in each process's environment. If it is not named, or not readable, it counts as the same.
 */
static bool another_job(long pid, char line[LINE])
{
	static const char name[] = "PMIX_NAMESPACE=";
	const char *own = getenv("PMIX_NAMESPACE");
	bool other = false;
	size_t n = 0;
	FILE *f;
	int c;

	snprintf(line, LINE, "/proc/%ld/environ", pid);
	f = own ? fopen(line, "re") : NULL;
	while (f && (c = getc(f)) != EOF) {
		if (n < LINE - 1)
			line[n++] = (char)c;
		if (c != '\0')
			continue;
		line[n] = '\0';
		other = other || (strncmp(line, name, strlen(name)) == 0 && strcmp(line + strlen(name), own) != 0);
		n = 0;
	}
	if (f)
		fclose(f);
	return other;
}

/* How many processes of this job this thread of the launcher's has started that have the file; -1: one has not. */
static int started_by(long launcher, const char *thread, char line[LINE], const char *file)
{
	char path[320];
	int n = 0;
	long pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task/%s/children", launcher, thread);
	f = fopen(path, "re");
	while (f && n >= 0 && fscanf(f, "%ld", &pid) == 1)
		if (!another_job(pid, line))
			n = has(pid, line, file) ? n + 1 : -1;
	if (f)
		fclose(f);
	return n;
}

/* The launcher's processes on this host, which are this one's brothers: are there so many, and is the library in
 * each? */
static bool all_here(int size)
{
	char path[64], line[LINE], file[LINE];
	long launcher = (long)getppid();
	struct dirent *d;
	int found = 0, n;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%ld/task", launcher);
	threads = own_file(line, file) ? opendir(path) : NULL;
	if (!threads)
		return false;
	while (found >= 0 && (d = readdir(threads)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		n = started_by(launcher, d->d_name, line, file);
		found = n < 0 ? -1 : found + n;
	}
	closedir(threads);
	return found == size;
}

bool contd__mpi_everywhere(int size)
{
	return one_command() || all_here(size);
}
