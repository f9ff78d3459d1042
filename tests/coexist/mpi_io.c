/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's files under ticks, with blocking, nonblocking and collective calls, and continuations of the nonblocking
 * ones. */
#include "coexist.h"

#include <contd/mpi.h>

#define INTS 5000
#define ROUNDS 15

static int rank, size;
static atomic_int finished, bad;

static void on_end(MPI_Status *status, void *data)
{
	int count = -1;

	MPI_Get_count(status, MPI_INT, &count);
	if (status->MPI_ERROR != MPI_SUCCESS || count != INTS)
		atomic_fetch_add(&bad, 1);
	(void)data;
	atomic_fetch_add(&finished, 1);
}

static void check_block(const int *in, int of, int round)
{
	for (int i = 0; i < INTS; i++)
		CHECK_EQ(in[i], (round * 100 + of) * INTS + i);
}

int main(int argc, char **argv)
{
	static int out[INTS], in[INTS];
	static MPI_Status status[2];
	char name[4096] = "";
	MPI_Request cr, r;
	MPI_Offset bytes = INTS * sizeof(int);
	const char *folder = getenv("TMPDIR"); /* one that all ranks see */
	uint64_t ticks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		snprintf(name, sizeof(name), "%s/contd-coexist-io-%d", folder ? folder : "/tmp", (int)getpid());
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	ticking_begin();
	ticks = ticks_now();
	CHECK_EQ(MPI_Continue_init(MPI_INFO_NULL, &cr), MPI_SUCCESS);
	for (int round = 0; round < ROUNDS; round++) {
		int next = (rank + 1) % size;
		MPI_Offset length = 0;
		MPI_File f;

		for (int i = 0; i < INTS; i++)
			out[i] = (round * 100 + rank) * INTS + i;
		CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f),
			 MPI_SUCCESS);
		switch (round % 3) {
		case 0:
			CHECK_EQ(MPI_File_write_at(f, rank * bytes, out, INTS, MPI_INT, MPI_STATUS_IGNORE),
				 MPI_SUCCESS);
			break;
		case 1:
			CHECK_EQ(MPI_File_write_at_all(f, rank * bytes, out, INTS, MPI_INT, MPI_STATUS_IGNORE),
				 MPI_SUCCESS);
			break;
		default:
			CHECK_EQ(MPI_File_iwrite_at(f, rank * bytes, out, INTS, MPI_INT, &r), MPI_SUCCESS);
			CHECK_EQ(MPI_Continue(&r, on_end, NULL, &status[0], cr), MPI_SUCCESS);
			CHECK_EQ(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_SUCCESS);
		}
		CHECK_EQ(MPI_File_sync(f), MPI_SUCCESS);
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_EQ(MPI_File_get_size(f, &length), MPI_SUCCESS);
		CHECK_EQ(length, size * bytes);
		memset(in, 0, sizeof(in));
		CHECK_EQ(MPI_File_read_at(f, next * bytes, in, INTS, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
		check_block(in, next, round);
		memset(in, 0, sizeof(in));
		CHECK_EQ(MPI_File_read_at_all(f, rank * bytes, in, INTS, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
		check_block(in, rank, round);
		memset(in, 0, sizeof(in));
		CHECK_EQ(MPI_File_iread_at(f, next * bytes, in, INTS, MPI_INT, &r), MPI_SUCCESS);
		CHECK_EQ(MPI_Continue(&r, on_end, NULL, &status[1], cr), MPI_SUCCESS);
		contd_compute_begin();
		for (volatile int i = 0; i < 100000; i++)
			;
		contd_compute_end();
		CHECK_EQ(MPI_Wait(&cr, MPI_STATUS_IGNORE), MPI_SUCCESS);
		check_block(in, next, round);
		CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	}
	CHECK_EQ(atomic_load(&finished), ROUNDS + ROUNDS / 3);
	CHECK_EQ(atomic_load(&bad), 0);
	CHECK(ticks_now() > ticks + 100);
	if (rank == 0)
		MPI_File_delete(name, MPI_INFO_NULL);
	CHECK_EQ(MPI_Request_free(&cr), MPI_SUCCESS);
	MPI_Finalize();
	ticking_end();
	return 0;
}
