// SPDX-License-Identifier: BSD-3-Clause
/* Different sources in one co_await: MPI, libfabric, an event, a word and a coroutine. Two ranks. */
#include <contd/mpi.hpp>

#include "fabric_self.hpp"

static contd::task<int> work(contd::event &e)
{
	co_return 1 + co_await e;
}

static contd::task<> together(fabric_self &f, int other)
{
	for (int i = 0; i < 50; i++) {
		int out = i, in = -1, sent = 2 * i, received = -1;
		alignas(8) uint64_t word = 0;
		contd::event e;

		if (i % 2) {
			e.complete(i);
			word = 1;
		}
		contd::scope s;
		s.spawn([](contd::event &ev, uint64_t &w, int status) -> contd::task<> {
			co_await contd::mpi(MPI_Ibarrier, MPI_COMM_WORLD);
			ev.complete(status);
			__atomic_store_n(&w, 1, __ATOMIC_RELEASE);
		}(e, word, i));
		auto [a, b, c, d, x, y] = co_await contd::when_all(
			contd::mpi(MPI_Irecv, &in, 1, MPI_INT, other, 0, MPI_COMM_WORLD),
			contd::mpi(MPI_Isend, &out, 1, MPI_INT, other, 0, MPI_COMM_WORLD),
			contd::fabric(*f.queue, fi_recv, f.ep, &received, sizeof(int), nullptr, FI_ADDR_UNSPEC),
			contd::fabric(*f.queue, fi_send, f.ep, &sent, sizeof(int), nullptr, f.self), work(e),
			contd::word_holds({&word, 0, 1, CONTD_WORD_EQ}));
		CHECK(a.MPI_SOURCE == other && in == i && received == 2 * i && c.length == sizeof(int) && x == i + 1);
		CHECK(b.MPI_ERROR == MPI_SUCCESS && d.status == 0);
		(void)y;
		co_await s.join();
	}
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	{
		contd::dispatcher d;
		fabric_self f("tcp");

		contd::sync_wait(together(f, 1 - rank));
	}
	MPI_Finalize();
	return 0;
}
