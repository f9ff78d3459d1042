/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * MPI_Finalize in a continuation that runs inside a call that is not contd's. The native backend runs it in Open MPI's
 * progress, under which MPI cannot be ended: MPI_Finalize is refused, says so, and works when the call has returned.
 * With the others it works there.
 */
#include "check.h"

#define TAG 88

static int ran, class, on_self_count;
static FILE *said;

static void on_self(MPI_Comm *comm, int *error, ...)
{
	int its;

	(void)comm;
	MPI_Error_class(*error, &its);
	CHECK_EQ(its, MPI_ERR_OTHER);
	on_self_count++;
}

static void finalizes(MPI_Status *status, void *data)
{
	int err = dup(STDERR_FILENO), rc;

	(void)status, (void)data;
	ran++;
	check_begin("MPI_Finalize in the continuation");
	fflush(stderr);
	dup2(fileno(said), STDERR_FILENO);
	rc = MPI_Finalize();
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	if (rc == MPI_SUCCESS)
		class = MPI_SUCCESS;
	else
		MPI_Error_class(rc, &class);
}

/* Of what was written to stderr meanwhile. */
static int lines_with(const char *what)
{
	char line[256];
	int n = 0;

	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		n += strstr(line, what) != NULL;
	}
	return n;
}

int main(int argc, char **argv)
{
	int in[2], flag, ended = 0;
	MPI_Errhandler self;
	MPI_Request cr, receive;
	const int out = 1;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	said = tmpfile();
	MPI_Comm_create_errhandler(on_self, &self);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	check_begin("MPI_Iprobe");
	cr = check_plain_cr();
	MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receive);
	CHECK_OK(MPI_Continue(&receive, finalizes, NULL, MPI_STATUS_IGNORE, cr));
	MPI_Isend(&out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &receive);
	while (!ran)
		MPI_Iprobe(0, TAG + 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(ran, 1);
	MPI_Finalized(&ended);
	if (check_native()) {
		CHECK(!ended);
		CHECK_EQ(class, MPI_ERR_OTHER);
		CHECK_EQ(on_self_count, 1);
		CHECK_EQ(
			lines_with(" rank 0] MPI_Finalize: called by a continuation that runs inside another MPI call"),
			1);
		CHECK_OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_OK(MPI_Request_free(&cr));
		MPI_Errhandler_free(&self);
		return check_fini();
	}
	CHECK(ended);
	CHECK_EQ(class, MPI_SUCCESS);
	CHECK_EQ(on_self_count, 0);
	CHECK_EQ(lines_with("contd:"), 0);
	return check_failures != 0;
}
