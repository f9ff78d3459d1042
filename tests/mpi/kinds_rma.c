/* SPDX-License-Identifier: BSD-3-Clause */
/* environment: OMPI_MCA_osc=^rdma */
/* also: pt2pt OMPI_MCA_osc=pt2pt */
/*
 * Continuations on RMA operations with requests, on windows of all sorts. In Open MPI 4.1 the requests are complete at
 * once but with its component pt2pt; the component rdma loses the end of what a large Rget_accumulate reads, with
 * MPI_Wait too.
 */
#include "kinds.h"

#define SMALL 5
#define LARGE 20000
#define KINDS 14

enum what { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH };

/* Each kind has its part of the window, at k * LARGE elements. */
struct access {
	enum what what;
	int n;
	bool nobody; /* target MPI_PROC_NULL */
};

static MPI_Win win;
static long *memory;         /* the own part of the window */
static MPI_Aint base_at[64]; /* displacement of each rank's memory: not 0 in dynamic windows */
static int unit;             /* of displacements, in bytes */
static const struct kind *base;
static long *local[KINDS], *result[KINDS];
static long added[KINDS]; /* by how much an element has grown */

static long value(int rank, int round, int k)
{
	return rank * 100000000L + round * 100000L + k;
}

static int place(const struct kind *k)
{
	return (int)(k - base) * LARGE;
}

static int target(const struct kind *k)
{
	return ((const struct access *)k->how)->nobody ? MPI_PROC_NULL : check_next();
}

static MPI_Aint displacement(const struct kind *k)
{
	return base_at[check_next()] + (MPI_Aint)place(k) * (MPI_Aint)sizeof(long) / unit;
}

static void begin(const struct kind *k, int round, MPI_Request r[])
{
	const struct access *a = k->how;
	long *mine = local[k - base], *old = result[k - base];
	const int n = a->n, to = target(k);
	const MPI_Aint there = displacement(k);

	for (int i = 0; i < LARGE; i++) {
		mine[i] = a->what == PUT ? value(check_rank, round, i) : 1;
		old[i] = -1;
	}
	switch (a->what) {
	case PUT:
		CHECK_OK(MPI_Rput(mine, n, MPI_LONG, to, there, n, MPI_LONG, win, &r[0]));
		break;
	case GET:
		CHECK_OK(MPI_Rget(old, n, MPI_LONG, to, there, n, MPI_LONG, win, &r[0]));
		break;
	case ACCUMULATE:
		CHECK_OK(MPI_Raccumulate(mine, n, MPI_LONG, to, there, n, MPI_LONG, MPI_SUM, win, &r[0]));
		break;
	case GET_ACCUMULATE:
		CHECK_OK(MPI_Rget_accumulate(mine, n, MPI_LONG, old, n, MPI_LONG, to, there, n, MPI_LONG, MPI_SUM, win,
					     &r[0]));
		break;
	case FETCH:
		CHECK_OK(MPI_Rget_accumulate(NULL, 0, MPI_LONG, old, n, MPI_LONG, to, there, n, MPI_LONG, MPI_NO_OP,
					     win, &r[0]));
	}
}

/* Data that is read is there when the request is complete; data that is written, when the window is flushed. */
static void check(const struct kind *k, int round, int i, MPI_Status *status)
{
	const struct access *a = k->how;
	const long *old = result[k - base];
	bool reads = (a->what == GET || a->what == GET_ACCUMULATE || a->what == FETCH) && !a->nobody;
	int wrong = 0;

	(void)round, (void)i, (void)status; /* of these statuses MPI defines MPI_ERROR only */
	for (int e = 0; e < LARGE; e++) {
		long expected = value(check_next(), 0, e) + added[k - base];

		wrong += old[e] != (reads && e < a->n ? expected : -1);
	}
	CHECK_EQ(wrong, 0);
}

static void after(const struct kind *k, int round)
{
	const struct access *a = k->how;
	const long *own = memory + place(k);
	int wrong = 0, n = a->nobody ? 0 : a->n;

	if (a->what == ACCUMULATE || a->what == GET_ACCUMULATE)
		added[k - base]++;
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	for (int e = 0; e < LARGE; e++) {
		long expected = value(check_rank, 0, e) + (e < n ? added[k - base] : 0);

		if (a->what == PUT && e < n)
			expected = value(check_previous(), round, e);
		wrong += own[e] != expected;
	}
	CHECK_EQ(wrong, 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

#define ACCESS(...) (&(const struct access){__VA_ARGS__})
#define KIND(kind_name, ...) \
	{ \
		.name = (kind_name), .count = 1, .begin = begin, .check = check, .after = after, \
		.how = ACCESS(__VA_ARGS__) \
	}

static const struct kind kinds[] = {
	KIND("Rput", .what = PUT, .n = SMALL),
	KIND("Rput, zero count", .what = PUT, .n = 0),
	KIND("Rput, large", .what = PUT, .n = LARGE),
	KIND("Rput, MPI_PROC_NULL", .what = PUT, .n = SMALL, .nobody = true),
	KIND("Rget", .what = GET, .n = SMALL),
	KIND("Rget, zero count", .what = GET, .n = 0),
	KIND("Rget, large", .what = GET, .n = LARGE),
	KIND("Rget, MPI_PROC_NULL", .what = GET, .n = SMALL, .nobody = true),
	KIND("Raccumulate", .what = ACCUMULATE, .n = SMALL),
	KIND("Raccumulate, large", .what = ACCUMULATE, .n = LARGE),
	KIND("Raccumulate, MPI_PROC_NULL", .what = ACCUMULATE, .n = SMALL, .nobody = true),
	KIND("Rget_accumulate", .what = GET_ACCUMULATE, .n = SMALL),
	KIND("Rget_accumulate, large", .what = GET_ACCUMULATE, .n = LARGE),
	KIND("Rget_accumulate, MPI_NO_OP", .what = FETCH, .n = SMALL),
};

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == KINDS, "each kind has its part of the window");

/* Not every MPI can make every sort of window on every machine. */
static void run(int rc, const char *suffix)
{
	if (rc != MPI_SUCCESS) {
		if (check_rank == 0)
			printf("no %s here\n", suffix + 2);
		return;
	}
	base = kinds;
	memset(added, 0, sizeof(added));
	for (int k = 0; k < KINDS; k++)
		for (int e = 0; e < LARGE; e++)
			memory[k * LARGE + e] = value(check_rank, 0, e);
	MPI_Win_lock_all(0, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	kinds_run(kinds, KINDS, suffix, true);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	const MPI_Aint bytes = (MPI_Aint)sizeof(long) * KINDS * LARGE;
	long *own = malloc((size_t)bytes);
	MPI_Aint address;
	int rc;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	for (int k = 0; k < KINDS; k++) {
		local[k] = malloc(sizeof(long) * LARGE);
		result[k] = malloc(sizeof(long) * LARGE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	unit = sizeof(long);
	run(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), ", allocated window");
	run(MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), ", shared window");
	memory = own;
	run(MPI_Win_create(memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win), ", created window");
	unit = 1;
	rc = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rc == MPI_SUCCESS)
		MPI_Win_attach(win, memory, bytes);
	MPI_Get_address(memory, &address);
	MPI_Allgather(&address, 1, MPI_AINT, base_at, 1, MPI_AINT, MPI_COMM_WORLD);
	run(rc, ", dynamic window");
	for (int k = 0; k < KINDS; k++) {
		free(local[k]);
		free(result[k]);
	}
	free(own);
	return check_fini();
}
