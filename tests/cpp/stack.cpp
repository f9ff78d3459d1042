// SPDX-License-Identifier: BSD-3-Clause
/* A million awaits of whatever kind take no more stack than one: measured, and on a thread that has little. */
#include <contd/contd.hpp>

#include <pthread.h>

#include "check.hpp"

using contd::task;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static constexpr int million = SANITIZED ? 100000 : 1000000;
static constexpr std::size_t limit = 65536;

static task<> complete_ones(stack_extent &stack)
{
	contd::event e;

	e.complete(1);
	for (int i = 0; i < million; i++) {
		CHECK(co_await contd::event_done(e) == 1);
		stack.look();
	}
}

/* Where the continuation runs inside the call that registers it. */
static task<> complete_groups(stack_extent &stack)
{
	contd::group g;

	for (int i = 0; i < million; i++) {
		co_await g;
		stack.look();
	}
}

static task<int> child(int i, contd::event *e, stack_extent &stack)
{
	stack.look();
	if (e)
		co_await *e;
	co_return i;
}

static task<> children(stack_extent &stack)
{
	for (int i = 0; i < million; i++) {
		CHECK(co_await child(i, nullptr, stack) == i);
		stack.look();
	}
}

static task<> children_that_wait(stack_extent &stack)
{
	contd::event e;

	e.complete();
	for (int i = 0; i < million; i++) {
		CHECK(co_await child(i, &e, stack) == i);
		stack.look();
	}
}

static task<> together(stack_extent &stack)
{
	contd::event e;

	e.complete(2);
	for (int i = 0; i < million / 4; i++) {
		auto [a, b, c] =
			co_await contd::when_all(contd::event_done(e), child(i, &e, stack), child(i, nullptr, stack));
		CHECK(a == 2 && b == i && c == i);
		stack.look();
	}
}

/* Each completes what the other waits for: in a callback, always. */
static task<> ball(contd::event &mine, contd::event &yours, int n, bool first, stack_extent &stack)
{
	if (first)
		yours.complete();
	for (int i = 0; i < n; i++) {
		CHECK(co_await contd::event_done(mine) == 0);
		mine.reset();
		stack.look();
		if (i + 1 < n || !first)
			yours.complete();
	}
}

static task<> play(stack_extent &stack)
{
	contd::event a, b;

	co_await contd::when_all(ball(b, a, million / 2, false, stack), ball(a, b, million / 2, true, stack));
}

/* On an executor: one that runs all where it is submitted, and lent threads. */
struct at_once {
	int submit(contd_work *w, int)
	{
		contd_work_run(w);
		return 0;
	}
};

static task<> on_pool(stack_extent &stack)
{
	at_once pool;
	contd::executor here = contd::executor::over(pool);
	contd::event e;

	e.complete(1);
	for (int i = 0; i < million / 4; i++) {
		co_await here.schedule();
		stack.look();
		CHECK(co_await contd::event_done(e).on(here) == 1);
		stack.look();
	}
	here.drain();
}

/* A million coroutines deep: where they jump to each other. */
static task<long> deep(long n)
{
	if (n == 0) /* of n == 0 ? 0 : co_await ... gcc 12 makes both */
		co_return 0;
	co_return n + co_await deep(n - 1);
}

static task<> recursion(stack_extent &stack)
{
	long n = CONTD_SYMMETRIC_TRANSFER ? 100000 : 10;

	CHECK(co_await deep(n) == n * (n + 1) / 2);
	stack.look();
}

template <class F> static void measure(const char *name, F &&f)
{
	stack_extent stack;

	contd::sync_wait(f(stack));
	std::printf("%-20s %7zu bytes of stack\n", name, static_cast<std::size_t>(stack.bytes()));
	CHECK(stack.bytes() < limit);
}

static void *everything(void *)
{
	measure("complete events", complete_ones);
	measure("complete groups", complete_groups);
	measure("children", children);
	measure("children that wait", children_that_wait);
	measure("when_all", together);
	measure("in callbacks", play);
	measure("executor at once", on_pool);
	measure("recursion", recursion);
	return nullptr;
}

static void *lent(void *)
{
	contd::executor pull;
	stack_extent stack;
	contd::scope s;

	s.spawn([](contd::executor &x, stack_extent &st) -> task<> {
		contd::event e;

		e.complete(1);
		for (int i = 0; i < million / 4; i++) {
			CHECK(co_await contd::event_done(e).on(x) == 1);
			st.look();
		}
		x.stop();
	}(pull, stack));
	pull.run();
	s.wait();
	std::printf("%-20s %7zu bytes of stack\n", "lent thread", static_cast<std::size_t>(stack.bytes()));
	return nullptr;
}

int main()
{
	contd::dispatcher d;
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setstacksize(&attr, SANITIZED ? 1u << 20 : 96u << 10) == 0);
	for (auto *f : {everything, lent}) {
		CHECK(pthread_create(&thread, &attr, f, nullptr) == 0);
		CHECK(pthread_join(thread, nullptr) == 0);
	}
	return 0;
}
