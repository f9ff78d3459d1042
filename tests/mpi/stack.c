/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A chain of continuations, each of which attaches the next one to an operation that is complete already, uses the same
 * stack at its millionth link as at its first. With --long: ten times as many.
 */
#include "check.h"

#define TAG 61

static struct {
	MPI_Request cr;
	long left, runs;
	uintptr_t lowest, highest;
	int kind, depth;
	char in, out;
} chain;

enum { NULL_REQUEST, NOTHING, PROC_NULL, MESSAGE, PERSISTENT, KINDS };
static const char *const kind_name[KINDS] = {"null requests", "no requests", "MPI_PROC_NULL", "messages to itself",
					     "inactive requests"};

static MPI_Request inactive;

static void link_of_chain(MPI_Status *status, void *data)
{
	char local;
	uintptr_t here = (uintptr_t)&local;
	MPI_Request r = MPI_REQUEST_NULL, send;

	(void)status, (void)data;
	if (++chain.depth != 1)
		CHECK_EQ(chain.depth, 1); /* never inside another */
	if (here < chain.lowest)
		chain.lowest = here;
	if (here > chain.highest)
		chain.highest = here;
	chain.runs++;
	if (chain.left-- > 0) {
		int rc;

		switch (chain.kind) {
		case PROC_NULL:
			MPI_Irecv(&chain.in, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &r);
			break;
		case MESSAGE:
			MPI_Irecv(&chain.in, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r);
			MPI_Isend(&chain.out, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &send);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
			break;
		case PERSISTENT:
			r = inactive;
			break;
		default:
			break;
		}
		if (chain.kind == NOTHING)
			rc = MPI_Continueall(0, NULL, link_of_chain, NULL, MPI_STATUSES_IGNORE, chain.cr);
		else
			rc = MPI_Continue(&r, link_of_chain, NULL, MPI_STATUS_IGNORE, chain.cr);
		if (rc != MPI_SUCCESS)
			CHECK_OK(rc);
	}
	chain.depth--;
}

static void run_chain(const char *key, int kind, long links)
{
	MPI_Request r = MPI_REQUEST_NULL;
	uintptr_t span[2];

	check_begin(kind_name[kind]);
	chain.cr = check_cr(key, "true", NULL, NULL);
	chain.kind = kind;
	/* A short chain first: its span is what the long one may have. */
	for (int i = 0; i < 2; i++) {
		chain.left = i ? links : 100;
		chain.runs = 0;
		chain.lowest = UINTPTR_MAX;
		chain.highest = 0;
		CHECK_OK(MPI_Continue(&r, link_of_chain, NULL, MPI_STATUS_IGNORE, chain.cr));
		CHECK_OK(MPI_Wait(&chain.cr, MPI_STATUS_IGNORE));
		CHECK_EQ(chain.runs, i ? links + 1 : 101);
		span[i] = chain.highest - chain.lowest;
		alarm(600); /* links take their time under sanitizers */
	}
	CHECK(span[1] < 4096);
	CHECK(span[1] <= span[0] + 1024);
	CHECK_OK(MPI_Request_free(&chain.cr));
}

int main(int argc, char **argv)
{
	static const char *const keys[] = {NULL, "mpi_continue_poll_only", "mpi_continue_enqueue_complete"};
	long links = argc > 1 && strcmp(argv[1], "--long") == 0 ? 10000000 : 1000000;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Recv_init(&chain.in, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &inactive);
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (int kind = 0; kind < KINDS; kind++)
			run_chain(keys[k], kind, kind == NULL_REQUEST ? links : links / 10);
	MPI_Request_free(&inactive);
	return check_fini();
}
