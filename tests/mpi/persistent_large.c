/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * Persistent requests that were made by the calls of MPI 4 with large counts (MPI_Send_init_c and its kin), and
 * partitioned ones, never started: they are inactive, so a continuation runs at once, and the handle stays. MPI itself
 * may say that such a collective is not complete, and the handle may be one that another operation had a moment ago.
 */
#include "check.h"

#if MPI_VERSION >= 4
#define N 4

static int in[64], out[64], root;
static MPI_Count counts[2] = {N, N};
static MPI_Aint places[2] = {0, N}, bytes[2] = {0, N * sizeof(int)};
static MPI_Datatype types[2];
static MPI_Comm ring;

static void count(MPI_Status *status, void *data)
{
	++*(int *)data;
	CHECK(status_is_empty(status));
}

static void ends(MPI_Status *statuses, void *data)
{
	(void)statuses;
	++*(int *)data;
}

/* Where an operation that has ended has just been, so that MPI gives its handle again. */
static void some_operations(void)
{
	MPI_Request r[2];

	for (int i = 0; i < 8; i++) {
		MPI_Irecv(in, N, MPI_INT, 0, 5, MPI_COMM_SELF, &r[0]);
		MPI_Isend(out, N, MPI_INT, 0, 5, MPI_COMM_SELF, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	}
}

static void never_started(const char *name, MPI_Request r)
{
	MPI_Request same = r, cr = check_plain_cr();
	static int runs;
	MPI_Status status;
	int flag = 0;

	check_begin(name);
	runs = 0;
	status_poison(&status);
	CHECK_OK(MPI_Continue(&r, count, &runs, &status, cr));
	for (int i = 0; i < 100 && !flag; i++)
		CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_EQ(runs, 1);
	CHECK(r == same);
	if (r != same || runs != 1)
		return; /* it is lost, or waits for ever */
	CHECK_OK(MPI_Request_free(&r));
	CHECK_OK(MPI_Request_free(&cr));
}

#define TRY(name, ...) \
	do { \
		MPI_Request made; \
\
		some_operations(); \
		CHECK_OK(MPI_##name(__VA_ARGS__, &made)); \
		never_started(#name, made); \
	} while (0)
#define END MPI_COMM_WORLD, MPI_INFO_NULL

static void messages(void)
{
	TRY(Send_init_c, out, N, MPI_INT, root, 1, MPI_COMM_WORLD);
	TRY(Bsend_init_c, out, N, MPI_INT, root, 1, MPI_COMM_WORLD);
	TRY(Ssend_init_c, out, N, MPI_INT, root, 1, MPI_COMM_WORLD);
	TRY(Rsend_init_c, out, N, MPI_INT, root, 1, MPI_COMM_WORLD);
	TRY(Recv_init_c, in, N, MPI_INT, root, 1, MPI_COMM_WORLD);
	TRY(Psend_init, out, 1, N, MPI_INT, root, 3, MPI_COMM_WORLD, MPI_INFO_NULL);
	TRY(Precv_init, in, 1, N, MPI_INT, root, 3, MPI_COMM_WORLD, MPI_INFO_NULL);
}

static void collectives(void)
{
	TRY(Allgather_init_c, out, N, MPI_INT, in, N, MPI_INT, END);
	TRY(Allgatherv_init_c, out, N, MPI_INT, in, counts, places, MPI_INT, END);
	TRY(Allreduce_init_c, out, in, N, MPI_INT, MPI_SUM, END);
	TRY(Alltoall_init_c, out, N, MPI_INT, in, N, MPI_INT, END);
	TRY(Alltoallv_init_c, out, counts, places, MPI_INT, in, counts, places, MPI_INT, END);
	TRY(Alltoallw_init_c, out, counts, bytes, types, in, counts, bytes, types, END);
	TRY(Bcast_init_c, in, N, MPI_INT, root, END);
	TRY(Exscan_init_c, out, in, N, MPI_INT, MPI_SUM, END);
	TRY(Gather_init_c, out, N, MPI_INT, in, N, MPI_INT, root, END);
	TRY(Gatherv_init_c, out, N, MPI_INT, in, counts, places, MPI_INT, root, END);
	TRY(Reduce_init_c, out, in, N, MPI_INT, MPI_SUM, root, END);
	TRY(Reduce_scatter_init_c, out, in, counts, MPI_INT, MPI_SUM, END);
	TRY(Reduce_scatter_block_init_c, out, in, N, MPI_INT, MPI_SUM, END);
	TRY(Scan_init_c, out, in, N, MPI_INT, MPI_SUM, END);
	TRY(Scatter_init_c, out, N, MPI_INT, in, N, MPI_INT, root, END);
	TRY(Scatterv_init_c, out, counts, places, MPI_INT, in, N, MPI_INT, root, END);
}

#undef END
#define END ring, MPI_INFO_NULL

static void neighbours(void)
{
	TRY(Neighbor_allgather_init_c, out, N, MPI_INT, in, N, MPI_INT, END);
	TRY(Neighbor_allgatherv_init_c, out, N, MPI_INT, in, counts, places, MPI_INT, END);
	TRY(Neighbor_alltoall_init_c, out, N, MPI_INT, in, N, MPI_INT, END);
	TRY(Neighbor_alltoallv_init_c, out, counts, places, MPI_INT, in, counts, places, MPI_INT, END);
	TRY(Neighbor_alltoallw_init_c, out, counts, bytes, types, in, counts, bytes, types, END);
}

/* Started, and attached to: a message and a broadcast, each twice. */
static void started(void)
{
	MPI_Request r[3], cr = check_plain_cr();
	int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;

	check_begin("started");
	CHECK_OK(MPI_Recv_init_c(in, N, MPI_INT, previous, 2, MPI_COMM_WORLD, &r[0]));
	CHECK_OK(MPI_Send_init_c(out, N, MPI_INT, next, 2, MPI_COMM_WORLD, &r[1]));
	CHECK_OK(MPI_Bcast_init_c(in + N, N, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]));
	for (int round = 1; round <= 2; round++) {
		MPI_Request same[3] = {r[0], r[1], r[2]};
		int runs = 0;

		out[0] = 10 * round + check_rank;
		in[N] = check_rank == root ? round : 0;
		CHECK_OK(MPI_Startall(3, r));
		CHECK_OK(MPI_Continueall(3, r, ends, &runs, MPI_STATUSES_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, 1);
		CHECK_EQ(in[0], 10 * round + previous);
		CHECK_EQ(in[N], round);
		for (int i = 0; i < 3; i++)
			CHECK(r[i] == same[i]);
	}
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Request_free(&r[i]));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	int periodic = 1;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	types[0] = types[1] = MPI_INT;
	MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
	messages();
	collectives();
	neighbours();
	started();
	MPI_Comm_free(&ring);
	return check_fini();
}
#else
int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	fprintf(stderr, "skipped: this MPI has no large counts\n");
	MPI_Finalize();
	return CHECK_SKIPPED;
}
#endif
