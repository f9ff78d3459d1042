// SPDX-License-Identifier: BSD-3-Clause
/* contd/contd.hpp where two things come together: forced orders, each of which a program may meet. No MPI. */
#include <contd/contd.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "check.hpp"

using contd::task;

// --------------------------------------------------------------------------------------------- a stop, and completion

static std::function<void()> after_continue, before_cancel;
static bool refuses;

static void now(std::function<void()> &what)
{
	if (what)
		std::exchange(what, nullptr)();
}

/* In the place of the library's: what happens just after and just before the calls. */
extern "C" int contd_event_continue(size_t n, struct contd_event *const events[], contd_callback *cb, void *data,
				    struct contd_group *group, struct contd_handle *handlep) noexcept
{
	static auto real = reinterpret_cast<decltype(&contd_event_continue)>(dlsym(RTLD_NEXT, "contd_event_continue"));
	int rc = refuses ? -ENOMEM : real(n, events, cb, data, group, handlep);

	if (handlep) /* not what sync_wait() sleeps with */
		now(after_continue);
	return rc;
}
extern "C" int contd_cancel(struct contd_handle handle) noexcept
{
	static auto real = reinterpret_cast<decltype(&contd_cancel)>(dlsym(RTLD_NEXT, "contd_cancel"));

	now(before_cancel);
	return real(handle);
}

static task<int> wait_in_own_group(contd::event &e, std::stop_token token, bool &group_is_gone)
{
	std::optional<contd::group> own(std::in_place);
	int status = -1;

	try {
		status = co_await contd::event_done(e).in(*own).stop(token);
	} catch (const contd::cancelled &) {
	}
	own.reset();
	group_is_gone = true;
	co_return status;
}

/*
 * A stop is requested while the operation is started. It may be complete by the time that it is to be withdrawn; and
 * the handle by which it is does not outlive the group, which the coroutine destroys when it goes on.
 */
static void stopped_while_it_is_started(bool completes)
{
	contd::dispatcher d;
	std::stop_source source;
	contd::event e;
	bool group_is_gone = false, withdrawn = false;

	after_continue = [&] { source.request_stop(); };
	before_cancel = [&] {
		withdrawn = true;
		if (completes) {
			e.complete(7);
			contd_poll(0);
		}
		CHECK(!group_is_gone);
	};
	CHECK(contd::sync_wait(wait_in_own_group(e, source.get_token(), group_is_gone)) == (completes ? 7 : -1));
	CHECK(withdrawn && group_is_gone);
}

// ------------------------------------------------------------------------------------------------- a pool that helps

/* Its submit() runs other work when it is full: here, in the first call, what comes next. */
struct helping_pool {
	contd_work *queued[2] = {};
	std::atomic<int> submitted{0};

	int submit(contd_work *work, int)
	{
		int n = submitted++;

		queued[n] = work;
		if (n == 0) {
			std::thread([work] { contd_work_run(work); }).join();
			CHECK(submitted == 2);
			contd_work_run(queued[1]);
		}
		return 0;
	}
};

/* While the first operation is submitted another thread runs it, and makes the next one where it stood. */
static void another_in_its_place()
{
	contd::dispatcher d;
	helping_pool pool;
	contd::executor e = contd::executor::over(pool);
	struct place {
		contd::executor &e;
		std::optional<contd::schedule_operation> operation;
		int first = 0, second = 0;

		static void after_first(void *data) noexcept
		{
			auto *self = static_cast<place *>(data);

			self->first++;
			self->operation.emplace(self->e.get(), 0);
			CHECK(self->operation->start(after_second, self));
		}
		static void after_second(void *data) noexcept
		{
			static_cast<place *>(data)->second++;
		}
	} here{e, {}};

	here.operation.emplace(e.get(), 0);
	CHECK(here.operation->start(place::after_first, &here));
	CHECK(here.first == 1 && here.second == 1);
}

// -------------------------------------------------------------------------------------------- a dispatcher that stays

/* In a callback contd does not end: the object is what it was, and ends later. */
static void end_in_a_callback()
{
	contd::dispatcher d;
	contd::event e;
	contd_event *events[] = {e.get()};
	int rc = 1;
	struct both {
		contd::dispatcher &d;
		int &rc;
	} of{d, rc};

	e.complete();
	CHECK(contd_event_continue(
		      1, events,
		      [](int, void *data) {
			      auto *b = static_cast<both *>(data);

			      b->rc = b->d.fini();
		      },
		      &of, contd::common_group(), nullptr) == 0);
	CHECK(rc == -EDEADLK);
	CHECK(contd::common_group() != nullptr);
	contd::event after;
	after.complete(3);
	CHECK(contd::sync_wait(contd::event_done(after)) == 3);
	CHECK(d.fini() == 0);
	CHECK(contd::common_group() == nullptr);
	CHECK(contd_poll(0) == -EPERM); /* contd has ended */
}

/* The daemon is in a callback that needs it, as that of a sender does, while the last object ends and waits for it. */
static void end_while_the_daemon_works()
{
	contd_config config = {};
	config.size = sizeof(config);
	config.agent = CONTD_AGENT_TICK;
	contd::dispatcher d(config);
	contd::group g(CONTD_THREAD_ANY | CONTD_ENQUEUE_COMPLETE);
	std::atomic<bool> works{false};
	contd::event e;
	contd_event *events[] = {e.get()};

	CHECK(contd_event_continue(
		      1, events,
		      [](int, void *data) {
			      auto &lock = contd::detail::the_process().lock;

			      *static_cast<std::atomic<bool> *>(data) = true;
			      /* Until the object ends, or has ended as far as it can meanwhile. */
			      while (contd::common_group() && lock.try_lock()) {
				      lock.unlock();
				      std::this_thread::yield();
			      }
			      contd::detail::need_daemon();
		      },
		      &works, g.get(), nullptr) == 0);
	e.complete();
	while (!works)
		std::this_thread::yield();
	CHECK(contd_group_destroy(g.release()) == 0);
	CHECK(d.fini() >= 0);
}

/* This would use its memory later. */
struct ends_later {
	bool start(contd::next_fn *, void *)
	{
		started = true;
		return true;
	}
	void result()
	{
	}

	bool started = false;
};

/* sync_wait() has no memory to wait with: it must not leave behind what it has started. */
static void waits_without_memory()
{
	contd::dispatcher d;
	ends_later op;
	int code = 0;

	refuses = true;
	try {
		contd::sync_wait(op);
	} catch (const contd::error &e) {
		code = e.code().value();
	}
	refuses = false;
	CHECK(code == ENOMEM && !op.started);
}

int main()
{
	alarm(60);
	another_in_its_place();
	stopped_while_it_is_started(false);
	stopped_while_it_is_started(true);
	end_in_a_callback();
	end_while_the_daemon_works();
	waits_without_memory();
	return 0;
}
