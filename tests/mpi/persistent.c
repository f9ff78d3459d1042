/* SPDX-License-Identifier: BSD-3-Clause */
/* Continuations on persistent requests: restarted, attached again and freed inside and outside of callbacks. */
#include "check.h"

#define TAG 31
#define ROUNDS 200

/* One that restarts itself, once a message. */
struct restarter {
	MPI_Request request, cr;
	MPI_Status status;
	int left, runs;
	bool receives, free_at_end;
	long value;
};

static void arrived(MPI_Status *status, void *data)
{
	struct restarter *r = data;
	int flag = 0, index = 5;

	r->runs++;
	CHECK(status == &r->status);
	CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
	/* Inactive: complete with the empty status for Test, of no account for Testany. */
	if (r->runs % 16 == 1) {
		MPI_Request same = r->request;
		MPI_Status empty;

		CHECK_OK(MPI_Test(&r->request, &flag, &empty));
		CHECK(flag);
		CHECK(status_is_empty(&empty));
		CHECK_OK(MPI_Testany(1, &r->request, &index, &flag, MPI_STATUS_IGNORE));
		CHECK(flag);
		CHECK_EQ(index, MPI_UNDEFINED);
		CHECK(r->request == same);
	}
	if (r->receives) {
		CHECK_EQ(status->MPI_SOURCE, check_previous());
		CHECK_EQ(status->MPI_TAG, TAG);
		CHECK_EQ(r->value, r->runs);
	}
	if (--r->left == 0) {
		if (r->free_at_end) {
			CHECK_OK(MPI_Request_free(&r->request));
			CHECK(r->request == MPI_REQUEST_NULL);
		}
		return;
	}
	if (!r->receives)
		r->value++;
	status_poison(&r->status);
	CHECK_OK(MPI_Start(&r->request));
	CHECK_OK(MPI_Continue(&r->request, arrived, r, &r->status, r->cr));
	CHECK(r->request != MPI_REQUEST_NULL);
}

static void check_restart(MPI_Request cr, int kind, bool free_at_end)
{
	struct restarter recv = {.cr = cr, .left = ROUNDS, .receives = true, .free_at_end = free_at_end};
	struct restarter send = {.cr = cr, .left = ROUNDS, .free_at_end = free_at_end, .value = 1};
	MPI_Request same[2];

	check_begin("restarted in the callback");
	MPI_Recv_init(&recv.value, 1, MPI_LONG, kind & 1 ? MPI_ANY_SOURCE : check_previous(), TAG, MPI_COMM_WORLD,
		      &recv.request);
	if (kind & 2)
		MPI_Ssend_init(&send.value, 1, MPI_LONG, check_next(), TAG, MPI_COMM_WORLD, &send.request);
	else
		MPI_Send_init(&send.value, 1, MPI_LONG, check_next(), TAG, MPI_COMM_WORLD, &send.request);
	same[0] = recv.request;
	same[1] = send.request;
	CHECK_OK(MPI_Start(&recv.request));
	CHECK_OK(MPI_Continue(&recv.request, arrived, &recv, &recv.status, cr));
	CHECK_OK(MPI_Start(&send.request));
	CHECK_OK(MPI_Continue(&send.request, arrived, &send, &send.status, cr));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	CHECK_EQ(recv.runs, ROUNDS);
	CHECK_EQ(send.runs, ROUNDS);
	if (free_at_end) {
		CHECK(recv.request == MPI_REQUEST_NULL && send.request == MPI_REQUEST_NULL);
	} else {
		CHECK(recv.request == same[0] && send.request == same[1]);
		CHECK_OK(MPI_Request_free(&recv.request));
		CHECK_OK(MPI_Request_free(&send.request));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Startall, and a set of them: the same handles again and again. */
static void check_sets(MPI_Request cr, bool rendezvous)
{
	enum { N = 6 };
	int bytes = rendezvous ? 128 << 10 : 16;
	unsigned char *in = malloc((size_t)(N * bytes)), *out = malloc((size_t)(N * bytes));
	MPI_Request r[2 * N], same[2 * N];
	MPI_Status status[2 * N];
	struct seen seen = {0};

	check_begin("Startall and Continueall");
	for (int i = 0; i < N; i++) {
		MPI_Recv_init(in + i * bytes, bytes, MPI_BYTE, check_previous(), TAG + i, MPI_COMM_WORLD, &r[i]);
		MPI_Send_init(out + i * bytes, bytes, MPI_BYTE, check_next(), TAG + i, MPI_COMM_WORLD, &r[N + i]);
	}
	memcpy(same, r, sizeof(r));
	for (int round = 0; round < 20; round++) {
		pattern_fill(out, (size_t)(N * bytes), (unsigned)(check_rank + round));
		memset(status, POISON, sizeof(status));
		MPI_Startall(2 * N, r);
		CHECK_OK(MPI_Continueall(2 * N, r, see, &seen, status, cr));
		CHECK(memcmp(same, r, sizeof(r)) == 0);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK(memcmp(same, r, sizeof(r)) == 0);
		CHECK_EQ(seen.runs, round + 1);
		CHECK(pattern_holds(in, (size_t)(N * bytes), (unsigned)(check_previous() + round)));
		for (int i = 0; i < 2 * N; i++)
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		for (int i = 0; i < N; i++)
			CHECK_EQ(status[i].MPI_TAG, TAG + i);
	}
	for (int i = 0; i < 2 * N; i++)
		CHECK_OK(MPI_Request_free(&r[i]));
	free(in);
	free(out);
}

/* Inactive ones count as complete, with the empty status. */
static void check_inactive(MPI_Request cr)
{
	char byte[3];
	MPI_Request r[3], same[3];
	MPI_Status status[3];
	struct seen seen = {0};

	check_begin("inactive");
	MPI_Recv_init(&byte[0], 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r[0]);
	MPI_Send_init(&byte[1], 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD, &r[1]);
	r[2] = MPI_REQUEST_NULL;
	memcpy(same, r, sizeof(r));
	for (int round = 0; round < 3; round++) {
		memset(status, POISON, sizeof(status));
		CHECK_OK(MPI_Continue(&r[round % 2], see, &seen, &status[0], cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 2 * round + 1);
		CHECK(status_is_empty(&status[0]));
		CHECK_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
		memset(status, POISON, sizeof(status));
		CHECK_OK(MPI_Continueall(3, r, see, &seen, status, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 2 * round + 2);
		for (int i = 0; i < 3; i++) {
			CHECK(status_is_empty(&status[i]));
			CHECK_EQ(status[i].MPI_ERROR, MPI_SUCCESS);
		}
		CHECK(memcmp(same, r, sizeof(r)) == 0);
	}
	/* Active beside inactive; and complete before it is attached. */
	for (int round = 0; round < 2; round++) {
		int flag = 0;

		MPI_Start(&r[0]);
		if (round) {
			MPI_Send(&byte[2], 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
			while (!flag)
				MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE);
		}
		CHECK_OK(MPI_Continueall(2, r, see, &seen, status, cr));
		if (!round)
			MPI_Send(&byte[2], 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 7 + round);
		CHECK_EQ(status[0].MPI_SOURCE, check_previous());
		CHECK(status_is_empty(&status[1]));
		CHECK(memcmp(same, r, sizeof(r)) == 0);
	}
	CHECK_OK(MPI_Request_free(&r[0]));
	CHECK_OK(MPI_Request_free(&r[1]));
}

/* A persistent request with a continuation may be waited for as well. */
static void check_waited(MPI_Request cr)
{
	char byte[2] = {0};
	MPI_Request r;
	struct seen seen = {0};
	int flag;

	check_begin("a persistent request waited for beside its continuation");
	MPI_Recv_init(&byte[0], 1, MPI_BYTE, check_previous(), TAG, MPI_COMM_WORLD, &r);
	for (int round = 0; round < 4; round++) {
		MPI_Start(&r);
		CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
		CHECK(!flag);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(&byte[1], 1, MPI_BYTE, check_next(), TAG, MPI_COMM_WORLD);
		if (round % 2)
			CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		else
			do
				CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
			while (!flag);
		CHECK(r != MPI_REQUEST_NULL);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, round + 1);
	}
	CHECK_OK(MPI_Request_free(&r));
}

/* ----------------------------------------------------------------------------------------- the draft's examples --- */

#define NUM_VARS 1024

static struct {
	MPI_Request recv, cr;
	int receives, cancelled;
	double *vars, sum;
} ex;

static void ex_3_21(MPI_Status *status, void *data)
{
	ex.sum += ((double *)data)[NUM_VARS - 1];
	if (++ex.receives < check_size) { /* rank 0 sends to itself too, that one rank will do */
		MPI_Start(&ex.recv);
		CHECK_OK(MPI_Continue(&ex.recv, ex_3_21, ex.vars, status, ex.cr));
	}
}

static void check_3_21(void)
{
	double vars[NUM_VARS];
	MPI_Status status;
	MPI_Request send;

	check_begin("the draft's example 3.21");
	ex.vars = malloc(sizeof(double) * NUM_VARS);
	for (int i = 0; i < NUM_VARS; i++)
		vars[i] = check_rank + 1;
	MPI_Isend(vars, NUM_VARS, MPI_DOUBLE, 0, TAG + 21, MPI_COMM_WORLD, &send);
	if (check_rank == 0) {
		CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &ex.cr));
		MPI_Recv_init(ex.vars, NUM_VARS, MPI_DOUBLE, MPI_ANY_SOURCE, TAG + 21, MPI_COMM_WORLD, &ex.recv);
		MPI_Start(&ex.recv);
		CHECK_OK(MPI_Continue(&ex.recv, ex_3_21, ex.vars, &status, ex.cr));
		CHECK_OK(MPI_Wait(&ex.cr, MPI_STATUS_IGNORE));
		CHECK_EQ(ex.receives, check_size);
		CHECK(ex.sum == check_size * (check_size + 1) / 2.);
		MPI_Request_free(&ex.recv);
		MPI_Request_free(&ex.cr);
	}
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	free(ex.vars);
}

static void ex_3_22(MPI_Status *status, void *data)
{
	MPI_Test_cancelled(status, &ex.cancelled);
	if (ex.cancelled) {
		MPI_Request_free(&ex.recv);
	} else {
		ex.receives++;
		MPI_Start(&ex.recv);
		CHECK_OK(MPI_Continue(&ex.recv, ex_3_22, data, status, ex.cr));
	}
}

static void check_3_22(void)
{
	enum { MESSAGES = 25 };
	MPI_Status status;
	char in[8], out[8] = {0};
	int flag;

	check_begin("the draft's example 3.22");
	ex.receives = ex.cancelled = 0;
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &ex.cr));
	MPI_Recv_init(in, 8, MPI_BYTE, MPI_ANY_SOURCE, TAG + 22, MPI_COMM_WORLD, &ex.recv);
	MPI_Start(&ex.recv);
	CHECK_OK(MPI_Continue(&ex.recv, ex_3_22, in, &status, ex.cr));
	for (int i = 0; i < MESSAGES; i++) {
		MPI_Send(out, 8, MPI_BYTE, check_next(), TAG + 22, MPI_COMM_WORLD);
		MPI_Test(&ex.cr, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
	}
	while (ex.receives < MESSAGES)
		MPI_Test(&ex.cr, &flag, MPI_STATUS_IGNORE);
	MPI_Cancel(&ex.recv);
	CHECK_OK(MPI_Wait(&ex.cr, MPI_STATUS_IGNORE));
	CHECK(ex.cancelled);
	CHECK(ex.recv == MPI_REQUEST_NULL);
	CHECK_EQ(ex.receives, MESSAGES);
	MPI_Request_free(&ex.cr);
}

int main(int argc, char **argv)
{
	MPI_Request cr[3];

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	cr[0] = check_plain_cr();
	cr[1] = check_cr("mpi_continue_poll_only", "true", NULL, NULL);
	cr[2] = check_cr("mpi_continue_enqueue_complete", "true", NULL, NULL);
	for (int i = 0; i < 3; i++) {
		for (int kind = 0; kind < 8; kind++)
			check_restart(cr[i], kind, kind & 4);
		check_sets(cr[i], false);
		check_sets(cr[i], true);
		check_inactive(cr[i]);
		check_waited(cr[i]);
	}
	check_3_21();
	check_3_22();
	for (int i = 0; i < 3; i++)
		CHECK_OK(MPI_Request_free(&cr[i]));
	return check_fini();
}
