/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: MALLOC_PERTURB_=165 */
/*
 * A receive fails beside sends that are pending and whose request objects are new. With the portable backend Open MPI's
 * (4.1) Testsome may forget the sends then, which take what is in their memory for an error: even so their
 * continuations run, with MPI_ERR_INTERN. The messages arrive.
 */
#include "errors.h"

#define SENDS 32
#define BYTES (1 << 18)
enum { TAG_LARGE = 1, TAG_SHORT };

static char large[BYTES];
static MPI_Status statuses[SENDS + 1];
static int ran[SENDS + 1], ran_all;

static void done(MPI_Status *status, void *data)
{
	(void)status;
	ran[(int)((MPI_Status *)data - statuses)]++;
	ran_all++;
}

static void fail_beside(void)
{
	const char *backend = getenv("CONTD_MPI_BACKEND");
	bool may_forget = backend && strcmp(backend, "portable") == 0;
	MPI_Request cr, request;
	int in;

	MPI_Continue_init(MPI_INFO_NULL, &cr);
	for (int i = 0; i < SENDS; i++) {
		MPI_Isend(large, BYTES, MPI_CHAR, 1, TAG_LARGE, MPI_COMM_WORLD, &request);
		CHECK_EQ(MPI_Continue(&request, done, &statuses[i], &statuses[i], cr), MPI_SUCCESS);
	}
	MPI_Irecv(&in, 1, MPI_INT, 1, TAG_SHORT, MPI_COMM_WORLD, &request);
	CHECK_EQ(MPI_Continue(&request, done, &statuses[SENDS], &statuses[SENDS], cr), MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	while (!ran[SENDS]) {
		int complete;

		MPI_Test(&cr, &complete, MPI_STATUS_IGNORE);
	}
	CHECK_EQ(class_of(statuses[SENDS].MPI_ERROR), MPI_ERR_TRUNCATE);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(ran_all, SENDS + 1);
	for (int i = 0; i < SENDS; i++) {
		int class = class_of(statuses[i].MPI_ERROR);

		CHECK_EQ(ran[i], 1);
		CHECK(class == MPI_SUCCESS || (may_forget && class == MPI_ERR_INTERN));
	}
	CHECK_EQ(MPI_Request_free(&cr), MPI_SUCCESS);
}

static void partner(void)
{
	int out[4] = {0};

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out, 4, MPI_INT, 0, TAG_SHORT, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < SENDS; i++) {
		memset(large, 0, sizeof(large));
		CHECK_EQ(MPI_Recv(large, BYTES, MPI_CHAR, 0, TAG_LARGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
			 MPI_SUCCESS);
		CHECK_EQ(large[0], 7);
		CHECK_EQ(large[BYTES - 1], 7);
	}
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	check_begin("a failure beside pending sends");
	memset(large, 7, sizeof(large));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (check_rank == 0)
		fail_beside();
	else
		partner();
	return check_fini();
}
