/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The halo exchange, and three ways of learning that a halo has come.
 *
 * MPI calls are not checked: the communicators have MPI's default error handler, which ends the program with a message.
 */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <contd/contd.h>
#include <contd/mpi.h>

#include "heat.h"

#define TAG_HALO 1
#define PROGRESS_NS 100000000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * One set of persistent requests a buffer: while sweep s computes from one, the sends of sweep s - 1 may still be under
 * way in the other.
 */
void sweep_init(struct heat *h)
{
	int count = h->opt->nx + 1; /* a row and the stamp */

	for (int b = 0; b < 2; b++) {
		for (int k = 0; k < h->borders; k++) {
			MPI_Recv_init(h->halo[b][k].in, count, MPI_DOUBLE, h->border[k].peer, TAG_HALO, h->comm,
				      &h->recv[b][k]);
			MPI_Send_init(h->halo[b][k].out, count, MPI_DOUBLE, h->border[k].peer, TAG_HALO, h->comm,
				      &h->send[b][k]);
		}
	}
}

void sweep_fini(struct heat *h)
{
	for (int b = 0; b < 2; b++) {
		for (int k = 0; k < h->borders; k++) {
			MPI_Request_free(&h->recv[b][k]);
			MPI_Request_free(&h->send[b][k]);
		}
	}
}

/* The reaction to a halo; what all three modes have in common. */
static void react(struct halo *halo)
{
	atomic_store_explicit(&halo->reacted_ns, now_ns(), memory_order_relaxed);
	atomic_fetch_add_explicit(&halo->reactions, 1, memory_order_relaxed);
	/* Release: orders the above, and the halo's values, before the flag. Partner: the acquire in row_ready(). */
	atomic_store_explicit(&halo->here, 1, memory_order_release);
}

/*
 * The continuation of the signal mode. It may run in a signal handler at any instruction, so it does only what
 * signal-safety(7) allows: the clock, and lock-free atomics.
 */
static void on_halo(MPI_Status *status, void *data)
{
	(void)status;
	react(data);
}

/*
 * This is all that low latency takes: the info key says that the callback can stand a signal handler, and attaches
 * this thread; the compute regions below say where the handler may drive MPI.
 */
static MPI_Request continuation_request(void)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	MPI_Continue_init(info, &cr);
	MPI_Info_free(&info);
	return cr;
}

static double lost_ns(void)
{
	struct contd_stats stats = {.size = sizeof(stats)};

	if (contd_stats_get(&stats)) {
		fprintf(stderr, "heat: contd_stats_get: %s\n", contd_error_text());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return (double)stats.lost_ns;
}

static void compute(const struct heat *h, int b, int first, int last)
{
	contd_compute_begin();
	grid_compute(h, b, first, last);
	contd_compute_end();
}

/* A rank with a single row needs two halos for it. */
static bool row_ready(struct heat *h, int b, int row)
{
	for (int k = 0; k < h->borders; k++)
		if (h->border[k].row == row && !atomic_load_explicit(&h->halo[b][k].here, memory_order_acquire))
			return false;
	return true;
}

/* Compute the border rows whose halos are here. Tells whether all are computed. */
static bool settle(struct heat *h, int b)
{
	bool all = true;

	for (int k = 0; k < h->borders; k++) {
		int row = h->border[k].row;

		if (!h->settled[k] && row_ready(h, b, row)) {
			compute(h, b, row, row + 1);
			h->settled[k] = true;
		}
		all = all && h->settled[k];
	}
	return all;
}

static void react_some(struct heat *h, int b, int count, const int *indices)
{
	/* MPI_UNDEFINED, which is negative, means that no request is active. */
	for (int i = 0; i < count; i++)
		react(&h->halo[b][indices[i]]);
}

static void poll_some(struct heat *h, int b)
{
	int count, indices[SIDES];

	MPI_Testsome(h->borders, h->recv[b], &count, indices, MPI_STATUSES_IGNORE);
	react_some(h, b, count, indices);
}

static void wait_for_halos(struct heat *h, enum mode mode, MPI_Request *cr, int b)
{
	int count, indices[SIDES];

	switch (mode) {
	case MODE_SIGNAL:
		/* Complete when no continuation is outstanding: at once, if the halos came meanwhile. */
		MPI_Wait(cr, MPI_STATUS_IGNORE);
		settle(h, b);
		break;
	case MODE_POLL:
		while (!settle(h, b)) {
			MPI_Waitsome(h->borders, h->recv[b], &count, indices, MPI_STATUSES_IGNORE);
			react_some(h, b, count, indices);
		}
		break;
	default:
		MPI_Waitall(h->borders, h->recv[b], MPI_STATUSES_IGNORE);
		for (int k = 0; k < h->borders; k++)
			react(&h->halo[b][k]);
		settle(h, b);
	}
}

/*
 * Percent of more work in this sweep: 1/8 to 8/8 of --skew, on half of the ranks in turn. Both halves get the same in
 * the long run, or the ones ahead would do nothing but wait and no halo would come while they compute.
 */
static double more_work(const struct heat *h, int s)
{
	return (h->rank ^ s) & 1 ? 0 : h->opt->skew * ((s / 2 * 5) % 8 + 1) / 8.0;
}

static void start_exchange(struct heat *h, enum mode mode, MPI_Request cr, int b)
{
	size_t nx = (size_t)h->opt->nx;
	double stamp;

	/*
	 * The sends of sweep s - 2: their memory is used again now. The peer has received them, or it could not have
	 * sent what sweep s - 1 has received: what is left to wait for is local. (In the first
	 * sweeps they are inactive.)
	 */
	MPI_Waitall(h->borders, h->send[b], MPI_STATUSES_IGNORE);
	for (int k = 0; k < h->borders; k++) {
		memcpy(h->halo[b][k].out, grid_row(h, b, h->border[k].row), nx * sizeof(double));
		atomic_store_explicit(&h->halo[b][k].here, 0, memory_order_relaxed);
		h->halo[b][k].starts++;
		h->settled[k] = false;
	}
	MPI_Startall(h->borders, h->recv[b]);
	stamp = (double)now_ns();
	for (int k = 0; k < h->borders; k++)
		h->halo[b][k].out[nx] = stamp;
	MPI_Startall(h->borders, h->send[b]);
	if (mode == MODE_SIGNAL)
		/* One each: a continuation for all (MPI_Continueall) would run when the last halo has come. */
		for (int k = 0; k < h->borders; k++)
			MPI_Continue(&h->recv[b][k], on_halo, &h->halo[b][k], MPI_STATUS_IGNORE, cr);
}

/*
 * A halo arrives when its sender starts the send: on one host that takes about a microsecond. But no reaction is
 * due while the receiver has not begun the sweep yet, so the latency counts from `begin` at the earliest. Halos
 * that came after `end`, when the receiver had nothing to do but wait for them, say nothing about reacting while it
 * computes, and are left out.
 */
static double latency_us(const struct heat *h, struct halo *halo, int64_t begin, int64_t end)
{
	int64_t arrived = (int64_t)halo->in[h->opt->nx];
	int64_t reacted = atomic_load_explicit(&halo->reacted_ns, memory_order_relaxed);

	if (arrived >= end)
		return -1;
	if (arrived < begin)
		arrived = begin;
	/* Seen while the exchange was started. */
	return reacted > arrived ? (double)(reacted - arrived) / 1000 : 0;
}

static void sweep(struct heat *h, enum mode mode, MPI_Request *cr, int s, struct outcome *out)
{
	int64_t start = now_ns(), begin, end;
	double more = more_work(h, s) / 100, debt = 0;
	int b = s & 1;

	start_exchange(h, mode, *cr, b);
	begin = now_ns();
	for (int first = h->lo; first < h->hi; first += h->opt->block) {
		int last = first + h->opt->block < h->hi ? first + h->opt->block : h->hi;

		if (mode == MODE_POLL)
			poll_some(h, b);
		if (mode != MODE_WAITALL)
			settle(h, b);
		compute(h, b, first, last);
		/* Rows computed once more come out the same. */
		for (debt += more * (last - first); debt >= 1;) {
			int rows = debt < last - first ? (int)debt : last - first;

			compute(h, b, first, first + rows);
			debt -= rows;
		}
	}
	end = now_ns();
	wait_for_halos(h, mode, cr, b);
	out->sweep_us[s] = (double)(now_ns() - start) / 1000;

	for (int k = 0; k < h->borders; k++) {
		struct halo *halo = &h->halo[b][k];

		out->react_us[SIDES * s + k] = latency_us(h, halo, begin, end);
		/* Counted over the whole run, so that one that comes late is seen as well. */
		out->faults += atomic_load_explicit(&halo->reactions, memory_order_relaxed) != halo->starts;
	}
}

/* At most ten times a second, and for people only. */
static void progress(const struct heat *h, enum mode mode, int done, int64_t *shown_ns)
{
	int64_t now = now_ns();

	if (*shown_ns && now - *shown_ns < PROGRESS_NS)
		return;
	*shown_ns = now;
	fprintf(stderr, "\rheat: %-7s sweep %d of %d", mode_names[mode], done, h->opt->sweeps);
	fflush(stderr);
}

void sweep_run(struct heat *h, enum mode mode, struct outcome *out)
{
	bool show = h->rank == 0 && isatty(STDERR_FILENO);
	MPI_Request cr = MPI_REQUEST_NULL;
	int64_t start, shown_ns = 0;

	grid_reset(h);
	out->lost_ns = 0;
	out->halos = out->reactions = out->faults = 0;
	for (int i = 0; i < SIDES * h->opt->sweeps; i++)
		out->react_us[i] = -1;
	for (int b = 0; b < 2; b++) {
		for (int k = 0; k < h->borders; k++) {
			h->halo[b][k].starts = 0;
			atomic_store(&h->halo[b][k].reactions, 0);
		}
	}
	if (mode == MODE_SIGNAL) {
		cr = continuation_request();
		out->lost_ns = lost_ns();
	}
	MPI_Barrier(h->comm);

	start = now_ns();
	for (int s = 0; s < h->opt->sweeps; s++) {
		if (show)
			progress(h, mode, s, &shown_ns);
		sweep(h, mode, &cr, s, out);
	}
	for (int b = 0; b < 2; b++)
		MPI_Waitall(h->borders, h->send[b], MPI_STATUSES_IGNORE);
	out->wall_ns = (double)(now_ns() - start);

	if (mode == MODE_SIGNAL) {
		out->lost_ns = lost_ns() - out->lost_ns;
		MPI_Request_free(&cr);
	}
	for (int b = 0; b < 2; b++) {
		for (int k = 0; k < h->borders; k++) {
			out->halos += h->halo[b][k].starts;
			out->reactions += atomic_load(&h->halo[b][k].reactions);
		}
	}
	if (show)
		fprintf(stderr, "\r%*s\r", 60, "");
	out->residual = grid_residual(h);
}
