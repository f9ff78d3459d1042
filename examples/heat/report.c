/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"

struct line {
	enum mode mode;
	double sweep_us;
	size_t halos; /* 0: the next two mean nothing */
	double median_us, p99_us;
	double lost_percent;
	double residual;
	int64_t due, reactions, faults;
};

struct report {
	bool comparable; /* the ranks share a clock */
	int lines;
	struct line line[MODES];
	double *samples; /* rank 0: SIDES a sweep and rank */
};

struct report *report_create(const struct heat *h, bool comparable)
{
	struct report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->comparable = comparable;
	if (h->rank == 0) {
		report->samples = calloc((size_t)h->ranks * (size_t)h->opt->sweeps, SIDES * sizeof(double));
		if (!report->samples) {
			free(report);
			return NULL;
		}
	}
	return report;
}

void report_destroy(struct report *report)
{
	if (!report)
		return;
	free(report->samples);
	free(report);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nearest rank: the least sample that at least `percent` of all do not exceed. */
static double percentile(const double *sorted, size_t count, size_t percent)
{
	size_t rank = (count * percent + 99) / 100;

	return sorted[rank ? rank - 1 : 0];
}

void report_add(struct report *report, const struct heat *h, enum mode mode, const struct outcome *out)
{
	struct line *line = &report->line[report->lines++];
	int64_t counts[3] = {out->halos, out->reactions, out->faults}, totals[3];
	double times[2] = {out->lost_ns, out->wall_ns}, sums[2];
	int sweeps = h->opt->sweeps;
	size_t count = (size_t)h->ranks * (size_t)sweeps;

	MPI_Reduce(counts, totals, 3, MPI_INT64_T, MPI_SUM, 0, h->comm);
	MPI_Reduce(times, sums, 2, MPI_DOUBLE, MPI_SUM, 0, h->comm);
	MPI_Gather(out->sweep_us, sweeps, MPI_DOUBLE, report->samples, sweeps, MPI_DOUBLE, 0, h->comm);
	if (h->rank == 0) {
		qsort(report->samples, count, sizeof(double), by_value);
		line->sweep_us = percentile(report->samples, count, 50);
	}
	MPI_Gather(out->react_us, SIDES * sweeps, MPI_DOUBLE, report->samples, SIDES * sweeps, MPI_DOUBLE, 0, h->comm);
	if (h->rank != 0)
		return;

	line->mode = mode;
	line->lost_percent = 100 * sums[0] / sums[1];
	line->residual = out->residual;
	line->due = totals[0];
	line->reactions = totals[1];
	line->faults = totals[2];
	for (size_t i = 0; i < SIDES * count; i++)
		if (report->samples[i] >= 0)
			report->samples[line->halos++] = report->samples[i];
	if (line->halos) {
		qsort(report->samples, line->halos, sizeof(double), by_value);
		line->median_us = percentile(report->samples, line->halos, 50);
		line->p99_us = percentile(report->samples, line->halos, 99);
	}
}

/* An empty field in CSV and a dash in the table stand for "no figure". */
static void print_csv(const struct report *report, const struct heat *h)
{
	printf("mode,ranks,nx,ny,sweeps,sweep_us,halos,react_median_us,react_p99_us,lost_percent,residual\n");
	for (int i = 0; i < report->lines; i++) {
		const struct line *line = &report->line[i];

		printf("%s,%d,%d,%d,%d,%.3f,", mode_names[line->mode], h->ranks, h->opt->nx, h->opt->ny, h->opt->sweeps,
		       line->sweep_us);
		if (report->comparable && line->halos)
			printf("%zu,%.3f,%.3f,", line->halos, line->median_us, line->p99_us);
		else
			printf("%s,,,", report->comparable ? "0" : "");
		printf("%.4f,%.17g\n", line->lost_percent, line->residual);
	}
}

static void print_table(const struct report *report, const struct heat *h)
{
	printf("heat: %d x %d, ranks %d, block %d, skew %d %%\n\n", h->opt->nx, h->opt->ny, h->ranks, h->opt->block,
	       h->opt->skew);
	printf("%-8s %7s %10s %8s %10s %10s %7s  %s\n", "mode", "sweeps", "sweep us", "halos", "react us", "p99 us",
	       "lost %", "residual");
	for (int i = 0; i < report->lines; i++) {
		const struct line *line = &report->line[i];

		printf("%-8s %7d %10.1f ", mode_names[line->mode], h->opt->sweeps, line->sweep_us);
		if (report->comparable && line->halos)
			printf("%8zu %10.1f %10.1f ", line->halos, line->median_us, line->p99_us);
		else
			printf("%8s %10s %10s ", report->comparable ? "0" : "-", "-", "-");
		if (line->mode == MODE_SIGNAL)
			printf("%7.2f", line->lost_percent);
		else
			printf("%7s", "0");
		printf("  %.17g\n", line->residual);
	}
	if (!report->comparable)
		printf("\nThe ranks are on several hosts, whose clocks are not comparable: no latencies.\n");
}

void report_print(const struct report *report, const struct heat *h)
{
	if (h->opt->csv)
		print_csv(report, h);
	else
		print_table(report, h);
	fflush(stdout);
}

bool report_check(const struct report *report)
{
	bool ok = true;

	for (int i = 0; i < report->lines; i++) {
		const struct line *line = &report->line[i];

		/* Bit by bit; a residual that is not a number is wrong in any case. */
		if (memcmp(&line->residual, &report->line[0].residual, sizeof(double)) || !isfinite(line->residual)) {
			fprintf(stderr, "heat: the residual is %.17g with %s, %.17g with %s\n",
				report->line[0].residual, mode_names[report->line[0].mode], line->residual,
				mode_names[line->mode]);
			ok = false;
		}
		if (line->faults || line->reactions != line->due) {
			fprintf(stderr,
				"heat: %s: %lld reactions to %lld halos; %lld times not exactly one in a sweep\n",
				mode_names[line->mode], (long long)line->reactions, (long long)line->due,
				(long long)line->faults);
			ok = false;
		}
	}
	return ok;
}
