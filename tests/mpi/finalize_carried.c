/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/*
 * Continuations of plain operations that wait, below MPI_THREAD_MULTIPLE: the native backend gives them no slot. A
 * callback that calls MPI_Finalize waits for one of the same request that another thread runs. Receives that never
 * complete count as cancelled, and for contd_fini().
 */
#include <pthread.h>

#include "check.h"

#define NEVER 3

static MPI_Request cr;
static struct contd_event event;
static atomic_int slow_in, slow_done, finalized;

static int never(int rc, void *data)
{
	(void)rc;
	(void)data;
	CHECK(!"a receive that nobody sends to runs its continuation");
	return MPI_SUCCESS;
}

static void slow(int status, void *data)
{
	(void)status;
	(void)data;
	atomic_store(&slow_in, 1);
	usleep(300000);
	atomic_store(&slow_done, 1);
}

static void *polls(void *data)
{
	(void)data;
	contd_poll(1);
	return NULL;
}

static int finalizes(int rc, void *data)
{
	(void)rc;
	(void)data;
	CHECK(!atomic_load(&slow_done));
	MPI_Finalize();
	CHECK(atomic_load(&slow_done));
	atomic_store(&finalized, 1);
	return MPI_SUCCESS;
}

static void leave_some(void)
{
	static int never_sent[NEVER];
	MPI_Request leaves, request;

	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &leaves));
	CHECK_OK(MPI_Start(&leaves));
	for (int i = 0; i < NEVER; i++) {
		CHECK_OK(MPI_Irecv(&never_sent[i], 1, MPI_INT, 0, 1 + i, MPI_COMM_SELF, &request));
		CHECK_OK(MPIX_Continue(&request, never, NULL, 0, MPI_STATUS_IGNORE, leaves));
	}
}

static void ends(void)
{
	static int sent;
	struct contd_event *events[] = {&event};
	struct contd_stats stats = {.size = sizeof(stats)};
	MPI_Request request;
	pthread_t thread;
	int flag;

	leave_some();
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPI_Irecv(&sent, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
	CHECK_OK(MPIX_Continue(&request, finalizes, NULL, 0, MPI_STATUS_IGNORE, cr));
	contd_event_init(&event);
	CHECK(contd_event_continue(1, events, slow, NULL, contd_mpi_group(cr), NULL) >= 0);
	contd_event_complete(&event, 0);
	CHECK_EQ(pthread_create(&thread, NULL, polls, NULL), 0);
	while (!atomic_load(&slow_in))
		usleep(100);
	MPI_Send(&sent, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
	while (!atomic_load(&finalized))
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	pthread_join(thread, NULL);
	CHECK_EQ(contd_stats_get(&stats), 0);
	CHECK_EQ(stats.registered, stats.run + stats.cancelled);
	CHECK_EQ(stats.cancelled, NEVER);
}

int main(int argc, char **argv)
{
	int value = 0;

	setenv("CONTD_FINALIZE", "alone", 1);
	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	CHECK_EQ(contd_init(NULL), 0);
	check_sum();
	check_begin("MPI_Finalize");
	if (check_rank == 0) {
		ends();
	} else {
		MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
		leave_some();
		MPI_Finalize();
		CHECK_EQ(contd_fini(), NEVER);
	}
	return atomic_load(&check_failures) != 0;
}
