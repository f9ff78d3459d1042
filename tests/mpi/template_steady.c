/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 */
/* environment: CONTD_TICK_MIN_NS=50000 CONTD_TICK_MAX_NS=10000000000 CONTD_OVERHEAD_PERCENT=50 */
/*
 * Looks that find nothing become rare, but not while a template has something to push: with an interval that doubles
 * after 64 of them, and may grow to ten seconds, so many pushes would take days.
 */
#include "check.h"

#define PUSHES 2000

static atomic_int pushes;

static int start(void *data)
{
	(void)data;
	return MPI_SUCCESS;
}

static int push(void *data)
{
	(void)data;
	atomic_fetch_add(&pushes, 1);
	return MPI_SUCCESS;
}

static int complete(void *data, MPI_Status *status)
{
	(void)data, (void)status;
	return MPI_SUCCESS;
}

static void with(const char *agent, bool region)
{
	MPI_Request request;
	MPIX_Gr gr;

	check_begin(agent);
	atomic_store(&pushes, 0);
	CHECK_OK(MPIX_Gr_init(start, push, complete, NULL, &gr)); /* starts contd */
	CHECK_EQ(region ? contd_thread_attach(NULL) : contd_daemon_start(NULL), 0);
	CHECK_OK(MPIX_Gr_begin(gr, NULL, &request));
	CHECK_OK(MPIX_Gr_free(&gr));
	if (region)
		contd_compute_begin();
	while (atomic_load(&pushes) < PUSHES) /* the watchdog ends it otherwise */
		;
	if (region)
		contd_compute_end();
	CHECK_EQ(region ? contd_thread_detach() : contd_daemon_stop(), 0);
	CHECK_OK(MPIX_Mark_request_complete(request));
	CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	with("in a region", true);
	with("on the daemon", false);
	return check_fini();
}
