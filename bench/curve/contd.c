/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways with contd: the receives of a slice are posted and have their continuations; nothing else is called. */
#include <contd/mpi.h>

#include "curve.h"

#ifndef CURVE_HAVE_CHECKPOINT
#define CURVE_HAVE_CHECKPOINT 0
#endif
#ifndef CURVE_HAVE_RING
#define CURVE_HAVE_RING 0
#endif

static const struct curve_mode *mode;
static MPI_Request cr = MPI_REQUEST_NULL;

static void start(const struct curve_mode *m)
{
	MPI_Info info;

	mode = m;
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	if (m->any)
		MPI_Info_set(info, "mpi_continue_thread", "any");
	MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
}

static void arrived(MPI_Status *status, void *data)
{
	struct curve_arrival *a = data;

	(void)status;
	__atomic_store_n(&a->seen, bench_now(), __ATOMIC_RELAXED);
}

static void post(void)
{
	for (unsigned i = 0; i < curve_arrival_count; i++) {
		MPI_Request request;

		MPI_Irecv(&curve_arrivals[i].message, sizeof(struct curve_message), MPI_BYTE, 1, CURVE_TAG_DATA,
			  MPI_COMM_WORLD, &request);
		MPI_Continue(&request, arrived, &curve_arrivals[i], MPI_STATUS_IGNORE, cr);
	}
}

static void look(void)
{
#if CURVE_HAVE_CHECKPOINT
	contd_checkpoint();
#endif
}

static uint64_t compute(const struct curve_kernel *kernel, uint64_t chunk, uint64_t end)
{
	uint64_t done;

	if (mode->how == CURVE_PLAIN)
		return curve_compute(kernel, chunk, end);
	contd_compute_begin();
	if (mode->how == CURVE_CHECKPOINT)
		done = curve_compute_looking(kernel, chunk, end, mode->every, look);
	else
		done = curve_compute(kernel, chunk, end);
	contd_compute_end();
	return done;
}

static double interval_us(void)
{
	struct contd_stats s = {.size = sizeof(s)};

	bench_check(contd_stats_get(&s), "contd_stats_get");
	return (double)s.tick_ns * 1e-3;
}

static void finish(void)
{
	MPI_Wait(&cr, MPI_STATUS_IGNORE);
}

static void stop(void)
{
	MPI_Request_free(&cr);
}

const struct curve_way *curve_way_contd(const struct curve_mode *m)
{
	static const struct curve_way way = {start, post, compute, interval_us, finish, stop};

	return curve_uses_contd(m) ? &way : NULL;
}

void curve_ring(void)
{
#if CURVE_HAVE_RING
	contd_mpi_ring(0, MPI_COMM_WORLD);
#endif
}
