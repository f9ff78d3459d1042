/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message_ring.h"

const char *const ring_modes[] = {"yield", "suspend", "task", "continuation", "mpix", "testsome", NULL};
const char *const ring_pools[] = {"none", "pull", "comm", "taskrt", "glib", NULL};
static const char *const where[] = {"inline", "transfer", NULL};
static const char *const priorities[] = {"normal", "high", NULL};
static const char *const tasks[] = {"fiber", "thread", NULL};

static const char usage[] =
	"usage: ring [OPTION...]\n"
	"Every rank starts R rounds in each of I iterations, at most W of these at a time; each message travels "
	"through all\n"
	"ranks and home. Prints: mode,requests,completions,executor,priority,size,W,messages,seconds,messages/s,\n"
	"ranks,threads,testsome/s,ratio; the last two with --beside only.\n"
	"  --mode MODE            yield, suspend, task, continuation, mpix: how completion is learned of; testsome: a "
	"loop of\n"
	"                         MPI_Testsome, without contd\n"
	"  --requests WHERE       inline (as is, else): the MPI calls are made where they come to be; transfer: by the "
	"executor\n"
	"  --completions WHERE    inline, transfer: the thread that goes on after a step\n"
	"  --executor POOL        none; pull: the threads that drive the ring; comm: these for completions, and a "
	"thread that is\n"
	"                         the only one to call MPI for requests; taskrt: tasks of examples/taskrt; glib: a "
	"GThreadPool\n"
	"  --priority PRIORITY    normal, high\n"
	"  --size BYTES[-BYTES]   of a message, 16 at least; a range: each message has another; 64\n"
	"  --iterations I         10000\n"
	"  --rounds R             1\n"
	"  --in-flight W          1\n"
	"  --threads T            that drive the ring, in each rank; 1\n"
	"  --tasks KIND           fiber, thread: what waits in modes yield and suspend\n"
	"  --together             a step is two requests, the send of one message and the receive of the next\n"
	"  --no-cr                continuation and mpix: without continuation request\n"
	"  --cancel PERCENT       of the steps before which a receive is cancelled; 0\n"
	"  --warmup ITERATIONS    that are not measured; I / 10\n"
	"  --repeat N             prints the median of N; 1\n"
	"  --all                  every mode with every executor, one after the other: a test\n"
	"  --beside               measure testsome by turns, in the same processes\n";

void ring_die(const char *format, ...)
{
	va_list ap;
	int initialized;

	fflush(stdout);
	fprintf(stderr, "message_ring: ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	MPI_Initialized(&initialized);
	if (initialized)
		MPI_Abort(MPI_COMM_WORLD, 1);
	exit(2);
}

static int one_of(const char *const names[], const char *option, const char *text)
{
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], text) == 0)
			return i;
	}
	ring_die("--%s %s: there is none of that name", option, text);
}

static long number(const char *option, const char *text, char **end, long least, long most)
{
	char *stop;
	long n = strtol(text, &stop, 10);

	if (end)
		*end = stop;
	if (stop == text || (*stop && !end) || n < least || n > most)
		ring_die("--%s %s: a number from %ld to %ld is needed", option, text, least, most);
	return n;
}

void ring_options(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{"mode", 1, NULL, 'm'},       {"requests", 1, NULL, 'r'}, {"completions", 1, NULL, 'c'},
		{"executor", 1, NULL, 'e'},   {"priority", 1, NULL, 'p'}, {"size", 1, NULL, 's'},
		{"iterations", 1, NULL, 'I'}, {"rounds", 1, NULL, 'R'},   {"in-flight", 1, NULL, 'W'},
		{"threads", 1, NULL, 'T'},    {"tasks", 1, NULL, 't'},    {"together", 0, NULL, '2'},
		{"no-cr", 0, NULL, 'n'},      {"cancel", 1, NULL, 'C'},   {"warmup", 1, NULL, 'w'},
		{"repeat", 1, NULL, 'N'},     {"beside", 0, NULL, 'b'},   {"all", 0, NULL, 'a'},
		{"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
	int c, i = 0;
	char *end;

	*o = (struct options){.mode = MODE_CONTINUATION,
			      .size_least = 64,
			      .size_most = 64,
			      .iterations = 10000,
			      .rounds = 1,
			      .in_flight = 1,
			      .warmup = -1,
			      .threads = 1,
			      .repeat = 1};
	while ((c = getopt_long(argc, argv, "", names, &i)) != -1) {
		const char *name = names[i].name;

		switch (c) {
		case 'm':
			o->mode = one_of(ring_modes, name, optarg);
			break;
		case 'r':
			o->requests_transfer = one_of(where, name, optarg);
			break;
		case 'c':
			o->completions_transfer = one_of(where, name, optarg);
			break;
		case 'e':
			o->pool = one_of(ring_pools, name, optarg);
			break;
		case 'p':
			o->high = one_of(priorities, name, optarg);
			break;
		case 's':
			o->size_least = o->size_most = (size_t)number(name, optarg, &end, 16, 1 << 30);
			if (*end == '-')
				o->size_most = (size_t)number(name, end + 1, NULL, (long)o->size_least, 1 << 30);
			else if (*end)
				ring_die("--size %s: a number or two are needed", optarg);
			break;
		case 'I':
			o->iterations = number(name, optarg, NULL, 1, 1L << 32);
			break;
		case 'R':
			o->rounds = number(name, optarg, NULL, 1, 100000);
			break;
		case 'W':
			o->in_flight = number(name, optarg, NULL, 1, 100000);
			break;
		case 'T':
			o->threads = (int)number(name, optarg, NULL, 1, 256);
			break;
		case 't':
			o->thread_tasks = one_of(tasks, name, optarg);
			break;
		case '2':
			o->together = true;
			break;
		case 'n':
			o->no_cr = true;
			break;
		case 'C':
			o->cancel = (int)number(name, optarg, NULL, 0, 100);
			break;
		case 'w':
			o->warmup = number(name, optarg, NULL, 0, 1L << 32);
			break;
		case 'N':
			o->repeat = (int)number(name, optarg, NULL, 1, 99);
			break;
		case 'b':
			o->beside = true;
			break;
		case 'a':
			o->all = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			ring_die("see --help");
		}
	}
	if (optind < argc)
		ring_die("%s: see --help", argv[optind]);
	if (o->warmup < 0)
		o->warmup = o->iterations / 10;
#ifdef RING_PLAIN
	o->mode = MODE_TESTSOME;
#endif
	if (o->mode == MODE_TASK)
		o->completions_transfer = true;
	if (o->mode == MODE_TESTSOME)
		o->all = o->beside = false;
#ifndef RING_PLAIN
	if (!o->all && !modes_exists(o))
		ring_die("--mode %s --executor %s: that goes with other --requests and --completions only, see --help",
			 ring_modes[o->mode], ring_pools[o->pool]);
#endif
}
