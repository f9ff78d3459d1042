/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* needs: sessions */
/*
 * A continuation that never runs: the last MPI_Session_finalize says so, in its own name, and contd does not begin
 * again, because the callback's data may be gone.
 */
#include "sessions.h"

#define TAG 32

static FILE *said;
static int err;

static void listen_begin(void)
{
	said = tmpfile();
	err = dup(STDERR_FILENO);
	dup2(fileno(said), STDERR_FILENO);
}

/* How many of the lines since listen_begin contain the text. */
static int listen_end(const char *text)
{
	char line[512];
	int n = 0;

	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		n += strstr(line, text) != NULL;
	}
	fclose(said);
	return n;
}

static int never(int error, void *data)
{
	(void)error;
	see(NULL, data);
	return MPI_SUCCESS;
}

int main(void)
{
	struct seen seen = {0};
	int out = 1, in, failed;
	MPI_Request cr, r;
	MPI_Session session;
	MPI_Comm comm;

	check_watchdog();
	session = sessions_begin("MPI_THREAD_SINGLE");
	comm = sessions_comm(session);
	check_begin("a continuation request that is never started");
	CHECK_OK(MPIX_Continue_init(0, MPI_UNDEFINED, MPI_INFO_NULL, &cr));
	MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
	CHECK_OK(MPIX_Continue(&r, never, &seen, 0, MPI_STATUS_IGNORE, cr));
	MPI_Send(&out, 1, MPI_INT, check_next(), TAG, comm);
	failed = sessions_sum(comm);
	MPI_Comm_free(&comm);

	check_begin("the end");
	listen_begin();
	CHECK_OK(MPI_Session_finalize(&session));
	CHECK_EQ(listen_end("MPI_Session_finalize: rank"), 1);
	CHECK_EQ(seen.runs, 0);
	if (!AGAIN)
		return failed || check_failures;

	check_begin("the next session");
	session = sessions_begin("MPI_THREAD_SINGLE");
	listen_begin();
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &cr), MPI_ERR_OTHER);
	CHECK_EQ(listen_end("were left over"), 1);
	CHECK_EQ(sessions_errors, 1);
	CHECK_OK(MPI_Session_finalize(&session));
	return failed || check_failures;
}
