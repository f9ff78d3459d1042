/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1: sends when it is told to. Between messages it is asleep, and outside MPI. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "curve.h"

#define AWAKE_NS 30000u /* before each send, so that no processor is woken from its sleep by sending */
#define NAP_NS 200000u

static double *took;
static size_t took_count, took_room;

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void await(uint64_t ns)
{
	if (bench_now() + AWAKE_NS < ns)
		sleep_until(ns - AWAKE_NS);
	while (bench_now() < ns)
		;
}

static void wait_for_order(struct curve_order *order)
{
	MPI_Request request;
	int done = 0;

	MPI_Irecv(order, sizeof(*order), MPI_BYTE, 0, CURVE_TAG_ORDER, MPI_COMM_WORLD, &request);
	for (;;) {
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (done)
			return;
		sleep_until(bench_now() + NAP_NS);
	}
}

static void send_at(uint64_t ns, bool ring, bool counts)
{
	struct curve_message m;
	uint64_t end;

	await(ns);
	m.sent = bench_now();
	MPI_Send(&m, sizeof(m), MPI_BYTE, 0, CURVE_TAG_DATA, MPI_COMM_WORLD);
	if (ring)
		curve_ring();
	end = bench_now();
	if (!counts)
		return;
	if (took_count == took_room) {
		took_room = took_room ? 2 * took_room : 4096;
		took = realloc(took, took_room * sizeof(*took));
		if (!took)
			exit(1);
	}
	took[took_count++] = (double)(end - m.sent);
}

static void report(void)
{
	struct curve_result r = {.send_us = bench_median(took, took_count) * 1e-3,
				 .send_p99_us = bench_quantile(took, took_count, 0.99) * 1e-3};

	took_count = 0;
	MPI_Send(&r, sizeof(r), MPI_BYTE, 0, CURVE_TAG_RESULT, MPI_COMM_WORLD);
}

void curve_sender(const struct curve_options *o)
{
	uint64_t seed = 7;

	prctl(PR_SET_TIMERSLACK, 1ul);
	for (;;) {
		struct curve_order order;
		uint64_t at;

		wait_for_order(&order);
		if (order.end)
			break;
		if (!order.begin) {
			report();
			continue;
		}
		/* Half to one and a half of the mean between two: in step with no timer. */
		at = order.begin;
		for (uint64_t i = 0; i < order.messages; i++) {
			at += (uint64_t)((i ? 0.5 + bench_random(&seed) : bench_random(&seed)) * (double)order.spacing);
			send_at(at, o->mode->ring, true);
		}
		send_at(order.last, o->mode->ring, false);
	}
	free(took);
}
