/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* environment: OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_btl_tcp_sndbuf=4096 */
/*
 * A buffered persistent send that is started again while its message is still on its way: Open MPI starts another
 * request in its place, with another handle. That one is persistent too, and stays so when a continuation is attached.
 * (By TCP, where the send is not complete at once.)
 */
#include "check.h"

enum { BYTES = 1 << 20, ROUNDS = 4 };

static char message[BYTES], buffer[(ROUNDS + 1) * (BYTES + MPI_BSEND_OVERHEAD)];

static void ran_once(MPI_Status *status, void *data)
{
	(void)status;
	++*(int *)data;
}

static void send_all(bool together)
{
	MPI_Request r, cr = check_plain_cr();
	int ran = 0, moved = 0;

	CHECK_OK(MPI_Bsend_init(message, BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &r));
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request before = r;

		CHECK_OK(together ? MPI_Startall(1, &r) : MPI_Start(&r));
		moved += r != before;
		before = r;
		CHECK_OK(MPI_Continue(&r, ran_once, &ran, MPI_STATUS_IGNORE, cr));
		CHECK(r == before);
		CHECK_OK(MPI_Wait(&cr, MPI_STATUS_IGNORE));
		CHECK_EQ(ran, i + 1);
		/* Inactive now, and still there. */
		CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		CHECK(r == before);
	}
	printf("%d of %d starts gave another handle\n", moved, ROUNDS);
	CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD)); /* from here on they are received */
	CHECK_OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Request_free(&r));
	CHECK_OK(MPI_Request_free(&cr));
}

static void receive_all(void)
{
	CHECK_OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	for (int i = 0; i < ROUNDS; i++)
		CHECK_OK(MPI_Recv(message, BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	int bytes = sizeof(buffer);
	void *back;

	check_init(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_OK(MPI_Buffer_attach(buffer, bytes));
	for (int together = 0; together < 2; together++) {
		check_begin(together ? "Startall" : "Start");
		if (check_rank == 0)
			send_all(together);
		else
			receive_all();
	}
	CHECK_OK(MPI_Buffer_detach(&back, &bytes));
	return check_fini();
}
