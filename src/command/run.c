/* SPDX-License-Identifier: BSD-3-Clause */
/* contd run: preloads libraries of contd's, sets variables, and becomes the program. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "command/libraries.h"
#include "command/program.h"
#include "command/run.h"
#include "command/status.h"
#include "dispatch/settings.h"

struct options {
	bool progress, ring, verbose;
	const struct mpi *mpi;
};

static int usage(void)
{
	fputs("usage: contd run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	      "\n"
	      "Runs PROGRAM, in the place of this command, with libraries of contd's preloaded and settings in its\n"
	      "environment. In an MPI job it stands in front of the program: mpirun -n 4 contd run --progress "
	      "PROGRAM.\n"
	      "Where a library cannot be preloaded, it says why in one line, and PROGRAM runs without it.\n"
	      "\n"
	      "  --progress[=BY]    MPI makes progress while PROGRAM computes (libcontd-progress); BY: tick, thread "
	      "or\n"
	      "                     auto, who makes it (CONTD_PROGRESS_BY)\n"
	      "  --report           with --progress: in MPI_Finalize each rank says what that has done\n"
	      "  --allow user-code  with --progress: also where MPI may call functions of PROGRAM's\n"
	      "  --ring             PROGRAM's MPI calls ring the doorbells of ranks that compute (libcontd-doorbell)\n"
	      "  --mpi NAME         PROGRAM's MPI: openmpi, mpich or abi. Needed for a script that loads MPI later\n"
	      "  --agent NAME       CONTD_AGENT=NAME: " CONTD_AGENT_MUST "\n"
	      "  --budget PERCENT   CONTD_OVERHEAD_PERCENT=PERCENT: what interruptions may cost, 0.1 to 50\n"
	      "  -v, --verbose      say what is preloaded and set\n"
	      "\n"
	      "Exit status: PROGRAM's; 2 for wrong arguments, 126 if PROGRAM cannot be executed, 127 if it is not "
	      "found.\n",
	      stdout);
	return output_end();
}

static bool set(const struct options *o, const char *name, const char *value)
{
	if (o->verbose)
		contd__say("run: %s=%s", name, value);
	if (!setenv(name, value, 1))
		return true;
	contd__say("run: no memory for %s", name);
	return false;
}

/* ------------------------------------------------------------------------------------------------ which library --- */

static bool library(const char *part, const struct mpi *mpi, char path[PATH_MAX])
{
	return library_find(part, mpi->suffix, path);
}

/* For the message: "Open MPI (libmpi.so.40), MPICH (libmpich.so.12)". */
static void those_installed(const char *part, char *text, size_t size)
{
	size_t at = 0;

	*text = 0;
	for (size_t i = 0; i < MPIS && at < size; i++) {
		char path[PATH_MAX], object[NAME_MAX + 1];

		if (library(part, &mpis[i], path) && library_mpi(path, object, sizeof(object)))
			at += (size_t)snprintf(text + at, size - at, "%s%s (%s)", at ? ", " : "", mpis[i].says, object);
	}
}

/* The MPI of the library that fits the program; NULL, and *whyp, a text that begins with "its". */
static const struct mpi *fitting(const char *part, const struct program *p, const struct options *o, char why[512])
{
	const struct mpi *only = NULL, *launched = NULL;
	size_t length = 0, n = 0;
	const char *its = program_mpi(p, &length);
	char there[256];

	if (o->mpi)
		return o->mpi;
	for (size_t i = 0; i < MPIS; i++) {
		char path[PATH_MAX], object[NAME_MAX + 1];

		if (!library(part, &mpis[i], path) || !library_mpi(path, object, sizeof(object)))
			continue;
		if (program_loads(p, object))
			return &mpis[i];
		only = &mpis[i];
		n++;
		if (mpis[i].launched && getenv(mpis[i].launched))
			launched = &mpis[i];
	}
	those_installed(part, there, sizeof(there));
	if (!n)
		snprintf(why, 512, "lib%s is not installed here", part);
	else if (its)
		snprintf(why, 512, "its MPI is %.*s, and lib%s is here for %s", (int)length, its, part, there);
	else if (launched)
		return launched;
	else if (n == 1)
		return only;
	else
		snprintf(why, 512,
			 "its MPI is not known, as it loads none when it begins: say --mpi; lib%s is here for %s", part,
			 there);
	return NULL;
}

/* In front of what is preloaded already. */
static bool preload(const struct options *o, const char *part, const struct program *p)
{
	char path[PATH_MAX], why[512], *all;
	const char *cause;
	const struct mpi *mpi;
	bool done;

	if (p->unpreloaded) {
		contd__say("run: %s: %s. It runs without lib%s", p->path, p->unpreloaded, part);
		return true;
	}
	mpi = fitting(part, p, o, why);
	if (!mpi) {
		contd__say("run: %s: %s. It runs without lib%s", p->path, why, part);
		return true;
	}
	if (!library(part, mpi, path)) {
		contd__say("run: lib%s%s.so is not installed here. %s runs without it", part, mpi->suffix, p->path);
		return true;
	}
	all = library_preload(path, &cause);
	if (!all && !cause) {
		contd__say("run: no memory for LD_PRELOAD");
		return false;
	}
	if (!all) {
		contd__say("run: %s: %s. %s runs without it", path, cause, p->path);
		return true;
	}
	done = set(o, "LD_PRELOAD", all);
	free(all);
	return done;
}

/* ------------------------------------------------------------------------------------------------------ options --- */

static bool is_agent(const char *name)
{
	static const char *const names[] = {CONTD_AGENT_NAMES};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* As contd reads it: digits, and a point among them. */
static bool is_budget(const char *text)
{
	double value;

	if (!*text || strspn(text, "0123456789.") != strlen(text) || strchr(text, '.') != strrchr(text, '.') ||
	    *text == '.' || text[strlen(text) - 1] == '.')
		return false;
	value = atof(text); /* main() has set no locale */
	return value >= 0.1 && value <= 50;
}

static const struct mpi *mpi_named(const char *name)
{
	for (size_t i = 0; i < MPIS; i++)
		if (!strcmp(name, mpis[i].name))
			return &mpis[i];
	return NULL;
}

static int wrong(const char *option, const char *value, const char *must)
{
	contd__say("run: %s %s: must be %s", option, value, must);
	return STATUS_USAGE;
}

int command_run(int argc, char **argv)
{
	enum { HELP = 256, PROGRESS, REPORT, ALLOW, RING, MPI, AGENT, BUDGET };
	static const struct option long_options[] = {
		{"help", no_argument, NULL, HELP},         {"progress", optional_argument, NULL, PROGRESS},
		{"report", no_argument, NULL, REPORT},     {"allow", required_argument, NULL, ALLOW},
		{"ring", no_argument, NULL, RING},         {"mpi", required_argument, NULL, MPI},
		{"agent", required_argument, NULL, AGENT}, {"budget", required_argument, NULL, BUDGET},
		{"verbose", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0}};
	const char *report = NULL, *by = NULL, *allow = NULL, *agent = NULL, *budget = NULL;
	struct options o = {0};
	struct program p;
	int c, rc;

	while ((c = getopt_long(argc, argv, "+:vh", long_options, NULL)) != -1)
		switch (c) {
		case 'h':
		case HELP:
			return usage();
		case PROGRESS:
			if (optarg && strcmp(optarg, "tick") != 0 && strcmp(optarg, "thread") != 0 &&
			    strcmp(optarg, "auto") != 0)
				return wrong("--progress", optarg, "tick, thread or auto");
			o.progress = true;
			by = optarg;
			break;
		case REPORT:
			report = "1";
			break;
		case ALLOW:
			if (strcmp(optarg, "user-code") != 0)
				return wrong("--allow", optarg, "user-code");
			allow = optarg;
			break;
		case RING:
			o.ring = true;
			break;
		case MPI:
			o.mpi = mpi_named(optarg);
			if (!o.mpi)
				return wrong("--mpi", optarg, "openmpi, mpich or abi");
			break;
		case AGENT:
			if (!is_agent(optarg))
				return wrong("--agent", optarg, CONTD_AGENT_MUST);
			agent = optarg;
			break;
		case BUDGET:
			if (!is_budget(optarg))
				return wrong("--budget", optarg, "a number from 0.1 to 50");
			budget = optarg;
			break;
		case 'v':
			o.verbose = true;
			break;
		case ':':
			contd__say("run: %s: its value is missing; see contd run --help", argv[optind - 1]);
			return STATUS_USAGE;
		default:
			contd__say("run: %s: there is no such option; see contd run --help", argv[optind - 1]);
			return STATUS_USAGE;
		}
	if (optind == argc) {
		contd__say("run: no program is named; see contd run --help");
		return STATUS_USAGE;
	}
	if ((report || allow) && !o.progress) {
		contd__say("run: %s goes with --progress", report ? "--report" : "--allow");
		return STATUS_USAGE;
	}
	rc = program_look(argv[optind], &p);
	if (rc) {
		contd__say("run: %s: %s", argv[optind], strerror(rc));
		return rc == ENOENT || rc == ENOTDIR ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
	}
	/* The progress library last, so that it stands in front. */
	if ((o.ring && !preload(&o, "contd-doorbell", &p)) || (o.progress && !preload(&o, "contd-progress", &p)) ||
	    (report && !set(&o, "CONTD_PROGRESS_REPORT", report)) || (by && !set(&o, "CONTD_PROGRESS_BY", by)) ||
	    (allow && !set(&o, "CONTD_PROGRESS_ALLOW", allow)) || (agent && !set(&o, "CONTD_AGENT", agent)) ||
	    (budget && !set(&o, "CONTD_OVERHEAD_PERCENT", budget)))
		return STATUS_FAILED;
	program_end(&p);
	execvp(argv[optind], argv + optind);
	rc = errno;
	contd__say("run: %s: %s", argv[optind], strerror(rc));
	return rc == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}
