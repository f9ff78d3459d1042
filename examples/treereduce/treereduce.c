/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * treereduce: many reductions under way at a time, each a generalized request, made by a thread each or by
 * continuations and no thread; and what each form costs. After example 12.1 of MPI's chapter on generalized requests.
 *
 * Differences from the printed example, which has these errors:
 * - A rank without children added up values that were never received. Here these are 0.
 * - The thread was never joined or detached.
 * - The thread freed its arguments, and may end before the program has its result. Here free_fn frees them.
 * - The call stored *request, and the thread read a copy of it, without a check that the call succeeded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduce.h"
#include "self.h"

#define COUNT_MOST 10000 /* tags up to 32767 there are in every MPI */

struct options {
	enum tree_form form;
	int count, rounds;
	bool check;
};

static const char *const form_name[] = {"thread", "continuations"};

static void usage(FILE *to)
{
	fprintf(to, "usage: treereduce [--form thread|continuations] [--count N] [--rounds N] [--check]\n"
		    "\n"
		    "  --form    how a reduction is made (default: continuations)\n"
		    "  --count   reductions under way at a time, 1 to 10000 (default: 16)\n"
		    "  --rounds  how often, 1 to 1000000 (default: 100)\n"
		    "  --check   compare with MPI_Reduce and MPI_Ireduce; exits with 1 where they differ\n");
}

static bool number(const char *text, long most, int *to)
{
	char *end;
	long n = text ? strtol(text, &end, 10) : 0;

	if (!text || end == text || *end || n < 1 || n > most)
		return false;
	*to = (int)n;
	return true;
}

/* 0, or the exit status plus 1. */
static int options_read(int argc, char **argv, struct options *o)
{
	*o = (struct options){.form = TREE_CONTINUATIONS, .count = 16, .rounds = 100};
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool good = false;

		if (strcmp(argv[i], "--help") == 0) {
			usage(stdout);
			return 1;
		}
		if (strcmp(argv[i], "--check") == 0) {
			o->check = true;
			continue;
		}
		if (strcmp(argv[i], "--count") == 0)
			good = number(value, COUNT_MOST, &o->count);
		else if (strcmp(argv[i], "--rounds") == 0)
			good = number(value, 1000000, &o->rounds);
		else if (strcmp(argv[i], "--form") == 0 && value)
			for (int f = 0; f < 2; f++)
				if (strcmp(value, form_name[f]) == 0) {
					o->form = (enum tree_form)f;
					good = true;
				}
		if (!good) {
			usage(stderr);
			return 3;
		}
		i++;
	}
	return 0;
}

static int value_of(int rank, int round, int i)
{
	return rank * 31 + round % 1000 * 7 + i + 1;
}

/* How many of a round's results are not what MPI's own reductions give. */
static int differ(int rank, int root, int round, int count, const int *result)
{
	int wrong = 0;

	for (int i = 0; i < count; i++) {
		int mine = value_of(rank, round, i), sums[2] = {0, 0};
		MPI_Request r;

		MPI_Reduce(&mine, &sums[0], 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
		MPI_Ireduce(&mine, &sums[1], 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		wrong += rank == root && (result[i] != sums[0] || result[i] != sums[1]);
	}
	return wrong;
}

static int run(const struct options *o)
{
	MPI_Request cr = MPI_REQUEST_NULL, *requests = malloc((size_t)o->count * sizeof(*requests));
	int *result = calloc((size_t)o->count, sizeof(*result)), rank, size, wrong = 0, all = 0;
	long threads = 0, most = 0, memory = 0, mine;
	double seconds = 0;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!requests || !result) {
		fprintf(stderr, "treereduce: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	for (int round = 0; round < o->rounds; round++) {
		int root = round % size;
		double begin;

		for (int i = 0; i < o->count; i++)
			result[i] = -1;
		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		for (int i = 0; i < o->count; i++) {
			int rc = tree_reduce(o->form, MPI_COMM_WORLD, i, root, value_of(rank, round, i), &result[i], cr,
					     &requests[i]);

			if (rc) {
				fprintf(stderr, "treereduce: reduction %d cannot be started: too many threads?\n", i);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
		}
		if (round == 0)
			threads = proc_self("Threads:");
		MPI_Waitall(o->count, requests, MPI_STATUSES_IGNORE);
		seconds += MPI_Wtime() - begin;
		if (o->check)
			wrong += differ(rank, root, round, o->count, result);
	}
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
	MPI_Request_free(&cr);
	mine = proc_self("VmHWM:");
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Reduce(&threads, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &memory, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("form           ranks  count  us a reduction  threads  memory KiB%s\n",
		       o->check ? "  wrong" : "");
		printf("%-13s %6d %6d %15.2f %8ld %11ld", form_name[o->form], size, o->count,
		       seconds * 1e6 / o->rounds / o->count, most, memory);
		if (o->check)
			printf(" %6d", all);
		printf("\n");
	}
	free(requests);
	free(result);
	return all != 0;
}

int main(int argc, char **argv)
{
	struct options o;
	int rc = options_read(argc, argv, &o), wanted, level;

	if (rc)
		return rc - 1;
	wanted = o.form == TREE_THREAD ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	MPI_Init_thread(&argc, &argv, wanted, &level);
	if (level < wanted) {
		fprintf(stderr, "treereduce: this MPI does not grant the thread level that the form needs\n");
		MPI_Finalize();
		return 77;
	}
	rc = run(&o);
	MPI_Finalize();
	return rc;
}
