/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contd-mpi starts, makes a CR and attaches with the n-th call of one function refused: usage mpi FUNCTION N. The call
 * of MPI_Continue_init that is refused returns an error class to the program, and says why; made again it succeeds;
 * everything works afterwards. The daemon is wanted, so that it can be refused. (Memory has its ladder in tests/mpi.)
 */
#include "base/error.h"
#include "mpi/check.h"

#include "refused/refuse.h"

#define MESSAGES 200

static unsigned seen;

static unsigned function_of(const char *name)
{
	for (unsigned f = 0; f < refuse_functions(); f++)
		if (strcmp(refuse_name(f), name) == 0)
			return f;
	fprintf(stderr, "no function %s in calls.def\n", name);
	exit(2);
}

static int failed_calls;

/* Fails if it was refused something, and then no more. */
#define TRY(call) \
	do { \
		int try_rc; \
		contd__error_text = NULL; \
		try_rc = (call); \
		if (try_rc != MPI_SUCCESS) { \
			CHECK(refuse_refused() > seen); \
			seen = refuse_refused(); \
			failed_calls++; \
			CHECK_OK(call); \
		} \
	} while (0)

static void ran(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

static int handled;

static void on_error(MPI_Comm *comm, int *error, ...)
{
	(void)comm, (void)error;
	handled++;
}

int main(int argc, char **argv)
{
	static int in[MESSAGES], out[MESSAGES], runs[MESSAGES];
	MPI_Request recv[MESSAGES], send[MESSAGES], cr = MPI_REQUEST_NULL;
	MPI_Errhandler handler;
	unsigned function, n;
	int flag = 0;

	if (argc < 3)
		return fprintf(stderr, "usage: mpi FUNCTION N\n"), 2;
	function = function_of(argv[1]);
	n = (unsigned)atoi(argv[2]);
	setenv("CONTD_AGENT", "tick", 1);
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	check_begin("start");
	refuse_start(function, n, false);
	contd__error_text = NULL;
	TRY(MPI_Continue_init(MPI_INFO_NULL, &cr));
	check_begin("attach");
	for (int i = 0; i < MESSAGES; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, check_rank, i, MPI_COMM_WORLD, &recv[i]);
		TRY(MPI_Continue(&recv[i], ran, &runs[i], MPI_STATUS_IGNORE, cr));
		CHECK(recv[i] == MPI_REQUEST_NULL);
	}
	check_begin("complete");
	for (int i = 0; i < MESSAGES; i++) {
		out[i] = i + 1;
		MPI_Isend(&out[i], 1, MPI_INT, check_rank, i, MPI_COMM_WORLD, &send[i]);
	}
	CHECK_OK(MPI_Test(&cr, &flag, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Waitall(MESSAGES, send, MPI_STATUSES_IGNORE));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_EQ(runs[i], 1);
		CHECK_EQ(in[i], i + 1);
	}
	CHECK_OK(MPI_Request_free(&cr));
	refuse_end();
	if (failed_calls)
		CHECK_EQ(handled, failed_calls);
	CHECK(refuse_refused() > 0);
	CHECK(failed_calls == (refuse_how(function) == MAY ? failed_calls : 1));
	printf("%s, the %u.: refused %u times, %d calls failed\n", argv[1], n, refuse_refused(), failed_calls);
	MPI_Errhandler_free(&handler);
	return check_fini();
}
