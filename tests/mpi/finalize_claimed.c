/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * MPI_Finalize, while another thread has cleared the ready bit of a continuation and not claimed it yet. Nothing is
 * ready then, and nothing runs, but the continuation is about to. MPI_Finalize waits until it has run.
 */
#include "race.h"

#define TAG 76
#define HELD_UP 400000 /* microseconds: longer than MPI_Finalize waits for what may never come */

static atomic_int runs, cleared;

static void count(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	atomic_fetch_add(&runs, 1);
}

/* Of the other thread only: the main thread finds nothing that it could claim. */
static void hold_up(void)
{
	atomic_store(&cleared, 1);
	usleep(HELD_UP);
}

static void poll_once(void)
{
	contd_poll(1);
}

int main(int argc, char **argv)
{
	MPI_Request cr, r;
	MPI_Info info;
	int value = 1;

	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_begin("before MPI_Finalize");
	side_create();
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_enqueue_complete", "true");
	CHECK_OK(MPI_Continue_init(info, &cr));
	MPI_Info_free(&info);
	MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_SELF, &r);
	CHECK_OK(MPI_Continue(&r, count, NULL, MPI_STATUS_IGNORE, cr));
	CHECK_EQ(atomic_load(&runs), 0);
	point_at("claim_cleared", hold_up);
	side_start(poll_once);
	while (!atomic_load(&cleared))
		usleep(20);
	check_begin("MPI_Finalize");
	MPI_Finalize();
	check_begin("after MPI_Finalize");
	CHECK_EQ(atomic_load(&runs), 1);
	point_off();
	side_join();
	return atomic_load(&check_failures) != 0;
}
