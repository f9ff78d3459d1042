/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* needs: sessions */
/*
 * A continuation that never runs: the process says so at its end, with the callback and the reason. Until then contd
 * works, in the next session too. The CR is freed before, and is kept, by turns.
 */
#include "sessions.h"

#define TAG 32

static FILE *said;
static int err, failed = 1;

/* Called after contd's own function, because it was registered before contd began. */
static void look(void)
{
	char line[512];
	int reports = 0, reasons = 0;

	fflush(stderr);
	dup2(err, STDERR_FILENO);
	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		reports += strstr(line, "] MPI_Session_finalize: 2 continuations never ran:") != NULL;
		reasons += strstr(line, "MPI_Start was never called") != NULL;
	}
	if (reports != 1 || !reasons || failed || check_failures) {
		fprintf(stderr, "FAILED: %d reports, %d reasons, %d and %d checks\n", reports, reasons, failed,
			atomic_load(&check_failures));
		_exit(1);
	}
}

static int never(int error, void *data)
{
	(void)error;
	see(NULL, data);
	return MPI_SUCCESS;
}

static void leave(MPI_Comm comm, bool kept)
{
	static struct seen seen;
	int out = 1, in;
	MPI_Request cr, r;

	check_begin("a continuation request that is never started");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPIX_Continue(&r, never, &seen, 0, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	if (!kept)
		CHECK_OK(MPI_Request_free(&cr));
	MPI_Barrier(comm);
	CHECK_EQ(seen.runs, 0);
}

int main(void)
{
	struct seen seen = {0};
	MPI_Session session;
	MPI_Request cr, r;
	MPI_Comm comm;

	check_watchdog();
	said = tmpfile();
	err = dup(STDERR_FILENO);
	atexit(look);
	for (int i = 0; i < 2; i++) {
		session = sessions_begin("MPI_THREAD_SINGLE");
		comm = sessions_comm(session);
		leave(comm, i == 1);

		check_begin("others run");
		cr = check_plain_cr();
		seen.runs = 0;
		MPI_Ibarrier(comm, &r);
		CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(seen.runs, 1);
		CHECK_OK(MPI_Request_free(&cr));
		if (i == 1)
			failed = sessions_sum(comm);
		MPI_Comm_free(&comm);
		CHECK_OK(MPI_Session_finalize(&session));
	}
	dup2(fileno(said), STDERR_FILENO);
	return failed || check_failures;
}
