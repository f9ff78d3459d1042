// SPDX-License-Identifier: BSD-3-Clause
/* The ring with co_await: see ring.hpp. */
#include "ring.hpp"

static contd::task<> rounds(ring &r)
{
	/* A message's hops say through how many ranks it has been: the last one brings it home. */
#define ROUND(n) \
	for (int hop = 0; hop < r.ranks; hop++) { \
		co_await contd::mpi(MPI_Isend, hop ? &r.in[n] : &r.out[n], 1, MPI_INT, r.right, n, MPI_COMM_WORLD); \
		MPI_Status status = co_await contd::mpi(MPI_Irecv, &r.in[n], 1, MPI_INT, r.left, n, MPI_COMM_WORLD); \
		CHECK(status.MPI_TAG == (n)); \
	}
	ROUNDS(ROUND)
}

int main(int argc, char **argv)
{
	ring r;

	MPI_Init(&argc, &argv);
	r.begin();
	{
		contd::dispatcher d;
		contd::sync_wait(rounds(r));
	}
	r.check();
	MPI_Finalize();
	return 0;
}
