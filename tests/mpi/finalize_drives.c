/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 */
/*
 * What is outstanding when MPI_Finalize is called, and completes because the peers go on: sends by rendezvous whose
 * receives are posted later, receives whose messages are sent later, persistent ones, chains of them, of a CR that was
 * freed. Their continuations run inside MPI_Finalize, and nothing is reported. A receive that nobody sends to is, with
 * its rank, its kind and its callback.
 */
#include "check.h"

#define TAG 71
#define LARGE (1 << 20)
#define LATER 300000 /* microseconds */
#define CHAIN 5

static int runs, wrong;
static char *buffer[2];
static int value[4];
static MPI_Request chain_cr;

static void sent(MPI_Status *status, void *data)
{
	runs++;
	wrong += status->MPI_ERROR != MPI_SUCCESS;
	free(data);
}

static int received(int rc, void *data)
{
	runs++;
	wrong += rc != MPI_SUCCESS || *(int *)data != 17;
	return MPI_SUCCESS;
}

static void never(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	wrong++;
}

/* The peer answers each, from inside its own MPI_Finalize in part. */
static void link_of_chain(MPI_Status *status, void *data)
{
	static MPI_Status its;
	int *n = data;

	(void)status;
	runs++;
	if (*n == CHAIN)
		return;
	++*n;
	MPI_Send(n, 1, MPI_INT, check_rank ^ 1, TAG + 5, MPI_COMM_WORLD);
	if (*n < CHAIN) {
		MPI_Request r;

		MPI_Irecv(n, 1, MPI_INT, check_rank ^ 1, TAG + 5, MPI_COMM_WORLD, &r);
		MPI_Continue(&r, link_of_chain, n, &its, chain_cr);
	}
}

static FILE *captured;
static int saved = -1;

static void capture(void)
{
	captured = tmpfile();
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
}

/* How often the text stands in what was said. */
static int said(const char *text)
{
	char line[1024];
	int n = 0;

	if (saved >= 0) {
		fflush(stderr);
		dup2(saved, STDERR_FILENO);
		close(saved);
		saved = -1;
	}
	rewind(captured);
	while (fgets(line, sizeof(line), captured))
		n += strstr(line, text) != NULL;
	return n;
}

/* An even rank leaves all this outstanding. */
static int leave(void)
{
	MPI_Request freed = check_plain_cr(), cr, r;
	static MPI_Status status[2];

	for (int i = 0; i < 2; i++) {
		buffer[i] = malloc(LARGE);
		memset(buffer[i], 5 + i, LARGE);
		MPI_Issend(buffer[i], LARGE, MPI_BYTE, check_rank + 1, TAG + i, MPI_COMM_WORLD, &r);
		CHECK_OK(MPI_Continue(&r, sent, buffer[i], &status[i], freed));
	}
	CHECK_OK(MPI_Request_free(&freed));
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	MPI_Recv_init(&value[0], 1, MPI_INT, check_rank + 1, TAG + 2, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	CHECK_OK(MPIX_Continue(&r, received, &value[0], 0, MPI_STATUS_IGNORE, cr));
	CHECK_OK(MPI_Request_free(&r));
	chain_cr = check_plain_cr();
	MPI_Irecv(&value[1], 1, MPI_INT, check_rank + 1, TAG + 5, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, link_of_chain, &value[1], MPI_STATUS_IGNORE, chain_cr));
	return 3;
}

/* An odd one deals with it later. */
static int deal(void)
{
	char *in = malloc(LARGE);
	int one = 17, zero = 0;
	MPI_Request r;

	usleep(LATER);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(MPI_Recv(in, LARGE, MPI_BYTE, check_rank - 1, TAG + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK(in[0] == 5 + i && in[LARGE - 1] == 5 + i);
		usleep(LATER);
	}
	CHECK_OK(MPI_Send(&one, 1, MPI_INT, check_rank - 1, TAG + 2, MPI_COMM_WORLD));
	chain_cr = check_plain_cr();
	MPI_Irecv(&value[1], 1, MPI_INT, check_rank - 1, TAG + 5, MPI_COMM_WORLD, &r);
	CHECK_OK(MPI_Continue(&r, link_of_chain, &value[1], MPI_STATUS_IGNORE, chain_cr));
	CHECK_OK(MPI_Send(&zero, 1, MPI_INT, check_rank - 1, TAG + 5, MPI_COMM_WORLD));
	free(in);
	return 0;
}

int main(int argc, char **argv)
{
	MPI_Request r, cr;
	int expected, reported;
	bool even;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("before MPI_Finalize");
	even = check_rank % 2 == 0;
	expected = even ? leave() : deal();
	expected += (CHAIN + 1) / 2; /* 0 goes to the even one, 1 to the odd one, and so on up to CHAIN */
	if (check_rank == 0) {
		cr = check_plain_cr();
		for (int i = 2; i < 4; i++) {
			MPI_Irecv(&value[i], 1, MPI_INT, check_rank + 1, TAG + 9, MPI_COMM_WORLD, &r);
			CHECK_OK(MPI_Continue(&r, never, NULL, MPI_STATUS_IGNORE, cr));
		}
	}
	reported = check_rank == 0;
	capture();
	check_begin("MPI_Finalize");
	MPI_Finalize();
	CHECK_EQ(said(" rank 0] MPI_Finalize: 2 continuations never ran:"), reported);
	check_begin("after MPI_Finalize");
	CHECK_EQ(runs, expected);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(said("contd: ["), 2 * reported);
	CHECK_EQ(said("_finalize_drives+0x"), reported); /* a program's functions have no names at run time */
	CHECK_EQ(said(check_native() ? ": a point-to-point operation did not complete"
				     : ": an operation did not complete"),
		 reported);
	return atomic_load(&check_failures) != 0;
}
