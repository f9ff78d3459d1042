// SPDX-License-Identifier: BSD-3-Clause
/*
 * A ring of 25 rounds, written out: in each a rank sends a message that travels through all ranks and home, and hands
 * the others' on. The rounds are repeated by the preprocessor, so that each has separate operations, as in a program
 * that a person, or a code generator, wrote without a loop.
 */
#ifndef TESTS_CPP_RING_HPP
#define TESTS_CPP_RING_HPP

#include <contd/mpi.hpp>

#include "check.hpp"

#define FIVE(x, n) x((n) + 0) x((n) + 1) x((n) + 2) x((n) + 3) x((n) + 4)
#define ROUNDS(x) FIVE(x, 0) FIVE(x, 5) FIVE(x, 10) FIVE(x, 15) FIVE(x, 20)

struct ring {
	int rank, ranks, left, right;
	int out[25], in[25];

	void begin()
	{
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Comm_size(MPI_COMM_WORLD, &ranks);
		left = (rank + ranks - 1) % ranks;
		right = (rank + 1) % ranks;
		for (int i = 0; i < 25; i++) {
			out[i] = 1000 * i + rank;
			in[i] = -1;
		}
	}
	/* Each is home again. */
	void check() const
	{
		for (int i = 0; i < 25; i++)
			CHECK(in[i] == 1000 * i + rank);
	}
};

#endif
