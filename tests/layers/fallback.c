/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fallback CASE: an Open MPI that the native backend does not know, or whose requests are not as it thinks, and the
 * values of CONTD_MPI_BACKEND. The program's own PMPI_ functions stand before Open MPI's.
 */
#include <dlfcn.h>

#include <contd/mpi.h>

#include "said.h"

static enum { AS_IT_IS, OTHER_VERSION, OTHER_MPI, OTHER_REQUESTS } pretend;

int PMPI_Get_library_version(char *version, int *length)
{
	int (*real)(char *, int *);

	if (pretend == OTHER_VERSION || pretend == OTHER_MPI) {
		strcpy(version, pretend == OTHER_VERSION ? "Open MPI v4.0.9, package: none, 2049" : "Some MPI 1.0");
		*length = (int)strlen(version);
		return MPI_SUCCESS;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "PMPI_Get_library_version");
	return real(version, length);
}

/* A good request, but not of the communicator that was given. */
int PMPI_Recv_init(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	int (*real)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

	*(void **)&real = dlsym(RTLD_NEXT, "PMPI_Recv_init");
	return real(buf, count, type, source, tag, pretend == OTHER_REQUESTS ? MPI_COMM_SELF : comm, request);
}

static const struct {
	const char *name;
	int pretend;
	const char *backend; /* NULL: not set */
	int fails, lines;
	const char *backend_said, *why;
	const char *told; /* by contd_mpi_backend() */
} cases[] = {
	{"as_it_is", AS_IT_IS, NULL, 0, 0, "", "", "native"},
	{"empty", AS_IT_IS, "", 0, 0, "", "", "native"},
	{"auto", AS_IT_IS, "auto", 0, 0, "", "", "native"},
	{"version", OTHER_VERSION, NULL, 0, 1, "portable backend", "Open MPI 4.0 ", "portable"},
	{"version_auto", OTHER_VERSION, "auto", 0, 1, "portable backend", "Open MPI 4.0 ", "portable"},
	{"version_native", OTHER_VERSION, "native", 1, 1, "CONTD_MPI_BACKEND=native", "Open MPI 4.0 ", NULL},
	{"version_portable", OTHER_VERSION, "portable", 0, 0, "", "",
	 "portable"}, /* as was asked: nothing to be said */
	{"other_mpi", OTHER_MPI, NULL, 0, 1, "portable backend", "not Open MPI", "portable"},
	{"probe", OTHER_REQUESTS, NULL, 0, 1, "portable backend", "requests do not look", "portable"},
	{"probe_native", OTHER_REQUESTS, "native", 1, 1, "CONTD_MPI_BACKEND=native", "requests do not look", NULL},
	{"nonsense", AS_IT_IS, "quick", 1, 1, "CONTD_MPI_BACKEND=quick", "native, portable or auto", NULL},
};

static void count(MPI_Status *status, void *data)
{
	CHECK(status->MPI_TAG == 7 && status->MPI_ERROR == MPI_SUCCESS);
	++*(int *)data;
}

static void use(MPI_Request cr)
{
	int in[2] = {-1, -1}, out = 5, ran = 0;
	MPI_Request request, persistent;
	MPI_Status status[2];

	MPI_Irecv(&in[0], 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
	CHECK(MPI_Continue(&request, count, &ran, &status[0], cr) == MPI_SUCCESS);
	MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF);
	MPI_Recv_init(&in[1], 1, MPI_INT, 0, 7, MPI_COMM_SELF, &persistent);
	MPI_Start(&persistent);
	CHECK(MPI_Continue(&persistent, count, &ran, &status[1], cr) == MPI_SUCCESS);
	MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF);
	CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	CHECK(ran == 2 && in[0] == out && in[1] == out);
	MPI_Request_free(&persistent);
}

int main(int argc, char **argv)
{
	MPI_Request cr = MPI_REQUEST_NULL;
	const char *told, *steps = NULL, *failed;
	int rc, lines, n = (int)(sizeof(cases) / sizeof(cases[0])), i;

	alarm(60);
	for (i = 0; i < n && (argc < 2 || strcmp(argv[1], cases[i].name) != 0); i++)
		;
	if (i == n)
		return 2;
	if (cases[i].backend)
		setenv("CONTD_MPI_BACKEND", cases[i].backend, 1);
	else
		unsetenv("CONTD_MPI_BACKEND");
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	pretend = cases[i].pretend;
	said_begin();
	rc = MPI_Continue_init(MPI_INFO_NULL, &cr);
	pretend = AS_IT_IS;
	if (rc == MPI_SUCCESS) {
		use(cr);
		CHECK(MPI_Request_free(&cr) == MPI_SUCCESS);
		/* It is said once. */
		CHECK(MPI_Continue_init(MPI_INFO_NULL, &cr) == MPI_SUCCESS);
		CHECK(MPI_Request_free(&cr) == MPI_SUCCESS);
	}
	lines = said_end();
	pretend = cases[i].pretend; /* if contd cannot begin, each call tries again */
	told = contd_mpi_backend(&steps);
	pretend = AS_IT_IS;
	failed = contd_error_text();
	CHECK(rc == (cases[i].fails ? MPI_ERR_OTHER : MPI_SUCCESS));
	CHECK(cr == MPI_REQUEST_NULL);
	CHECK(lines == cases[i].lines);
	CHECK(lines == 0 || strncmp(said, "contd: ", 7) == 0);
	CHECK(strstr(said, cases[i].backend_said) && strstr(said, cases[i].why));
	if (cases[i].fails) {
		CHECK(!told && !steps && strncmp(failed, "contd_mpi_backend: ", 19) == 0);
		CHECK(strstr(failed, "CONTD_MPI_BACKEND"));
	} else {
		CHECK(strcmp(told, cases[i].told) == 0);
		CHECK(contd_mpi_backend(NULL) == told);
		CHECK(strstr(steps, cases[i].why) && !strstr(steps, "native backend: ") == !*cases[i].why);
		CHECK(!strstr(steps, "CONTD_MPI_BACKEND is") == (!cases[i].backend || !*cases[i].backend));
		/* Each step of the probe, and no other. */
		CHECK(!strstr(steps, "at each step of a probe") == (strcmp(told, "native") != 0));
		CHECK(!strstr(steps, "calls of MPI come to contd") == (strcmp(told, "portable") != 0));
	}
	MPI_Finalize();
	return failures != 0;
}
