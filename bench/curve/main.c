/* SPDX-License-Identifier: BSD-3-Clause */
/* Options, environment, ranks, cores. See curve.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "curve.h"

#ifndef CURVE_CONTD
#define CURVE_CONTD 1
#endif
#ifndef CURVE_RING_LIBRARY
#define CURVE_RING_LIBRARY ""
#endif

#define PREPARED "CONTD_CURVE_PREPARED"

int curve_core[CURVE_CORES];
int curve_cores;

/* ------------------------------------------------------------------------------- options --- */

static void usage(const char *self, FILE *to)
{
	fprintf(to,
		"usage: %s --list\n"
		"       mpirun -n 2 --bind-to none %s --mode MODE [--kernel KERNEL] [--rate MESSAGES] [--quick]\n\n"
		"--list prints the program and the mode, one line each; a mode that this version lacks has \"-\" for "
		"it.\n"
		"Prints one JSON object a kernel. MESSAGES a second: 1000, if not told.\n",
		self, self);
}

static void list(void)
{
	for (size_t i = 0; i < curve_mode_count; i++)
		printf("%s %s\n",
		       curve_modes[i].missing              ? "-"
		       : curve_uses_contd(&curve_modes[i]) ? "curve"
							   : "curve_plain",
		       curve_modes[i].name);
}

static struct curve_options options(int argc, char **argv)
{
	struct curve_options o = {.rate = 1000};
	const char *mode = NULL;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quick") == 0) {
			o.quick = true;
			continue;
		}
		if (strcmp(argv[i], "--list") == 0) {
			list();
			exit(0);
		}
		if (strcmp(argv[i], "--help") == 0) {
			usage(argv[0], stdout);
			exit(0);
		}
		if (value && strcmp(argv[i], "--mode") == 0)
			mode = value;
		else if (value && strcmp(argv[i], "--kernel") == 0)
			o.kernel = value;
		else if (value && strcmp(argv[i], "--rate") == 0)
			o.rate = strtod(value, NULL);
		else
			o.rate = 0;
		i++;
	}
	for (size_t i = 0; mode && i < curve_mode_count; i++)
		if (strcmp(mode, curve_modes[i].name) == 0 && !curve_modes[i].missing &&
		    curve_uses_contd(&curve_modes[i]) == CURVE_CONTD)
			o.mode = &curve_modes[i];
	if (!o.mode || !(o.rate >= 100 && o.rate <= 100000)) {
		usage(argv[0], stderr);
		exit(2);
	}
	return o;
}

/* ---------------------------------------------------------------- environment and cores --- */

/* Some settings are read when a library is loaded: set them, and start again. */
static void prepare(char **argv, const struct curve_mode *mode)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	char settings[256], *word;

	if (getenv(PREPARED))
		return;
	snprintf(settings, sizeof(settings), "%s", mode->environment ? mode->environment : "");
	for (word = strtok(settings, " "); word; word = strtok(NULL, " ")) {
		char *value = strchr(word, '=');

		*value++ = '\0';
		setenv(word, value, 1);
	}
	/* Every way at its best: no rank yields in between, though mpirun may think that there are too few cores. */
	setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
	if (mode->ring && *CURVE_RING_LIBRARY && rank && strcmp(rank, "1") == 0)
		setenv("LD_PRELOAD", CURVE_RING_LIBRARY, 1);
	setenv(PREPARED, "1", 1);
	execv("/proc/self/exe", argv);
	perror("/proc/self/exe");
	exit(1);
}

static void find_cores(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && curve_cores < CURVE_CORES; i++)
		if (CPU_ISSET(i, &set))
			curve_core[curve_cores++] = i;
}

void curve_bind(int mine, int others)
{
	pid_t self = (pid_t)syscall(SYS_gettid);
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;

	while (dir && (d = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
		cpu_set_t set;

		if (tid <= 0)
			continue;
		CPU_ZERO(&set);
		CPU_SET(tid == self ? mine : others, &set);
		sched_setaffinity(tid, sizeof(set), &set);
	}
	if (dir)
		closedir(dir);
}

#if !CURVE_CONTD
const struct curve_way *curve_way_contd(const struct curve_mode *mode)
{
	(void)mode;
	return NULL;
}

void curve_ring(void)
{
}
#endif

/* Only who computes in regions or calls from its own loop may do with less. */
static int level_of(const struct curve_mode *m)
{
	return m->how == CURVE_PLAIN || m->how == CURVE_THREAD ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
}

int main(int argc, char **argv)
{
	struct curve_options o = options(argc, argv);
	int want = level_of(o.mode), level, rank, size;

	prepare(argv, o.mode);
	find_cores();
	if (curve_cores < 2) {
		fputs("curve: needs 2 cores (and mpirun --bind-to none)\n", stderr);
		return 77;
	}
	MPI_Init_thread(&argc, &argv, want, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (level < want || size != 2) {
		fprintf(stderr, "curve: needs 2 ranks and thread level %d (got %d and %d)\n", want, size, level);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0) {
		curve_bind(curve_core[0], curve_core[0]);
		curve_receiver(&o);
	} else {
		curve_bind(curve_core[1], curve_core[1]);
		curve_sender(&o);
	}
	MPI_Finalize();
	return 0;
}
