/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_fault FOLDER: messages around a ring of ranks, each of them with a continuation, until FOLDER/end is there; then
 * all must have run: 0. Where nothing comes any more for a while, or MPI is told to end, each rank says how many have
 * never run, as contd counts them, and ends with 3; with 1 where the counts do not add up.
 */
#include "fault.h"

#include <sched.h>

#include <contd/mpi.h>

enum { WINDOW = 8, BYTES = 100000, TAG = 5 };

struct message {
	long last; /* round after which the ring stops; 0: not known */
	long round;
	char fill[BYTES];
};

static struct message in[WINDOW], out[WINDOW];
static MPI_Status status[2 * WINDOW];

static void done(MPI_Status *s, void *data)
{
	(void)data;
	fault_count(s->MPI_ERROR == MPI_SUCCESS);
}

static void attach(int rc, MPI_Request *op, MPI_Status *s, MPI_Request cr)
{
	s->MPI_ERROR = MPI_SUCCESS;
	if (rc == MPI_SUCCESS && MPI_Continue(op, done, NULL, s, cr) == MPI_SUCCESS)
		fault_started++;
}

int main(int argc, char **argv)
{
	int rank, size, before, after, level, flag, wrong = 0, rc;
	static char who[32];
	long last = 0;
	MPI_Request cr, op;

	if (argc != 2)
		return 2;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	before = (rank + size - 1) % size;
	after = (rank + 1) % size;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Continue_init(MPI_INFO_NULL, &cr);
	snprintf(who, sizeof(who), "rank %d", rank);
	fault_who = who;
	fault_init(argv[1]);
	for (long round = 1; !last || round <= last; round++) {
		if (rank == 0 && !last && fault_over())
			last = round + size + 1; /* the news needs one round for each rank */
		for (int i = 0; i < WINDOW; i++) {
			rc = MPI_Irecv(&in[i], sizeof(in[i]), MPI_BYTE, before, TAG, MPI_COMM_WORLD, &op);
			attach(rc, &op, &status[i], cr);
			out[i].last = last;
			out[i].round = round;
			rc = MPI_Isend(&out[i], sizeof(out[i]), MPI_BYTE, after, TAG, MPI_COMM_WORLD, &op);
			attach(rc, &op, &status[WINDOW + i], cr);
		}
		for (flag = 0; !flag && !fault_late(); sched_yield())
			MPI_Test(&cr, &flag, MPI_STATUS_IGNORE);
		if (!flag || fault_failed)
			_exit(fault_report(contd_group_outstanding(contd_mpi_group(cr))) ? 1 : 3);
		for (int i = 0; i < WINDOW; i++)
			wrong += in[i].round != round;
		if (in[0].last)
			last = in[0].last;
	}
	if (fault_report(contd_group_outstanding(contd_mpi_group(cr))) || fault_failed)
		wrong++;
	MPI_Request_free(&cr);
	MPI_Finalize();
	return wrong != 0;
}
