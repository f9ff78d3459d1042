// SPDX-License-Identifier: BSD-3-Clause
/*
 * Senders that are waited for as stdexec's sync_wait() waits: the thread sleeps, and offers to run tasks. With
 * MPI_THREAD_MULTIPLE contd's daemon looks, which the first such sender starts. Below that no thread can: contd says so
 * once, and contd::sync_wait() works.
 */
#include <contd/mpi.hpp>

#include <condition_variable>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "check.hpp"
#include "mini.hpp"

static int rank;

struct sleeper {
	std::mutex lock;
	std::condition_variable changed;
	int over = 0;
	MPI_Status status{};
	std::exception_ptr error;

	void end() noexcept
	{
		std::lock_guard hold(lock);
		over++;
		changed.notify_all();
	}
};
struct sleeping_env {
	int query(contd::ex::get_delegation_scheduler_t) const noexcept
	{
		return 0;
	}
};
struct sleeping_receiver {
	using receiver_concept = contd::ex::receiver_t;
	sleeper *to;

	void set_value(MPI_Status status) noexcept
	{
		to->status = status;
		to->end();
	}
	void set_error(std::exception_ptr e) noexcept
	{
		to->error = e;
		to->end();
	}
	void set_stopped() noexcept
	{
		std::abort();
	}
	sleeping_env get_env() const noexcept
	{
		return {};
	}
};

/* Calls nothing of contd's or MPI's. */
template <class Sender> MPI_Status wait_asleep(Sender s)
{
	sleeper here;
	auto state = contd::ex::connect(std::move(s), sleeping_receiver{&here});

	contd::ex::start(state);
	std::unique_lock hold(here.lock);
	here.changed.wait(hold, [&] { return here.over > 0; });
	if (here.error)
		std::rethrow_exception(here.error);
	return here.status;
}

static auto exchange(int *mine, int *theirs, int tag)
{
	int other = 1 - rank;

	return mini::just() | contd::transform_mpi([=](MPI_Request *r) {
		       if (rank == 0)
			       std::this_thread::sleep_for(std::chrono::milliseconds(2));
		       return MPI_Isend(mine, 1, MPI_INT, other, tag, MPI_COMM_WORLD, r);
	       }) |
	       contd::transform_mpi(
		       [=](MPI_Request *r) { return MPI_Irecv(theirs, 1, MPI_INT, other, tag, MPI_COMM_WORLD, r); });
}

static void multiple()
{
	for (int life = 0; life < 2; life++) {
		contd::dispatcher d;

		for (int i = 0; i < 20; i++) {
			int mine = rank, theirs = -1;
			MPI_Status status = i % 2 ? wait_asleep(exchange(&mine, &theirs, i))
						  : wait_asleep(exchange(&mine, &theirs, i) | contd::erase());

			CHECK(theirs == 1 - rank && status.MPI_TAG == i);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void serialized()
{
	contd::dispatcher d;
	int mine = rank, theirs = -1, ends[2], saved = dup(2);
	char text[4096] = "";
	sleeper here;

	/* The message before the thread falls asleep. */
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 2) == 2);
	auto state = contd::ex::connect(exchange(&mine, &theirs, 1), sleeping_receiver{&here});
	contd::ex::start(state);
	auto again = contd::ex::connect(exchange(&mine, &theirs, 2), sleeping_receiver{&here});
	contd::ex::start(again);
	dup2(saved, 2);
	close(ends[1]);
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	close(saved);
	std::string said = text;
	CHECK(said.find("contd::sync_wait()") != said.npos && said.find("MPI_THREAD_MULTIPLE") != said.npos);
	CHECK(said.find('\n') == said.size() - 1); /* once */
	while (theirs != 1 - rank || here.over < 2)
		contd_poll(0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 20; i++) {
		theirs = -1;
		auto got = contd::sync_wait(exchange(&mine, &theirs, 3 + i));
		CHECK(got && theirs == 1 - rank);
	}
}

int main(int argc, char **argv)
{
	bool threads = argc > 1 && std::string(argv[1]) == "multiple";
	int provided;

	MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &provided);
	if (threads && provided < MPI_THREAD_MULTIPLE) {
		std::printf("skipped: MPI grants thread level %d\n", provided);
		MPI_Finalize();
		return 77;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	alarm(60);
	threads ? multiple() : serialized();
	MPI_Finalize();
	return 0;
}
