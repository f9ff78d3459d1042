/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One group, and one continuation, for MPI requests, fabric operations, events and a memory word together. Rank 0 has an
 * endpoint of libfabric's that sends to itself; rank 1 sends by MPI.
 */
#include <errno.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <contd/fabric.h>

#include "../mpi/check.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_ep *endpoint;
static struct contd_fabric *queue;
static fi_addr_t self;
static int runs, last_status;

static void on_all(int status, void *data)
{
	(void)data;
	last_status = status;
	runs++;
}

static void on_one(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

/* false: this machine's libfabric has no such provider. */
static bool open_fabric(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct contd_fabric_attr attr = {.size = sizeof(attr), .threading = FI_THREAD_SAFE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr how = {.type = FI_AV_MAP};
	char name[256];
	size_t size = sizeof(name);

	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	if (fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, 0, hints, &info))
		return false;
	CHECK_EQ(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	CHECK_EQ(fi_domain(fabric, info, &domain, NULL), 0);
	CHECK_EQ(fi_av_open(domain, &how, &av, NULL), 0);
	attr.fabric = fabric;
	CHECK_EQ(contd_fabric_open(domain, &cq, &attr, &queue), 0);
	CHECK_EQ(fi_endpoint(domain, info, &endpoint, NULL), 0);
	CHECK_EQ(fi_ep_bind(endpoint, &contd_fabric_cq(queue)->fid, FI_SEND | FI_RECV), 0);
	CHECK_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
	CHECK_EQ(fi_enable(endpoint), 0);
	CHECK_EQ(fi_getname(&endpoint->fid, name, &size), 0);
	CHECK_EQ(fi_av_insert(av, name, 1, &self, 0, NULL), 1);
	fi_freeinfo(hints);
	return true;
}

static void close_fabric(void)
{
	CHECK_EQ(fi_close(&endpoint->fid), 0);
	CHECK_EQ(contd_fabric_close(queue), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	CHECK_EQ(fi_close(&domain->fid), 0);
	CHECK_EQ(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

static void fabric_receive(struct contd_fabric_op *op, int *to)
{
	CHECK_EQ(contd_fabric_begin(queue, op), 0);
	CHECK_EQ(fi_trecv(endpoint, to, sizeof(*to), NULL, FI_ADDR_UNSPEC, 1, 0, op), 0);
}

static void fabric_send(int value)
{
	ssize_t rc;

	while ((rc = fi_tinject(endpoint, &value, sizeof(value), self, 1)) == -FI_EAGAIN)
		CHECK(contd_poll(0) >= 0);
	CHECK_EQ(rc, 0);
}

static void mpi_go(void)
{
	int go = 1;

	CHECK_OK(MPI_Send(&go, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
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
			mpi_go();
		else if (which == 1)
			CHECK_EQ(contd_event_complete(&event[1], 0), 0);
		else
			fabric_send(17);
		while (!contd_event_is_complete(all[which]))
			CHECK(contd_poll(0) >= 0);
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
	int from_mpi = 0, from_fabric = 0, flag = 1;

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
	mpi_go();
	CHECK_EQ(contd_event_complete(&event, 0), 0);
	__atomic_store_n(&memory, 1, __ATOMIC_RELEASE);
	while (runs < 3)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(flag, 0);
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
	mpi_go();
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
	int there = 1, go, value = 100;

	check_init(&argc, &argv, MPI_THREAD_FUNNELED);
	if (check_rank == 0) {
		CHECK_EQ(contd_init(NULL), 0);
		there = open_fabric();
	}
	CHECK_OK(MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD));
	if (!there) {
		if (check_rank == 0)
			fprintf(stderr, "skipped: libfabric has no provider tcp;ofi_rxm here\n");
		MPI_Finalize();
		return CHECK_SKIPPED;
	}
	if (check_rank == 0) {
		CHECK_EQ(contd_group_create(NULL, &group), 0);
		for (int last = 0; last < 3; last++)
			one_continuation(group, last);
		one_request();
		computing(group);
		CHECK_EQ(contd_group_destroy(group), 0);
		close_fabric();
		CHECK_EQ(contd_fini(), 0);
	} else {
		for (int i = 0; i < 5; i++) {
			CHECK_OK(MPI_Recv(&go, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			CHECK_OK(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
		}
	}
	return check_fini();
}
