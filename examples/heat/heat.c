/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>

#include "heat.h"

/* Whether all ranks are on one host, and so share CLOCK_MONOTONIC. Collective. */
static bool one_host(MPI_Comm comm)
{
	MPI_Comm host;
	int host_size, size;

	MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &host_size);
	MPI_Comm_free(&host);
	MPI_Comm_size(comm, &size);
	/* All hosts have fewer ranks than there are, or there is one host: the ranks agree. */
	return host_size == size;
}

static bool all_agree(bool mine, MPI_Comm comm)
{
	int flag = mine, all;

	MPI_Allreduce(&flag, &all, 1, MPI_INT, MPI_LAND, comm);
	return all;
}

/* Exit status. */
static int run(const struct options *opt, MPI_Comm comm)
{
	bool comparable = one_host(comm), ok = true;
	struct report *report = NULL;
	struct outcome out = {0};
	struct heat heat;

	if (!grid_init(&heat, opt, comm)) {
		out.sweep_us = malloc((size_t)opt->sweeps * sizeof(double));
		out.react_us = malloc((size_t)opt->sweeps * SIDES * sizeof(double));
		report = report_create(&heat, comparable);
	}
	/* Every rank must know, or the others would wait for the one that gave up. */
	if (!all_agree(report && out.sweep_us && out.react_us, comm)) {
		if (heat.rank == 0)
			fprintf(stderr,
				"heat: out of memory for %d x %d values and %d sweeps: try less, or more ranks\n",
				opt->nx, opt->ny, opt->sweeps);
		ok = false;
	} else {
		sweep_init(&heat);
		for (int i = 0; i < opt->mode_count; i++) {
			sweep_run(&heat, opt->modes[i], &out);
			report_add(report, &heat, opt->modes[i], &out);
		}
		sweep_fini(&heat);
		if (heat.rank == 0) {
			report_print(report, &heat);
			if (opt->check)
				ok = report_check(report);
			if (opt->check && ok)
				/* With --csv, standard output is for the table alone. */
				fprintf(opt->csv ? stderr : stdout, "heat: ok\n");
		}
		ok = all_agree(ok, comm);
	}
	report_destroy(report);
	free(out.sweep_us);
	free(out.react_us);
	grid_fini(&heat);
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options opt;
	char text[256] = "";
	int provided, rank, ranks, status = 0;

	/* One thread calls MPI. In compute regions, contd's handler does, on that same thread. */
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (options_parse(&opt, argc, argv, text, sizeof(text))) {
		status = 2;
	} else if (opt.help) {
		if (rank == 0)
			options_help();
	} else if (opt.ny - 2 < ranks) {
		snprintf(text, sizeof(text), "--size: %d rows are too few for %d ranks, which need %d at least", opt.ny,
			 ranks, ranks + 2);
		status = 2;
	} else {
		status = run(&opt, MPI_COMM_WORLD);
	}
	if (status == 2 && rank == 0)
		fprintf(stderr, "heat: %s; see --help\n", text);
	MPI_Finalize();
	return status;
}
