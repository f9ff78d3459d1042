/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 */
/*
 * Continuations run inside other MPI calls that make progress. A rank is in the call, and its continuation is the only
 * thing that can end it: the peer sends, or enters, what the call waits for when the continuation has told it to.
 */
#include "check.h"

#define TAG 101

enum call {
	RECV,
	SSEND,
	PROBE,
	MPROBE,
	SENDRECV,
	SENDRECV_REPLACE,
#if MPI_VERSION >= 4
	RECV_C,
	SSEND_C,
	SENDRECV_C,
	SENDRECV_REPLACE_C,
#endif
	WAIT,
	WAITALL,
	WAITANY,
	WAITSOME,
	BARRIER,
	BCAST,
	ALLREDUCE,
	COMM_DUP,
	FENCE,
	CALLS
};
static const char *const call_name[CALLS] = {"Recv",       "Ssend",
					     "Probe",      "Mprobe",
					     "Sendrecv",   "Sendrecv_replace",
#if MPI_VERSION >= 4
					     "Recv_c",     "Ssend_c",
					     "Sendrecv_c", "Sendrecv_replace_c",
#endif
					     "Wait",       "Waitall",
					     "Waitany",    "Waitsome",
					     "Barrier",    "Bcast",
					     "Allreduce",  "Comm_dup",
					     "Win_fence"};

static int depth, runs, nested;
static bool waits_inside;
static MPI_Comm pair;
static MPI_Win win;

/* Tells the peer to go on; it may call any MPI function. */
static void tell(MPI_Status *status, void *data)
{
	char go = 1, echo = 0;

	(void)data;
	if (depth++)
		nested++;
	CHECK_EQ(status->MPI_TAG, TAG);
	runs++;
	if (waits_inside) {
		/* Blocks inside, with others ready: they wait their turn. */
		MPI_Sendrecv(&go, 1, MPI_BYTE, status->MPI_SOURCE, TAG + 2, &echo, 1, MPI_BYTE, status->MPI_SOURCE,
			     TAG + 2, pair, MPI_STATUS_IGNORE);
	}
	MPI_Send(&go, 1, MPI_BYTE, status->MPI_SOURCE, TAG + 1, pair);
	depth--;
}

static void be_inside(enum call call)
{
	MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Message message;
	MPI_Comm copy;
	char in[2] = {0}, out[2] = {0};
	int index, count, indices[2];
	long one = 1, sum;

	switch (call) {
	case RECV:
		MPI_Recv(in, 1, MPI_BYTE, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
	case SSEND:
		MPI_Ssend(out, 1, MPI_BYTE, 1, TAG + 4, pair);
		break;
	case PROBE:
		MPI_Probe(1, TAG + 3, pair, MPI_STATUS_IGNORE);
		MPI_Recv(in, 1, MPI_BYTE, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
	case MPROBE:
		MPI_Mprobe(1, TAG + 3, pair, &message, MPI_STATUS_IGNORE);
		MPI_Mrecv(in, 1, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		break;
	case SENDRECV:
		MPI_Sendrecv(out, 1, MPI_BYTE, 1, TAG + 4, in, 1, MPI_BYTE, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
	case SENDRECV_REPLACE:
		MPI_Sendrecv_replace(in, 1, MPI_BYTE, 1, TAG + 4, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
#if MPI_VERSION >= 4
	case RECV_C:
		MPI_Recv_c(in, 1, MPI_BYTE, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
	case SSEND_C:
		MPI_Ssend_c(out, 1, MPI_BYTE, 1, TAG + 4, pair);
		break;
	case SENDRECV_C:
		MPI_Sendrecv_c(out, 1, MPI_BYTE, 1, TAG + 4, in, 1, MPI_BYTE, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
	case SENDRECV_REPLACE_C:
		MPI_Sendrecv_replace_c(in, 1, MPI_BYTE, 1, TAG + 4, 1, TAG + 3, pair, MPI_STATUS_IGNORE);
		break;
#endif
	case WAIT:
	case WAITALL:
	case WAITANY:
	case WAITSOME:
		MPI_Irecv(in, 1, MPI_BYTE, 1, TAG + 3, pair, &r[0]);
		if (call == WAIT)
			MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		else if (call == WAITALL)
			MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		else if (call == WAITANY)
			MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
		else
			MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
		CHECK(r[0] == MPI_REQUEST_NULL);
		break;
	case BARRIER:
		MPI_Barrier(pair);
		break;
	case BCAST:
		MPI_Bcast(in, 1, MPI_BYTE, 1, pair);
		break;
	case ALLREDUCE:
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, pair);
		CHECK_EQ(sum, 2);
		break;
	case COMM_DUP:
		MPI_Comm_dup(pair, &copy);
		MPI_Comm_free(&copy);
		break;
	default:
		MPI_Win_fence(0, win);
	}
}

/* This ends be_inside() of the peer. */
static void end_it(enum call call)
{
	char in, out = 0;
	MPI_Comm copy;
	long one = 1, sum;

	switch (call) {
	case SSEND:
#if MPI_VERSION >= 4
	case SSEND_C:
#endif
		MPI_Recv(&in, 1, MPI_BYTE, 0, TAG + 4, pair, MPI_STATUS_IGNORE);
		break;
	case SENDRECV:
	case SENDRECV_REPLACE:
#if MPI_VERSION >= 4
	case SENDRECV_C:
	case SENDRECV_REPLACE_C:
#endif
		MPI_Sendrecv(&out, 1, MPI_BYTE, 0, TAG + 3, &in, 1, MPI_BYTE, 0, TAG + 4, pair, MPI_STATUS_IGNORE);
		break;
	case BARRIER:
		MPI_Barrier(pair);
		break;
	case BCAST:
		MPI_Bcast(&out, 1, MPI_BYTE, 1, pair);
		break;
	case ALLREDUCE:
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, pair);
		break;
	case COMM_DUP:
		MPI_Comm_dup(pair, &copy);
		MPI_Comm_free(&copy);
		break;
	case FENCE:
		MPI_Win_fence(0, win);
		break;
	default:
		MPI_Send(&out, 1, MPI_BYTE, 0, TAG + 3, pair);
	}
}

/* Rank 0 of the pair is inside; MESSAGES continuations must run before rank 1 lets it out. */
static void check_call(MPI_Request cr, enum call call, int messages)
{
	enum { MOST = 8 };
	MPI_Status status[MOST];
	char in[MOST], out = 0, go;
	int rank;

	MPI_Comm_rank(pair, &rank);
	if (rank == 0) {
		MPI_Request r;

		runs = 0;
		for (int i = 0; i < messages; i++) {
			MPI_Irecv(&in[i], 1, MPI_BYTE, 1, TAG, pair, &r);
			CHECK_OK(MPI_Continue(&r, tell, NULL, &status[i], cr));
		}
		be_inside(call);
		CHECK_EQ(runs, messages);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(runs, messages);
	} else {
		for (int i = 0; i < messages; i++)
			MPI_Send(&out, 1, MPI_BYTE, 0, TAG, pair);
		for (int i = 0; i < messages; i++) {
			if (waits_inside) {
				MPI_Recv(&go, 1, MPI_BYTE, 0, TAG + 2, pair, MPI_STATUS_IGNORE);
				MPI_Send(&go, 1, MPI_BYTE, 0, TAG + 2, pair);
			}
			MPI_Recv(&go, 1, MPI_BYTE, 0, TAG + 1, pair, MPI_STATUS_IGNORE);
		}
		end_it(call);
	}
}

int main(int argc, char **argv)
{
	MPI_Request cr[2];
	char *memory;
	int calls;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_split(MPI_COMM_WORLD, check_rank / 2, check_rank, &pair);
	MPI_Win_allocate(8, 1, MPI_INFO_NULL, pair, &memory, &win);
	MPI_Win_fence(0, win);
	cr[0] = check_plain_cr();
	/* Collective calls cannot be left before they are through: the portable backend looks after nothing in them. */
	calls = check_native() ? CALLS : BARRIER;
	cr[1] = check_cr("mpi_continue_enqueue_complete", "true", "mpi_continue_max_poll", "0");
	for (int i = 0; i < 2; i++) {
		for (int call = 0; call < calls; call++) {
			check_begin(call_name[call]);
			for (int round = 0; round < 10; round++) {
				waits_inside = round % 2;
				check_call(cr[i], (enum call)call, 1 + round % 8);
			}
		}
	}
	CHECK_EQ(nested, 0);
	CHECK_OK(MPI_Request_free(&cr[0]));
	CHECK_OK(MPI_Request_free(&cr[1]));
	MPI_Win_free(&win);
	MPI_Comm_free(&pair);
	return check_fini();
}
