/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 */
/* environment: CONTD_TICK_MIN_NS=50000 CONTD_TICK_MAX_NS=10000000000 CONTD_OVERHEAD_PERCENT=2 */
/*
 * A long push does the program's work: the overhead budget is not for that. If it were, an interval of fifty times what
 * a push takes would follow.
 */
#include <time.h>

#include "check.h"

#define PUSHES 300
#define PUSH_NS 1000000ull
#define TICK_MOST_NS (20 * PUSH_NS)

static atomic_int pushes;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int start(void *data)
{
	(void)data;
	return MPI_SUCCESS;
}

static int push(void *data)
{
	uint64_t begin = now_ns();

	(void)data;
	while (now_ns() - begin < PUSH_NS)
		;
	atomic_fetch_add(&pushes, 1);
	return MPI_SUCCESS;
}

static int complete(void *data, MPI_Status *status)
{
	(void)data, (void)status;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	struct contd_stats stats = {.size = sizeof(stats)};
	MPI_Request request;
	MPIX_Gr gr;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	check_begin("in a region");
	CHECK_OK(MPIX_Gr_init(start, push, complete, NULL, &gr)); /* starts contd */
	CHECK_EQ(contd_thread_attach(NULL), 0);
	CHECK_OK(MPIX_Gr_begin(gr, NULL, &request));
	CHECK_OK(MPIX_Gr_free(&gr));
	contd_compute_begin();
	while (atomic_load(&pushes) < PUSHES) /* the watchdog ends it otherwise */
		;
	CHECK_EQ(contd_stats_get(&stats), 0);
	contd_compute_end();
	CHECK_EQ(contd_thread_detach(), 0);
	CHECK(stats.tick_ns > 0);
	CHECK(stats.tick_ns < TICK_MOST_NS);
	CHECK_OK(MPIX_Mark_request_complete(request));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	return check_fini();
}
