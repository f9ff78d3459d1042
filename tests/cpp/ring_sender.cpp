// SPDX-License-Identifier: BSD-3-Clause
/* The ring as one sender of 100 stages, two for each hop, erased after each round: see ring.hpp. For two ranks. */
#include "mini.hpp"
#include "ring.hpp"

int main(int argc, char **argv)
{
	ring r;

	MPI_Init(&argc, &argv);
	r.begin();
	CHECK(r.ranks == 2);
	{
		contd::dispatcher d;

#define HOP(n, buffer) \
	| contd::transform_mpi([&r](MPI_Status, MPI_Request *to) { \
		  return MPI_Isend(&r.buffer[n], 1, MPI_INT, r.right, n, MPI_COMM_WORLD, to); \
	  }) | contd::transform_mpi([&r](MPI_Status, MPI_Request *to) { \
		  return MPI_Irecv(&r.in[n], 1, MPI_INT, r.left, n, MPI_COMM_WORLD, to); \
	  })
#define ROUND(n) HOP(n, out) HOP(n, in) | contd::erase()
		CHECK(mini::sync_wait(mini::just(MPI_Status{}) ROUNDS(ROUND)));
	}
	r.check();
	MPI_Finalize();
	return 0;
}
