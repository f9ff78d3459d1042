/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/*
 * A thread sits in MPI_Wait while another one attaches and completes operations: in the wait for a request that is
 * received last of all, so that it may be the one that makes progress and finds the completions; and in the wait for
 * the CR itself.
 */
#include "ext.h"

#define ROUNDS 100
#define PARKED 1002

static int count(int rc, void *data)
{
	EXPECT_EQ(rc, MPI_SUCCESS);
	ext_add((int *)data, 1);
	return MPI_SUCCESS;
}

static void *park_in_receive(void *data)
{
	MPI_Request request;

	EXPECT_OK(MPI_Irecv(data, 1, MPI_INT, ext_rank, PARKED, MPI_COMM_WORLD, &request));
	EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
	return NULL;
}

/* One continuation for both requests, then one for each. */
static void rounds(int flags, int attach_flags)
{
	MPI_Request cr, pair[2];

	EXPECT_OK(MPIX_Continue_init(flags, 0, MPI_INFO_NULL, &cr));
	for (int i = 0; i < ROUNDS; i++) {
		int in = -1, out = i, ran = 0;

		EXPECT_OK(MPI_Start(&cr));
		EXPECT_OK(MPI_Irecv(&in, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[0]));
		EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[1]));
		EXPECT_OK(MPIX_Continueall(2, pair, count, &ran, attach_flags, MPI_STATUSES_IGNORE, cr));
		EXPECT(pair[0] == MPI_REQUEST_NULL && pair[1] == MPI_REQUEST_NULL);
		EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		EXPECT_EQ(ext_read(&ran), 1);
		EXPECT_EQ(in, i);

		in = -1;
		EXPECT_OK(MPI_Start(&cr));
		EXPECT_OK(MPI_Irecv(&in, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[0]));
		EXPECT_OK(MPIX_Continue(&pair[0], count, &ran, attach_flags, MPI_STATUS_IGNORE, cr));
		EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[1]));
		EXPECT_OK(MPIX_Continue(&pair[1], count, &ran, attach_flags, MPI_STATUS_IGNORE, cr));
		EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		EXPECT(pair[0] == MPI_REQUEST_NULL && pair[1] == MPI_REQUEST_NULL);
		EXPECT_EQ(ext_read(&ran), 3);
		EXPECT_EQ(in, i);
	}
	EXPECT_OK(MPI_Request_free(&cr));
	EXPECT(cr == MPI_REQUEST_NULL);
}

static void beside_a_receive(void)
{
	int in = -1, out = 7;
	pthread_t thread;

	pthread_create(&thread, NULL, park_in_receive, &in);
	usleep(300000); /* now it is inside, and may own MPI's progress */
	rounds(0, 0);
	rounds(MPIX_CONT_POLL_ONLY, MPIX_CONT_DEFER_COMPLETE);
	EXPECT_OK(MPI_Send(&out, 1, MPI_INT, ext_rank, PARKED, MPI_COMM_WORLD));
	pthread_join(thread, NULL);
	EXPECT_EQ(in, out);
}

struct parked {
	MPI_Request *cr;
	const int *ran;
	int wanted, seen;
};

static void *park_in_cr(void *data)
{
	struct parked *parked = (struct parked *)data;

	EXPECT_OK(MPI_Wait(parked->cr, MPI_STATUS_IGNORE));
	parked->seen = ext_read(parked->ran);
	EXPECT_EQ(parked->seen, parked->wanted);
	return NULL;
}

/* Receives are attached, the thread waits for them, and the main thread sends what they are about, bit by bit. */
static void on_the_cr(int flags)
{
	enum { N = 8 };
	MPI_Request cr, request;

	EXPECT_OK(MPIX_Continue_init(flags, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	for (int i = 0; i < 20; i++) {
		struct parked parked;
		int in[N], ran = 0;
		pthread_t thread;

		for (int k = 0; k < N; k++) {
			in[k] = -1;
			EXPECT_OK(MPI_Irecv(&in[k], 1, MPI_INT, ext_rank, k, MPI_COMM_WORLD, &request));
			EXPECT_OK(MPIX_Continue(&request, count, &ran, 0, MPI_STATUS_IGNORE, cr));
		}
		EXPECT_OK(MPI_Start(&cr));
		parked.cr = &cr;
		parked.ran = &ran;
		parked.wanted = N;
		parked.seen = 0;
		pthread_create(&thread, NULL, park_in_cr, &parked);
		if (i % 4 == 0)
			usleep(20000);
		for (int k = N; k-- > 0;) {
			int out = i * N + k;

			EXPECT_OK(MPI_Send(&out, 1, MPI_INT, ext_rank, k, MPI_COMM_WORLD));
		}
		pthread_join(thread, NULL);
		EXPECT_EQ(ran, N);
		for (int k = 0; k < N; k++)
			EXPECT_EQ(in[k], i * N + k);
	}
	EXPECT_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	ext_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	beside_a_receive();
	on_the_cr(0);
	on_the_cr(MPIX_CONT_POLL_ONLY);
	return ext_fini();
}
