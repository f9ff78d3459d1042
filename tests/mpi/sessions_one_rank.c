/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 3 */
/* needs: sessions */
/*
 * Only rank 0 uses contd. MPI ends with the last session in all processes, so that they can begin the next one
 * together: contd's own session must not keep MPI there.
 */
#include "sessions.h"

#define TAG 34

int main(void)
{
	struct seen seen = {0};
	int in = -1, out = 3, failed = 0;
	MPI_Session session;
	MPI_Request cr, r;
	MPI_Comm comm;

	check_watchdog();
	for (int i = 1; i <= (AGAIN ? 3 : 1); i++) {
		check_begin("a session");
		session = sessions_begin("MPI_THREAD_MULTIPLE");
		comm = sessions_comm(session);
		if (check_rank == 0) {
			cr = check_plain_cr();
			MPI_Irecv(&in, 1, MPI_INT, check_previous(), TAG, comm, &r);
			CHECK_OK(MPI_Continue(&r, see, &seen, MPI_STATUS_IGNORE, cr));
			CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
			CHECK_EQ(seen.runs, i);
			CHECK_EQ(in, out);
			CHECK_OK(MPI_Request_free(&cr));
		} else if (check_rank == check_size - 1) {
			MPI_Send(&out, 1, MPI_INT, 0, TAG, comm);
		}
		failed += sessions_sum(comm);
		MPI_Comm_free(&comm);
		check_begin("its end");
		CHECK_OK(MPI_Session_finalize(&session));
	}
	return failed || check_failures;
}
