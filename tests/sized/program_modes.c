/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As program.c, of contd/modes.h: contd_mpi_op_run() in each mode, with one rank. There is
 * rubbish behind the operation, and behind a structure that ends early: contd must neither read nor change it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define LAYOUT(name) name
#ifdef SIZED_LATER
#define LATER uint64_t later[3];
#else
#define LATER
#endif
#include "layouts_modes_0_2.h"

int contd_mpi_op_run(struct contd_mpi_op *op, const struct contd_mode_attr *how);
const char *contd_error_text(void);
int contd_poll(uint32_t max);

enum { YIELD_WHILE, SUSPEND, NEW_TASK, CONTINUATION, MPIX }; /* enum contd_mode */
#define INVOKE_FAILED 16                                     /* MPIX_CONT_INVOKE_FAILED */

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, contd_error_text()); \
			exit(1); \
		} \
	} while (0)

#define CANARY 0xa5a5a5a5a5a5a5a5u

static struct {
	struct contd_mpi_op op;
	uint64_t behind[16];
} x;
static MPI_Request receive;
static int in, out, ended;

static int issue(struct contd_mpi_op *op)
{
	CHECK(op == &x.op);
	return MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &receive);
}

static void done(struct contd_mpi_op *op, int status)
{
	CHECK(op == &x.op && status == MPI_SUCCESS && in == out);
	ended++;
}

/* One message to oneself: it is there before the receive is issued, or comes after that. */
static void exchange(const struct contd_mode_attr *how, bool early)
{
	MPI_Request send = MPI_REQUEST_NULL;

	memset(&x, 0xa5, sizeof(x));
	x.op.count = 1;
	x.op.requests = &receive;
	x.op.statuses = MPI_STATUSES_IGNORE;
	x.op.issue = issue;
	x.op.done = done;
	ended = 0;
	out++;
	if (early)
		CHECK(MPI_Isend(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &send) == MPI_SUCCESS);
	CHECK(contd_mpi_op_run(&x.op, how) == MPI_SUCCESS);
	if (!early)
		CHECK(MPI_Isend(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &send) == MPI_SUCCESS);
	CHECK(MPI_Wait(&send, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	for (double from = MPI_Wtime(); !ended && MPI_Wtime() < from + 30;)
		CHECK(contd_poll(UINT32_MAX) >= 0);
	CHECK(ended == 1);
	for (size_t i = 0; i < sizeof(x.behind) / sizeof(*x.behind); i++)
		CHECK(x.behind[i] == CANARY);
}

/* Everything that it has is 0xff, but for its size and the fields that the caller sets then. */
#define SHORT(s, first_missing) \
	(memset(&(s), 0xff, sizeof(s)), memset(&(s), 0, offsetof(__typeof__(s), first_missing)), \
	 (s).size = offsetof(__typeof__(s), first_missing))

/* An operation that is refused: nothing is issued, and the text says why. */
static void refused(const struct contd_mode_attr *how, const char *why)
{
	int class;

	memset(&x, 0xa5, sizeof(x));
	x.op.count = 0;
	x.op.issue = NULL;
	x.op.done = NULL;
	CHECK(MPI_Error_class(contd_mpi_op_run(&x.op, how), &class) == MPI_SUCCESS && class == MPI_ERR_ARG);
	CHECK(strstr(contd_error_text(), why));
	CHECK(x.behind[0] == CANARY);
}

int main(int argc, char **argv)
{
	static const int modes[] = {YIELD_WHILE, SUSPEND, CONTINUATION, MPIX};
	struct contd_mode_attr how;

	CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		how = (struct contd_mode_attr){.size = sizeof(how), .mode = modes[i]};
		how.flags = modes[i] == MPIX ? INVOKE_FAILED : 0;
		exchange(&how, true);
		if (modes[i] >= CONTINUATION) /* the others return at completion */
			exchange(&how, false);
		/* Some MPI's handle shares a word with the flags: no structure ends between them. */
		if (offsetof(struct contd_mode_attr, cont_req) % sizeof(size_t) == 0) {
			SHORT(how, cont_req);
			how.mode = modes[i];
			how.flags = modes[i] == MPIX ? INVOKE_FAILED : 0;
			exchange(&how, true);
			if (modes[i] >= CONTINUATION)
				exchange(&how, false);
		}
		SHORT(how, suspend); /* no flags either, which MPIX does without if nothing fails */
		how.mode = modes[i];
		exchange(&how, true);
		if (modes[i] >= CONTINUATION)
			exchange(&how, false);
	}
	SHORT(how, mode); /* nothing but its size: the first mode */
	exchange(&how, true);
	SHORT(how, requests);
	how.mode = NEW_TASK;
	refused(&how, "how->completions");
#ifdef SIZED_LATER
	how = (struct contd_mode_attr){.size = sizeof(how), .later = {0, 0, 1}};
	refused(&how, "does not know");
#endif
	how = (struct contd_mode_attr){.size = sizeof(how) - 1};
	refused(&how, "how->size");
	how.size = 0;
	refused(&how, "how->size");
	CHECK(MPI_Finalize() == MPI_SUCCESS);
	return 0;
}
