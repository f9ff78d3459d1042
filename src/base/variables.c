/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/variables.h"

static const struct contd__variable variables[] = {
	{"CONTD_MPI_BACKEND", "auto", "auto, native or portable",
	 (const char *const[]){"auto", "native", "portable", NULL}, true},
	{"CONTD_FINALIZE", NULL, "together or alone", (const char *const[]){"together", "alone", NULL}, true},
	{"CONTD_JOB", NULL, "a name of 1 to 64 characters", NULL, true},
	{"CONTD_PROGRESS", "1", "0 or 1", (const char *const[]){"0", "1", NULL}, false},
	{"CONTD_PROGRESS_ALLOW", NULL, "user-code", (const char *const[]){"user-code", NULL}, false},
	{"CONTD_PROGRESS_BY", "auto", "tick, thread or auto", (const char *const[]){"tick", "thread", "auto", NULL},
	 false},
	{"CONTD_PROGRESS_REPORT", "0", "0 or 1", (const char *const[]){"0", "1", NULL}, false},
};

static const char *const others[] = {
	/* Tests and benchmarks. */
	"CONTD_CHAOS_SECONDS",
	"CONTD_FABRIC_LOAD",
	"CONTD_FABRIC_ROUNDS",
	"CONTD_STORM_SECONDS",
	"CONTD_TEST_LEVEL",
	"CONTD_TEST_RING",
	"CONTD_TORTURE_SECONDS",
	/* Scripts and tools. */
	"CONTD_CLUSTER_INDEX",
	"CONTD_CLUSTER_RUN",
	"CONTD_CORE",
	"CONTD_DEMO",
	"CONTD_DEPS",
	"CONTD_FRESH_MIRROR",
	"CONTD_LAB_STATE",
	"CONTD_SLURM_WORK",
};

const struct contd__variable *contd__variable_at(size_t i)
{
	return i < sizeof(variables) / sizeof(variables[0]) ? &variables[i] : NULL;
}

bool contd__variable_good(const struct contd__variable *v, const char *value)
{
	if (!*value)
		return v->empty;
	if (!v->values)
		return strlen(value) <= 64;
	for (size_t i = 0; v->values[i]; i++)
		if (!strcmp(v->values[i], value))
			return true;
	return false;
}

bool contd__variable_other(const char *name)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t contd__distance(const char *a, const char *b)
{
	size_t row[CONTD_NAME_MOST], width = least(strlen(b), CONTD_NAME_MOST - 1);

	for (size_t k = 0; k <= width; k++)
		row[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t corner = row[0]; /* of the row above, one to the left */

		row[0] = i;
		for (size_t k = 1; k <= width; k++) {
			size_t above = row[k];

			row[k] = least(corner + (a[i - 1] != b[k - 1]), least(above, row[k - 1]) + 1);
			corner = above;
		}
	}
	return row[width];
}
