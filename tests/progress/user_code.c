/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's progress, or what it prints, might run code of the program's: then none is made, unless that is allowed.
 *
 *     user_code KIND    KIND: operation, handler, cookie
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "closure.h"

static void operation(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
}

static ssize_t write_nothing(void *cookie, const char *text, size_t size)
{
	(void)cookie, (void)text;
	return (ssize_t)size;
}

/* Computes until one or the other has gone on. */
static bool progress_comes(void)
{
	uint64_t before = ran, not = passed(PASSED_USER);
	double give_up = now_s() + 60;

	while (ran < before + 20 && passed(PASSED_USER) < not +20 && now_s() < give_up)
		spin(20000);
	return ran >= before + 20;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	bool allowed = getenv("CONTD_PROGRESS_ALLOW") != NULL, ok;
	int in = 1, out = 0;
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Errhandler errhandler;
	MPI_Op op;

	MPI_Init(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	ok = progress_comes();
	if (!strcmp(kind, "operation")) {
		MPI_Op_create(operation, 1, &op);
		ok = ok && progress_comes(); /* nothing uses it */
		MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_SELF, &request);
		ok = ok && progress_comes() == allowed;
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Op_free(&op);
		ok = ok && progress_comes();
	} else if (!strcmp(kind, "handler")) {
		MPI_Comm_create_errhandler(handler, &errhandler);
		MPI_Errhandler_free(&errhandler); /* something may have it still */
		ok = ok && progress_comes() == allowed;
	} else if (!strcmp(kind, "cookie")) {
		FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_nothing});

		ok = ok && progress_comes() == allowed;
		fclose(stream);
	} else {
		ok = false;
	}
	MPI_Finalize();
	return !ok;
}
