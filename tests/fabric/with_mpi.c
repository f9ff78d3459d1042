/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One group, and one continuation, for MPI requests, fabric operations, events and a memory word together. Rank 0 has
 * an endpoint of libfabric's that sends to itself; rank 1 sends by MPI.
 */
#include "fabric.h"
#undef CHECK /* fabric.h's end the process; those of MPI programs are counted */
#include "../mpi/mixed.h"

static struct fabric f;
static struct contd_fabric_queue *queue;

static void fabric_receive(struct contd_fabric_op *op, int *to)
{
	CHECK_EQ(contd_fabric_begin(queue, op), 0);
	POST(fi_trecv(f.ep, to, sizeof(*to), fabric_desc, FI_ADDR_UNSPEC, 1, 0, op));
}

static void fabric_send(int value)
{
	POST(fi_tinject(f.ep, &value, sizeof(value), f.peer, 1));
}

/* In which order they complete: each of the three last, in turn. */
static void one_continuation(struct contd_group *group, int last)
{
	struct contd_event event[2], *all[3] = {&event[0], &event[1], NULL};
	struct contd_fabric_op op;
	MPI_Request request;
	int from_mpi = 0, from_fabric = 0;

	check_begin("one continuation");
	runs = 0;
	CHECK_OK(MPI_Irecv(&from_mpi, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
	CHECK_OK(contd_mpi_event(&request, MPI_STATUS_IGNORE, &event[0]));
	contd_event_init(&event[1]);
	fabric_receive(&op, &from_fabric);
	all[2] = &op.event;
	CHECK_EQ(contd_event_continue(3, all, on_all, NULL, group, NULL), 0);
	for (int i = 1; i <= 3; i++) {
		int which = (last + i) % 3;

		CHECK_EQ(runs, 0);
		if (which == 0)
			go(1);
		else if (which == 1)
			CHECK_EQ(contd_event_complete(&event[1], 0), 0);
		else
			fabric_send(17);
		poll_until_complete(all[which]);
	}
	CHECK_EQ(contd_group_wait(group, 30000000000), 0);
	CHECK_EQ(runs, 1);
	CHECK_EQ(last_status, 0);
	CHECK_EQ(from_mpi, 100);
	CHECK_EQ(from_fabric, 17);
	CHECK_EQ(op.tag, 1);
	CHECK_EQ(op.length, sizeof(int));
}

/* A continuation request that all of them belong to. */
static void one_request(void)
{
	static uint64_t memory __attribute__((aligned(8)));
	struct contd_word word = {.address = &memory, .value = 1, .op = CONTD_WORD_EQ};
	struct contd_event event, *one = &event;
	struct contd_fabric_op op;
	struct contd_group *group;
	MPI_Request cr, request;
	int from_mpi = 0, from_fabric = 0;

	check_begin("one request");
	runs = 0;
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	group = contd_mpi_group(cr);
	CHECK_OK(MPI_Irecv(&from_mpi, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
	CHECK_OK(MPI_Continue(&request, on_one, NULL, MPI_STATUS_IGNORE, cr));
	contd_event_init(&event);
	CHECK_EQ(contd_event_continue(1, &one, on_all, NULL, group, NULL), 0);
	CHECK_EQ(contd_word_continue(&word, on_all, NULL, group, NULL), 0);
	fabric_receive(&op, &from_fabric);
	CHECK_EQ(contd_fabric_continue(&op, on_all, NULL, group), 0);
	CHECK_EQ(contd_group_outstanding(group), 4);
	go(1);
	CHECK_EQ(contd_event_complete(&event, 0), 0);
	__atomic_store_n(&memory, 1, __ATOMIC_RELEASE);
	test_until(&cr, 3);
	fabric_send(18);
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(runs, 4);
	CHECK_EQ(from_mpi, 100);
	CHECK_EQ(from_fabric, 18);
	CHECK_OK(MPI_Request_free(&cr));
}

/* A region's handler drives both. */
static void computing(struct contd_group *group)
{
	struct contd_event event, *all[2] = {&event, NULL};
	struct contd_fabric_op op;
	MPI_Request request;
	int from_mpi = 0, from_fabric = 0;

	check_begin("computing");
	runs = 0;
	CHECK_EQ(contd_thread_attach(NULL), 0);
	CHECK_OK(MPI_Irecv(&from_mpi, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
	CHECK_OK(contd_mpi_event(&request, MPI_STATUS_IGNORE, &event));
	fabric_receive(&op, &from_fabric);
	all[1] = &op.event;
	CHECK_EQ(contd_event_continue(2, all, on_all, NULL, group, NULL), 0);
	go(1);
	fabric_send(19);
	contd_compute_begin();
	while (!__atomic_load_n(&runs, __ATOMIC_ACQUIRE))
		;
	contd_compute_end();
	CHECK_EQ(from_mpi, 100);
	CHECK_EQ(from_fabric, 19);
	CHECK_EQ(contd_thread_detach(), 0);
}

int main(int argc, char **argv)
{
	struct contd_group *group;
	int there = 1;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	if (check_rank == 0) {
		struct fi_info *info = fabric_info("tcp", FI_EP_RDM, FI_TAGGED, 0, 0);

		there = info != NULL;
		fi_freeinfo(info);
	}
	CHECK_OK(MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD));
	if (!there) {
		if (check_rank == 0)
			fprintf(stderr, "skipped: libfabric has no provider tcp;ofi_rxm here\n");
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	if (check_rank == 0) {
		fabric_open(&f, "tcp", FI_TAGGED);
		group = fabric_begin_contd();
		queue = fabric_queue(&f, NULL, 0, 0);
		for (int last = 0; last < 3; last++)
			one_continuation(group, last);
		one_request();
		computing(group);
		fabric_close_queue(&f, queue);
		fabric_end_contd(group);
		fabric_close(&f);
	} else {
		for (int i = 0; i < 5; i++)
			send_when_told(1, 0, 100);
	}
	return check_fini();
}
