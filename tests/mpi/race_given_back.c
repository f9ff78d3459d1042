/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* not on portable: MPI itself completes persistent requests there */
/* not on mpich: MPI itself completes persistent requests there */
/*
 * The thread that completes a persistent request which has a continuation gives it back to the program by one exchange
 * (src/mpi/native.c, op_complete). From then on another thread may start it again, or free it, and MPI may use it for
 * another operation: the completer does not touch it any more.
 */
#include "race.h"

#define TAG 21

static MPI_Request persistent, other;
static MPI_Comm comm;
static int in, other_in, runs;

static void ran(MPI_Status *status, void *data)
{
	(void)status, (void)data;
	runs++;
}

static void start_again(void)
{
	int flag = 0;

	CHECK_OK(MPI_Test(&persistent, &flag, MPI_STATUS_IGNORE));
	CHECK(flag);
	CHECK_OK(MPI_Start(&persistent));
	other = persistent;
}

static void free_it(void)
{
	CHECK_OK(MPI_Request_free(&persistent));
	CHECK_OK(MPI_Irecv(&other_in, 1, MPI_INT, 0, TAG + 1, comm, &other));
}

static void (*meanwhile)(void);

static void let_other_thread(void)
{
	side_do(meanwhile);
}

/* `tag`: that `other` receives afterwards. */
static void given_back(void (*act)(void), int tag)
{
	int out = 5, flag = -1;
	MPI_Request cr;

	runs = 0;
	CHECK_OK(MPI_Continue_init(MPI_INFO_NULL, &cr));
	CHECK_OK(MPI_Recv_init(&in, 1, MPI_INT, 0, TAG, comm, &persistent));
	CHECK_OK(MPI_Start(&persistent));
	CHECK_OK(MPI_Continue(&persistent, ran, NULL, MPI_STATUS_IGNORE, cr));
	meanwhile = act;
	point_at("op_given_back", let_other_thread);
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, TAG, comm));
	CHECK_SOON(atomic_load(&point_hits));
	CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
	point_off();
	CHECK_EQ(runs, 1);
	for (int i = 0; i < 100; i++) {
		CHECK_OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
		CHECK_EQ(flag, 0);
	}
	CHECK_OK(MPI_Send(&out, 1, MPI_INT, 0, tag, comm));
	CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
	if (other != MPI_REQUEST_NULL)
		CHECK_OK(MPI_Request_free(&other));
	CHECK_OK(MPI_Request_free(&cr));
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
	check_unbind();
	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	side_create();
	check_begin("started again");
	given_back(start_again, TAG);
	check_begin("freed");
	given_back(free_it, TAG + 1);
	side_join();
	MPI_Comm_free(&comm);
	return check_fini();
}
