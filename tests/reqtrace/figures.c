/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that complete at the worst moment, always the same: generalized requests, whose functions MPI calls when it
 * is asked for the status (query) and when one is completed (free). Requests that Testsome completes are printed.
 */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

static MPI_Request others; /* the one that a function completes */

static int complete_other(void)
{
	MPI_Request r = others;

	others = MPI_REQUEST_NULL;
	return r == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Grequest_complete(r);
}

static int query(void *state, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_BYTE, 0);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 0;
	status->MPI_TAG = *(int *)state;
	return *(int *)state == 'q' ? complete_other() : MPI_SUCCESS;
}

static int release(void *state)
{
	return *(int *)state == 'f' ? complete_other() : MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
	return MPI_SUCCESS;
}

/* Testsome until all is complete: one that is complete at place `at`, and one that its function completes. */
static void run(const char *name, int function, int at)
{
	MPI_Request requests[2];
	int states[2] = {'-', '-'}, indices[2], outcount = 0;

	states[at] = function;
	for (int i = 0; i < 2; i++)
		MPI_Grequest_start(query, release, cancel, &states[i], &requests[i]);
	others = requests[!at];
	MPI_Grequest_complete(requests[at]);
	printf("%s:", name);
	for (int calls = 0; calls < 10 && outcount != MPI_UNDEFINED; calls++) {
		MPI_Testsome(2, requests, &outcount, indices, MPI_STATUSES_IGNORE);
		if (outcount != MPI_UNDEFINED)
			printf(" %d(", outcount);
		for (int i = 0; outcount != MPI_UNDEFINED && i < outcount; i++)
			printf("%s%d", i ? "," : "", indices[i]);
		if (outcount != MPI_UNDEFINED)
			printf(")");
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	run("while it is asked", 'q', 1); /* the other one has been asked already */
	run("while it is completed", 'f', 0);
	MPI_Finalize();
	return 0;
}
