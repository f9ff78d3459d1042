/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/*
 * A callback may call any function of MPI's: MPI_Finalize, too. MPI_Finalize does not report the running
 * continuation as one that never ran, and contd gives nothing back to an MPI that has ended. The call that ran the
 * callback returns.
 */
#include "check.h"

#define TAG 77
#ifndef REVISED
#define REVISED false
#endif
#ifndef FREES
#define FREES false /* the callback frees its continuation request before */
#endif

static int runs;
static MPI_Request cr;

static void finalizes(MPI_Status *status, void *data)
{
	(void)status;
	runs++;
	if (FREES)
		CHECK_OK(MPI_Request_free(&cr));
	*(int *)data = check_finalize_inside();
}

static int finalizes_revised(int error, void *data)
{
	CHECK_EQ(error, MPI_SUCCESS);
	finalizes(NULL, data);
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	bool revised;
	int in[2], out[2] = {1, 2}, failed = -1, flag;
	MPI_Status statuses[2];
	MPI_Request r[2];

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	revised = REVISED;
	check_begin("a callback of two receives");
	if (revised) {
		CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
		CHECK_OK(MPI_Start(&cr));
	} else {
		cr = check_plain_cr();
	}
	for (int i = 0; i < 2; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &r[i]);
	if (revised)
		CHECK_OK(MPIX_Continueall(2, r, finalizes_revised, &failed, 0, statuses, cr));
	else
		CHECK_OK(MPI_Continueall(2, r, finalizes, &failed, statuses, cr));
	for (int i = 0; i < 2; i++)
		MPI_Send(&out[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF);
	while (!runs)
		MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(runs, 1);
	return failed || check_failures;
}
