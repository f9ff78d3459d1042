// SPDX-License-Identifier: BSD-3-Clause
/*
 * Coroutines of several threads await events that other threads complete, with stops that come at the same time and
 * exceptions thrown beside them; they go on here, on lent threads or in groups, by chance. The number of each says how
 * it must end.
 *
 *	stress [steps of a worker [workers [threads]]]
 */
#include <contd/contd.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using contd::task;

static contd::executor *pool;
static contd::group *groups[2];

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x7fb5d329728ea185ull;
	x ^= x >> 27;
	x *= 0x81dadef4bc2dd44dull;
	return x ^ x >> 33;
}

struct oops : std::runtime_error {
	explicit oops(int n) : std::runtime_error("oops"), number(n)
	{
	}
	int number;
};

/* ------------------------------------------------------------------------------------------------ who completes and
 * stops */

struct order {
	contd::event *event;
	int status;
	std::stop_source source;
};

static struct {
	std::mutex lock;
	std::condition_variable changed;
	std::deque<order> orders;
	bool over = false;
} box;

static void give(order o)
{
	std::lock_guard hold(box.lock);

	box.orders.push_back(std::move(o));
	box.changed.notify_one();
}

static void serve()
{
	std::unique_lock hold(box.lock);

	for (;;) {
		box.changed.wait(hold, [] { return box.over || !box.orders.empty(); });
		if (box.orders.empty())
			return;
		order o = std::move(box.orders.front());
		box.orders.pop_front();
		hold.unlock();
		if (o.event)
			CHECK(o.event->complete(o.status));
		else
			o.source.request_stop();
		hold.lock();
	}
}

/* --------------------------------------------------------------------------------------------------------------
 * steps */

static std::atomic<long> came, caught, stopped;

static int number_of(uint64_t chance)
{
	return static_cast<int>(chance >> 8 & 0xffff);
}

template <class Op> void somewhere(Op &op, uint64_t chance)
{
	if (chance & 1)
		op.on(*pool, chance & 2 ? CONTD_PRIORITY_HIGH : CONTD_PRIORITY_NORMAL);
	else if (chance & 4)
		op.in(*groups[chance >> 3 & 1]);
}

static task<int> await_one(uint64_t chance)
{
	contd::event e;
	int status = number_of(chance);

	if (chance & 16)
		give({&e, status, std::stop_source(std::nostopstate)});
	else
		e.complete(status);
	if (chance & 32) {
		auto op = contd::event_done(contd::nothrow, e);
		somewhere(op, chance);
		auto result = co_await op;
		CHECK(result && result.value == status);
	} else {
		auto op = contd::event_done(e);
		somewhere(op, chance);
		CHECK(co_await op == status);
	}
	came++;
	co_return status;
}

/* The stop and the event. */
static task<> await_stopped(uint64_t chance)
{
	contd::event e;
	std::stop_source source;
	bool late = false;

	if (chance & 64)
		give({nullptr, 0, source});
	give({&e, 5, std::stop_source(std::nostopstate)});
	if (!(chance & 64))
		give({nullptr, 0, source});
	try {
		auto op = contd::event_done(e);
		somewhere(op, chance);
		CHECK(co_await op.stop(source.get_token()) == 5);
	} catch (const contd::cancelled &) {
		late = true;
	}
	if (late) {
		CHECK(co_await contd::event_done(e) == 5); /* it is withdrawn: another one may wait for it */
		stopped++;
	}
	came++;
}

static task<int> throws_deep(uint64_t chance, int depth)
{
	if (chance >> (30 + depth) & 1)
		co_await pool->schedule();
	if (depth)
		co_return 1 + co_await throws_deep(chance, depth - 1);
	if (chance & 128)
		(void)co_await await_one(mixed(chance));
	throw oops(number_of(chance));
}

static task<> throws_and_ends(uint64_t chance)
{
	(void)co_await throws_deep(chance, static_cast<int>(chance >> 24 & 3));
}

static task<> awaits_and_ends(uint64_t chance)
{
	(void)co_await await_one(chance);
}

static bool has_throw(uint64_t chance)
{
	return (chance >> 50) % 3 == 0;
}

static task<> step(uint64_t chance)
{
	bool good = false;

	co_await await_stopped(chance);
	if (!has_throw(chance)) {
		auto [a, b] = co_await contd::when_all(await_one(chance), await_one(mixed(chance)));
		CHECK(a == number_of(chance) && b == number_of(mixed(chance)));
		co_return;
	}
	try {
		if (chance & 256) {
			co_await contd::when_all(await_one(chance), throws_and_ends(chance), await_one(mixed(chance)));
		} else {
			contd::scope s;

			s.spawn(awaits_and_ends(mixed(chance)));
			s.spawn(throws_and_ends(chance));
			s.spawn(awaits_and_ends(chance));
			co_await s.join();
		}
	} catch (const oops &o) {
		good = o.number == number_of(chance);
	}
	CHECK(good);
	caught++;
}

static uint64_t chance_of(int worker, int number)
{
	return mixed(mixed(static_cast<uint64_t>(worker) << 32) + static_cast<uint64_t>(number));
}

static task<> work(int worker, int steps)
{
	for (int i = 0; i < steps; i++)
		co_await step(chance_of(worker, i));
	throw oops(worker); /* to the scope */
}

static void drive(int first, int workers, int threads, int steps)
{
	contd::scope s;
	int number = -1;

	for (int w = first; w < workers; w += threads)
		s.spawn(work(w, steps));
	try {
		s.wait();
	} catch (const oops &o) {
		number = o.number;
	}
	CHECK(number >= first && number < workers && number % threads == first);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? std::atoi(argv[1]) : 1000, workers = argc > 2 ? std::atoi(argv[2]) : 8,
	    threads = argc > 3 ? std::atoi(argv[3]) : 2;
	long all = 0, throwing = 0;

	CHECK(workers >= threads && threads > 0);
	for (int w = 0; w < workers; w++)
		for (int i = 0; i < steps; i++) {
			uint64_t chance = chance_of(w, i);

			all += 3 + (has_throw(chance) && chance & 128);
			throwing += has_throw(chance);
		}
	{
		contd::dispatcher d;
		contd::executor lent(CONTD_EXECUTOR_PROGRESS);
		contd::group normal, low(CONTD_ENQUEUE_COMPLETE, CONTD_PRIORITY_LOW);
		std::vector<std::thread> servants, drivers;

		pool = &lent;
		groups[0] = &normal;
		groups[1] = &low;
		std::thread thread([] { pool->run(); });
		for (int t = 0; t < threads; t++)
			servants.emplace_back(serve);
		for (int t = 1; t < threads; t++)
			drivers.emplace_back(drive, t, workers, threads, steps);
		drive(0, workers, threads, steps);
		for (auto &t : drivers)
			t.join();
		{
			std::lock_guard hold(box.lock);
			box.over = true;
			box.changed.notify_all();
		}
		for (auto &t : servants)
			t.join();
		lent.stop();
		thread.join();
		lent.drain();
		normal.wait();
		low.wait();
		CHECK(came == all && caught == throwing);
		CHECK(contd_group_outstanding(contd::common_group()) == 0);
	}
	std::printf("%ld awaited, %ld thrown, %ld stopped\n", came.load(), caught.load(), stopped.load());
	return 0;
}
