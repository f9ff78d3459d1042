/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * s6_dlclose (contd.c) becomes this program, which does not link contd: it loads the library that it is told, leaves
 * continuations outstanding with timers armed and the daemon running, and unloads it. 77: contd refused to work there.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static volatile double computed;

static void never(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	fprintf(stderr, "a continuation ran\n");
	_exit(1);
}

static void compute(void)
{
	double x = 1;

	for (int i = 0; i < 50000000; i++)
		x = x * 1.000001 + 1e-9;
	computed = x;
}

static const char *volatile step = "MPI_Init_thread";

static void hung(int signo)
{
	const char *at = step;

	(void)signo;
	(void)!write(STDERR_FILENO, "hung in ", 8);
	(void)!write(STDERR_FILENO, at, strlen(at));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(1);
}

int main(int argc, char **argv)
{
	int (*init)(MPI_Info, MPI_Request *);
	int (*attach)(MPI_Request *, void (*)(MPI_Status *, void *), void *, MPI_Status *, MPI_Request);
	void *library;
	MPI_Request cr, op;
	MPI_Info info;
	int provided;
	char in;

	signal(SIGALRM, hung);
	alarm(90);
	if (argc != 2)
		return 2;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	step = "dlopen";
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&init = dlsym(library, "MPI_Continue_init");
	*(void **)&attach = dlsym(library, "MPI_Continue");
	if (!init || !attach)
		return 1;
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_continue_async_signal_safe", "true");
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	step = "MPI_Continue_init";
	if (init(info, &cr) != MPI_SUCCESS) {
		/* The portable backend must stand before MPI, and says so. */
		MPI_Info_free(&info);
		dlclose(library);
		MPI_Finalize();
		fprintf(stderr, "skipped: refused, as it should be with a backend that must be loaded before MPI\n");
		return 77;
	}
	MPI_Info_free(&info);
	MPI_Irecv(&in, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &op);
	step = "MPI_Continue";
	if (attach(&op, never, NULL, MPI_STATUS_IGNORE, cr) != MPI_SUCCESS)
		return 1;
	step = "the first computation";
	compute();
	step = "dlclose";
	dlclose(library);
	step = "the second computation";
	compute();
	step = "MPI_Finalize";
	MPI_Finalize();
	step = "the third computation";
	compute();
	return 0;
}
