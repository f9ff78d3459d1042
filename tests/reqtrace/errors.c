/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives whose message is too long, among others, in every completion call: what is returned, what an error handler
 * is told and how often, and MPI_ERROR of each status. 2 ranks; rank 0 prints.
 */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#define N 3
#define UNTOUCHED (-4711)

static int told, told_last, rank;

static void handler(MPI_Comm *comm, int *code, ...)
{
	told++;
	MPI_Error_class(*code, &told_last);
}

static int class_of(int code)
{
	int class;

	if (code == UNTOUCHED)
		return code;
	MPI_Error_class(code, &class);
	return class;
}

static const char *name_of(int code)
{
	switch (class_of(code)) {
	case UNTOUCHED:
		return "untouched";
	case MPI_SUCCESS:
		return "success";
	case MPI_ERR_TRUNCATE:
		return "truncate";
	case MPI_ERR_IN_STATUS:
		return "in status";
	case MPI_ERR_PENDING:
		return "pending";
	default:
		return "other";
	}
}

/* Rank 0: three receives, of which the middle one fails; all has been decided when the call is made. */
static void run(MPI_Comm comm, const char *call)
{
	int in[N], out[4] = {1, 2, 3, 4}, indices[N] = {0, 1, 2}, n = 0, flag = 0, rc = MPI_SUCCESS, index = -1;
	MPI_Request requests[N];
	MPI_Status statuses[N];

	if (rank == 1) {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < N; i++)
			MPI_Send(out, i == 1 ? 4 : 1, MPI_INT, 0, i, comm);
		MPI_Send(out, 1, MPI_INT, 0, N, comm);
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	for (int i = 0; i < N; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, 1, i, comm, &requests[i]);
		memset(&statuses[i], 0, sizeof(statuses[i]));
		statuses[i].MPI_ERROR = statuses[i].MPI_SOURCE = statuses[i].MPI_TAG = UNTOUCHED;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(out, 1, MPI_INT, 1, N, comm, MPI_STATUS_IGNORE); /* messages do not overtake: the others are there */
	told = 0;
	if (!strcmp(call, "Waitall")) {
		rc = MPI_Waitall(N, requests, statuses);
		n = N;
	} else if (!strcmp(call, "Testall")) {
		while (!rc && !flag)
			rc = MPI_Testall(N, requests, &flag, statuses);
		n = N;
	} else if (!strcmp(call, "Waitsome")) {
		rc = MPI_Waitsome(N, requests, &n, indices, statuses);
	} else if (!strcmp(call, "Testsome")) {
		while (!rc && !n)
			rc = MPI_Testsome(N, requests, &n, indices, statuses);
	} else if (!strcmp(call, "Waitany")) {
		rc = MPI_Waitany(2, requests + 1, &index, statuses);
	} else if (!strcmp(call, "Testany")) {
		while (!rc && !flag)
			rc = MPI_Testany(2, requests + 1, &index, &flag, statuses);
	} else if (!strcmp(call, "Wait")) {
		rc = MPI_Wait(&requests[1], statuses);
	} else {
		while (!rc && !flag)
			rc = MPI_Test(&requests[1], &flag, statuses);
	}
#ifndef OPEN_MPI
	told = told > 0; /* MPICH's query tells the handler, too */
#endif
	printf("%s: %s, told %d times, last %s;", call, name_of(rc), told, told ? name_of(told_last) : "-");
	for (int i = 0; i < (n ? n : 1); i++)
		printf(" %d: %s", n ? indices[i] : index, name_of(statuses[i].MPI_ERROR));
	printf("; handles");
	for (int i = 0; i < N; i++)
		printf(" %d", requests[i] != MPI_REQUEST_NULL);
	printf("\n");
	for (int i = 0; i < N; i++)
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const char *const calls[] = {"Waitall", "Testall", "Waitsome", "Testsome",
					    "Waitany", "Testany", "Wait",     "Test"};
	MPI_Errhandler errhandler;
	MPI_Comm comm;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int own = 0; own < 2; own++) {
		if (own)
			MPI_Comm_create_errhandler(handler, &errhandler);
		/* MPICH takes the world's for calls with several requests. */
		MPI_Comm_set_errhandler(comm, own ? errhandler : MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, own ? errhandler : MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, own ? errhandler : MPI_ERRORS_RETURN);
		for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			run(comm, calls[i]);
	}
	MPI_Errhandler_free(&errhandler);
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
