// SPDX-License-Identifier: BSD-3-Clause
/* contd::transform_mpi(), with two ranks. */
#include <contd/mpi.hpp>

#include <memory>
#include <string>

#include "check.hpp"
#ifdef CONTD_STDEXEC
#if __has_include(<exec/start_detached.hpp>)
#include <exec/start_detached.hpp>
using exec::start_detached;
#else
using stdexec::start_detached;
#endif
namespace given = stdexec;
#else
#include "mini.hpp"
namespace given = mini;
#endif

using contd::transform_mpi;

static int rank;
static MPI_Comm comm;

static int other()
{
	return 1 - rank;
}

static void shapes()
{
	auto s = given::just(static_cast<MPI_Comm>(comm)) | transform_mpi(MPI_Ibarrier);

	static_assert(contd::sender<decltype(s)>);
	static_assert(!contd::sender<int>);
#ifdef CONTD_STDEXEC
	static_assert(stdexec::sender<decltype(s)>);
	static_assert(stdexec::sender_in<decltype(s), stdexec::env<>>);
	struct receiver {
		using receiver_concept = stdexec::receiver_t;
		void set_value(MPI_Status) noexcept;
		void set_error(std::exception_ptr) noexcept;
		void set_stopped() noexcept;
	};
	static_assert(stdexec::sender_to<decltype(s), receiver>);
	static_assert(stdexec::operation_state<stdexec::connect_result_t<decltype(s), receiver>>);
#endif
}

static void values()
{
	for (int i = 0; i < 100; i++) {
		int v = 10 * i + rank, w = -1;

		if (rank == 0) {
			auto sent =
				given::sync_wait(given::just(&v, 1, MPI_INT, 1, i, comm) | transform_mpi(MPI_Isend));
			CHECK(sent);
			auto got = given::sync_wait(given::just(&w, 1, MPI_INT, MPI_ANY_SOURCE, i, comm) |
						    transform_mpi(MPI_Irecv) |
						    given::then([&](MPI_Status s) { return s.MPI_TAG + w; }));
			CHECK(got && std::get<0>(*got) == i + 10 * i + 1);
		} else {
			/* One after the other, in one sender: what is between is in lambdas. */
			auto got = given::sync_wait(given::just(&w, 1, MPI_INT, 0, i, comm) | transform_mpi(MPI_Irecv) |
						    transform_mpi([&](MPI_Status s, MPI_Request *r) {
							    CHECK(s.MPI_SOURCE == 0 && w == v - 1);
							    return MPI_Isend(&v, 1, MPI_INT, 0, s.MPI_TAG, comm, r);
						    }) |
						    transform_mpi([](MPI_Status, MPI_Request *r) {
							    return MPI_Ibarrier(MPI_COMM_SELF, r);
						    }));
			CHECK(got && std::get<0>(*got).MPI_ERROR == MPI_SUCCESS);
		}
	}
	/* Values are moved into the state, and live as long. */
	auto buffer = std::make_unique<int>(rank);
	auto got = given::sync_wait(given::just(std::move(buffer)) |
				    transform_mpi([](std::unique_ptr<int> &b, MPI_Request *r) {
					    return MPI_Iallreduce(MPI_IN_PLACE, b.get(), 1, MPI_INT, MPI_SUM, comm, r);
				    }));
	CHECK(got);
}

static void errors()
{
	int v = 0;

	try {
		given::sync_wait(given::just(&v, 1, MPI_INT, 99, 0, comm) | transform_mpi(MPI_Isend));
		CHECK(false);
	} catch (const contd::mpi_error &e) {
		CHECK(e.error_class() == MPI_ERR_RANK);
	}
	CHECK(throws<std::string>([] {
		given::sync_wait(given::just() | transform_mpi([](MPI_Request *) -> int { throw std::string("x"); }));
	}));
	/* The first sender fails, or one in the middle: the rest is not begun. */
	bool begun = false;
	auto never = [&](auto, MPI_Request *r) {
		begun = true;
		*r = MPI_REQUEST_NULL;
		return MPI_SUCCESS;
	};
	CHECK(throws<contd::mpi_error>([&] {
		given::sync_wait(given::just(&v, 1, MPI_INT, 99, 0, comm) | transform_mpi(MPI_Isend) |
				 transform_mpi(never));
	}));
	CHECK(!begun);
#ifndef CONTD_STDEXEC
	CHECK(throws<contd::error>([&] {
		given::sync_wait(mini::just_error_sender<std::error_code>{std::make_error_code(std::errc::io_error)} |
				 transform_mpi([](MPI_Request *) -> int { return MPI_ERR_OTHER; }));
	}));
	/* Truncated, seen late. */
	int two[2] = {1, 2};
	MPI_Request send;
	MPI_Isend(two, 2, MPI_INT, other(), 1, comm, &send);
	try {
		given::sync_wait(given::just(&v, 1, MPI_INT, other(), 1, comm) | transform_mpi(MPI_Irecv));
		CHECK(false);
	} catch (const contd::mpi_error &e) {
		CHECK(e.error_class() == MPI_ERR_TRUNCATE);
	}
	MPI_Wait(&send, MPI_STATUS_IGNORE);
#endif
}

/* As on the slides: no callable takes an MPI_Status, and no thread waits. */
template <class Env> struct noting_receiver {
	using receiver_concept = contd::ex::receiver_t;
	std::atomic<int> *ends;
	const Env *env;

	void set_value(auto &&...) noexcept
	{
		++*ends;
	}
	void set_error(std::exception_ptr) noexcept
	{
		std::abort();
	}
	void set_stopped() noexcept
	{
		std::abort();
	}
	/* A reference, to what can't be copied. */
	const Env &get_env() const noexcept
	{
		return *env;
	}
};
struct one_env {
	one_env() = default;
	one_env(const one_env &) = delete;
};

static void detached()
{
	int mine = rank, theirs = -1, freed = 0;
	std::atomic<int> ends{0};
	one_env env;
	auto send = given::just(&mine, 1, MPI_INT, other(), 90, comm) | transform_mpi(MPI_Isend) |
		    contd::then([&freed]() { freed++; });
	auto receive = given::just(&theirs, 1, MPI_INT, other(), 90, comm) | transform_mpi(MPI_Irecv) |
		       contd::then([](MPI_Status s) { return s.MPI_TAG; });
	auto bare = given::just() | transform_mpi([](MPI_Request *r) { return MPI_Ibarrier(MPI_COMM_SELF, r); }) |
		    transform_mpi([](MPI_Request *r) { return MPI_Ibarrier(MPI_COMM_SELF, r); });
	using receiver = noting_receiver<one_env>;
	auto one = contd::ex::connect(std::move(send), receiver{&ends, &env});
	auto two = contd::ex::connect(std::move(receive), receiver{&ends, &env});
	auto three = contd::ex::connect(std::move(bare), receiver{&ends, &env});
	auto barrier = [](MPI_Request *r) { return MPI_Ibarrier(MPI_COMM_SELF, r); };
	auto four = contd::ex::connect(given::just() | transform_mpi(barrier) | contd::erase(),
				       receiver{&ends, &env});

	contd::ex::start(one);
	contd::ex::start(two);
	contd::ex::start(three);
	contd::ex::start(four);
	while (ends < 4)
		contd_poll(0);
	CHECK(freed == 1 && theirs == other());
#ifdef CONTD_STDEXEC
	start_detached(given::just() | transform_mpi(barrier) | contd::then([&ends] { ++ends; }));
	while (ends < 5)
		contd_poll(0);
#endif
}

/* A function that returns nothing has nothing to complain of; what it throws is an error. */
static void voids()
{
	int called = 0;
	auto nothing = [&](MPI_Request *r) {
		called++;
		MPI_Ibarrier(MPI_COMM_SELF, r);
	};
	auto got = contd::sync_wait(given::just() | transform_mpi(nothing) | transform_mpi(nothing));
	CHECK(got && called == 2);
	auto begins_none =
		contd::sync_wait(given::just() | transform_mpi([&](MPI_Request *) { called++; }) | contd::then([] {}));
	CHECK(begins_none && called == 3);
	static_assert(std::is_same_v<decltype(begins_none), std::optional<std::tuple<>>>);
	CHECK(throws<std::string>([&] {
		contd::sync_wait(given::just() | transform_mpi([](MPI_Request *) { throw std::string("x"); }) |
				 contd::then([] {}));
	}));
	CHECK(throws<std::string>([&] {
		contd::sync_wait(given::just() | transform_mpi(nothing) |
				 contd::then([](MPI_Status) -> int { throw std::string("y"); }));
	}));
	auto result = contd::sync_wait(given::just() | transform_mpi(nothing) |
				       contd::then([] { return std::make_unique<int>(5); }));
	CHECK(result && *std::get<0>(*result) == 5);
	contd::sync_wait([](auto f) -> contd::task<> { co_await contd::mpi(f); }(nothing));
}

#ifndef CONTD_STDEXEC
static void stops()
{
	std::stop_source source;
	int v = 0, ends = 0;
	auto receive = given::just(&v, 1, MPI_INT, other(), 77, comm) | transform_mpi(MPI_Irecv);

	{
		mini::started<decltype(receive)> run(
			decltype(receive)(receive), source.get_token(),
			[](void *n) noexcept { ++*static_cast<int *>(n); }, &ends);
		for (int i = 0; i < 10; i++)
			contd_poll(0);
		CHECK(ends == 0);
		source.request_stop();
		while (!ends)
			contd_poll(0);
		CHECK(ends == 1 && run.result.stopped && !run.result.values && !run.result.error);
	}
	CHECK(!given::sync_wait(std::move(receive), source.get_token())); /* before it begins */
	/* With a token that stops nothing. */
	std::stop_source never;
	MPI_Request send;
	MPI_Isend(&rank, 1, MPI_INT, other(), 78, comm, &send);
	auto got = given::sync_wait(given::just(&v, 1, MPI_INT, other(), 78, comm) | transform_mpi(MPI_Irecv),
				    never.get_token());
	CHECK(got && v == other());
	MPI_Wait(&send, MPI_STATUS_IGNORE);
}
#endif

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	{
		contd::dispatcher d;
#ifdef CONTD_STDEXEC
		/* stdexec's sync_wait() sleeps: contd's daemon, or another thread, makes the progress. */
		std::atomic<bool> over{false};
		std::thread progress([&] {
			while (!over)
				contd_poll(0);
		});
#endif
		shapes();
		values();
		errors();
		detached();
		voids();
#ifdef CONTD_STDEXEC
		over = true;
		progress.join();
#else
		stops();
#endif
	}
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
