/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every combination of the info keys of a continuation request, with both interfaces and the revised one's flags of
 * each call, and the rules by which a test says what may run where. Shared by keys.c and keys_multiple.c.
 */
#ifndef CONTD_TESTS_MPI_KEYS_H
#define CONTD_TESTS_MPI_KEYS_H

#include <pthread.h>
#include <time.h>

#include "check.h"

struct keys {
	bool poll_only, enqueue, any, safe;
	int max_poll;
	bool revised;
	int flags; /* of each call, of the revised interface */
};

static const int keys_limits[] = {-1, 0, 1, 3};
/* Those without meaning when attaching are ignored. */
static const int keys_flags[] = {0, MPIX_CONT_DEFER_COMPLETE, MPIX_CONT_IMMEDIATE | MPIX_CONT_REQUESTS_FREE,
				 MPIX_CONT_POLL_ONLY | MPIX_CONT_INVOKE_FAILED, MPIX_CONT_REQBUF_VOLATILE};
#define KEYS_FLAGS ((int)(sizeof(keys_flags) / sizeof(keys_flags[0])))

/* Calls made with each combination: of the draft interface, and of the revised one with each of the flags. */
CHECK_HELPER void keys_each(void (*check)(const struct keys *k))
{
	static char name[160];

	for (int bits = 0; bits < 16; bits++)
		for (int l = 0; l < 4; l++)
			for (int how = 0; how <= KEYS_FLAGS; how++) {
				struct keys k = {.poll_only = bits & 1,
						 .enqueue = bits & 2,
						 .any = bits & 4,
						 .safe = bits & 8,
						 .max_poll = keys_limits[l],
						 .revised = how > 0,
						 .flags = how ? keys_flags[how - 1] : 0};

				snprintf(name, sizeof(name),
					 "poll_only %d, enqueue %d, any %d, safe %d, max_poll %d, %s, flags %d",
					 k.poll_only, k.enqueue, k.any, k.safe, k.max_poll,
					 k.revised ? "revised" : "draft", k.flags);
				check_begin(name);
				check(&k);
			}
}

/* MPI_REQUEST_NULL where the combination is refused. */
CHECK_HELPER MPI_Request keys_cr(const struct keys *k)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	char limit[16];
	MPI_Info info;
	int rc;

	snprintf(limit, sizeof(limit), "%d", k->max_poll);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_poll_only", k->poll_only ? "true" : "false");
	MPI_Info_set(info, "mpi_continue_enqueue_complete", k->enqueue ? "true" : "false");
	MPI_Info_set(info, "mpi_continue_max_poll", limit);
	MPI_Info_set(info, "mpi_continue_thread", k->any ? "any" : "application");
	MPI_Info_set(info, "mpi_continue_async_signal_safe", k->safe ? "true" : "false");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	rc = k->revised ? MPIX_Continue_init(0, 0, info, &cr) : MPI_Continue_init(info, &cr);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Info_free(&info);
	/* Nothing of it would ever run. */
	CHECK_EQ(rc, k->poll_only && k->max_poll == 0 ? MPI_ERR_ARG : MPI_SUCCESS);
	if (rc == MPI_SUCCESS && k->revised)
		CHECK_OK(MPI_Start(&cr));
	return rc == MPI_SUCCESS ? cr : MPI_REQUEST_NULL;
}

/* ------------------------------------------------------------------------------------------------------- rules --- */

/* May it run inside the call that attaches it? */
CHECK_HELPER bool keys_inside(const struct keys *k)
{
	return !k->poll_only && !k->enqueue && k->max_poll != 0 && !(k->flags & MPIX_CONT_DEFER_COMPLETE);
}

/* May an interruption anywhere run it? */
CHECK_HELPER bool keys_interrupts(const struct keys *k)
{
	return k->safe && !k->poll_only && k->max_poll != 0;
}

/* Of so many that are ready, how many may a test, or an interruption, run? */
CHECK_HELPER int keys_bound(const struct keys *k, int ready)
{
	return k->max_poll >= 0 && k->max_poll < ready ? k->max_poll : ready;
}

/* --------------------------------------------------------------------------------------------------- what runs --- */

static pthread_t keys_main;
static atomic_int keys_here, keys_elsewhere; /* runs on the main thread, and on others */
#define keys_all (atomic_load(&keys_here) + atomic_load(&keys_elsewhere))

/* Async-signal-safe. */
CHECK_HELPER void keys_count(void)
{
	if (pthread_equal(pthread_self(), keys_main))
		atomic_fetch_add(&keys_here, 1);
	else
		atomic_fetch_add(&keys_elsewhere, 1);
}

CHECK_HELPER void keys_draft(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	keys_count();
}

CHECK_HELPER int keys_revised(int rc, void *data)
{
	(void)rc, (void)data;
	keys_count();
	return MPI_SUCCESS;
}

/* One that is complete. */
CHECK_HELPER void keys_attach(const struct keys *k, MPI_Request cr)
{
	MPI_Request null = MPI_REQUEST_NULL;

	if (k->revised)
		CHECK_OK(MPIX_Continue(&null, keys_revised, NULL, k->flags, MPI_STATUS_IGNORE, cr));
	else
		CHECK_OK(MPI_Continue(&null, keys_draft, NULL, MPI_STATUS_IGNORE, cr));
}

static struct {
	const struct keys *k;
	MPI_Request cr;
	int n;
} keys_readies;

CHECK_HELPER void keys_make_ready(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	for (int i = 0; i < keys_readies.n; i++)
		keys_attach(keys_readies.k, keys_readies.cr);
}

/* n that are ready: one that is attached in a continuation never runs inside the call. plain: any CR without keys. */
CHECK_HELPER void keys_ready(const struct keys *k, MPI_Request cr, int n, MPI_Request plain)
{
	MPI_Request null = MPI_REQUEST_NULL;

	keys_readies.k = k;
	keys_readies.cr = cr;
	keys_readies.n = n;
	CHECK_OK(MPI_Continue(&null, keys_make_ready, NULL, MPI_STATUS_IGNORE, plain));
}

CHECK_HELPER void keys_signals(int how)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGALRM);
	pthread_sigmask(how, &set, NULL);
}

CHECK_HELPER double keys_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

#endif
