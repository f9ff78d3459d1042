// SPDX-License-Identifier: BSD-3-Clause
/*
 * An executor on oneTBB: continuations become tasks of a task_arena, the program's or the executor's. C++11, header
 * only; compile with pkg-config --cflags --libs contd tbb. The tags of contexts are those of contd/contd.h.
 *
 * Inside an arena TBB knows no priorities. So the work stands in three queues here, and for each piece a task is
 * enqueued, which runs whatever then has the highest priority.
 *
 * No exception gets into contd: what TBB throws becomes a refusal (-ENOMEM). A continuation that throws ends the
 * program, as one that is run anywhere else does.
 */
#ifndef CONTD_EXECUTOR_TBB_HPP
#define CONTD_EXECUTOR_TBB_HPP

#include <contd/executor.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>

#include <oneapi/tbb/task_arena.h>

namespace contd
{

class tbb_executor
{
      public:
	/*
	 * A new arena of at most so many threads, none of which is the caller's.
	 * Context: any thread; may block. Throws std::system_error where contd_executor_create() fails, and what TBB
	 * does.
	 */
	explicit tbb_executor(int max_concurrency = tbb::task_arena::automatic) : own_(max_concurrency, 0), arena_(own_)
	{
		open();
	}

	/* The program's arena, which must outlive the executor. Other tasks in it have their turns as TBB sees fit. */
	explicit tbb_executor(tbb::task_arena &arena) : own_(1, 0), arena_(arena)
	{
		open();
	}

	tbb_executor(const tbb_executor &) = delete;
	tbb_executor &operator=(const tbb_executor &) = delete;

	/* As std::thread's: std::terminate() where the executor is still in use. */
	~tbb_executor()
	{
		if (close())
			std::terminate();
	}

	/* End the executor. Context: as contd_executor_destroy(). Errors: its own; then all is as before. */
	int close() noexcept
	{
		int r = executor_ ? contd_executor_destroy(executor_) : 0;

		if (!r)
			executor_ = nullptr;
		return r;
	}

	/* For contd_group_set_executor() and contd_task_init(); nullptr after close(). */
	struct contd_executor *get() const noexcept
	{
		return executor_;
	}

      private:
	enum { priorities = CONTD_PRIORITY_HIGH - CONTD_PRIORITY_LOW + 1 };

	void open()
	{
		struct contd_executor_ops ops = {sizeof(ops), submit, nullptr, nullptr, describe};
		struct contd_executor_attr attr = {sizeof(attr), 0, &ops, this};
		int r = contd_executor_create(&attr, &executor_);

		if (r)
			throw std::system_error(-r, std::generic_category(), "contd_executor_create");
	}

	static std::size_t place(int priority) noexcept
	{
		return static_cast<std::size_t>(CONTD_PRIORITY_HIGH - priority);
	}

	/* The next one, or nullptr. */
	struct contd_work *take()
	{
		std::lock_guard<std::mutex> lock(mutex_);

		for (auto &queue : ready_) {
			if (!queue.empty()) {
				struct contd_work *work = queue.front();
				queue.pop_front();
				return work;
			}
		}
		return nullptr;
	}

	/* As many tasks come here as there are pieces. Nothing of *this is touched after the work: it may be gone
	 * then. */
	void run_next() noexcept
	{
		struct contd_work *work = take();

		if (work)
			contd_work_run(work);
	}

	bool withdraw(struct contd_work *work, int priority)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto &queue = ready_[place(priority)];

		for (auto i = queue.end(); i != queue.begin();) {
			if (*--i == work) {
				queue.erase(i);
				return true;
			}
		}
		return false;
	}

	static int submit(void *pool, struct contd_work *work, int priority) noexcept
	{
		tbb_executor *self = static_cast<tbb_executor *>(pool);
		bool queued = false;

		try {
			{
				std::lock_guard<std::mutex> lock(self->mutex_);
				self->ready_[place(priority)].push_back(work);
			}
			queued = true;
			self->arena_.enqueue([self]() noexcept { self->run_next(); });
			return 0;
		} catch (...) {
			if (!queued || self->withdraw(work, priority))
				return -ENOMEM;
		}
		/* Another piece's task has taken this one, and left that one, which may be run at once as well. */
		self->run_next();
		return 0;
	}

	static int describe(void *pool, char *text, std::size_t bytes) noexcept
	{
		return std::snprintf(text, bytes, "oneTBB, task_arena of %d threads",
				     static_cast<tbb_executor *>(pool)->arena_.max_concurrency());
	}

	struct contd_executor *executor_ = nullptr;
	tbb::task_arena own_;
	tbb::task_arena &arena_;
	std::mutex mutex_;
	std::deque<struct contd_work *> ready_[priorities];
};

} // namespace contd

#endif
