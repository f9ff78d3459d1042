/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* not on portable: rings are the same with each backend */
/* one host: rings reach no other */
/*
 * contd ends in a peer and begins again. While a thread finds that the peer's bell is no more, another finds the peer
 * by its new one: it must not be taken for ended.
 */
#include "race.h"
#include "mpi/ring.h"

static struct contd__place *peer;

/* The other thread's part, in this one. */
static void finds_it_again(void)
{
	CHECK(contd__ring_ended(peer));
	while (!contd__ring_world(1))
		usleep(1000);
}

static void listen_as_1(void)
{
	struct contd_config config = {.size = sizeof(config), .bell = CONTD_BELL_ON};
	char job[CONTD_JOB_TEXT];

	contd__mpi_job(job);
	CHECK_EQ(contd_init(&config), 0);
	CHECK_EQ(contd_bell_listen(job, 1), 0);
}

static void end_and_listen_again(void)
{
	listen_as_1();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(contd_fini(), 0);
	listen_as_1();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(contd_fini(), 0);
}

static void look(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	while (!(peer = contd__ring_find(1, MPI_COMM_WORLD)))
		usleep(1000);
	CHECK(!contd__ring_ended(peer));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	point_at("ring_not_there", finds_it_again);
	CHECK(!contd__ring_ended(peer));
	point_off();
	CHECK(!contd__ring_ended(peer));
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("a peer that begins again");
	if (check_rank == 0)
		look();
	else
		end_and_listen_again();
	return check_fini();
}
