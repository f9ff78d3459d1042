/* SPDX-License-Identifier: BSD-3-Clause */
/* needs: templates */
/* ranks: 1 2 */
/*
 * MPI_THREAD_SERIALIZED, and a thread that is not MPI's main thread makes all calls: what it tests and waits for pushes
 * templates there, too. No other thread does.
 */
#include <pthread.h>

#include "template.h"

static MPIX_Gr gr;
static MPI_Request cr;
static atomic_int ran;

static void over(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_EQ(((struct exchange *)data)->done, 3);
	atomic_fetch_add(&ran, 1);
}

static bool test_it(void)
{
	int flag;

	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	return flag;
}

static bool wait_for_it(void)
{
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	return true;
}

static bool test_array(void)
{
	MPI_Request both[2] = {MPI_REQUEST_NULL, cr};
	int flag;

	CHECK_OK(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
	return flag;
}

static bool wait_array(void)
{
	MPI_Request both[2] = {MPI_REQUEST_NULL, cr};

	CHECK_OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
	return true;
}

static bool test_some(void)
{
	int count, index;

	CHECK_OK(MPI_Testsome(1, &cr, &count, &index, MPI_STATUSES_IGNORE));
	return count == 1;
}

static bool wait_any(void)
{
	MPI_Request both[2] = {MPI_REQUEST_NULL, cr};
	int index;

	CHECK_OK(MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE));
	return index == 1;
}

static bool query(void)
{
	int flag;

	CHECK_OK(MPI_Request_get_status(cr, &flag, MPI_STATUS_IGNORE));
	if (flag)
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	return flag;
}

static void *calls(void *arg)
{
	static const struct {
		const char *name;
		bool (*complete)(void);
	} ways[] = {{"MPI_Test", test_it},       {"MPI_Testall", test_array},
		    {"MPI_Testsome", test_some}, {"MPI_Request_get_status", query},
		    {"MPI_Wait", wait_for_it},   {"MPI_Waitall", wait_array},
		    {"MPI_Waitany", wait_any}};

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct exchange e = {.tag = 1 + (int)i, .pieces = 3};
		double end = MPI_Wtime() + 30;
		MPI_Request given; /* e's own is for push_fn */

		check_begin(ways[i].name);
		atomic_store(&ran, 0);
		exchange_begin(gr, &e);
		given = e.request;
		CHECK_OK(MPI_Continue(&given, over, &e, MPI_STATUS_IGNORE, cr));
		while (!ways[i].complete()) {
			if (MPI_Wtime() > end) { /* the other rank waits, too */
				CHECK(!"pushed");
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
		}
		CHECK_EQ(atomic_load(&ran), 1);
		exchange_over(&e);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return arg;
}

static atomic_bool chained_ran;

static void chained(MPI_Status *status, void *data)
{
	(void)status;
	CHECK_EQ(atomic_load(&ran), 1);
	exchange_over(data);
	atomic_store(&chained_ran, true);
}

/*
 * A handler runs the callback, where complete_fn may not be called. The CR is not complete before that has been called:
 * polls see to it, or MPI_Finalize.
 */
static void check_handler(struct exchange *e, bool finalize)
{
	MPI_Request safe = check_cr("mpi_continue_async_signal_safe", "true", NULL, NULL), other = check_plain_cr();
	MPI_Request given, awaited = safe;
	MPIX_Gr unpushed = MPIX_GR_NULL;
	double end = MPI_Wtime() + 30;

	check_begin("in a handler");
	CHECK_OK(MPIX_Gr_init(exchange_start, NULL, exchange_complete, NULL, &unpushed));
	exchange_begin(unpushed, e);
	given = e->request;
	atomic_store(&ran, 0);
	atomic_store(&chained_ran, false);
	CHECK_OK(MPI_Continue(&given, over, e, MPI_STATUS_IGNORE, safe));
	CHECK_OK(MPI_Continue(&awaited, chained, e, MPI_STATUS_IGNORE, other));
	e->pieces = e->done = 3;
	contd_guard_begin();
	CHECK_OK(MPIX_Mark_request_complete(e->request));
	contd_guard_end();
	while (!finalize && !atomic_load(&chained_ran) && MPI_Wtime() < end)
		contd_poll(0);
	if (!finalize) {
		CHECK(atomic_load(&chained_ran));
		CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&safe, MPI_STATUS_IGNORE));
	}
	CHECK_OK(MPI_Request_free(&other));
	CHECK_OK(MPI_Request_free(&safe));
	CHECK_OK(MPIX_Gr_free(&unpushed));
}

int main(int argc, char **argv)
{
	static struct exchange polled = {.tag = 98}, left = {.tag = 99};
	pthread_t thread;
	int failed;

	check_init(&argc, &argv, MPI_THREAD_SERIALIZED);
	gr = exchange_template();
	cr = check_plain_cr();
	if (pthread_create(&thread, NULL, calls, NULL))
		return 1;
	pthread_join(thread, NULL);
	CHECK_OK(MPI_Request_free(&cr));
	CHECK_OK(MPIX_Gr_free(&gr));
	CHECK_EQ(contd_thread_attach(NULL), 0);
	check_handler(&polled, false);
	check_handler(&left, true);
	failed = check_fini();
	return failed || !atomic_load(&chained_ran);
}
