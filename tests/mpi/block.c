/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo CONTD_BELL=0 CONTD_TICK_MIN_NS=1000000000 CONTD_TICK_MAX_NS=10000000000 CONTD_OVERHEAD_PERCENT=50 */
/* also: multiple BLOCK_LEVEL=multiple OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo CONTD_BELL=0 CONTD_TICK_MIN_NS=1000000000 CONTD_TICK_MAX_NS=10000000000 CONTD_OVERHEAD_PERCENT=50 */
/* not on mpich: its messages between ranks of one host go by shared memory */
/*
 * Agent "block", as between hosts: the messages go by TCP, no peer rings, ticks come every second at most. What makes a
 * rank react that only computes is the daemon, asleep on MPI's sockets: it interrupts the thread that is in a region
 * (thread levels below MPI_THREAD_MULTIPLE), or drives MPI itself.
 */
#include "check.h"

#define MESSAGES 8
/* on a machine with nothing to spare a tick may come before the daemon gets a processor, but not always */
#define ROUNDS 5

static MPI_Request cr;
static int in, level;
static atomic_int arrived;

static void post(void);

/* Runs in the region's handler, or on the daemon: may call MPI. */
static void answer(MPI_Status *status, void *data)
{
	(void)status;
	(void)data;
	CHECK_EQ(in, atomic_load(&arrived));
	MPI_Send(&in, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
	if (atomic_fetch_add(&arrived, 1) + 1 < MESSAGES)
		post();
}

static void post(void)
{
	MPI_Request receive;

	CHECK_OK(MPI_Irecv(&in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &receive));
	CHECK_OK(MPI_Continue(&receive, answer, NULL, MPI_STATUS_IGNORE, cr));
}

/* Was it mostly the daemon's doing? */
static int compute_and_react(void)
{
	struct contd_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};

	atomic_store(&arrived, 0);
	CHECK_EQ(contd_stats_get(&before), 0);
	post();
	CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
	contd_compute_begin();
	while (atomic_load_explicit(&arrived, memory_order_relaxed) < MESSAGES)
		;
	contd_compute_end();
	CHECK_EQ(contd_stats_get(&after), 0);
	CHECK_EQ(after.run_daemon - before.run_daemon, 0);
	CHECK(after.run_region - before.run_region > 0);
	CHECK_EQ(after.rings, 0);
	/* A tick, once a second, finds one message at most. */
	return after.notifications - before.notifications > MESSAGES / 4;
}

static void send_one_after_the_other(void)
{
	CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = 0; i < MESSAGES; i++) {
		int back = -1;

		CHECK_OK(MPI_Send(&i, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
		CHECK_OK(MPI_Recv(&back, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(back, i);
	}
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("BLOCK_LEVEL");
	MPI_Info info;
	int woken = 0;

	level = wanted ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
	check_init(&argc, &argv, level);
	CHECK_OK(MPI_Info_create(&info));
	CHECK_OK(MPI_Info_set(info, "contd_agent", "block"));
	CHECK_OK(MPI_Continue_init(info, &cr));
	CHECK_OK(MPI_Info_free(&info));
	CHECK_EQ(contd_thread_attach(NULL), 0);
	for (int round = 0; round < ROUNDS && !woken; round++) {
		if (check_rank == 0)
			woken = compute_and_react();
		else
			send_one_after_the_other();
		CHECK_OK(MPI_Bcast(&woken, 1, MPI_INT, 0, MPI_COMM_WORLD));
	}
	CHECK(woken);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&cr));
	return check_fini();
}
