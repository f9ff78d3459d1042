// SPDX-License-Identifier: BSD-3-Clause
/*
 * contd for C++20, header-only: objects that own what the C interface hands out, and coroutines that wait for events,
 * memory words and groups. contd/mpi.hpp adds MPI operations (and senders), contd/fabric.hpp libfabric's. docs/cpp.md
 * explains.
 *
 * An operation (contd::event_done(e), contd::mpi(MPI_Isend, ...)) is an object that is awaited once, where it was made:
 * it does not move, is complete at the end of its co_await, and holds all that contd needs meanwhile. In a coroutine it
 * lies in the frame: nothing is allocated for it.
 *
 * Errors: what contd refuses is thrown as contd::error, a cancelled operation as contd::cancelled. Made with
 * contd::nothrow as the first argument an operation's result is a contd::outcome instead; with a std::error_code that
 * is set, and nothing thrown.
 *
 * A continuation of a group that is async-signal-safe runs in signal handlers: coroutines are not for such groups.
 */
#ifndef CONTD_CONTD_HPP
#define CONTD_CONTD_HPP

#include <atomic>
#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include <contd/contd.h>
#include <contd/executor.h>

/*
 * How coroutines that await each other pass control. With 1 they jump (symmetric transfer), which takes no stack at
 * any nesting depth. With 0 they make calls that return; the stack grows with the depth, but not with the number of
 * coroutines. Clang always jumps. The compiler gcc makes jumps of them only from -O2 on and without sanitizers;
 * otherwise each round of a loop would take more stack. So the default is 0 with gcc. Files compiled in either way may
 * be linked into one program.
 */
#ifndef CONTD_SYMMETRIC_TRANSFER
#ifdef __clang__
#define CONTD_SYMMETRIC_TRANSFER 1
#else
#define CONTD_SYMMETRIC_TRANSFER 0
#endif
#endif

namespace contd
{

// ------------------------------------------------------------------------------------------------------------ errors

/* As the first argument of what makes an operation: its result is an outcome. */
struct nothrow_t {
	explicit nothrow_t() = default;
};
inline constexpr nothrow_t nothrow{};

/* Stands for nothing, where there must be a value. */
struct unit {
};

/* The outcome of an operation. value (an MPI_Status, for example) is there even if error is set. */
template <class T> struct outcome {
	std::error_code error;
	T value;

	explicit operator bool() const noexcept
	{
		return !error;
	}
};

class error : public std::system_error
{
public:
	using std::system_error::system_error;
};

/* The operation was cancelled by its stop token. */
class cancelled : public error
{
public:
	cancelled() : error(std::make_error_code(std::errc::operation_canceled), "cancelled")
	{
	}
};

namespace detail
{

inline std::error_code code_of(int rc) noexcept
{
	return rc < 0 ? std::error_code(-rc, std::generic_category()) : std::error_code();
}

inline const std::error_code &cancelled_code() noexcept
{
	static const std::error_code code = std::make_error_code(std::errc::operation_canceled);

	return code;
}

/* rc of a call of contd's that has just been made by this thread. */
inline int check(int rc)
{
	if (rc < 0)
		throw error(code_of(rc), contd_error_text());
	return rc;
}

/* Which of the three ways to tell of errors an operation was made with. */
struct throws {
	template <class T> using result = T;
};
struct returns {
	template <class T> using result = outcome<T>;
};
struct assigns {
	template <class T> using result = T;
	std::error_code *to;
};

} // namespace detail

// -------------------------------------------------------------------------------------- dispatcher, groups, executors

namespace detail
{

struct process {
	std::mutex lock;
	unsigned users = 0;
	std::atomic<contd_group *> group{nullptr};
	std::atomic<bool> daemon{false}; /* started by need_daemon(), for as long as there are users */
};

inline process &the_process()
{
	static process p;

	return p;
}

/* A thread waits that does not poll. */
inline void need_daemon() noexcept
{
	auto &p = the_process();

	if (p.daemon.load(std::memory_order_relaxed))
		return;
	std::lock_guard hold(p.lock);
	if (p.users && !p.daemon.load(std::memory_order_relaxed) && contd_daemon_start(nullptr) == 0)
		p.daemon.store(true, std::memory_order_relaxed);
}

} // namespace detail

/*
 * One user of the process's dispatcher: contd_init() and contd_fini(). While there is one, operations that name no
 * group are outstanding in one common group, common_group(). With MPI it is made after MPI_Init and ends before
 * MPI_Finalize.
 */
class dispatcher
{
public:
	dispatcher() : dispatcher(nullptr)
	{
	}
	explicit dispatcher(const contd_config &config) : dispatcher(&config)
	{
	}
	dispatcher(dispatcher &&from) noexcept : counted_(std::exchange(from.counted_, false))
	{
	}
	dispatcher &operator=(dispatcher &&from) noexcept
	{
		if (this != &from) {
			fini();
			counted_ = std::exchange(from.counted_, false);
		}
		return *this;
	}
	~dispatcher()
	{
		fini();
	}

	/*
	 * Before the object's end; returns what contd_fini() returns, 0 where it was done before. -EDEADLK (in a
	 * callback, in the work of an executor): all is as before, and it may be called again.
	 */
	int fini() noexcept
	{
		auto &p = detail::the_process();

		if (!counted_)
			return 0;
		std::unique_lock hold(p.lock);
		int rc = contd_fini(); /* never the last one: the process counts as a user */
		if (rc == -EDEADLK)
			return rc;
		counted_ = false;
		if (--p.users == 0) {
			/* Not false before: need_daemon() on the daemon, which is waited for, must not take the
			 * lock. */
			if (p.daemon.load(std::memory_order_relaxed))
				contd_daemon_stop();
			p.daemon.store(false, std::memory_order_relaxed);
			contd_group_destroy(p.group.exchange(nullptr));
			/* It waits for the daemon, which may be in need_daemon() where the settings have started it. */
			hold.unlock();
			rc = contd_fini();
		}
		return rc;
	}

private:
	explicit dispatcher(const contd_config *config)
	{
		auto &p = detail::the_process();
		std::lock_guard hold(p.lock);

		detail::check(contd_init(config));
		if (p.users == 0) {
			contd_group *g = nullptr;
			int rc = contd_init(nullptr); /* the process's, as long as there are objects */

			if (rc == 0 && (rc = contd_group_create(nullptr, &g)) != 0)
				contd_fini();
			if (rc) {
				contd_fini();
				detail::check(rc);
			}
			p.group.store(g, std::memory_order_release);
		}
		p.users++;
		counted_ = true;
	}

	bool counted_ = false;
};

/* The group of operations that name none; NULL where there is no dispatcher object. */
inline contd_group *common_group() noexcept
{
	return detail::the_process().group.load(std::memory_order_acquire);
}

class executor;

/* contd_group_create() and contd_group_destroy(). */
class group
{
public:
	explicit group(uint32_t flags = 0, contd_priority priority = CONTD_PRIORITY_NORMAL, int32_t max_poll = -1)
	{
		const contd_group_attr attr = {sizeof(attr), flags, max_poll, priority, 0};

		detail::check(contd_group_create(&attr, &group_));
	}
	group(group &&from) noexcept : group_(std::exchange(from.group_, nullptr))
	{
	}
	group &operator=(group &&from) noexcept
	{
		std::swap(group_, from.group_);
		return *this;
	}
	~group()
	{
		if (group_)
			contd_group_destroy(group_);
	}

	contd_group *get() const noexcept
	{
		return group_;
	}
	contd_group *release() noexcept
	{
		return std::exchange(group_, nullptr);
	}
	/* Runs what is ready; is the group complete? */
	bool test()
	{
		int complete = 0;

		detail::check(contd_group_test(group_, &complete));
		return complete;
	}
	void wait()
	{
		detail::check(contd_group_wait(group_, -1));
	}
	/* false: there is something outstanding after that time. */
	bool wait_for(int64_t ns)
	{
		int rc = contd_group_wait(group_, ns);

		if (rc == -ETIMEDOUT)
			return false;
		detail::check(rc);
		return true;
	}
	uint32_t outstanding() const noexcept
	{
		return contd_group_outstanding(group_);
	}
	inline void set_executor(executor *e);
	/* co_await g: as group_done(g). */
	inline auto operator co_await() const noexcept;

private:
	contd_group *group_ = nullptr;
};

/*
 * contd_executor_create() and contd_executor_destroy(): by default a pull executor, on threads that call run(). The
 * destructor can't wait: what was given to it must have run by then, and its threads be gone.
 */
class executor
{
public:
	explicit executor(uint32_t flags = 0)
	    : executor(contd_executor_attr{sizeof(contd_executor_attr), flags, nullptr, nullptr})
	{
	}
	explicit executor(const contd_executor_attr &attr)
	{
		detail::check(contd_executor_create(&attr, &executor_));
	}
	/*
	 * A pool of the program's, which outlives the executor: pool.submit(work, priority) queues
	 * contd_work_run(work), and returns 0 or a negative errno value, or throws, and then has not queued it: a
	 * refusal. Where it has drain(), which must not throw, that is called by drain().
	 */
	template <class Pool>
		requires requires(Pool &p, contd_work *w) { { p.submit(w, 0) } -> std::convertible_to<int>; }
	static executor over(Pool &pool, uint32_t flags = 0)
	{
		contd_executor_ops ops = {};

		ops.size = sizeof(ops);
		ops.submit = [](void *p, contd_work *w, int priority) noexcept -> int {
			try {
				return static_cast<Pool *>(p)->submit(w, priority);
			} catch (...) {
				return -ENOMEM;
			}
		};
		if constexpr (requires { pool.drain(); })
			ops.drain = [](void *p) noexcept { static_cast<Pool *>(p)->drain(); };
		return executor(contd_executor_attr{sizeof(contd_executor_attr), flags, &ops, &pool});
	}
	executor(executor &&from) noexcept : executor_(std::exchange(from.executor_, nullptr))
	{
	}
	executor &operator=(executor &&from) noexcept
	{
		std::swap(executor_, from.executor_);
		return *this;
	}
	~executor()
	{
		if (executor_)
			contd_executor_destroy(executor_);
	}

	contd_executor *get() const noexcept
	{
		return executor_;
	}
	/* contd_executor_run(). */
	int run(uint32_t max = 0, int64_t timeout_ns = -1)
	{
		return detail::check(contd_executor_run(executor_, max, timeout_ns));
	}
	void stop(bool stopped = true)
	{
		detail::check(contd_executor_stop(executor_, stopped));
	}
	void drain()
	{
		detail::check(contd_executor_drain(executor_));
	}
	/* co_await e.schedule(): go on there. */
	inline auto schedule(int priority = CONTD_PRIORITY_NORMAL) noexcept;

private:
	contd_executor *executor_ = nullptr;
};

inline void group::set_executor(executor *e)
{
	detail::check(contd_group_set_executor(group_, e ? e->get() : nullptr));
}

// ------------------------------------------------------------------------------------------------- threads and regions

/* contd_thread_attach() and contd_thread_detach(), on one thread. */
class thread_attachment
{
public:
	explicit thread_attachment(uint32_t stack_bytes = 0)
	{
		const contd_thread_attr attr = {sizeof(attr), 0, stack_bytes};

		detail::check(contd_thread_attach(stack_bytes ? &attr : nullptr));
		attached_ = true;
	}
	thread_attachment(thread_attachment &&from) noexcept : attached_(std::exchange(from.attached_, false))
	{
	}
	thread_attachment &operator=(thread_attachment &&from) noexcept
	{
		std::swap(attached_, from.attached_);
		return *this;
	}
	~thread_attachment()
	{
		if (attached_)
			contd_thread_detach();
	}

private:
	bool attached_ = false;
};

namespace detail
{

/* Objects that begin and end on one thread. */
template <class Calls> class span
{
public:
	span() noexcept
	{
		Calls::begin();
	}
	span(span &&from) noexcept : open_(std::exchange(from.open_, false))
	{
	}
	span &operator=(span &&from) noexcept
	{
		std::swap(open_, from.open_);
		return *this;
	}
	~span()
	{
		if (open_)
			Calls::end();
	}

private:
	bool open_ = true;
};

/* Not inline: see operation::submit(). */
struct compute_calls {
	[[gnu::noinline]] static void begin() noexcept
	{
		contd_compute_begin();
	}
	[[gnu::noinline]] static void end() noexcept
	{
		contd_compute_end();
	}
};

struct guard_calls {
	[[gnu::noinline]] static void begin() noexcept
	{
		contd_guard_begin();
	}
	[[gnu::noinline]] static void end() noexcept
	{
		contd_guard_end();
	}
};

} // namespace detail

/* Until its end the thread only computes: contd_compute_begin() and contd_compute_end(). No co_await meanwhile. */
class [[nodiscard]] compute_region : public detail::span<detail::compute_calls>
{
};

/* Until its end no continuation runs on this thread by signal: contd_guard_begin() and contd_guard_end(). */
class [[nodiscard]] guard : public detail::span<detail::guard_calls>
{
};

// ---------------------------------------------------------------------------------------------------------- operations

/*
 * The function that goes on after a completion, and its argument. Every operation, and contd::task, has
 *
 *   bool start(next_fn *next, void *data)   false: it is complete already. true: next(data) will be called, once,
 *                                           anywhere, perhaps before this returns on another thread, but never inside
 *                                           of it
 *   result()                                after that: what co_await gives
 *
 * from which co_await, sync_wait(), when_all() and senders are made.
 */
using next_fn = void(void *) noexcept;

template <class T>
concept startable = requires(T &t, next_fn *next, void *data) {
	{ t.start(next, data) } -> std::same_as<bool>;
	t.result();
};

namespace detail
{

/* A call that hands something over, on this thread: what runs inside of it is told from what runs later, or
 * elsewhere. */
struct nest {
	const void *operation;
	nest *outer;
	bool done;
};
inline constinit thread_local nest *nest_top = nullptr;

inline void resume(void *address) noexcept
{
	std::coroutine_handle<>::from_address(address).resume();
}

/*
 * The part that all operations have. Completion and the call that starts the operation race; each says in state_ when
 * it is through, and the second of the two goes on: the starter by returning false, which needs no stack, the completer
 * by next_. From the moment that the first has said so it does not touch the operation any more.
 */
class operation
{
public:
	operation(const operation &) = delete;
	operation &operator=(const operation &) = delete;

protected:
	enum : unsigned {
		armed = 1,    /* the starter is through */
		complete = 2, /* so is the completer */
		stopping = 4
	};

	operation() = default;
	~operation() = default;

	void begin(next_fn *next, void *data) noexcept
	{
		next_ = next;
		data_ = data;
		state_.store(0, std::memory_order_relaxed);
	}
	/* The completer is through; true: it goes on. */
	bool completed() noexcept
	{
		return state_.fetch_or(complete, std::memory_order_acq_rel) & armed;
	}
	/* The starter is through. The former value of state_. */
	unsigned arm() noexcept
	{
		unsigned before = state_.load(std::memory_order_acquire);

		return before & complete ? before : state_.fetch_or(armed, std::memory_order_acq_rel);
	}
	/* The starter goes on: the return value of start(). */
	bool starter_goes_on() noexcept
	{
		return executor_ && submit();
	}
	/* The completer goes on. In a continuation, its group stays outstanding until an executor's task has run. */
	void completer_goes_on(bool continuation = true) noexcept
	{
		if (!executor_) {
			next_(data_);
			return;
		}
		nest_ = nullptr;
		contd_task_init(&task_, executor_, priority_, run, this);
		if (continuation)
			contd_task_callback(0, &task_);
		else if (contd_task_submit(&task_, 0))
			next_(data_);
	}
	/*
	 * Not inline: in a coroutine clang 14 takes a thread-local variable's address once, and after a co_await that
	 * is another thread's.
	 */
	[[gnu::noinline]] bool submit() noexcept
	{
		nest here = {this, nest_top, false};
		nest_top = nest_ = &here;
		contd_task_init(&task_, executor_, priority_, run, this);
		int rc = contd_task_submit(&task_, 0);
		nest_top = here.outer;
		return rc == 0 && !here.done;
	}
	/*
	 * A task of this one's runs: inside the call that submits it, on this thread? Then that call goes on. Its
	 * address alone does not tell: while that call lasts another thread may have run it, and made another operation
	 * in its place.
	 */
	bool is_nested() noexcept
	{
		for (nest *n = nest_top; n; n = n->outer)
			if (n == nest_ && n->operation == this) {
				n->done = true;
				return true;
			}
		return false;
	}
	/* The executor's task. */
	[[gnu::noinline]] static void run(int, void *data)
	{
		auto *self = static_cast<operation *>(data);

		if (!self->is_nested())
			self->next_(self->data_);
	}

	next_fn *next_ = nullptr;
	void *data_ = nullptr;
	contd_executor *executor_ = nullptr;
	int priority_ = CONTD_PRIORITY_NORMAL;
	std::atomic<unsigned> state_{0};
	nest *nest_ = nullptr; /* the call that has submitted task_ last; it may be over */
	contd_task task_;
};

/* An operation's awaiter refers to it: gcc 12 would copy what it awaits, where that is returned by reference. */
template <class Op> class awaiter
{
public:
	explicit awaiter(Op &op) noexcept : op_(&op)
	{
	}
	bool await_ready() const noexcept
	{
		return false;
	}
	bool await_suspend(std::coroutine_handle<> handle)
	{
		return op_->start(resume, handle.address());
	}
	decltype(auto) await_resume()
	{
		return op_->result();
	}

private:
	Op *op_;
};

template <class Op> class awaitable
{
public:
	awaiter<Op> operator co_await() noexcept
	{
		return awaiter<Op>(*static_cast<Op *>(this));
	}
};

/* Events, words and groups: one continuation of contd's, which can be withdrawn. */
class waiting : public operation
{
protected:
	enum class source { event, word, group };

	explicit waiting(contd_event *event) noexcept : kind_(source::event), event_(event)
	{
	}
	explicit waiting(contd_group *awaited) noexcept : kind_(source::group), awaited_(awaited)
	{
	}
	explicit waiting(const contd_word &word) noexcept : kind_(source::word), word_(word)
	{
	}

	bool launch(next_fn *next, void *data)
	{
		begin(next, data);
		status_ = error_ = 0;
		cancelled_ = token_.stop_requested();
		if (cancelled_)
			return starter_goes_on();
		/* src/dispatch/event.c defines the word of a complete event. It has the same version as this header. */
		if (kind_ == source::event && contd_event_is_complete(event_)) {
			status_ = static_cast<int32_t>(__atomic_load_n(&event_->word, __ATOMIC_RELAXED) >> 32);
			return executor_ ? starter_goes_on() : false;
		}
		bool stops = token_.stop_possible();
		if (stops)
			stop_.emplace(token_, withdrawal{this});
		error_ = attach(stops ? &handle_ : nullptr);
		if (error_)
			return false;
		return arm_or_withdraw();
	}

	std::error_code conclude() noexcept
	{
		stop_.reset();
		return cancelled_ ? cancelled_code() : code_of(error_);
	}

	int status_ = 0;
	int error_ = 0; /* -errno of the call that registers */
	bool cancelled_ = false;
	contd_group *group_ = nullptr;
	std::stop_token token_;

private:
	/*
	 * As arm(). The starter sees to a stop that was requested before, and does so before: afterwards *this may be
	 * gone, and the group, too, which the handle does not outlive. One that is requested later is withdraw()'s.
	 */
	bool arm_or_withdraw() noexcept
	{
		bool tried = false;

		for (;;) {
			unsigned before = state_.load(std::memory_order_acquire);

			if (before & complete)
				return starter_goes_on();
			if (before & stopping && !tried) {
				tried = true;
				if (contd_cancel(handle_) == 0) {
					cancelled_ = true;
					return starter_goes_on();
				}
			} else if (state_.compare_exchange_weak(before, before | armed, std::memory_order_acq_rel)) {
				return true;
			}
		}
	}

	struct withdrawal {
		waiting *self;

		void operator()() const noexcept
		{
			self->withdraw();
		}
	};

	/*
	 * Called by the thread that requests the stop. *this lasts until this returns, or until it has gone on itself.
	 */
	void withdraw() noexcept
	{
		unsigned before = state_.fetch_or(stopping, std::memory_order_acq_rel);

		if ((before & (armed | complete)) != armed || contd_cancel(handle_) != 0)
			return; /* the starter withdraws it; or it is complete */
		cancelled_ = true;
		completer_goes_on(false);
	}
	static void on_completion(int status, void *data)
	{
		auto *self = static_cast<waiting *>(data);

		self->status_ = status;
		if (self->completed())
			self->completer_goes_on();
	}
	int attach(contd_handle *handlep) noexcept
	{
		contd_group *g = group_ ? group_ : common_group();

		switch (kind_) {
		case source::event:
			return contd_event_continue(1, &event_, on_completion, this, g, handlep);
		case source::word:
			return contd_word_continue(&word_, on_completion, this, g, handlep);
		default:
			return contd_group_continue(awaited_, on_completion, this, g, handlep);
		}
	}

	source kind_;
	union {
		contd_event *event_;
		contd_group *awaited_;
		contd_word word_;
	};
	contd_handle handle_ = {};
	std::optional<std::stop_callback<withdrawal>> stop_;
};

} // namespace detail

/* An event's status (T is int), a memory word or a group (T is void). Options are named before it is awaited. */
template <class T, class Mode>
class [[nodiscard]] wait_operation : public detail::waiting, public detail::awaitable<wait_operation<T, Mode>>
{
public:
	template <class Source> wait_operation(Mode mode, const Source &of) noexcept : detail::waiting(of), mode_(mode)
	{
	}

	/* Go on as a task of this executor's. */
	wait_operation &on(const executor &e, int priority = CONTD_PRIORITY_NORMAL) noexcept
	{
		executor_ = e.get();
		priority_ = priority;
		return *this;
	}
	/* Outstanding in this group. */
	wait_operation &in(contd_group *g) noexcept
	{
		group_ = g;
		return *this;
	}
	wait_operation &in(const group &g) noexcept
	{
		return in(g.get());
	}
	/* Withdrawn when a stop is requested. */
	wait_operation &stop(std::stop_token token) noexcept
	{
		token_ = std::move(token);
		return *this;
	}

	bool start(next_fn *next, void *data)
	{
		return launch(next, data);
	}
	auto result()
	{
		std::error_code code = conclude();

		if constexpr (std::is_same_v<Mode, detail::returns>) {
			if constexpr (std::is_void_v<T>)
				return outcome<unit>{code, {}};
			else
				return outcome<T>{code, status_};
		} else {
			if constexpr (std::is_same_v<Mode, detail::assigns>)
				*mode_.to = code;
			else if (cancelled_)
				throw cancelled();
			else if (code)
				throw error(code, "contd: the continuation was refused");
			if constexpr (!std::is_void_v<T>)
				return static_cast<T>(status_);
		}
	}

private:
	[[no_unique_address]] Mode mode_;
};

// ------------------------------------------------------------------------------------------------ what can be awaited

/* struct contd_event, in place. May be awaited once each time it is completed. */
class event
{
public:
	event() noexcept
	{
		contd_event_init(&event_);
	}
	event(const event &) = delete;
	event &operator=(const event &) = delete;

	contd_event *get() noexcept
	{
		return &event_;
	}
	/* false: it was complete. */
	bool complete(int status = 0) noexcept
	{
		return contd_event_complete(&event_, status) == 0;
	}
	bool is_complete() const noexcept
	{
		return contd_event_is_complete(&event_);
	}
	/* Pending again. */
	void reset() noexcept
	{
		contd_event_init(&event_);
	}
	inline auto operator co_await() noexcept;

private:
	contd_event event_;
};

/* int status = co_await event_done(e): the status with which it was completed. */
inline wait_operation<int, detail::throws> event_done(contd_event *e) noexcept
{
	return {detail::throws{}, e};
}
inline wait_operation<int, detail::throws> event_done(event &e) noexcept
{
	return {detail::throws{}, e.get()};
}
inline wait_operation<int, detail::returns> event_done(nothrow_t, contd_event *e) noexcept
{
	return {detail::returns{}, e};
}
inline wait_operation<int, detail::returns> event_done(nothrow_t, event &e) noexcept
{
	return {detail::returns{}, e.get()};
}
inline wait_operation<int, detail::assigns> event_done(std::error_code &code, contd_event *e) noexcept
{
	return {detail::assigns{&code}, e};
}
inline wait_operation<int, detail::assigns> event_done(std::error_code &code, event &e) noexcept
{
	return {detail::assigns{&code}, e.get()};
}

namespace detail
{

/* co_await e, co_await g: the operation in the awaiter itself. */
template <class T> class waiting_awaiter
{
public:
	template <class Source> explicit waiting_awaiter(Source *of) noexcept : op_(throws{}, of)
	{
	}
	bool await_ready() const noexcept
	{
		return false;
	}
	bool await_suspend(std::coroutine_handle<> handle)
	{
		return op_.start(resume, handle.address());
	}
	T await_resume()
	{
		return op_.result();
	}

private:
	wait_operation<T, throws> op_;
};

} // namespace detail

inline auto event::operator co_await() noexcept
{
	return detail::waiting_awaiter<int>(&event_);
}
inline auto group::operator co_await() const noexcept
{
	return detail::waiting_awaiter<void>(group_);
}

/* co_await word_holds({&word, 0, 1, CONTD_WORD_EQ}): until the condition is found to hold. */
inline wait_operation<void, detail::throws> word_holds(const contd_word &word) noexcept
{
	return {detail::throws{}, word};
}
inline wait_operation<void, detail::returns> word_holds(nothrow_t, const contd_word &word) noexcept
{
	return {detail::returns{}, word};
}
inline wait_operation<void, detail::assigns> word_holds(std::error_code &code, const contd_word &word) noexcept
{
	return {detail::assigns{&code}, word};
}

/* co_await group_done(g): until nothing is outstanding in it. */
inline wait_operation<void, detail::throws> group_done(const group &g) noexcept
{
	return {detail::throws{}, g.get()};
}
inline wait_operation<void, detail::returns> group_done(nothrow_t, const group &g) noexcept
{
	return {detail::returns{}, g.get()};
}
inline wait_operation<void, detail::assigns> group_done(std::error_code &code, const group &g) noexcept
{
	return {detail::assigns{&code}, g.get()};
}

/* co_await of it: the coroutine is a task of the executor's from here on; where that refuses it goes on where it is. */
class [[nodiscard]] schedule_operation : public detail::operation, public detail::awaitable<schedule_operation>
{
public:
	schedule_operation(contd_executor *e, int priority) noexcept
	{
		executor_ = e;
		priority_ = priority;
	}

	bool start(next_fn *next, void *data) noexcept
	{
		begin(next, data);
		return starter_goes_on();
	}
	void result() noexcept
	{
	}
};

inline auto executor::schedule(int priority) noexcept
{
	return schedule_operation(executor_, priority);
}

// --------------------------------------------------------------------------------------------------------------- task

template <class T> class task;

namespace detail
{

class promise_base
{
public:
	struct final_awaiter {
		bool await_ready() const noexcept
		{
			return false;
		}
		template <class Promise>
		std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept
		{
			return handle.promise().finished();
		}
		void await_resume() const noexcept
		{
		}
	};

	std::suspend_always initial_suspend() const noexcept
	{
		return {};
	}
	final_awaiter final_suspend() const noexcept
	{
		return {};
	}
	void unhandled_exception() noexcept
	{
		thrown = std::current_exception();
	}

	/* Begin it; as start() of operations. */
	bool start(std::coroutine_handle<> self, next_fn *n, void *d)
	{
		next = n;
		data = d;
		self.resume();
		return !(state.load(std::memory_order_acquire) & 2) &&
		       !(state.fetch_or(1, std::memory_order_acq_rel) & 2);
	}

	std::exception_ptr thrown;
	std::coroutine_handle<> awaiting; /* jump there at the end */
	next_fn *next = nullptr;          /* or call this */
	void *data = nullptr;
	void *owner = nullptr;            /* a scope */

private:
	/* From the exchange on the frame may be gone. */
	std::coroutine_handle<> finished() noexcept
	{
		next_fn *n = next;
		void *d = data;

		if (awaiting)
			return awaiting;
		if (state.fetch_or(2, std::memory_order_acq_rel) & 1)
			n(d);
		return std::noop_coroutine();
	}

	std::atomic<unsigned> state{0}; /* 1: start() is through; 2: so is the coroutine */
};

template <class T> class promise : public promise_base
{
public:
	inline task<T> get_return_object() noexcept;
	template <class V>
		requires std::constructible_from<T, V>
	void return_value(V &&value)
	{
		value_.emplace(std::forward<V>(value));
	}
	T take()
	{
		if (thrown)
			std::rethrow_exception(thrown);
		return std::move(*value_);
	}

private:
	std::optional<T> value_;
};

template <> class promise<void> : public promise_base
{
public:
	inline task<void> get_return_object() noexcept;
	void return_void() const noexcept
	{
	}
	void take()
	{
		if (thrown)
			std::rethrow_exception(thrown);
	}
};

} // namespace detail

/*
 * A coroutine that runs once. It begins when it is awaited (or given to sync_wait(), when_all() or a scope), and at
 * its end it resumes the coroutine that awaits it. Its frame is freed with the task object, which must last until it
 * has ended.
 */
template <class T = void> class [[nodiscard]] task
{
public:
	using promise_type = detail::promise<T>;
	using handle = std::coroutine_handle<promise_type>;

	explicit task(handle h) noexcept : handle_(h)
	{
	}
	task(task &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
	{
	}
	task &operator=(task &&from) noexcept
	{
		std::swap(handle_, from.handle_);
		return *this;
	}
	~task()
	{
		if (handle_)
			handle_.destroy();
	}

	bool start(next_fn *next, void *data)
	{
		return handle_.promise().start(handle_, next, data);
	}
	T result()
	{
		return handle_.promise().take();
	}
	handle release() noexcept
	{
		return std::exchange(handle_, nullptr);
	}

	template <bool jumps> class awaiter
	{
	public:
		explicit awaiter(handle h) noexcept : handle_(h)
		{
		}
		bool await_ready() const noexcept
		{
			return false;
		}
		auto await_suspend(std::coroutine_handle<> awaiting)
		{
			if constexpr (jumps) {
				handle_.promise().awaiting = awaiting;
				return handle_;
			} else {
				return handle_.promise().start(handle_, detail::resume, awaiting.address());
			}
		}
		T await_resume()
		{
			return handle_.promise().take();
		}

	private:
		handle handle_;
	};
	template <bool jumps = CONTD_SYMMETRIC_TRANSFER> awaiter<jumps> operator co_await() const noexcept
	{
		return awaiter<jumps>(handle_);
	}

private:
	handle handle_;
};

template <class T> inline task<T> detail::promise<T>::get_return_object() noexcept
{
	return task<T>(std::coroutine_handle<promise>::from_promise(*this));
}

inline task<void> detail::promise<void>::get_return_object() noexcept
{
	return task<void>(std::coroutine_handle<promise>::from_promise(*this));
}

// ----------------------------------------------------------------------------------------------- together and at last

namespace detail
{

template <class Op> using result_of = decltype(std::declval<Op &>().result());
template <class Op>
using value_of = std::conditional_t<std::is_void_v<result_of<Op>>, unit, std::decay_t<result_of<Op>>>;

template <class Op> value_of<Op> take(Op &op)
{
	if constexpr (std::is_void_v<result_of<Op>>) {
		op.result();
		return {};
	} else {
		return op.result();
	}
}

class counting
{
public:
	counting(const counting &) = delete;

protected:
	counting() = default;
	~counting() = default;

	template <class Op> void start_one(Op &op)
	{
		try {
			if (!op.start(one_done, this))
				/* the starter's own one is still there */
				left_.fetch_sub(1, std::memory_order_relaxed);
		} catch (...) {
			if (!thrown_)
				thrown_ = std::current_exception();
			left_.fetch_sub(1, std::memory_order_relaxed);
		}
	}
	static void one_done(void *data) noexcept
	{
		auto *self = static_cast<counting *>(data);

		if (self->left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			self->next_(self->data_);
	}

	std::atomic<std::size_t> left_{0};
	next_fn *next_ = nullptr;
	void *data_ = nullptr;
	std::exception_ptr thrown_;
};

} // namespace detail

template <startable... Ops>
class [[nodiscard]] all_operation : public detail::counting, public detail::awaitable<all_operation<Ops...>>
{
public:
	explicit all_operation(Ops &...ops) noexcept : ops_(ops...)
	{
	}

	bool start(next_fn *next, void *data)
	{
		next_ = next;
		data_ = data;
		left_.store(sizeof...(Ops) + 1, std::memory_order_relaxed);
		std::apply([this](auto &...op) { (this->start_one(op), ...); }, ops_);
		return left_.fetch_sub(1, std::memory_order_acq_rel) != 1;
	}
	std::tuple<detail::value_of<Ops>...> result()
	{
		if (thrown_)
			std::rethrow_exception(thrown_);
		return std::apply([](auto &...op) { return std::tuple<detail::value_of<Ops>...>{detail::take(op)...}; },
				  ops_);
	}

private:
	std::tuple<Ops &...> ops_;
};

/*
 * All of them at a time, from whatever sources: auto [a, b] = co_await when_all(mpi(...), event_done(e), work()). The
 * results in a tuple (unit for none) when the last is complete; the first exception then, if any. In the same
 * expression as its co_await, because it only refers to the operations.
 */
template <class... Ops>
	requires(startable<std::remove_reference_t<Ops>> && ...)
auto when_all(Ops &&...ops) noexcept
{
	return all_operation<std::remove_reference_t<Ops>...>(ops...);
}

namespace detail
{

/*
 * An object that sleeps until a function has gone on. Needs a dispatcher. Made before that is started: where contd
 * refuses to register with it nothing is left behind.
 */
class sleeper
{
public:
	sleeper()
	{
		contd_event *e = event_.get();

		check(contd_event_continue(1, &e, nothing, nullptr, group_.get(), nullptr));
	}
	sleeper(const sleeper &) = delete;
	~sleeper()
	{
		/* An operation that has ended at once, or could not start, has not woken it. */
		contd_event_complete(event_.get(), 0);
		contd_group_wait(group_.get(), -1);
	}

	static void wake(void *data) noexcept
	{
		contd_event_complete(static_cast<sleeper *>(data)->event_.get(), 0);
	}
	void sleep()
	{
		check(contd_group_wait(group_.get(), -1));
	}

private:
	static void nothing(int, void *)
	{
	}

	group group_;
	event event_;
};

} // namespace detail

/*
 * Start it, and wait for its end: makes progress with all that contd knows of, and runs what is ready, as
 * contd_group_wait() does. Not in a coroutine. Needs a dispatcher.
 */
template <class Op>
	requires startable<std::remove_reference_t<Op>>
auto sync_wait(Op &&op) -> detail::result_of<std::remove_reference_t<Op>>
{
	detail::sleeper here;

	if (op.start(detail::sleeper::wake, &here))
		here.sleep();
	return op.result();
}

/*
 * Coroutines that run beside each other: spawn() begins one now, and join() (awaited) or wait() ends when all have
 * ended; then it throws the first exception of theirs, if any. In place, and empty at its end: std::terminate() else.
 */
class scope
{
public:
	scope() = default;
	scope(const scope &) = delete;
	~scope()
	{
		if (left_.load(std::memory_order_acquire) != 1)
			std::terminate();
	}

	/* Any thread, in the coroutines too. */
	void spawn(task<void> t)
	{
		auto handle = t.release();

		left_.fetch_add(1, std::memory_order_relaxed);
		handle.promise().owner = this;
		if (!handle.promise().start(handle, ended, handle.address()))
			ended(handle.address());
	}

	class [[nodiscard]] join_operation : public detail::awaitable<join_operation>
	{
	public:
		explicit join_operation(scope &s) noexcept : scope_(s)
		{
		}
		bool start(next_fn *next, void *data) noexcept
		{
			scope_.next_ = next;
			scope_.data_ = data;
			return scope_.left_.fetch_sub(1, std::memory_order_acq_rel) != 1;
		}
		void result()
		{
			scope_.left_.store(1, std::memory_order_relaxed);
			if (auto thrown = std::exchange(scope_.thrown_, nullptr))
				std::rethrow_exception(thrown);
		}

	private:
		scope &scope_;
	};
	join_operation join() noexcept
	{
		return join_operation(*this);
	}
	void wait()
	{
		sync_wait(join());
	}

private:
	static void ended(void *address) noexcept
	{
		auto handle = task<void>::handle::from_address(address);
		auto *self = static_cast<scope *>(handle.promise().owner);

		if (handle.promise().thrown) {
			std::lock_guard hold(self->lock_);
			if (!self->thrown_)
				self->thrown_ = handle.promise().thrown;
		}
		handle.destroy();
		if (self->left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			self->next_(self->data_);
	}

	std::atomic<std::size_t> left_{1};
	next_fn *next_ = nullptr;
	void *data_ = nullptr;
	std::mutex lock_;
	std::exception_ptr thrown_;
};

} // namespace contd

#endif
