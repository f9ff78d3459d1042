/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* The calls of mpi-ext.h as programs for the branch make them, on one thread: each function is one such use. */
#include "ext.h"

static int count(int rc, void *data)
{
	EXPECT_EQ(rc, MPI_SUCCESS);
	ext_add((int *)data, 1);
	return MPI_SUCCESS;
}

static int tested(MPI_Request *cr)
{
	int flag = -1;

	EXPECT_OK(MPI_Test(cr, &flag, MPI_STATUS_IGNORE));
	EXPECT(*cr != MPI_REQUEST_NULL);
	return flag;
}

static MPI_Request made(int flags, int max_poll)
{
	MPI_Request cr = MPI_REQUEST_NULL;

	EXPECT_OK(MPIX_Continue_init(flags, max_poll, MPI_INFO_NULL, &cr));
	EXPECT(cr != MPI_REQUEST_NULL);
	return cr;
}

static void freed(MPI_Request *cr)
{
	EXPECT_OK(MPI_Request_free(cr));
	EXPECT(*cr == MPI_REQUEST_NULL);
}

/* Attached first, started then. */
static void deferred_start(void)
{
	MPI_Request cr = made(0, 0), pair[2];
	int in = -1, out = 5, ran = 0;
	MPI_Status status;

	EXPECT_OK(MPI_Irecv(&in, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[0]));
	EXPECT_OK(MPIX_Continue(&pair[0], count, &ran, 0, MPI_STATUS_IGNORE, cr));
	EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[1]));
	EXPECT_OK(MPIX_Continue(&pair[1], count, &ran, 0, MPI_STATUS_IGNORE, cr));
	EXPECT(pair[0] == MPI_REQUEST_NULL && pair[1] == MPI_REQUEST_NULL);
	/* Inactive is complete, with the empty status, and nothing runs. */
	for (int i = 0; i < 5; i++) {
		int flag = 0, cancelled = 1, elements = -1;

		EXPECT_OK(MPI_Test(&cr, &flag, &status));
		EXPECT_EQ(flag, 1);
		EXPECT_OK(MPI_Test_cancelled(&status, &cancelled));
		EXPECT_OK(MPI_Get_count(&status, MPI_INT, &elements));
		EXPECT(!cancelled && elements == 0);
		EXPECT(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
	}
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 0);
	EXPECT_OK(MPI_Start(&cr));
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 2);
	EXPECT_EQ(in, out);
	/* Empty rounds. */
	for (int i = 0; i < 3; i++) {
		EXPECT_OK(MPI_Start(&cr));
		EXPECT_EQ(tested(&cr), 1);
	}
	freed(&cr);
}

/* MPI_Test on the inactive CR, MPI_Start where it says complete: for as long as there is something to do. */
static void test_and_start(void)
{
	MPI_Request cr = made(0, 0), pair[2];
	int ran = 0, starts = 0;

	for (int i = 0; i < 100; i++) {
		int in = -1, out = i;

		EXPECT_OK(MPI_Irecv(&in, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[0]));
		EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 1, MPI_COMM_WORLD, &pair[1]));
		EXPECT_OK(MPIX_Continueall(2, pair, count, &ran, 0, MPI_STATUSES_IGNORE, cr));
		while (ran == i) {
			if (tested(&cr)) {
				EXPECT_OK(MPI_Start(&cr));
				starts++;
			}
		}
		EXPECT_EQ(ran, i + 1);
		EXPECT_EQ(in, i);
	}
	EXPECT(starts > 0);
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	freed(&cr);
}

/* Each continuation attaches the next one; the CR is complete when the last has run. */
struct chain {
	MPI_Request cr;
	int in, out, left, flags, ran;
};

static int link_run(int rc, void *data);

static void link_attach(struct chain *chain)
{
	MPI_Request pair[2];

	chain->in = -1;
	chain->out = chain->left;
	EXPECT_OK(MPI_Irecv(&chain->in, 1, MPI_INT, ext_rank, 2, MPI_COMM_WORLD, &pair[0]));
	EXPECT_OK(MPI_Isend(&chain->out, 1, MPI_INT, ext_rank, 2, MPI_COMM_WORLD, &pair[1]));
	EXPECT_OK(MPIX_Continueall(2, pair, link_run, chain, chain->flags, MPI_STATUSES_IGNORE, chain->cr));
}

static int link_run(int rc, void *data)
{
	struct chain *chain = (struct chain *)data;

	EXPECT_EQ(rc, MPI_SUCCESS);
	EXPECT_EQ(chain->in, chain->left);
	chain->ran++;
	if (--chain->left > 0)
		link_attach(chain);
	return MPI_SUCCESS;
}

static void attached_inside(int flags, int attach_flags, int max_poll)
{
	struct chain chain;

	memset(&chain, 0, sizeof(chain));
	chain.cr = made(flags, max_poll);
	chain.flags = attach_flags;
	EXPECT_OK(MPI_Start(&chain.cr));
	chain.left = 1000;
	link_attach(&chain);
	EXPECT_OK(MPI_Wait(&chain.cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(chain.ran, 1000);
	EXPECT_OK(MPI_Start(&chain.cr));
	chain.left = 1000;
	link_attach(&chain);
	while (!tested(&chain.cr))
		;
	EXPECT_EQ(chain.ran, 2000);
	freed(&chain.cr);
}

/* Poll-only continuations run only in a test or wait of their CR. Beside it is a CR without the flag. */
static void poll_only_beside(void)
{
	MPI_Request cr = made(0, 0), polled = made(MPIX_CONT_POLL_ONLY, MPI_UNDEFINED), pair[2], other;
	int in = -1, out = 3, ran = 0, ran_polled = 0, flag;
	char byte = 0;

	EXPECT_OK(MPI_Start(&cr));
	EXPECT_OK(MPI_Start(&polled));
	EXPECT_OK(MPI_Irecv(&in, 1, MPI_INT, ext_rank, 3, MPI_COMM_WORLD, &pair[0]));
	EXPECT_OK(MPIX_Continue(&pair[0], count, &ran, 0, MPI_STATUS_IGNORE, cr));
	EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 3, MPI_COMM_WORLD, &pair[1]));
	EXPECT_OK(MPIX_Continue(&pair[1], count, &ran_polled, 0, MPI_STATUS_IGNORE, polled));
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 1);
	EXPECT_OK(MPI_Irecv(&byte, 1, MPI_CHAR, ext_rank, 4, MPI_COMM_WORLD, &other));
	for (int i = 0; i < 100; i++)
		EXPECT_OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
	EXPECT_OK(MPI_Send(&byte, 1, MPI_CHAR, ext_rank, 4, MPI_COMM_WORLD));
	EXPECT_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran_polled, 0);
	EXPECT_OK(MPI_Wait(&polled, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran_polled, 1);
	EXPECT_EQ(in, out);
	freed(&cr);
	freed(&polled);
}

/* The info keys of the branch's first programs. */
static void poll_only_by_info(void)
{
	MPI_Request cr = MPI_REQUEST_NULL, request;
	int out = 3, in = -1, ran = 0;
	MPI_Info info;

	EXPECT_OK(MPI_Info_create(&info));
	EXPECT_OK(MPI_Info_set(info, "mpi_continue_poll_only", "true"));
	EXPECT_OK(MPI_Info_set(info, "mpi_continue_enqueue_complete", "true"));
	EXPECT_OK(MPIX_Continue_init(0, 0, info, &cr));
	EXPECT_OK(MPI_Info_free(&info));
	EXPECT_OK(MPI_Start(&cr));
	EXPECT_OK(MPI_Isend(&out, 1, MPI_INT, ext_rank, 5, MPI_COMM_WORLD, &request));
	EXPECT_OK(MPIX_Continue(&request, count, &ran, 0, MPI_STATUS_IGNORE, cr));
	EXPECT_OK(MPI_Recv(&in, 1, MPI_INT, ext_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 0);
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 1);
	freed(&cr);
}

/* Complete already, and told to put it off: it waits for a test or wait. Not told: it runs in the call. */
static void defer_complete(void)
{
	MPI_Request cr = made(0, 0), none = MPI_REQUEST_NULL;
	int ran = 0;

	EXPECT_OK(MPI_Start(&cr));
	EXPECT_OK(MPIX_Continue(&none, count, &ran, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cr));
	EXPECT_EQ(ran, 0);
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 1);
	EXPECT_OK(MPI_Start(&cr));
	EXPECT_OK(MPIX_Continue(&none, count, &ran, MPIX_CONT_IMMEDIATE, MPI_STATUS_IGNORE, cr));
	EXPECT_EQ(ran, 2);
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	freed(&cr);
}

#define ARRAY 6

/* Arrays with statuses; the array of requests is given back to the system before they complete. */
static void arrays(void)
{
	MPI_Request cr = made(0, 0), *requests = (MPI_Request *)malloc(ARRAY * sizeof(MPI_Request));
	int in[ARRAY][ARRAY], out[ARRAY], ran = 0;
	MPI_Status statuses[ARRAY];

	EXPECT_OK(MPI_Start(&cr));
	for (int i = 0; i < ARRAY; i++)
		EXPECT_OK(MPI_Irecv(in[i], ARRAY, MPI_INT, MPI_ANY_SOURCE, 10 + i, MPI_COMM_WORLD, &requests[i]));
	EXPECT_OK(MPIX_Continueall(ARRAY, requests, count, &ran, MPIX_CONT_REQBUF_VOLATILE | MPIX_CONT_REQUESTS_FREE,
				   statuses, cr));
	for (int i = 0; i < ARRAY; i++)
		EXPECT(requests[i] == MPI_REQUEST_NULL);
	free(requests);
	for (int i = 0; i < ARRAY; i++)
		out[i] = i;
	for (int i = ARRAY; i-- > 0;) {
		EXPECT_EQ(ran, 0);
		EXPECT_OK(MPI_Send(out, i + 1, MPI_INT, ext_rank, 10 + i, MPI_COMM_WORLD));
	}
	EXPECT_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(ran, 1);
	for (int i = 0; i < ARRAY; i++) {
		int elements = -1;

		EXPECT_OK(MPI_Get_count(&statuses[i], MPI_INT, &elements));
		EXPECT_EQ(elements, i + 1);
		EXPECT_EQ(statuses[i].MPI_SOURCE, ext_rank);
		EXPECT_EQ(statuses[i].MPI_TAG, 10 + i);
		EXPECT_EQ(statuses[i].MPI_ERROR, MPI_SUCCESS);
		EXPECT_EQ(in[i][i], i);
	}
	freed(&cr);
}

/* Persistent requests keep their handles, and are started and attached again, also in the callback. */
struct persistent {
	MPI_Request cr, pair[2];
	int in, out, left;
};

static int again(int rc, void *data)
{
	struct persistent *p = (struct persistent *)data;

	EXPECT_EQ(rc, MPI_SUCCESS);
	EXPECT_EQ(p->in, p->out);
	if (--p->left == 0)
		return MPI_SUCCESS;
	p->out++;
	EXPECT_OK(MPI_Startall(2, p->pair));
	EXPECT_OK(MPIX_Continueall(2, p->pair, again, p, 0, MPI_STATUSES_IGNORE, p->cr));
	return MPI_SUCCESS;
}

static void persistent(void)
{
	struct persistent p;
	MPI_Request before[2];

	memset(&p, 0, sizeof(p));
	p.cr = made(0, 0);
	p.left = 200;
	EXPECT_OK(MPI_Recv_init(&p.in, 1, MPI_INT, ext_rank, 20, MPI_COMM_WORLD, &p.pair[0]));
	EXPECT_OK(MPI_Send_init(&p.out, 1, MPI_INT, ext_rank, 20, MPI_COMM_WORLD, &p.pair[1]));
	memcpy(before, p.pair, sizeof(before));
	EXPECT_OK(MPI_Start(&p.cr));
	EXPECT_OK(MPI_Startall(2, p.pair));
	EXPECT_OK(MPIX_Continueall(2, p.pair, again, &p, 0, MPI_STATUSES_IGNORE, p.cr));
	EXPECT(p.pair[0] == before[0] && p.pair[1] == before[1]);
	EXPECT_OK(MPI_Wait(&p.cr, MPI_STATUS_IGNORE));
	EXPECT_EQ(p.left, 0);
	EXPECT(p.pair[0] == before[0] && p.pair[1] == before[1]);
	EXPECT_OK(MPI_Request_free(&p.pair[0]));
	EXPECT_OK(MPI_Request_free(&p.pair[1]));
	freed(&p.cr);
}

/* A CR whose own completion is waited for by a continuation of another one. */
static void chained(void)
{
	MPI_Request inner = made(0, 0), outer = made(0, 0), kept = inner, pair[2];
	int in[2], out = 1, ran_inner = 0, ran_outer = 0;

	for (int round = 1; round <= 10; round++) {
		EXPECT_OK(MPI_Start(&inner));
		EXPECT_OK(MPI_Start(&outer));
		for (int i = 0; i < 2; i++) {
			EXPECT_OK(MPI_Irecv(&in[i], 1, MPI_INT, ext_rank, 30 + i, MPI_COMM_WORLD, &pair[i]));
			EXPECT_OK(MPIX_Continue(&pair[i], count, &ran_inner, 0, MPI_STATUS_IGNORE, inner));
		}
		EXPECT_OK(MPIX_Continue(&inner, count, &ran_outer, 0, MPI_STATUS_IGNORE, outer));
		EXPECT(inner == kept);
		EXPECT_OK(MPI_Send(&out, 1, MPI_INT, ext_rank, 30, MPI_COMM_WORLD));
		for (int i = 0; i < 10; i++)
			EXPECT_EQ(tested(&outer), 0);
		EXPECT_EQ(ran_outer, round - 1);
		EXPECT_OK(MPI_Send(&out, 1, MPI_INT, ext_rank, 31, MPI_COMM_WORLD));
		EXPECT_OK(MPI_Wait(&outer, MPI_STATUS_IGNORE));
		EXPECT_EQ(ran_outer, round);
		EXPECT_EQ(ran_inner, 2 * round);
		EXPECT_OK(MPI_Wait(&inner, MPI_STATUS_IGNORE));
	}
	freed(&inner);
	freed(&outer);
}

/* A callback that says it failed: the CR tells, and gives its data. */
static int fail(int rc, void *data)
{
	EXPECT_EQ(rc, MPI_SUCCESS);
	ext_add((int *)data, 1);
	return MPI_ERR_OTHER;
}

static void failed_callbacks(void)
{
	MPI_Request cr = made(0, 0), none = MPI_REQUEST_NULL;
	void *data[2] = {NULL, NULL};
	int ran[3] = {0, 0, 0}, number = 2, flag = 0, class_of_it = -1;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++)
		EXPECT_OK(MPIX_Continue(&none, fail, &ran[i], 0, MPI_STATUS_IGNORE, cr));
	EXPECT_OK(MPI_Start(&cr));
	MPI_Error_class(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE), &class_of_it);
	EXPECT_EQ(class_of_it, MPI_ERR_OTHER);
	EXPECT_OK(MPIX_Continue_get_failed(cr, &number, data));
	EXPECT_EQ(number, 2); /* there may be more */
	EXPECT(data[0] == &ran[0] && data[1] == &ran[1]);
	EXPECT_OK(MPIX_Continue_get_failed(cr, &number, data));
	EXPECT_EQ(number, 1);
	EXPECT(data[0] == &ran[2]);
	EXPECT_EQ(ran[0] + ran[1] + ran[2], 3);
	EXPECT_EQ(tested(&cr), 1);
	freed(&cr);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	ext_init(&argc, &argv, MPI_THREAD_SINGLE);
	deferred_start();
	test_and_start();
	attached_inside(0, 0, 0);
	attached_inside(0, MPIX_CONT_DEFER_COMPLETE, MPI_UNDEFINED);
	attached_inside(MPIX_CONT_POLL_ONLY, 0, MPI_UNDEFINED);
	attached_inside(MPIX_CONT_POLL_ONLY | MPIX_CONT_DEFER_COMPLETE, 0, 1);
	poll_only_beside();
	poll_only_by_info();
	defer_complete();
	arrays();
	persistent();
	chained();
	failed_callbacks();
	return ext_fini();
}
