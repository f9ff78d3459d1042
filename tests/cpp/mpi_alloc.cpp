// SPDX-License-Identifier: BSD-3-Clause
/*
 * The headers allocate nothing for an MPI operation that is awaited, or sent: 10000 of each, counted. MPI and contd
 * call malloc() below for what the same calls in C take, and for nothing else.
 */
#include <contd/mpi.hpp>

#include "check.hpp"
#include "counted.hpp"
#include "mini.hpp"

static constexpr int warm = 1000, many = 10000;

struct count {
	long news, mallocs;
};

template <class F> static count counting(const char *name, F &&f)
{
	f(warm);
	count c = {counted_news, counted_mallocs};
	f(many);
	c = {counted_news - c.news, counted_mallocs - c.mallocs};
	std::printf("%-24s %6ld by operator new, %6ld by malloc in all\n", name, c.news, c.mallocs);
	return c;
}

static int in_c_left;

static int in_c_done(int, void *)
{
	in_c_left--;
	return MPI_SUCCESS;
}

/* The receive first: it waits, and the send completes it. */
static void in_c(int n)
{
	for (int i = 0; i < n; i++) {
		int v = i, w = -1, flag;
		MPI_Request r, s;
		MPI_Status status, sent;

		MPI_Irecv(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r);
		MPI_Test(&r, &flag, &status);
		in_c_left = 1;
		MPIX_Continue(&r, in_c_done, nullptr, MPIX_CONT_INVOKE_FAILED, &status, MPI_REQUEST_NULL);
		MPI_Isend(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &s);
		MPI_Test(&s, &flag, &sent);
		CHECK(flag);
		while (in_c_left)
			contd_poll(0);
	}
}

/* n and the rest in the frame, which is made before the count. */
static contd::task<> awaiting(const int &n, bool &begun, contd::event &go)
{
	for (;;) {
		co_await go;
		go.reset();
		if (n == 0)
			co_return;
		for (int i = 0; i < n; i++) {
			int v = i, w = -1;

			co_await contd::when_all(contd::mpi(MPI_Irecv, &w, 1, MPI_INT, 0, 0, MPI_COMM_SELF),
						 contd::mpi(MPI_Isend, &v, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
			CHECK(w == i);
		}
		begun = false;
	}
}

static void sent(int n)
{
	for (int i = 0; i < n; i++) {
		int v = i, w = -1, ends = 0;
		auto wake = [](void *to) noexcept { ++*static_cast<int *>(to); };
		auto receive = mini::just(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF) | contd::transform_mpi(MPI_Irecv);
		auto send = mini::just(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF) | contd::transform_mpi(MPI_Isend);
		mini::started<decltype(receive)> one(std::move(receive), {}, wake, &ends);
		mini::started<decltype(send)> two(std::move(send), {}, wake, &ends);

		while (ends < 2)
			contd_poll(0);
		CHECK(one.result.values && two.result.values && w == i);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	{
		contd::dispatcher d;
		contd::scope s;
		contd::event go;
		int n = 0;
		bool busy = false;

		s.spawn(awaiting(n, busy, go));
		count c = counting("in C", in_c);
		count awaited = counting("awaited", [&](int times) {
			n = times;
			busy = true;
			go.complete();
			while (busy)
				contd_poll(0);
		});
		count senders = counting("sent", sent);
		n = 0;
		go.complete();
		s.wait();
		CHECK(awaited.news == 0 && senders.news == 0);
		CHECK(awaited.mallocs <= c.mallocs + many / 100 && senders.mallocs <= c.mallocs + many / 100);
	}
	MPI_Finalize();
	return 0;
}
