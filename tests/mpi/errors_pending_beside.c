/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: MALLOC_PERTURB_=165 */
/*
 * A callback has failed, and its CR is completed by a call that is about pending sends, too, whose request objects are
 * new: the sends' handles stay, and MPI_COMM_SELF's error handler alone is told, once.
 */
#include "errors.h"

#define SENDS 32
#define BYTES (1 << 18)
#define TAG 79

enum call { TESTANY, WAITANY, TESTSOME, WAITSOME, CALLS };

static const char *const name[CALLS] = {"MPI_Testany", "MPI_Waitany", "MPI_Testsome", "MPI_Waitsome"};
static char large[BYTES];

/* The sends stay pending: those of the next call get new request objects. */
static void beside(enum call call, MPI_Request *requests)
{
	int rc, flag = 1, index = -1, count = -1, indices[SENDS + 1], failed = 2;
	static MPI_Status statuses[SENDS + 1];
	MPI_Request sends[SENDS], cr, none = MPI_REQUEST_NULL;
	void *data[2];

	check_begin(name[call]);
	for (int i = 0; i < SENDS; i++) {
		MPI_Isend(large, BYTES, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &requests[i]);
		sends[i] = requests[i];
	}
	CHECK_OK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Start(&cr));
	CHECK_OK(MPIX_Continue(&none, fails, NULL, 0, MPI_STATUS_IGNORE, cr));
	requests[SENDS] = cr;
	on_self_count = on_world_count = 0;
	switch (call) {
	case TESTANY:
		rc = MPI_Testany(SENDS + 1, requests, &index, &flag, &statuses[0]);
		break;
	case WAITANY:
		rc = MPI_Waitany(SENDS + 1, requests, &index, &statuses[0]);
		break;
	case TESTSOME:
		rc = MPI_Testsome(SENDS + 1, requests, &count, indices, statuses);
		break;
	default:
		rc = MPI_Waitsome(SENDS + 1, requests, &count, indices, statuses);
		break;
	}
	CHECK_EQ(on_self_count, 1);
	CHECK_EQ(on_self_class, MPI_ERR_OTHER);
	CHECK_EQ(on_world_count, 0);
	if (call == TESTANY || call == WAITANY) {
		CHECK_EQ(class_of(rc), MPI_ERR_OTHER);
		CHECK(flag);
	} else {
		CHECK_EQ(class_of(rc), MPI_ERR_IN_STATUS);
		CHECK_EQ(count, 1);
		index = indices[0];
		CHECK_EQ(class_of(statuses[0].MPI_ERROR), MPI_ERR_OTHER);
	}
	CHECK_EQ(index, SENDS);
	for (int i = 0; i < SENDS; i++)
		CHECK(requests[i] == sends[i]);
	CHECK(requests[SENDS] == cr);
	CHECK_OK(MPIX_Continue_get_failed(cr, &failed, data));
	CHECK_EQ(failed, 1);
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	static MPI_Request requests[CALLS][SENDS + 1];
	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	count_errors();
	for (int call = 0; call < CALLS && check_rank == 0; call++)
		beside(call, requests[call]);
	check_begin("the messages arrive");
	MPI_Barrier(MPI_COMM_WORLD);
	for (int call = 0; call < CALLS; call++) {
		if (check_rank == 0)
			CHECK_OK(MPI_Waitall(SENDS, requests[call], MPI_STATUSES_IGNORE));
		for (int i = 0; i < SENDS && check_rank == 1; i++)
			MPI_Recv(large, BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return check_fini();
}
