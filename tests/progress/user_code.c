/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's progress, or what it prints, might run code of the program's: then none is made, unless that is allowed.
 *
 *     user_code KIND    KIND: operation, persistent, callback, unseen, handler, inner_handler, removed_handler, cookie,
 *                       hook
 */
#define _GNU_SOURCE
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

#include "closure.h"

static void operation(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
}

static void *hook(size_t size, const void *caller)
{
	(void)size, (void)caller;
	return NULL;
}

/* glibc had it before 2.34, and the progress library does not know who defines it. */
EXPORTED void *(*volatile __malloc_hook)(size_t, const void *); /* NOLINT */

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

static MPI_Op op;
static int in = 1, out;
static MPI_Request request = MPI_REQUEST_NULL;

static void begins_reduction(void)
{
	MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_SELF, &request);
}

static void begins_receive(void)
{
	MPI_Irecv(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
}

/* mpi.h may not declare it any more. */
int removed_create(void *function, MPI_Errhandler *handler) __asm__("MPI_Errhandler_create");

static void makes_handler(void)
{
	MPI_Errhandler errhandler;

	MPI_Comm_create_errhandler(handler, &errhandler);
}

static int calls(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
	(void)comm, (void)key, (void)value, (void)copy;
	(*(void (**)(void))extra)();
	*flag = 0;
	return MPI_SUCCESS;
}

/* MPI calls it, in one of its calls. */
static void from_mpi(void (*function)(void))
{
	int key = MPI_KEYVAL_INVALID;
	MPI_Comm comm, copy;

	MPI_Comm_create_keyval(calls, MPI_COMM_NULL_DELETE_FN, &key, &function);
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_attr(comm, key, &key);
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&comm);
	MPI_Comm_free_keyval(&key);
}

static void make_persistent(void)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
	MPIX_Allreduce_init(&in, &out, 1, MPI_INT, op, MPI_COMM_SELF, MPI_INFO_NULL, &request);
#else
	MPI_Allreduce_init(&in, &out, 1, MPI_INT, op, MPI_COMM_SELF, MPI_INFO_NULL, &request);
#endif
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	bool allowed = getenv("CONTD_PROGRESS_ALLOW") != NULL, ok;
	MPI_Errhandler errhandler;
	MPI_Request reduction;

	init_mpi(&argc, &argv);
	if (!contd_test_passed) {
		printf("the progress library does not run\n");
		return 1;
	}
	ok = progress_comes();
	MPI_Op_create(operation, 1, &op);
	if (!strcmp(kind, "operation")) {
		ok = ok && progress_comes(); /* nothing uses it */
		MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
		ok = ok && progress_comes(); /* it is MPI's own */
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		begins_reduction();
		ok = ok && progress_comes() == allowed;
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		ok = ok && progress_comes();
	} else if (!strcmp(kind, "persistent")) {
		make_persistent();
		ok = ok && progress_comes();
		for (int i = 0; i < 2; i++) {
			MPI_Start(&request);
			ok = ok && progress_comes() == allowed;
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			ok = ok && progress_comes();
		}
		MPI_Request_free(&request);
	} else if (!strcmp(kind, "callback")) {
		from_mpi(begins_reduction);
		ok = ok && progress_comes() == allowed;
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		ok = ok && progress_comes();
	} else if (!strcmp(kind, "unseen")) {
		/*
		 * A request that is completed here, but was begun in a callback, must not be taken for the reduction.
		 */
		begins_reduction();
		reduction = request;
		from_mpi(begins_receive);
		MPI_Send(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		ok = ok && progress_comes() == allowed;
		MPI_Waitall(1, &reduction, MPI_STATUSES_IGNORE);
		ok = ok && progress_comes();
	} else if (!strcmp(kind, "inner_handler")) {
		from_mpi(makes_handler);
		ok = ok && progress_comes() == allowed;
	} else if (!strcmp(kind, "removed_handler")) {
		removed_create((void *)(uintptr_t)handler, &errhandler);
		MPI_Errhandler_free(&errhandler);
		ok = ok && progress_comes() == allowed;
	} else if (!strcmp(kind, "hook")) {
		__malloc_hook = hook;
		ok = ok && progress_comes() == allowed;
		__malloc_hook = NULL;
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
	MPI_Op_free(&op);
	MPI_Finalize();
	return !ok;
}
