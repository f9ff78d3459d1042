/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"

#define SIZE_LEAST 3
#define SIZE_LIMIT 1048576
#define SWEEPS_LIMIT 1000000
#define SKEW_LIMIT 1000

const char *const mode_names[MODES] = {"signal", "poll", "waitall"};

void options_help(void)
{
	printf("Usage: mpirun -n RANKS heat [option]...\n"
	       "\n"
	       "Solves the 2-D heat equation (Jacobi, 5 points) and learns of halos in three ways:\n"
	       "  signal    async-signal-safe continuations, which run while the rank computes\n"
	       "  poll      MPI_Testsome between blocks of rows\n"
	       "  waitall   MPI_Waitall after the rows that need no halo\n"
	       "\n"
	       "  --size NX[xNY]  columns and rows, %d to %d each (default 1024)\n"
	       "  --sweeps N      1 to %d (default 400)\n"
	       "  --block ROWS    rows between two looks for halos, in signal and poll (default 16)\n"
	       "  --modes LIST    of signal,poll,waitall: which, and in which order (default: all)\n"
	       "  --skew P        up to P percent more work, 0 to %d, on odd ranks in odd sweeps and on\n"
	       "                  even ranks in even ones: makes halos come in mid-sweep (default 30)\n"
	       "  --csv           the table as comma-separated values\n"
	       "  --check         fail unless all modes have the same residual and each halo had exactly\n"
	       "                  one reaction a sweep\n"
	       "  --help          this text\n"
	       "\n"
	       "Columns:\n"
	       "  sweep us        time of a sweep, median of all ranks and sweeps\n"
	       "  halos           halos that came while their receiver computed; react and p99 are of these\n"
	       "  react, p99 us   from the arrival of a halo to the reaction: median, 99th percentile. In\n"
	       "                  signal the reaction is the run of the continuation, in poll and waitall\n"
	       "                  the return of the MPI call that reports the halo. As arrival counts the\n"
	       "                  time at which the peer started the send (it is in the message) or, if\n"
	       "                  later, the time at which the receiver began to compute. This needs one\n"
	       "                  clock, CLOCK_MONOTONIC of one host; with ranks on several hosts the\n"
	       "                  latencies are not comparable, and the three columns are -\n"
	       "  lost %%          time lost to interruptions, as the library counts it (ticks, with what\n"
	       "                  they cost in the kernel), as a share of the ranks' time; 0 in poll and\n"
	       "                  waitall, which nothing interrupts\n"
	       "  residual        sum of the squares of the last sweep's changes: depends on size and\n"
	       "                  sweeps only, not on mode, ranks, block or skew\n"
	       "\n"
	       "Exit status: 0; 1 where something failed, --check included; 2 for bad options.\n",
	       SIZE_LEAST, SIZE_LIMIT, SWEEPS_LIMIT, SKEW_LIMIT);
}

/* A decimal number in [min, max] up to a character of `ends`; *endp is where it stopped. */
static int parse_int(const char *s, const char *ends, long min, long max, int *valuep, const char **endp)
{
	char *end;
	long value;

	/* strtol would take blanks and signs. */
	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	value = strtol(s, &end, 10);
	if (errno || value < min || value > max || (*end && !strchr(ends, *end)))
		return -1;
	*valuep = (int)value;
	if (endp)
		*endp = end;
	return 0;
}

static int parse_size(const char *s, struct options *opt)
{
	const char *end;

	if (parse_int(s, "x", SIZE_LEAST, SIZE_LIMIT, &opt->nx, &end))
		return -1;
	opt->ny = opt->nx;
	return *end ? parse_int(end + 1, "", SIZE_LEAST, SIZE_LIMIT, &opt->ny, NULL) : 0;
}

static int parse_modes(const char *s, struct options *opt)
{
	opt->mode_count = 0;
	for (;;) {
		size_t len = strcspn(s, ",");
		int mode = 0;

		while (mode < MODES && (strlen(mode_names[mode]) != len || memcmp(s, mode_names[mode], len)))
			mode++;
		if (mode == MODES)
			return -1;
		for (int i = 0; i < opt->mode_count; i++)
			if (opt->modes[i] == (enum mode)mode)
				return -1;
		opt->modes[opt->mode_count++] = (enum mode)mode;
		if (!s[len])
			return 0;
		s += len + 1;
	}
}

int options_parse(struct options *opt, int argc, char **argv, char *text, size_t text_size)
{
	enum { SIZE = 256, SWEEPS, BLOCK, MODE_LIST, SKEW, CSV, CHECK, HELP };
	static const struct option known[] = {{"size", required_argument, NULL, SIZE},
					      {"sweeps", required_argument, NULL, SWEEPS},
					      {"block", required_argument, NULL, BLOCK},
					      {"modes", required_argument, NULL, MODE_LIST},
					      {"skew", required_argument, NULL, SKEW},
					      {"csv", no_argument, NULL, CSV},
					      {"check", no_argument, NULL, CHECK},
					      {"help", no_argument, NULL, HELP},
					      {NULL, 0, NULL, 0}};
	int c;

	*opt = (struct options){.nx = 1024,
				.ny = 1024,
				.sweeps = 400,
				.block = 16,
				.skew = 30,
				.modes = {MODE_SIGNAL, MODE_POLL, MODE_WAITALL},
				.mode_count = MODES};
	opterr = 0; /* every rank parses; the caller lets one of them speak */
	while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		switch (c) {
		case SIZE:
			if (!parse_size(optarg, opt))
				break;
			snprintf(text, text_size, "--size %s: NX or NXxNY is expected, %d to %d each", optarg,
				 SIZE_LEAST, SIZE_LIMIT);
			return -1;
		case SWEEPS:
			if (!parse_int(optarg, "", 1, SWEEPS_LIMIT, &opt->sweeps, NULL))
				break;
			snprintf(text, text_size, "--sweeps %s: a number from 1 to %d is expected", optarg,
				 SWEEPS_LIMIT);
			return -1;
		case BLOCK:
			if (!parse_int(optarg, "", 1, SIZE_LIMIT, &opt->block, NULL))
				break;
			snprintf(text, text_size, "--block %s: a number of rows from 1 to %d is expected", optarg,
				 SIZE_LIMIT);
			return -1;
		case MODE_LIST:
			if (!parse_modes(optarg, opt))
				break;
			snprintf(text, text_size,
				 "--modes %s: signal, poll, waitall, or several are expected: poll,signal", optarg);
			return -1;
		case SKEW:
			if (!parse_int(optarg, "", 0, SKEW_LIMIT, &opt->skew, NULL))
				break;
			snprintf(text, text_size, "--skew %s: a percentage from 0 to %d is expected", optarg,
				 SKEW_LIMIT);
			return -1;
		case CSV:
			opt->csv = true;
			break;
		case CHECK:
			opt->check = true;
			break;
		case HELP:
			opt->help = true;
			break;
		case ':':
			snprintf(text, text_size, "%s needs a value", argv[optind - 1]);
			return -1;
		default:
			snprintf(text, text_size, "%s: no such option, or a value it does not take", argv[optind - 1]);
			return -1;
		}
	}
	if (optind < argc) {
		snprintf(text, text_size, "%s: only options are expected", argv[optind]);
		return -1;
	}
	return 0;
}
