// SPDX-License-Identifier: BSD-3-Clause
/* contd/contd.hpp: what owns, what is awaited, and where it goes on. No MPI. */
#include <contd/contd.hpp>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"

using contd::task;

static void owning()
{
	CHECK(throws<contd::error>([] { contd::group g; })); /* no dispatcher */
	CHECK(contd::common_group() == nullptr);
	{
		contd::dispatcher d, other;

		CHECK(contd::common_group() != nullptr);
		contd::dispatcher moved = std::move(d);
		other = std::move(moved);
		CHECK(contd::common_group() != nullptr);

		contd::group g(CONTD_ENQUEUE_COMPLETE, CONTD_PRIORITY_HIGH);
		contd::group h = std::move(g);
		CHECK(g.get() == nullptr && h.get() != nullptr);
		CHECK(h.test() && h.outstanding() == 0);
		h.wait();
		CHECK(h.wait_for(0));
		try {
			contd::group impossible(1u << 30);
			CHECK(false);
		} catch (const contd::error &e) {
			CHECK(e.code() == std::errc::invalid_argument);
			CHECK(std::string(e.what()).find("group") != std::string::npos); /* contd's own text */
		}
		contd_config config = {};
		config.size = sizeof(config);
		CHECK(throws<contd::error>([&] { contd::dispatcher third(config); }));

		contd::thread_attachment attached;
		contd::thread_attachment there = std::move(attached);
		{
			contd::compute_region region;
			contd::compute_region same = std::move(region);
			CHECK(contd__tls.region == 1);
		}
		CHECK(contd__tls.region == 0);
		{
			contd::guard outer;
			contd::guard inner;
			CHECK(contd__tls.guard == 2);
			inner = std::move(outer);
		}
		CHECK(contd__tls.guard == 0);
		CHECK(other.fini() == 0);
		CHECK(other.fini() == 0);
	}
	CHECK(contd::common_group() == nullptr);
}

static task<int> status_of(contd::event &e)
{
	co_return co_await e;
}

static task<> note(contd::event &e, std::vector<int> &to)
{
	to.push_back(co_await contd::event_done(e));
}

static void events()
{
	contd::dispatcher d;
	contd::event e;
	std::vector<int> got;
	contd::scope s;

	CHECK(e.complete(-7));
	CHECK(!e.complete());
	CHECK(contd::sync_wait(status_of(e)) == -7); /* complete before */
	e.reset();
	s.spawn(note(e, got));
	CHECK(got.empty());
	CHECK(throws<contd::error>([&] { contd::sync_wait(contd::event_done(e)); })); /* has a continuation */
	e.complete(3);
	CHECK(got.empty()); /* the group is none of those that run here */
	s.wait();
	CHECK(got == std::vector<int>{3});

	/* A separate group. */
	contd::group g(CONTD_POLL_ONLY);
	contd::event f;
	int status = 0;
	s.spawn([](contd::group &in, contd::event &on, int &to) -> task<> {
		to = co_await contd::event_done(on).in(in);
	}(g, f, status));
	CHECK(g.outstanding() == 1);
	f.complete(9);
	contd_poll(0);
	CHECK(status == 0);
	CHECK(g.test());
	CHECK(status == 9);
	s.wait();

	/* While another thread completes it, many times. */
	for (int i = 0; i < 2000; i++) {
		contd::event mine;
		std::thread other([&] { mine.complete(i); });
		CHECK(contd::sync_wait(contd::event_done(mine)) == i);
		other.join();
	}
}

static void words_and_groups()
{
	contd::dispatcher d;
	alignas(8) uint64_t word = 0;
	contd::group g;
	contd::event e;
	int steps = 0;
	contd::scope s;

	s.spawn([](uint64_t &w, int &n) -> task<> {
		co_await contd::word_holds({&w, 0xff, 3, CONTD_WORD_GE});
		n++;
	}(word, steps));
	contd_poll(0);
	CHECK(steps == 0);
	__atomic_store_n(&word, 0x104, __ATOMIC_RELEASE);
	s.wait();
	CHECK(steps == 1);

	s.spawn([](contd::group &in, contd::event &on, int &n) -> task<> {
		co_await contd::event_done(on).in(in);
		n++;
	}(g, e, steps));
	s.spawn([](contd::group &awaited, int &n) -> task<> {
		co_await awaited;
		CHECK(n == 2);
		n++;
		co_await contd::group_done(awaited); /* complete now */
		n++;
	}(g, steps));
	contd_poll(0);
	CHECK(steps == 1);
	e.complete();
	s.wait();
	CHECK(steps == 4);
}

static void codes()
{
	contd::dispatcher d;
	contd::event e;
	std::error_code code = std::make_error_code(std::errc::io_error);

	auto refused = contd::sync_wait(contd::word_holds(contd::nothrow, {nullptr, 0, 0, 0}));
	CHECK(!refused && refused.error == std::errc::invalid_argument);
	contd::sync_wait(contd::word_holds(code, {nullptr, 0, 0, 0}));
	CHECK(code == std::errc::invalid_argument);
	CHECK(throws<contd::error>([] { contd::sync_wait(contd::word_holds({nullptr, 0, 0, 0})); }));
	e.complete(5);
	CHECK(contd::sync_wait(contd::event_done(code, e)) == 5 && !code);
	auto good = contd::sync_wait(contd::event_done(contd::nothrow, e));
	CHECK(good && good.value == 5);
}

struct tracked {
	explicit tracked(int &n) : count(&n)
	{
		++*count;
	}
	tracked(tracked &&from) noexcept : count(std::exchange(from.count, nullptr))
	{
	}
	~tracked()
	{
		if (count)
			--*count;
	}
	int *count;
};

static task<std::unique_ptr<int>> boxed(int v)
{
	co_return std::make_unique<int>(v);
}

static task<int> throwing(contd::event &e)
{
	co_await e;
	throw std::string("thrown");
}

static task<int> sum(int n)
{
	if (n == 0)
		co_return 0;
	co_return n + co_await sum(n - 1);
}

static void tasks()
{
	contd::dispatcher d;
	contd::event e;
	int alive = 0;

	CHECK(*contd::sync_wait(boxed(4)) == 4);
	CHECK(contd::sync_wait(sum(100)) == 5050);
	{
		auto never = [](tracked) -> task<> { co_return; }(tracked(alive)); /* not begun */
		CHECK(alive == 1);
	}
	CHECK(alive == 0);
	e.complete();
	CHECK(throws<std::string>([&] { contd::sync_wait(throwing(e)); }));
	CHECK(throws<std::string>([&] {
		contd::sync_wait([](contd::event &on) -> task<> { co_await throwing(on); }(e));
	}));

	/* A scope keeps the first exception, and the other coroutines end. */
	contd::scope s;
	contd::event f;
	s.spawn([](contd::event &on, tracked) -> task<> { co_await throwing(on); }(f, tracked(alive)));
	s.spawn([](contd::event &on, tracked) -> task<> { co_await contd::event_done(on); }(e, tracked(alive)));
	CHECK(alive == 1);
	f.complete();
	CHECK(throws<std::string>([&] { s.wait(); }));
	CHECK(alive == 0);
	s.wait();
}

static void all()
{
	contd::dispatcher d;
	contd::event a, b, c;
	alignas(8) uint64_t word = 0;
	int got = 0;
	contd::scope s;

	s.spawn([](contd::event &x, contd::event &y, contd::event &z, uint64_t &w, int &to) -> task<> {
		auto [first, second, third, none, number] =
			co_await contd::when_all(contd::event_done(x), contd::event_done(y), status_of(z),
						 contd::word_holds({&w, 0, 1, CONTD_WORD_EQ}), sum(3));
		static_assert(std::is_same_v<decltype(none), contd::unit>);
		to = first * 1000 + second * 100 + third * 10 + number;
	}(a, b, c, word, got));
	c.complete(3);
	contd_poll(0);
	a.complete(1);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	contd_poll(0);
	CHECK(got == 0);
	b.complete(2);
	s.wait();
	CHECK(got == 1236);

	/* All complete already, in a wait; an exception comes when the last is complete. */
	auto [x, y] = contd::sync_wait(contd::when_all(contd::event_done(a), contd::event_done(b)));
	CHECK(x == 1 && y == 2);
	contd::event late;
	bool thrown = false;
	s.spawn([](contd::event &good, contd::event &last, bool &to) -> task<> {
		try {
			co_await contd::when_all(throwing(good), contd::event_done(last));
		} catch (const std::string &) {
			to = true;
		}
	}(a, late, thrown));
	contd_poll(0);
	CHECK(!thrown);
	late.complete();
	s.wait();
	CHECK(thrown);
	std::tuple<> nothing = contd::sync_wait(contd::when_all());
	(void)nothing;
}

/* A pool of one thread, as programs have one. */
class pool
{
public:
	pool() : thread_([this] { work(); })
	{
	}
	~pool()
	{
		{
			std::lock_guard hold(lock_);
			over_ = true;
		}
		changed_.store(1);
		changed_.notify_all();
		thread_.join();
	}
	int submit(contd_work *w, int priority)
	{
		if (refuse_)
			return -EAGAIN;
		if (throws_)
			throw std::bad_alloc();
		if (here_) {
			contd_work_run(w);
			return 0;
		}
		std::lock_guard hold(lock_);
		if (priority > 0)
			queue_.push_front(w);
		else
			queue_.push_back(w);
		changed_.store(1);
		changed_.notify_all();
		return 0;
	}
	std::thread::id id() const
	{
		return thread_.get_id();
	}
	std::atomic<bool> refuse_{false}, throws_{false}, here_{false};

private:
	void work()
	{
		for (;;) {
			contd_work *w = nullptr;
			{
				std::lock_guard hold(lock_);
				if (!queue_.empty()) {
					w = queue_.front();
					queue_.pop_front();
				} else if (over_) {
					return;
				} else {
					changed_.store(0);
				}
			}
			if (w)
				contd_work_run(w);
			else
				changed_.wait(0);
		}
	}

	std::mutex lock_;
	std::deque<contd_work *> queue_;
	std::atomic<int> changed_{0};
	bool over_ = false;
	std::thread thread_;
};

static task<> hop(contd::executor &e, pool &p, contd::event *events, int n)
{
	std::thread::id begun = this_thread();

	co_await e.schedule();
	CHECK(this_thread() == p.id());
	for (int i = 0; i < n; i++) {
		CHECK(co_await contd::event_done(events[i]).on(e, i % 2) == i);
		CHECK(this_thread() == p.id());
	}
	CHECK(begun != p.id());
}

static void executors()
{
	contd::dispatcher d;
	constexpr int n = 500;
	auto e = std::make_unique<contd::event[]>(n);

	{
		pool p;
		contd::executor on = contd::executor::over(p);
		contd::scope s;

		/* Some complete before they are awaited, some after, some meanwhile. */
		std::thread completer([&] {
			for (int i = 0; i < n; i++)
				e[i].complete(i);
		});
		s.spawn(hop(on, p, e.get(), n));
		s.wait();
		completer.join();
		s.spawn(hop(on, p, e.get(), n));
		s.wait();

		/* Refused: it goes on where it is. */
		p.refuse_ = true;
		contd::event late;
		std::thread::id where;
		auto on_late = [](contd::executor &x, contd::event &ev, std::thread::id &to) -> task<> {
			co_await x.schedule();
			co_await contd::event_done(ev).on(x);
			to = this_thread();
		};
		s.spawn(on_late(on, late, where));
		late.complete();
		s.wait();
		CHECK(where == this_thread());
		p.refuse_ = false;

		/* An exception of the pool is a refusal. */
		p.throws_ = true;
		late.reset();
		where = {};
		s.spawn(on_late(on, late, where));
		late.complete();
		s.wait();
		CHECK(where == this_thread());
		p.throws_ = false;

		/* The executor's task runs inside submit(): not inside await_suspend. */
		p.here_ = true;
		where = {};
		s.spawn(on_late(on, late, where));
		CHECK(where == this_thread());
		s.wait();
		on.drain();
	}

	/* Lent threads. */
	contd::executor pull;
	contd::scope s;
	int order = 0;
	auto step = [](contd::executor &x, int priority, int &n_, int want) -> task<> {
		co_await x.schedule(priority);
		CHECK(n_++ == want);
	};
	s.spawn(step(pull, CONTD_PRIORITY_LOW, order, 2));
	s.spawn(step(pull, CONTD_PRIORITY_NORMAL, order, 1));
	s.spawn(step(pull, CONTD_PRIORITY_HIGH, order, 0));
	CHECK(order == 0);
	CHECK(pull.run(0, 0) == 3);
	CHECK(order == 3);
	s.wait();

	contd::group g;
	contd::event f;
	g.set_executor(&pull);
	int got = 0;
	s.spawn([](contd::group &in, contd::event &on, int &to) -> task<> {
		to = co_await contd::event_done(on).in(in);
	}(g, f, got));
	f.complete(4);
	contd_poll(0);
	CHECK(got == 0);
	CHECK(pull.run(0, 0) == 1);
	CHECK(got == 4);
	s.wait();
	g.set_executor(nullptr);
}

static task<> stoppable(contd::event &e, std::stop_token t, int &completed, int &stopped)
{
	try {
		co_await contd::event_done(e).stop(t);
		completed++;
	} catch (const contd::cancelled &) {
		stopped++;
	}
}

static void stops()
{
	contd::dispatcher d;
	contd::scope s;
	int completed = 0, stopped = 0;
	alignas(8) uint64_t word = 0;

	{
		std::stop_source source;
		contd::event e, f;
		contd::group g;

		s.spawn(stoppable(e, source.get_token(), completed, stopped));
		std::error_code code;
		auto out = contd::outcome<contd::unit>{};
		s.spawn([](uint64_t &w, std::stop_token t, std::error_code &c) -> task<> {
			co_await contd::word_holds(c, {&w, 0, 1, CONTD_WORD_EQ}).stop(t);
		}(word, source.get_token(), code));
		s.spawn([](contd::group &in, contd::event &on) -> task<> {
			co_await contd::event_done(on).in(in);
		}(g, f));
		s.spawn([](contd::group &awaited, std::stop_token t, contd::outcome<contd::unit> &o) -> task<> {
			o = co_await contd::group_done(contd::nothrow, awaited).stop(t);
		}(g, source.get_token(), out));
		CHECK(source.request_stop());
		CHECK(stopped == 1 && completed == 0);
		CHECK(code == std::errc::operation_canceled && out.error == std::errc::operation_canceled);
		s.spawn(stoppable(e, source.get_token(), completed, stopped)); /* requested before */
		CHECK(stopped == 2);
		f.complete();
		s.wait();
		CHECK(contd::sync_wait(contd::event_done(f).stop({})) == 0);
		/* The event is free again. */
		e.complete(1);
		CHECK(contd::sync_wait(contd::event_done(e)) == 1);
	}

	/* Which comes first? Completion, stop, and the registration itself, at the same time. */
	completed = stopped = 0;
#if defined(__SANITIZE_THREAD__)
	constexpr int rounds = 600;
#else
	constexpr int rounds = 3000;
#endif
	for (int i = 0; i < rounds; i++) {
		std::stop_source source;
		contd::event e;
		std::atomic<int> go{0};
		std::thread stopper([&] {
			while (!go.load(std::memory_order_acquire))
				;
			source.request_stop();
		});
		std::thread completer([&] {
			while (!go.load(std::memory_order_acquire))
				;
			e.complete();
		});
		if (i % 2)
			go = 1;
		s.spawn(stoppable(e, source.get_token(), completed, stopped));
		go = 1;
		s.wait();
		stopper.join();
		completer.join();
	}
	CHECK(completed + stopped == rounds);

	/* The same, to go on on an executor. */
	pool p;
	contd::executor on = contd::executor::over(p);
	std::atomic<int> ended{0};
	for (int i = 0; i < rounds / 4; i++) {
		std::stop_source source;
		contd::event e;
		std::thread stopper([&] { source.request_stop(); });
		s.spawn([](contd::event &ev, std::stop_token t, contd::executor &x, std::atomic<int> &n,
			   std::thread::id id) -> task<> {
			std::error_code code;
			co_await contd::event_done(code, ev).stop(t).on(x);
			CHECK(this_thread() == id);
			n++;
		}(e, source.get_token(), on, ended, p.id()));
		e.complete();
		s.wait();
		stopper.join();
	}
	CHECK(ended == rounds / 4);
	on.drain();
}

/* Threads that complete, threads that poll, and coroutines that await each other. */
static task<int> leaf(contd::event &e)
{
	co_return co_await e;
}

static task<int> branch(contd::event *e, int n)
{
	if (n == 1)
		co_return co_await leaf(*e);
	auto [left, right] = co_await contd::when_all(branch(e, n / 2), branch(e + n / 2, n - n / 2));
	co_return left + right;
}

static void threads()
{
	contd::dispatcher d;
	constexpr int n = 64;

	for (int round = 0; round < 40; round++) {
		contd::event e[n];
		std::atomic<bool> over{false};
		std::thread poller([&] {
			while (!over)
				contd_poll(0);
		});
		std::thread completer([&] {
			for (int i = 0; i < n; i += 2)
				e[i].complete(i);
		});
		std::thread another([&] {
			for (int i = n - 1; i > 0; i -= 2)
				e[i].complete(i);
		});
		CHECK(contd::sync_wait(branch(e, n)) == n * (n - 1) / 2);
		over = true;
		poller.join();
		completer.join();
		another.join();
	}
}

int main()
{
	owning();
	events();
	words_and_groups();
	codes();
	tasks();
	all();
	executors();
	stops();
	threads();
	return 0;
}
