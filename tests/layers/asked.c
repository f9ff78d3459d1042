/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asked works|refused: a program that knows nothing of contd, with a tool preloaded that is linked with contd
 * (asker.c). The tool's status queries work, wherever contd stands. With the portable backend a CR needs the program's
 * calls: without them contd must say what to preload. With an MPI that forgets (mpich_forgets.h) queries need them too.
 */
#include <dlfcn.h>
#include <stdbool.h>

#include <mpi.h>

#include "said.h"

static int (*asker_asked)(void), (*asker_cr)(void);

static void pair(MPI_Request *request, char *in, const char *out)
{
	MPI_Irecv(in, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[0]);
	MPI_Isend(out, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request[1]);
}

/* Does MPI tell of a persistent request once only? */
static bool mpi_forgets(void)
{
	MPI_Request request;
	MPI_Status status;
	int flag = 0;

	MPI_Recv_init(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
	MPI_Start(&request);
	MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_SELF);
	while (!flag)
		MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
	MPI_Request_get_status(request, &flag, &status);
	MPI_Request_free(&request);
	return status.MPI_SOURCE != 0;
}

/* Nothing is asked, nothing completed, and each time it is said what to preload. */
static void refused(const char *remedy)
{
	MPI_Request request[2];
	int found = -1, place[2];
	char in = 0;

	pair(request, &in, "a");
	for (int i = 0; i < 3; i++) {
		int rc, lines;

		said_begin();
		rc = i == 0   ? MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
		     : i == 1 ? MPI_Waitany(2, request, &found, MPI_STATUS_IGNORE)
			      : MPI_Waitsome(2, request, &found, place, MPI_STATUSES_IGNORE);
		lines = said_end();
		CHECK(rc == MPI_ERR_OTHER && lines == 1 && strstr(said, remedy));
		CHECK(request[0] != MPI_REQUEST_NULL && request[1] != MPI_REQUEST_NULL);
	}
	for (int i = 0; i < 2; i++)
		MPI_Wait(&request[i], MPI_STATUS_IGNORE);
	CHECK(in == 'a');
}

static void queries(void)
{
	MPI_Request request[2], idle;
	int found = -1, place[2];
	int before = asker_asked();
	char in = 0;

	pair(request, &in, "a");
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	CHECK(in == 'a' && asker_asked() == before + 1);

	pair(request, &in, "b");
	MPI_Wait(&request[1], MPI_STATUS_IGNORE);
	MPI_Waitany(2, request, &found, MPI_STATUS_IGNORE);
	CHECK(in == 'b' && found == 0 && asker_asked() == before + 2);

	pair(request, &in, "c");
	MPI_Wait(&request[1], MPI_STATUS_IGNORE);
	MPI_Waitsome(2, request, &found, place, MPI_STATUSES_IGNORE);
	CHECK(in == 'c' && found == 1 && place[0] == 0 && asker_asked() == before + 3);

	MPI_Recv_init(&in, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &idle);
	MPI_Waitany(1, &idle, &found, MPI_STATUS_IGNORE);
	CHECK(found == MPI_UNDEFINED && asker_asked() == before + 4);
	MPI_Start(&idle);
	MPI_Send("d", 1, MPI_BYTE, 0, 1, MPI_COMM_SELF);
	MPI_Waitany(1, &idle, &found, MPI_STATUS_IGNORE);
	CHECK(in == 'd' && found == 0 && asker_asked() == before + 5);
	MPI_Request_free(&idle);
}

int main(int argc, char **argv)
{
	bool works = argc == 2 && strcmp(argv[1], "works") == 0;
	const char *preloaded = getenv("LD_PRELOAD");
	char remedy[4096];
	bool forgets;
	int rc, lines;

	alarm(60);
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	*(void **)&asker_asked = dlsym(RTLD_DEFAULT, "asker_asked");
	*(void **)&asker_cr = dlsym(RTLD_DEFAULT, "asker_cr");
	if (!preloaded || !asker_asked || !asker_cr)
		return 2;
	snprintf(remedy, sizeof(remedy), "LD_PRELOAD=%s:/", preloaded);
	said_begin();
	forgets = !works && mpi_forgets();
	if (!forgets)
		queries();
	lines = said_end();
	CHECK(lines == 0);
	if (forgets)
		refused(remedy);
	said_begin();
	rc = asker_cr();
	lines = said_end();
	CHECK(rc == (works ? MPI_SUCCESS : MPI_ERR_OTHER) && lines == !works);
	CHECK(works || (strstr(said, remedy) && strstr(strstr(said, remedy), "/libcontd-mpi")));
	if (forgets)
		refused(remedy);
	else
		queries(); /* a refusal has changed nothing */
	MPI_Finalize();
	return failures != 0;
}
