// SPDX-License-Identifier: BSD-3-Clause
/* contd/mpi.hpp with two ranks: kinds of operations, errors, continuation requests, executors, stops. */
#include <contd/mpi.hpp>

#include <cstring>
#include <unistd.h>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"

using contd::mpi;
using contd::task;

static int rank, level;
static MPI_Comm comm; /* MPI_ERRORS_RETURN */

static int other()
{
	return 1 - rank;
}

static int count_of(const MPI_Status &s)
{
	int n = -1;

	MPI_Get_count(&s, MPI_INT, &n);
	return n;
}

static task<> point_to_point()
{
	for (int i = 0; i < 200; i++) {
		int v[3] = {rank, i, 7}, w[4] = {};

		if (rank == 0) {
			co_await mpi(MPI_Isend, v, 3, MPI_INT, 1, i, comm);
			MPI_Status s = co_await mpi(MPI_Irecv, w, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm);
			CHECK(s.MPI_SOURCE == 1 && s.MPI_TAG == i && count_of(s) == 3);
		} else {
			co_await mpi(MPI_Irecv, w, 4, MPI_INT, 0, i, comm);
			co_await mpi(MPI_Issend, v, 3, MPI_INT, 0, i, comm);
		}
		CHECK(w[0] == other() && w[1] == i && w[2] == 7);
	}
	/* Long ones, both ways at a time. */
	std::vector<int> out(100000, rank), in(100000, -1);
	auto [sent, received] = co_await contd::when_all(mpi(MPI_Isend, out.data(), 100000, MPI_INT, other(), 0, comm),
							 mpi(MPI_Irecv, in.data(), 100000, MPI_INT, other(), 0, comm));
	CHECK(count_of(received) == 100000 && sent.MPI_ERROR == MPI_SUCCESS);
	CHECK(in == std::vector<int>(100000, other()));
}

static task<> collectives()
{
	int mine = rank + 1, sum = 0, all[2] = {}, from_root = rank == 0 ? 42 : 0;

	co_await mpi(MPI_Ibarrier, comm);
	co_await mpi(MPI_Iallreduce, &mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == 3);
	co_await contd::when_all(mpi(MPI_Ibcast, &from_root, 1, MPI_INT, 0, comm),
				 mpi(MPI_Iallgather, &mine, 1, MPI_INT, all, 1, MPI_INT, comm),
				 mpi(MPI_Ibarrier, comm));
	CHECK(from_root == 42 && all[0] == 1 && all[1] == 2);
	/* A function that starts nothing. */
	auto nothing = [](MPI_Request *r) {
		*r = MPI_REQUEST_NULL;
		return MPI_SUCCESS;
	};
	MPI_Status s = co_await mpi(nothing);
	CHECK(s.MPI_ERROR == MPI_SUCCESS);
}

static task<> windows(MPI_Win win, int *memory)
{
	int v = rank + 10, back = 0;

	memory[0] = memory[1] = -1;
	MPI_Barrier(comm);
	MPI_Win_lock_all(0, win);
	co_await mpi(MPI_Rput, &v, 1, MPI_INT, other(), 0, 1, MPI_INT, win);
	MPI_Win_flush_all(win);
	co_await mpi(MPI_Rget, &back, 1, MPI_INT, other(), 0, 1, MPI_INT, win);
	MPI_Win_unlock_all(win);
	CHECK(back == v);
	MPI_Barrier(comm);
	CHECK(memory[0] == other() + 10);
}

static task<> files()
{
	char name[64];
	MPI_File file;
	int v[2] = {rank, 5}, w[2] = {};

	std::snprintf(name, sizeof(name), "/tmp/contd-cpp-%d-%d", static_cast<int>(getpid()), rank);
	CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
			    MPI_INFO_NULL, &file) == MPI_SUCCESS);
	co_await mpi(MPI_File_iwrite_at, file, 8, v, 2, MPI_INT);
	MPI_Status s = co_await mpi(MPI_File_iread_at, file, 8, w, 2, MPI_INT);
	CHECK(w[0] == rank && w[1] == 5 && count_of(s) == 2);
	MPI_File_close(&file);
}

/* Arguments live in the operation: those of this call are gone when it goes on. */
static task<> receive_into(std::shared_ptr<int> to, int tag)
{
	auto f = [to, tag](MPI_Comm c, MPI_Request *r) { return MPI_Irecv(to.get(), 1, MPI_INT, other(), tag, c, r); };

	to.reset();
	MPI_Status s = co_await mpi(std::move(f), MPI_Comm(comm));
	CHECK(s.MPI_SOURCE == other());
}

static task<> lifetimes()
{
	static int got, freed;
	std::shared_ptr<int> buffer(new int(-1), [](int *p) {
		got = *p;
		freed++;
		delete p;
	});
	contd::scope s;

	s.spawn(receive_into(std::move(buffer), 3));
	CHECK(!buffer && freed == 0);
	co_await mpi(MPI_Ibarrier, comm);
	co_await mpi(MPI_Isend, &rank, 1, MPI_INT, other(), 3, comm);
	co_await s.join();
	CHECK(got == other() && freed == 1);
}

static task<> errors()
{
	std::error_code code;
	int v[4] = {1, 2, 3, 4}, w[2];

	/* Of the call. */
	try {
		co_await mpi(MPI_Isend, v, 1, MPI_INT, 99, 0, comm);
		CHECK(false);
	} catch (const contd::mpi_error &e) {
		CHECK(e.error_class() == MPI_ERR_RANK && e.code() == contd::mpi_class(MPI_ERR_RANK));
		CHECK(e.code().category() == contd::mpi_category() && std::strlen(e.what()) > 10);
	}
	co_await mpi(code, MPI_Isend, v, 1, MPI_INT, 99, 0, comm);
	CHECK(code == contd::mpi_class(MPI_ERR_RANK) && code != contd::mpi_class(MPI_ERR_TAG));

	/* Of the operation: complete when it is begun, and later. */
	for (int late = 0; late < 2; late++) {
		co_await mpi(MPI_Ibarrier, comm);
		if (rank == 0) {
			if (late)
				co_await mpi(MPI_Ibarrier, comm);
			co_await mpi(MPI_Isend, v, 4, MPI_INT, 1, 5, comm);
			co_await mpi(code, MPI_Isend, v, 4, MPI_INT, 1, 6, comm);
			CHECK(!code);
			co_await mpi(MPI_Isend, v, 4, MPI_INT, 1, 7, comm);
			if (!late)
				co_await mpi(MPI_Ibarrier, comm);
		} else {
			contd::scope s;

			if (!late)
				co_await mpi(MPI_Ibarrier, comm);
			s.spawn([](int *to) -> task<> {
				auto result = co_await mpi(contd::nothrow, MPI_Irecv, to, 2, MPI_INT, 0, 5, comm);
				CHECK(!result && result.error == contd::mpi_class(MPI_ERR_TRUNCATE));
			}(w));
			s.spawn([](int *to) -> task<> {
				try {
					co_await mpi(MPI_Irecv, to, 2, MPI_INT, 0, 6, comm);
					CHECK(false);
				} catch (const contd::mpi_error &e) {
					CHECK(e.error_class() == MPI_ERR_TRUNCATE);
				}
			}(w));
			s.spawn([](int *to) -> task<> {
				std::error_code c;
				co_await mpi(c, MPI_Irecv, to, 2, MPI_INT, 0, 7, comm);
				CHECK(c == contd::mpi_class(MPI_ERR_TRUNCATE));
			}(w));
			if (late)
				co_await mpi(MPI_Ibarrier, comm);
			co_await s.join();
		}
	}
	CHECK(throws<contd::mpi_error>([] { contd::sync_wait(mpi([](MPI_Request *) { return MPI_ERR_OTHER; })); }));
	CHECK(throws<std::string>([] { contd::sync_wait(mpi([](MPI_Request *) -> int { throw std::string(); })); }));
}

/* With continuation requests of either interface: they complete when the coroutines have gone on. */
static void crs()
{
	for (int revised = 0; revised < 2; revised++) {
		MPI_Request cr;
		int v[8] = {}, n = 0;
		contd::scope s;

		if (revised)
			CHECK(MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cr) == MPI_SUCCESS);
		else
			CHECK(MPI_Continue_init(MPI_INFO_NULL, &cr) == MPI_SUCCESS);
		for (int &i : v)
			s.spawn([](int &to, MPI_Request in, int &count) -> task<> {
				co_await mpi(MPI_Irecv, &to, 1, MPI_INT, other(), 8, comm).in(in);
				count++;
			}(i, cr, n));
		CHECK(n == 0);
		MPI_Barrier(comm);
		for (int i = 0; i < 8; i++)
			s.spawn([](int value, MPI_Request in) -> task<> {
				co_await mpi(MPI_Isend, &value, 1, MPI_INT, other(), 8, comm).in(in);
			}(i, cr));
		if (revised)
			CHECK(MPI_Start(&cr) == MPI_SUCCESS);
		CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		CHECK(n == 8);
		s.wait();
		for (int i = 0; i < 8; i++)
			CHECK(v[i] == i);
		/* Errors are results here, and leave the CR alone. */
		int one;
		if (revised)
			CHECK(MPI_Start(&cr) == MPI_SUCCESS);
		std::error_code code;
		s.spawn([](int &to, MPI_Request in, std::error_code &c) -> task<> {
			co_await mpi(c, MPI_Irecv, &to, 1, MPI_INT, other(), 9, comm).in(in);
		}(one, cr, code));
		MPI_Barrier(comm);
		CHECK(MPI_Send(v, 2, MPI_INT, other(), 9, comm) == MPI_SUCCESS);
		CHECK(MPI_Wait(&cr, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		CHECK(code == contd::mpi_class(MPI_ERR_TRUNCATE));
		s.wait();
		CHECK(MPI_Request_free(&cr) == MPI_SUCCESS);
	}
	/* No CR. */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Request none;
	int v = 0;
	MPI_Irecv(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &none);
	auto result = contd::sync_wait(mpi(contd::nothrow, MPI_Ibarrier, MPI_COMM_SELF).in(none));
	CHECK(result.error == contd::mpi_class(MPI_ERR_REQUEST));
	MPI_Cancel(&none);
	MPI_Wait(&none, MPI_STATUS_IGNORE);
}

/* Completions on lent threads; requests issued by one. */
static void executors()
{
	contd::executor pull;
	contd::scope s;
	int v[2] = {rank, -1};
	bool here = false;

	s.spawn([](contd::executor &x, int *value, bool &ran) -> task<> {
		auto id = this_thread();
		co_await contd::when_all(
			mpi(MPI_Isend, value, 1, MPI_INT, other(), 1, comm).on(x),
			mpi(MPI_Irecv, value + 1, 1, MPI_INT, other(), 1, comm).on(x, CONTD_PRIORITY_HIGH));
		CHECK(value[1] == other());
		co_await mpi(MPI_Ibarrier, comm).issued_by(x);
		CHECK(this_thread() == id);
		co_await mpi(MPI_Ibarrier, comm).issued_by(x).on(x);
		std::error_code code;
		co_await mpi(code, MPI_Isend, value, 1, MPI_INT, 99, 1, comm).issued_by(x, CONTD_PRIORITY_LOW);
		CHECK(code == contd::mpi_class(MPI_ERR_RANK));
		bool thrown = false;
		try {
			co_await mpi([](MPI_Request *) -> int { throw std::string("x"); }).issued_by(x);
		} catch (const std::string &) {
			thrown = true;
		}
		/* An exception of the function is no MPI error: it passes through even where those are returned. */
		int come = 0;
		try {
			co_await mpi(contd::nothrow, [](MPI_Request *) -> int { throw std::string("x"); }).issued_by(x);
		} catch (const std::string &) {
			come++;
		}
		try {
			co_await mpi(code, [](MPI_Request *) -> int { throw std::string("x"); }).issued_by(x);
		} catch (const std::string &) {
			come++;
		}
		CHECK(come == 2);
		ran = thrown;
	}(pull, v, here));
	CHECK(!here);
	while (!here) {
		contd_poll(0);
		pull.run(0, 0);
	}
	s.wait();
	/* Where the function throws it goes on where it would otherwise, too. */
	contd::executor another;
	bool caught = false;
	s.spawn([](contd::executor &x, contd::executor &y, bool &ran) -> task<> {
		try {
			co_await mpi([](MPI_Request *) -> int { throw std::string("x"); }).issued_by(x).on(y);
		} catch (const std::string &) {
			ran = true;
		}
	}(pull, another, caught));
	pull.run(0, 0);
	CHECK(!caught);
	another.run(0, 0);
	CHECK(caught);
	s.wait();
	MPI_Barrier(comm);
	if (level < MPI_THREAD_MULTIPLE)
		return;

	/* On a thread that is lent for good. */
	std::thread lent([&] { pull.run(); });
	std::thread::id id = lent.get_id();
	s.spawn([](contd::executor &x, std::thread::id where) -> task<> {
		for (int i = 0; i < 300; i++) {
			int value = i, got = -1;
			co_await contd::when_all(mpi(MPI_Isend, &value, 1, MPI_INT, other(), 1, comm),
						 mpi(MPI_Irecv, &got, 1, MPI_INT, other(), 1, comm).issued_by(x));
			CHECK(got == i);
			co_await mpi(MPI_Ibarrier, comm).on(x);
			CHECK(this_thread() == where);
		}
	}(pull, id));
	s.wait();
	pull.stop();
	lent.join();
	MPI_Barrier(comm);
}

static task<> stoppable(std::stop_token t, int *to, int tag, int &received, int &stopped)
{
	try {
		MPI_Status s = co_await mpi(MPI_Irecv, to, 1, MPI_INT, other(), tag, comm).stop(t);
		CHECK(s.MPI_TAG == tag && count_of(s) == 1);
		received++;
	} catch (const contd::cancelled &) {
		stopped++;
	}
}

static bool no_template;

/* In the place of the library's. */
extern "C" int MPIX_Gr_init(MPIX_Gr_start_function *start, MPIX_Gr_push_function *push,
			    MPIX_Gr_complete_function *complete, MPIX_Gr_cancel_function *cancel, MPIX_Gr *gr)
{
	return no_template ? MPI_ERR_NO_MEM : PMPIX_Gr_init(start, push, complete, cancel, gr);
}

/* Where there is no memory for the template of operations that can be stopped, this one can't; later ones can. */
static void stops_without_memory()
{
	std::stop_source source;
	int one = 1;

	no_template = true;
	CHECK(contd::sync_wait(mpi(MPI_Isend, &one, 1, MPI_INT, MPI_PROC_NULL, 4, comm).stop(source.get_token()))
		      .MPI_ERROR == MPI_SUCCESS);
	no_template = false;
}

static void stops()
{
	int received = 0, stopped = 0, v = -1;
	contd::scope s;

	{
		std::stop_source source;
		s.spawn(stoppable(source.get_token(), &v, 2, received, stopped));
		CHECK(stopped == 0);
		std::thread([&] { source.request_stop(); }).join(); /* a thread that may not call MPI, perhaps */
		s.wait();
		CHECK(stopped == 1 && received == 0);
		s.spawn(stoppable(source.get_token(), &v, 2, received, stopped)); /* requested before: not begun */
		CHECK(stopped == 2);
		/* If it is not cancelled, errors and results do not differ from those without one. */
		std::stop_source never;
		s.spawn(stoppable(never.get_token(), &v, 2, received, stopped));
		s.spawn([](std::stop_token t) -> task<> {
			int one = 0;
			auto result =
				co_await mpi(contd::nothrow, MPI_Irecv, &one, 1, MPI_INT, other(), 4, comm).stop(t);
			CHECK(result.error == contd::mpi_class(MPI_ERR_TRUNCATE));
		}(never.get_token()));
		MPI_Barrier(comm);
		int two[2] = {rank, rank};
		MPI_Send(two, 1, MPI_INT, other(), 2, comm);
		MPI_Send(two, 2, MPI_INT, other(), 4, comm);
		s.wait();
		CHECK(received == 1 && v == other());
	}

	/* The message and the stop at the same time: one of the two, and the message is not lost. */
	received = stopped = 0;
	constexpr int rounds = 300;
	for (int i = 0; i < rounds; i++) {
		std::stop_source source;
		int got = -1;

		MPI_Barrier(comm);
		std::thread stopper([&] {
			for (int k = 0; k < i * 10; k++)
				__asm__ volatile("");
			source.request_stop();
		});
		int before = received;
		s.spawn(stoppable(source.get_token(), &got, 2, received, stopped));
		MPI_Request send;
		for (int k = 0; i % 2 && k < 100; k++) /* behind the stop, now and then */
			contd_poll(0);
		MPI_Isend(&i, 1, MPI_INT, other(), 2, comm, &send);
		s.wait();
		stopper.join();
		if (received == before)
			MPI_Recv(&got, 1, MPI_INT, other(), 2, comm, MPI_STATUS_IGNORE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		CHECK(got == i);
	}
	CHECK(received + stopped == rounds);
	if (rank == 0)
		std::printf("%d received, %d cancelled\n", received, stopped);
}

/* MPI, events and words in one, many at a time. */
static task<int> mixed_one(int i, contd::event &e, uint64_t &word)
{
	int v = i, got = -1;

	auto [sent, received, status, none] = co_await contd::when_all(
		mpi(MPI_Isend, &v, 1, MPI_INT, other(), i, comm), mpi(MPI_Irecv, &got, 1, MPI_INT, other(), i, comm),
		contd::event_done(e), contd::word_holds({&word, 0, 1, CONTD_WORD_EQ}));
	co_return got + status;
}

static task<> mixed()
{
	contd::event e[3];
	alignas(8) uint64_t word = 0;
	contd::scope s;

	s.spawn([](contd::event *x, uint64_t &w) -> task<> {
		auto [a, b, c] = co_await contd::when_all(mixed_one(100, x[0], w), mixed_one(200, x[1], w),
							  mixed_one(300, x[2], w));
		CHECK(a == 101 && b == 202 && c == 303);
	}(e, word));
	co_await mpi(MPI_Ibarrier, comm);
	for (int i = 0; i < 3; i++)
		e[i].complete(i + 1);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	co_await s.join();
}

/* All complete at once: in a loop, and where callbacks run. */
static void stack()
{
	stack_extent extent;

	contd::sync_wait([](stack_extent &x) -> task<> {
		for (int i = 0; i < 20000; i++) {
			int v = i, w = -1;
			co_await contd::when_all(mpi(MPI_Irecv, &w, 1, MPI_INT, 0, 0, MPI_COMM_SELF),
						 mpi(MPI_Isend, &v, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
			CHECK(w == i);
			x.look();
		}
	}(extent));
	if (rank == 0)
		std::printf("%zu bytes of stack\n", static_cast<std::size_t>(extent.bytes()));
	CHECK(extent.bytes() < 65536);
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 && std::strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
	    ranks;

	MPI_Init_thread(&argc, &argv, wanted, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks == 2);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH 4.0 calls that one */
	{
		contd::dispatcher d;
		MPI_Win win;
		int *memory;

		contd::sync_wait(point_to_point());
		contd::sync_wait(collectives());
		/* MPICH 4.0 mixes up those that are less than a page. */
		MPI_Win_allocate(65536, sizeof(int), MPI_INFO_NULL, comm, &memory, &win);
		contd::sync_wait(windows(win, memory));
		MPI_Win_free(&win);
		contd::sync_wait(files());
		contd::sync_wait(lifetimes());
		contd::sync_wait(errors());
		crs();
		executors();
		stops_without_memory();
		stops();
		contd::sync_wait(mixed());
		stack();
	}
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
