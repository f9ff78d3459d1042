// SPDX-License-Identifier: BSD-3-Clause
/*
 * contd for C++20: MPI operations that coroutines await, and senders.
 *
 *	MPI_Status status = co_await contd::mpi(MPI_Irecv, buffer, n, MPI_INT, source, tag, comm);
 *
 * Any MPI function whose last parameter is an MPI_Request *: sends, receives, collectives, RMA with requests, files;
 * and whatever else can be called in this way, such as a lambda. Arguments are copied (decayed) into the operation and
 * live as long as that; what pointers point to is the caller's to keep. Link with contd-mpi or contd-mpi-mpich.
 *
 * Errors are seen where MPI's error handler returns: MPI_ERRORS_RETURN, on the communicator, the window or the file.
 */
#ifndef CONTD_MPI_HPP
#define CONTD_MPI_HPP

/* The bindings for C++98 are no part of this. */
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <contd/contd.hpp>
#include <contd/mpi.h>
#include <contd/sender.hpp>

namespace contd
{

// ------------------------------------------------------------------------------------------------------------ errors

namespace detail
{

class mpi_category_type : public std::error_category
{
public:
	const char *name() const noexcept override
	{
		return "mpi";
	}
	std::string message(int code) const override
	{
		char text[MPI_MAX_ERROR_STRING] = "";
		int bytes;

		if (contd_mpi_thread_level() >= 0 && MPI_Error_string(code, text, &bytes) == MPI_SUCCESS)
			return text;
		return "MPI error " + std::to_string(code);
	}
	/* Of an error code its class: code == contd::mpi_class(MPI_ERR_TRUNCATE). */
	std::error_condition default_error_condition(int code) const noexcept override
	{
		int result = code;

		if (contd_mpi_thread_level() >= 0)
			MPI_Error_class(code, &result);
		return std::error_condition(result, *this);
	}
};

} // namespace detail

/* Of MPI's error codes and classes; texts are MPI_Error_string's. */
inline const std::error_category &mpi_category() noexcept
{
	static const detail::mpi_category_type category;

	return category;
}

/* For comparisons. */
inline std::error_condition mpi_class(int error_class) noexcept
{
	return std::error_condition(error_class, mpi_category());
}

/* An MPI call or operation failed. */
class mpi_error : public error
{
public:
	explicit mpi_error(int code) : error(std::error_code(code, mpi_category()), "MPI")
	{
	}
	int error_class() const noexcept
	{
		return code().default_error_condition().value();
	}
};

// ---------------------------------------------------------------------------------------------------------- operations

namespace detail
{

/*
 * The common part of MPI operations. An operation without a stop token is MPI's own, with a continuation. One with a
 * token may have to be cancelled, and MPI_Cancel needs a valid handle; after a continuation has been attached no code
 * knows whether the handle is valid. So its handle is kept here, and the operation becomes part of a request of a
 * template. The template's function tests it, and cancels it if a stop was requested. That function runs on threads
 * that may call MPI, so that stops can be requested on any thread.
 */
class mpi_base : public operation
{
protected:
	using issue_fn = int(mpi_base *);         /* calls MPI with &request_; may throw */
	using stopped_fn = bool(const mpi_base *); /* is a stop requested? */

	/* Not inline: otherwise a program's debugging information would have a copy for each kind of operation. */
	[[gnu::noinline]] mpi_base(issue_fn *issue, stopped_fn *stopped) noexcept : issue_(issue), stopped_(stopped)
	{
	}
	[[gnu::noinline]] ~mpi_base()
	{
	}

	[[gnu::noinline]] bool launch(next_fn *next, void *data)
	{
		begin(next, data);
		rc_ = 0;
		refused_ = 0;
		cancelled_ = false;
		thrown_ = nullptr;
		if (!issuer_)
			return go();
		nest here = {this, nest_top, false};
		nest_top = nest_ = &here;
		contd_task_init(&task_, issuer_, issuer_priority_, run_issue, this);
		int rc = contd_task_submit(&task_, 0);
		nest_top = here.outer;
		if (rc == 0)
			return here.done ? go() : true;
		refused_ = rc; /* not here, then: this may be no thread that may call MPI */
		return false;
	}

	/* The error that it came to. */
	[[gnu::noinline]] std::error_code conclude() noexcept
	{
		return cancelled_ ? cancelled_code() :
		       refused_   ? code_of(refused_) :
		       rc_	  ? std::error_code(rc_, mpi_category()) :
				    std::error_code();
	}
	/* The exception of the function, if another thread called it, or if errors are returned. */
	[[gnu::noinline]] void rethrow() const
	{
		if (thrown_)
			std::rethrow_exception(thrown_);
	}
	[[noreturn, gnu::noinline]] void raise() const
	{
		rethrow();
		if (cancelled_)
			throw cancelled();
		if (refused_)
			throw error(code_of(refused_), "contd: the executor refuses to issue it");
		throw mpi_error(rc_);
	}
	bool failed() const noexcept
	{
		return rc_ || cancelled_ || refused_ || thrown_;
	}

	MPI_Request request_ = MPI_REQUEST_NULL;
	MPI_Status status_ = empty_status();
	MPI_Request cont_req_ = MPI_REQUEST_NULL;
	contd_executor *issuer_ = nullptr;
	int issuer_priority_ = CONTD_PRIORITY_NORMAL;
	bool stoppable_ = false;
	int flags_ = MPIX_CONT_INVOKE_FAILED; /* without a CR */

private:
	static MPI_Status empty_status() noexcept
	{
		MPI_Status s = {};

		s.MPI_SOURCE = MPI_ANY_SOURCE;
		s.MPI_TAG = MPI_ANY_TAG;
		s.MPI_ERROR = MPI_SUCCESS;
		return s;
	}

	static void run_issue(int, void *data)
	{
		auto *self = static_cast<mpi_base *>(data);
		bool under_way = false;

		if (self->is_nested())
			return;
		try {
			under_way = self->go();
		} catch (...) {
			self->thrown_ = std::current_exception();
			under_way = self->starter_goes_on();
		}
		if (!under_way)
			self->next_(self->data_);
	}

	/* As start(). */
	bool go()
	{
		int flag = 0;

		if (stoppable_ && stopped_(this)) {
			cancelled_ = true;
			return starter_goes_on();
		}
		if (cont_req_ != MPI_REQUEST_NULL && !contd_mpi_group(cont_req_)) {
			rc_ = MPI_ERR_REQUEST;
			return starter_goes_on();
		}
		rc_ = issue_(this);
		if (rc_)
			return starter_goes_on();
		if (stoppable_)
			return drive();
		/* A complete operation needs no continuation; sends are often complete. */
		rc_ = MPI_Test(&request_, &flag, &status_);
		if (flag || rc_) {
			status_.MPI_ERROR = rc_;
			return starter_goes_on();
		}
		return attach(request_);
	}
	bool attach(MPI_Request &request)
	{
		/* With a CR by the draft's call, which is the cheaper one; it needs one. */
		int rc = cont_req_ == MPI_REQUEST_NULL ?
				 MPIX_Continue(&request, on_result, this, flags_, &status_, MPI_REQUEST_NULL) :
				 MPI_Continue(&request, on_status, this, &status_, cont_req_);

		if (rc) { /* out of memory. It is under way, and must end before its memory does */
			rc_ = MPI_Wait(&request, &status_);
			return starter_goes_on();
		}
		return arm() & complete ? starter_goes_on() : true;
	}
	void finish(int rc) noexcept
	{
		if (rc_ == MPI_SUCCESS)
			rc_ = status_.MPI_ERROR != MPI_SUCCESS && rc != MPI_SUCCESS ? status_.MPI_ERROR : rc;
		if (completed())
			completer_goes_on();
	}
	static int on_result(int rc, void *data)
	{
		static_cast<mpi_base *>(data)->finish(rc);
		return MPI_SUCCESS;
	}
	static void on_status(MPI_Status *status, void *data)
	{
		static_cast<mpi_base *>(data)->finish(status->MPI_ERROR);
	}

	// ---- with a stop token

	static int template_start(void *)
	{
		return MPI_SUCCESS;
	}
	static int template_complete(void *, MPI_Status *)
	{
		return MPI_SUCCESS;
	}
	static int template_push(void *data)
	{
		auto *self = static_cast<mpi_base *>(data);
		int flag = 0;

		if (!self->cancel_tried_ && self->stopped_(self)) {
			self->cancel_tried_ = true;
			MPI_Cancel(&self->request_);
		}
		int rc = MPI_Test(&self->request_, &flag, &self->kept_);
		if (!flag && !rc)
			return MPI_SUCCESS;
		self->kept_.MPI_ERROR = rc;
		if (!rc && self->cancel_tried_) {
			MPI_Test_cancelled(&self->kept_, &flag);
			self->was_cancelled_ = flag;
		}
		MPIX_Mark_request_complete(self->driven_);
		return MPI_SUCCESS;
	}
	static MPIX_Gr the_template()
	{
		static std::atomic<MPIX_Gr> made{MPIX_GR_NULL};
		MPIX_Gr gr = made.load(std::memory_order_acquire), mine = MPIX_GR_NULL;

		/* Without memory there is none this time. */
		if (gr == MPIX_GR_NULL &&
		    MPIX_Gr_init(template_start, template_push, template_complete, nullptr, &mine) == MPI_SUCCESS) {
			if (made.compare_exchange_strong(gr, mine, std::memory_order_acq_rel))
				return mine;
			MPIX_Gr_free(&mine); /* another thread was faster */
		}
		return gr;
	}
	bool drive()
	{
		cancel_tried_ = was_cancelled_ = false;
		kept_ = empty_status();
		MPIX_Gr gr = the_template();
		int rc = gr == MPIX_GR_NULL ? MPI_ERR_NO_MEM : MPIX_Gr_begin(gr, this, &driven_);
		if (rc) {
			rc_ = MPI_Wait(&request_, &status_);
			return starter_goes_on();
		}
		/* A copy: the function goes on using driven_, on other threads. */
		MPI_Request handle = driven_;
		rc = MPIX_Continue(&handle, on_driven, this, flags_, MPI_STATUS_IGNORE, cont_req_);
		if (rc) {
			rc = MPI_Wait(&handle, MPI_STATUS_IGNORE);
			driven_is_over();
			return starter_goes_on();
		}
		return arm() & complete ? starter_goes_on() : true;
	}
	void driven_is_over() noexcept
	{
		status_ = kept_;
		rc_ = kept_.MPI_ERROR;
		cancelled_ = was_cancelled_;
	}
	static int on_driven(int, void *data)
	{
		auto *self = static_cast<mpi_base *>(data);

		self->driven_is_over();
		if (self->completed())
			self->completer_goes_on();
		return MPI_SUCCESS;
	}

	issue_fn *issue_;
	stopped_fn *stopped_;
	int rc_ = 0;
	int refused_ = 0;
	bool cancelled_ = false;
	bool cancel_tried_ = false;
	bool was_cancelled_ = false;
	std::exception_ptr thrown_;
	MPI_Request driven_ = MPI_REQUEST_NULL;
	MPI_Status kept_ = empty_status();
};

} // namespace detail

namespace detail
{
template <class Result>
concept mpi_result = std::is_void_v<Result> || std::is_convertible_v<Result, int>;

/* The function's error code; one that returns nothing says by an exception what went wrong, or nothing. */
template <class F, class... Args> int mpi_call(F &f, Args &&...args)
{
	if constexpr (std::is_void_v<std::invoke_result_t<F &, Args...>>) {
		std::invoke(f, std::forward<Args>(args)...);
		return MPI_SUCCESS;
	} else {
		return std::invoke(f, std::forward<Args>(args)...);
	}
}
} // namespace detail

template <class F, class... Args>
concept mpi_invocable =
	std::is_invocable_v<std::decay_t<F> &, std::decay_t<Args> &..., MPI_Request *> &&
	detail::mpi_result<std::invoke_result_t<std::decay_t<F> &, std::decay_t<Args> &..., MPI_Request *>>;

/* The type that contd::mpi() returns. Options are named before it is awaited. */
template <class Mode, class F, class... Args>
class [[nodiscard]] mpi_operation : public detail::mpi_base, public detail::awaitable<mpi_operation<Mode, F, Args...>>
{
public:
	template <class G, class... Values>
	explicit mpi_operation(Mode mode, G &&f, Values &&...values)
	    : detail::mpi_base(issue, stopped), mode_(mode), f_(std::forward<G>(f)),
	      args_(std::forward<Values>(values)...)
	{
	}

	/* Go on as a task of this executor's. */
	mpi_operation &on(const executor &e, int priority = CONTD_PRIORITY_NORMAL) noexcept
	{
		executor_ = e.get();
		priority_ = priority;
		return *this;
	}
	/* The function is called by this executor: on the thread that owns MPI, say. */
	mpi_operation &issued_by(const executor &e, int priority = CONTD_PRIORITY_NORMAL) noexcept
	{
		issuer_ = e.get();
		issuer_priority_ = priority;
		return *this;
	}
	/* Registered with this continuation request, of either interface. */
	mpi_operation &in(MPI_Request cont_req) noexcept
	{
		cont_req_ = cont_req;
		return *this;
	}
	/*
	 * When a stop is requested (on any thread) a thread that makes progress calls MPI_Cancel. MPI can cancel some
	 * operations only, mainly receives. Such an operation is tested by each look at MPI, while others cost nothing
	 * until they complete.
	 */
	mpi_operation &stop(std::stop_token token) noexcept
	{
		token_ = std::move(token);
		stoppable_ = token_.stop_possible();
		return *this;
	}

	bool start(next_fn *next, void *data)
	{
		return launch(next, data);
	}
	auto result()
	{
		if constexpr (std::is_same_v<Mode, detail::returns>) {
			rethrow();
			return outcome<MPI_Status>{conclude(), status_};
		} else {
			if constexpr (std::is_same_v<Mode, detail::assigns>) {
				rethrow();
				*mode_.to = conclude();
			} else if (failed()) {
				raise();
			}
			return status_;
		}
	}

private:
	static int issue(mpi_base *base)
	{
		auto *self = static_cast<mpi_operation *>(base);

		return std::apply(
			[self](auto &...args) -> int { return detail::mpi_call(self->f_, args..., &self->request_); },
			self->args_);
	}
	static bool stopped(const mpi_base *base)
	{
		return static_cast<const mpi_operation *>(base)->token_.stop_requested();
	}

	[[no_unique_address]] Mode mode_;
	F f_;
	std::tuple<Args...> args_;
	std::stop_token token_;
};

template <class F, class... Args>
	requires mpi_invocable<F, Args...>
mpi_operation<detail::throws, std::decay_t<F>, std::decay_t<Args>...> mpi(F &&f, Args &&...args)
{
	return mpi_operation<detail::throws, std::decay_t<F>, std::decay_t<Args>...>(
		detail::throws{}, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
	requires mpi_invocable<F, Args...>
mpi_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...> mpi(nothrow_t, F &&f, Args &&...args)
{
	return mpi_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...>(
		detail::returns{}, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
	requires mpi_invocable<F, Args...>
mpi_operation<detail::assigns, std::decay_t<F>, std::decay_t<Args>...> mpi(std::error_code &code, F &&f, Args &&...args)
{
	return mpi_operation<detail::assigns, std::decay_t<F>, std::decay_t<Args>...>(
		detail::assigns{&code}, std::forward<F>(f), std::forward<Args>(args)...);
}

// ------------------------------------------------------------------------------------------------------------- senders

namespace detail
{

template <class Error> std::exception_ptr as_exception(Error &&e) noexcept
{
	if constexpr (std::is_same_v<std::decay_t<Error>, std::exception_ptr>)
		return std::forward<Error>(e);
	else if constexpr (std::is_same_v<std::decay_t<Error>, std::error_code>)
		return std::make_exception_ptr(error(e));
	else
		return std::make_exception_ptr(std::forward<Error>(e));
}

/* Is a stop requested, can it be? */
template <class Env> bool stop_requested(const Env &env) noexcept
{
	if constexpr (requires { env.contd_stop_requested(); })
		return env.contd_stop_requested();
	else
		return ex::get_stop_token(env).stop_requested();
}
template <class Env> bool stop_possible(const Env &env) noexcept
{
	if constexpr (requires { env.contd_stop_possible(); })
		return env.contd_stop_possible();
	else
		return ex::get_stop_token(env).stop_possible();
}

/* Does the thread that waits for this sleep, as in stdexec's sync_wait()? Then it offers to run tasks, and does not
 * poll. */
template <class Env>
concept waited_for_asleep = requires(const Env &env) { env.query(ex::get_delegation_scheduler_t{}); };
template <class Env> bool waiter_sleeps(const Env &env) noexcept
{
	if constexpr (requires { env.contd_waiter_sleeps(); })
		return env.contd_waiter_sleeps();
	else
		return waited_for_asleep<Env>;
}

/* With MPI_THREAD_MULTIPLE the daemon makes the progress, and goes on with the chain. */
inline bool daemon_may_call_mpi() noexcept
{
	return contd_mpi_thread_level() == MPI_THREAD_MULTIPLE;
}
inline void serve_sleeper() noexcept
{
	static std::atomic<bool> said{false};

	if (daemon_may_call_mpi())
		need_daemon();
	else if (!said.exchange(true))
		contd__say_text("a thread sleeps in sync_wait() until an MPI operation completes, and below "
				"MPI_THREAD_MULTIPLE no other thread of contd's may look for it: call "
				"contd::sync_wait() instead, which does, or MPI_Init_thread() with "
				"MPI_THREAD_MULTIPLE, or contd_poll() on the thread that calls MPI");
}

/* An environment on its way, which may be a reference. */
template <class Env> class kept_env
{
public:
	void put(Env &&env) noexcept
	{
		env_.emplace(static_cast<Env &&>(env));
	}
	Env take() noexcept
	{
		return static_cast<Env &&>(*env_);
	}

private:
	std::optional<Env> env_;
};
template <class Env> class kept_env<Env &>
{
public:
	void put(Env &env) noexcept
	{
		env_ = &env;
	}
	Env &take() noexcept
	{
		return *env_;
	}

private:
	Env *env_ = nullptr;
};

/*
 * The common part of the operation states of one kind of values and environment; their predecessors' receivers see only
 * this. Three functions of transform_state depend on the rest of the chain. Their names are as long as the chain, and
 * the debugging information has a copy of all code that they inline.
 */
enum class transform_act { env, value, error, stopped };

template <class Env, class Values> class transform_base : public mpi_base
{
public:
	[[gnu::noinline]] void value_came(void *with) noexcept
	{
		bool under_way = false;

		try {
			take_values(with, static_cast<Values *>(nullptr));
			auto &&of = env();
			stoppable_ = stop_possible(of);
			if (daemon_may_call_mpi())
				flags_ |= CONTD_CONT_THREAD_ANY;
			if (waiter_sleeps(of))
				serve_sleeper();
			under_way = launch(over, this);
		} catch (...) {
			error_came(std::current_exception());
			return;
		}
		if (!under_way)
			over(this);
	}
	[[gnu::noinline]] void error_came(std::exception_ptr e) noexcept
	{
		act_(this, transform_act::error, &e);
	}
	[[gnu::noinline]] void stopped_came() noexcept
	{
		act_(this, transform_act::stopped, nullptr);
	}
	[[gnu::noinline]] Env env() const noexcept
	{
		kept_env<Env> e;

		act_(const_cast<transform_base *>(this), transform_act::env, &e);
		return e.take();
	}

protected:
	/* To the receiver; with: kept_env<Env> *, nothing, std::exception_ptr *, nothing. */
	using act_fn = void(transform_base *, transform_act, void *with) noexcept;

	[[gnu::noinline]] transform_base(issue_fn *issue, act_fn *act) noexcept : mpi_base(issue, stopped), act_(act)
	{
	}
	[[gnu::noinline]] ~transform_base()
	{
	}

	std::optional<Values> values_;

private:
	template <class... T> void take_values(void *with, std::tuple<T...> *)
	{
		values_.emplace(std::move(*static_cast<std::tuple<T &&...> *>(with)));
	}
	static bool stopped(const mpi_base *s)
	{
		return stop_requested(static_cast<const transform_base *>(s)->env());
	}
	static void over(void *data) noexcept
	{
		auto *self = static_cast<transform_base *>(data);

		if (!self->failed()) {
			self->act_(self, transform_act::value, nullptr);
		} else if (self->conclude() == cancelled_code()) {
			self->stopped_came();
		} else {
			std::exception_ptr thrown;
			try {
				self->raise();
			} catch (...) {
				thrown = std::current_exception();
			}
			self->error_came(std::move(thrown));
		}
	}

	act_fn *act_;
};

template <class Env, class Values> class transform_receiver;
template <class Env, class... Values> class transform_receiver<Env, std::tuple<Values...>>
{
public:
	using receiver_concept = ex::receiver_t;

	explicit transform_receiver(transform_base<Env, std::tuple<Values...>> *to) noexcept : to_(to)
	{
	}
	[[gnu::noinline]] void set_value(Values... values) noexcept
	{
		std::tuple<Values &&...> all(std::move(values)...);

		to_->value_came(&all);
	}
	template <class Error> [[gnu::noinline]] void set_error(Error &&e) noexcept
	{
		to_->error_came(as_exception(std::forward<Error>(e)));
	}
	void set_stopped() noexcept
	{
		to_->stopped_came();
	}
	Env get_env() const noexcept
	{
		return to_->env();
	}

private:
	transform_base<Env, std::tuple<Values...>> *to_;
};

template <class Sender, class Receiver> auto connect_to(Sender &&s, Receiver r)
{
#ifdef CONTD_STDEXEC
	return ex::connect(static_cast<Sender &&>(s), static_cast<Receiver &&>(r));
#else
	return static_cast<Sender &&>(s).connect(static_cast<Receiver &&>(r));
#endif
}

template <class Sender, class F, class Receiver, class Values>
class transform_state : private transform_base<ex::env_of_t<Receiver>, Values>
{
	using base = transform_base<ex::env_of_t<Receiver>, Values>;
	using inner_receiver = transform_receiver<ex::env_of_t<Receiver>, Values>;

public:
	using operation_state_concept = ex::operation_state_t;

	transform_state(Sender &&sender, F &&f, Receiver &&receiver)
	    : base(issue, act), f_(static_cast<F &&>(f)), receiver_(static_cast<Receiver &&>(receiver)),
	      inner_(connect_to(static_cast<Sender &&>(sender), inner_receiver(this)))
	{
	}
	void start() & noexcept
	{
		inner_.start();
	}

private:
	static void act(base *b, transform_act what, void *with) noexcept
	{
		auto *self = static_cast<transform_state *>(b);

		switch (what) {
		case transform_act::env:
			static_cast<kept_env<ex::env_of_t<Receiver>> *>(with)->put(ex::get_env(self->receiver_));
			break;
		case transform_act::value:
			static_cast<Receiver &&>(self->receiver_).set_value(static_cast<MPI_Status &&>(self->status_));
			break;
		case transform_act::error:
			static_cast<Receiver &&>(self->receiver_)
				.set_error(
					static_cast<std::exception_ptr &&>(*static_cast<std::exception_ptr *>(with)));
			break;
		case transform_act::stopped:
			static_cast<Receiver &&>(self->receiver_).set_stopped();
			break;
		}
	}
	static int issue(mpi_base *s)
	{
		auto *self = static_cast<transform_state *>(s);

		return call(self, std::make_index_sequence<std::tuple_size_v<Values>>());
	}
	template <std::size_t... I> static int call(transform_state *self, std::index_sequence<I...>)
	{
		if constexpr (mpi_invocable<F, std::tuple_element_t<I, Values>...>) {
			return mpi_call(self->f_, std::get<I>(*self->values_)..., &self->request_);
		} else {
			/* After another transform_mpi() f may do without that one's MPI_Status. */
			static_assert(std::is_same_v<Values, std::tuple<MPI_Status>> && mpi_invocable<F>,
				      "transform_mpi(f): f takes the values that the sender before it sends, and an "
				      "MPI_Request *, "
				      "and returns an error code of MPI's or nothing");
			return mpi_call(self->f_, &self->request_);
		}
	}

	F f_;
	Receiver receiver_;
	decltype(connect_to(std::declval<Sender>(), std::declval<inner_receiver>())) inner_;
};

template <class F> struct transform_closure {
	F f;
};
struct erase_closure {
};

} // namespace detail

/* The type that transform_mpi() returns. */
template <class Sender, class F> class [[nodiscard]] transform_sender
{
public:
	using sender_concept = ex::sender_t;
	using completion_signatures =
		ex::completion_signatures<ex::set_value_t(MPI_Status), ex::set_error_t(std::exception_ptr),
					  ex::set_stopped_t()>;

	template <class S, class G>
	transform_sender(S &&s, G &&f) : sender_(static_cast<S &&>(s)), f_(static_cast<G &&>(f))
	{
	}
	template <class Receiver>
	auto connect(Receiver receiver) && -> detail::transform_state<Sender, F, Receiver,
								      detail::sent_by<Sender, ex::env_of_t<Receiver>>>
	{
		return {static_cast<Sender &&>(sender_), static_cast<F &&>(f_), static_cast<Receiver &&>(receiver)};
	}
	template <class Receiver>
	auto connect(Receiver receiver) const &
		-> detail::transform_state<Sender, F, Receiver, detail::sent_by<Sender, ex::env_of_t<Receiver>>>
	{
		return {Sender(sender_), F(f_), static_cast<Receiver &&>(receiver)};
	}

private:
	Sender sender_;
	F f_;
};

/*
 * A sender that calls f(values sent by the sender before..., MPI_Request *), and sends the MPI_Status when that
 * operation has completed: just(buf, n, type, dest, tag, comm) | transform_mpi(MPI_Isend). Errors are sent as
 * std::exception_ptr (of mpi_error); a stop that the receiver's stop token requests as by mpi_operation::stop(). The
 * operation state holds everything. Completes where the continuation runs: as those of groups without flags do, and
 * with MPI_THREAD_MULTIPLE on contd's daemon too. If the receiver's environment has a delegation scheduler (stdexec's
 * sync_wait(), which sleeps) the daemon is started then; below MPI_THREAD_MULTIPLE it can't help, and that is said on
 * stderr once: contd::sync_wait() polls.
 */
template <class Sender, class F>
	requires sender<Sender>
auto transform_mpi(Sender &&s, F &&f)
{
	return transform_sender<std::decay_t<Sender>, std::decay_t<F>>(std::forward<Sender>(s), std::forward<F>(f));
}
template <class F> auto transform_mpi(F &&f)
{
	return detail::transform_closure<std::decay_t<F>>{std::forward<F>(f)};
}

// ------------------------------------------------------------------------------------------------------------- erasing

namespace detail
{

class erased_env
{
public:
	bool contd_stop_requested() const noexcept
	{
		return requested(receiver);
	}
	bool contd_stop_possible() const noexcept
	{
		return possible;
	}
	bool contd_waiter_sleeps() const noexcept
	{
		return asleep;
	}

	const void *receiver = nullptr;
	bool (*requested)(const void *) noexcept = nullptr;
	bool possible = false;
	bool asleep = false;
};

/* Whom an erased operation tells. */
class erased_target
{
public:
	virtual void value(const MPI_Status &) noexcept = 0;
	virtual void error(std::exception_ptr &&) noexcept = 0;
	virtual void stopped() noexcept = 0;
	virtual erased_env env() const noexcept = 0;

protected:
	~erased_target() = default;
};

class erased_receiver
{
public:
	using receiver_concept = ex::receiver_t;

	explicit erased_receiver(erased_target *to) noexcept : to_(to)
	{
	}
	[[gnu::noinline]] void set_value(MPI_Status status) noexcept
	{
		to_->value(status);
	}
	[[gnu::noinline]] void set_error(std::exception_ptr e) noexcept
	{
		to_->error(std::move(e));
	}
	[[gnu::noinline]] void set_stopped() noexcept
	{
		to_->stopped();
	}
	[[gnu::noinline]] erased_env get_env() const noexcept
	{
		return to_->env();
	}

private:
	erased_target *to_;
};

class erased_operation
{
public:
	virtual ~erased_operation() = default;
	virtual void start() noexcept = 0;
};

class erased_source
{
public:
	virtual ~erased_source() = default;
	virtual std::unique_ptr<erased_operation> connect(erased_receiver r) = 0;
};

template <class Sender> class erased_sender final : public erased_source
{
public:
	explicit erased_sender(Sender &&s) : sender_(static_cast<Sender &&>(s))
	{
	}
	std::unique_ptr<erased_operation> connect(erased_receiver r) override
	{
		/* Not by make_unique(), which would name it in a dozen types. */
		return std::unique_ptr<erased_operation>(
			static_cast<erased_operation *>(new state(static_cast<Sender &&>(sender_), r)));
	}

private:
	class state final : public erased_operation
	{
	public:
		state(Sender &&s, erased_receiver r) : inner_(connect_to(static_cast<Sender &&>(s), r))
		{
		}
		void start() noexcept override
		{
			inner_.start();
		}

	private:
		decltype(connect_to(std::declval<Sender>(), std::declval<erased_receiver>())) inner_;
	};

	Sender sender_;
};

template <class Receiver> class erased_state final : private erased_target
{
public:
	using operation_state_concept = ex::operation_state_t;

	erased_state(erased_source &from, Receiver &&r)
	    : receiver_(static_cast<Receiver &&>(r)), operation_(from.connect(erased_receiver(this)))
	{
	}
	erased_state(const erased_state &) = delete;
	void start() & noexcept
	{
		operation_->start();
	}

private:
	void value(const MPI_Status &status) noexcept override
	{
		static_cast<Receiver &&>(receiver_).set_value(MPI_Status(status));
	}
	void error(std::exception_ptr &&e) noexcept override
	{
		static_cast<Receiver &&>(receiver_).set_error(static_cast<std::exception_ptr &&>(e));
	}
	void stopped() noexcept override
	{
		static_cast<Receiver &&>(receiver_).set_stopped();
	}
	erased_env env() const noexcept override
	{
		erased_env e;

		e.receiver = &receiver_;
		/* Asked once: each erased sender of a chain asks the next one, and twice would be 2^n times. */
		auto &&of = ex::get_env(receiver_);
		e.possible = stop_possible(of);
		e.asleep = waiter_sleeps(of);
		e.requested = [](const void *r) noexcept {
			return stop_requested(ex::get_env(*static_cast<const Receiver *>(r)));
		};
		return e;
	}

	Receiver receiver_;
	std::unique_ptr<erased_operation> operation_;
};

} // namespace detail

/*
 * A sender of MPI_Status without a trace of what it was made of: any chain that ends with transform_mpi(), followed by
 * | contd::erase(). Types of chains grow with their length, what a debugger has to know of them with its square:
 * erasing cuts that off, for two allocations, one where it is erased and one where it is connected. It is connected
 * once.
 */
class [[nodiscard]] erased_mpi_sender
{
public:
	using sender_concept = ex::sender_t;
	using completion_signatures =
		ex::completion_signatures<ex::set_value_t(MPI_Status), ex::set_error_t(std::exception_ptr),
					  ex::set_stopped_t()>;

	template <class Sender, class F>
	explicit erased_mpi_sender(transform_sender<Sender, F> &&s)
	    : source_(static_cast<detail::erased_source *>(new detail::erased_sender<transform_sender<Sender, F>>(
		      static_cast<transform_sender<Sender, F> &&>(s))))
	{
	}
	[[gnu::noinline]] erased_mpi_sender(erased_mpi_sender &&from) noexcept : source_(std::move(from.source_))
	{
	}
	[[gnu::noinline]] ~erased_mpi_sender()
	{
	}
	template <class Receiver> detail::erased_state<Receiver> connect(Receiver r) &&
	{
		return {*source_, static_cast<Receiver &&>(r)};
	}

private:
	std::unique_ptr<detail::erased_source> source_;
};

inline detail::erase_closure erase() noexcept
{
	return {};
}

namespace detail
{
template <class Sender, class F>
	requires sender<Sender>
[[gnu::noinline]] auto operator|(Sender &&s, transform_closure<F> closure)
{
	return transform_sender<std::decay_t<Sender>, F>(static_cast<Sender &&>(s), static_cast<F &&>(closure.f));
}
template <class Sender, class F>
[[gnu::noinline]] erased_mpi_sender operator|(transform_sender<Sender, F> &&s, erase_closure)
{
	return erased_mpi_sender(static_cast<transform_sender<Sender, F> &&>(s));
}
} // namespace detail

// ---------------------------------------------------------------------------------------------------- then, sync_wait

namespace detail
{

/* f's result of the values, or without them where they are one MPI_Status that it does not take. */
template <class F, class Values> struct then_call;
template <class F, class... Values> struct then_call<F, std::tuple<Values...>> {
	static constexpr bool takes = std::is_invocable_v<F, Values...>;
	static constexpr bool does_without =
		std::is_same_v<std::tuple<Values...>, std::tuple<MPI_Status>> && std::is_invocable_v<F>;
	static_assert(takes || does_without,
		      "contd::then(f): f takes what the sender before it sends; an MPI_Status it may leave out");

	static decltype(auto) call(F &&f, Values &&...values)
	{
		if constexpr (takes)
			return std::invoke(std::forward<F>(f), std::forward<Values>(values)...);
		else
			return std::invoke(std::forward<F>(f));
	}
	using result = decltype(call(std::declval<F>(), std::declval<Values>()...));
};
template <class Result> struct then_sends {
	using type = ex::set_value_t(Result);
};
template <> struct then_sends<void> {
	using type = ex::set_value_t();
};

template <class F, class Receiver, class Values> class then_receiver;
template <class F, class Receiver, class... Values> class then_receiver<F, Receiver, std::tuple<Values...>>
{
	using call = then_call<F, std::tuple<Values...>>;

public:
	using receiver_concept = ex::receiver_t;

	then_receiver(F &&f, Receiver &&r) : f_(std::move(f)), receiver_(std::move(r))
	{
	}
	void set_value(Values... values) noexcept
	{
		try {
			if constexpr (std::is_void_v<typename call::result>)
				call::call(std::move(f_), std::move(values)...);
			else
				return sends(call::call(std::move(f_), std::move(values)...));
		} catch (...) {
			return ex::set_error(std::move(receiver_), std::current_exception());
		}
		if constexpr (std::is_void_v<typename call::result>)
			ex::set_value(std::move(receiver_));
	}
	template <class Error> void set_error(Error &&e) noexcept
	{
		ex::set_error(std::move(receiver_), as_exception(std::forward<Error>(e)));
	}
	void set_stopped() noexcept
	{
		ex::set_stopped(std::move(receiver_));
	}
	ex::env_of_t<Receiver> get_env() const noexcept
	{
		return ex::get_env(receiver_);
	}

private:
	template <class Result> void sends(Result &&r) noexcept
	{
		ex::set_value(std::move(receiver_), std::forward<Result>(r));
	}

	F f_;
	Receiver receiver_;
};

template <class Sender, class F> class [[nodiscard]] then_sender
{
	using values = sent_by<Sender, ex::empty_env>;

public:
	using sender_concept = ex::sender_t;
	using completion_signatures =
		ex::completion_signatures<typename then_sends<typename then_call<F, values>::result>::type,
					  ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>;

	then_sender(Sender &&s, F &&f) : sender_(std::move(s)), f_(std::move(f))
	{
	}
	template <class Receiver> auto connect(Receiver r) &&
	{
		return connect_to(std::move(sender_), then_receiver<F, Receiver, values>(std::move(f_), std::move(r)));
	}
	template <class Receiver> auto connect(Receiver r) const &
	{
		return connect_to(Sender(sender_), then_receiver<F, Receiver, values>(F(f_), std::move(r)));
	}

private:
	Sender sender_;
	F f_;
};

template <class F> struct then_closure {
	F f;
};
template <class Sender, class F>
	requires sender<Sender>
auto operator|(Sender &&s, then_closure<F> closure)
{
	return then_sender<std::decay_t<Sender>, F>(std::decay_t<Sender>(std::forward<Sender>(s)),
						    std::move(closure.f));
}

template <class Values> struct waited;
template <class... Values> struct waited<std::tuple<Values...>> {
	std::optional<std::tuple<Values...>> values;
	std::exception_ptr error;
	sleeper here;
};
template <class Values> class waiting_receiver;
template <class... Values> class waiting_receiver<std::tuple<Values...>>
{
public:
	using receiver_concept = ex::receiver_t;

	explicit waiting_receiver(waited<std::tuple<Values...>> *to) noexcept : to_(to)
	{
	}
	void set_value(Values... values) noexcept
	{
		try {
			to_->values.emplace(std::move(values)...);
		} catch (...) {
			to_->error = std::current_exception();
		}
		sleeper::wake(&to_->here);
	}
	template <class Error> void set_error(Error &&e) noexcept
	{
		to_->error = as_exception(std::forward<Error>(e));
		sleeper::wake(&to_->here);
	}
	void set_stopped() noexcept
	{
		sleeper::wake(&to_->here);
	}

private:
	waited<std::tuple<Values...>> *to_;
};

} // namespace detail

/*
 * As std::execution's then(), and after transform_mpi() f may leave the MPI_Status out, as P2300's then() does not
 * allow: just(buf, n, type, dest, tag, comm) | transform_mpi(MPI_Isend) | contd::then([buf] { release(buf); })
 */
template <class F> auto then(F &&f)
{
	return detail::then_closure<std::decay_t<F>>{std::forward<F>(f)};
}

/*
 * Start a sender, and wait for its end: makes progress meanwhile, as sync_wait() of an operation does, at any thread
 * level and without a daemon. The values that it sends, as a tuple; nullopt: it was stopped. Throws what it ended with.
 * Needs a dispatcher.
 */
template <class Sender>
	requires(sender<Sender> && !startable<std::remove_reference_t<Sender>>)
auto sync_wait(Sender &&s)
{
	using values = detail::sent_by<Sender, ex::empty_env>;

	detail::waited<values> result;
	auto state = detail::connect_to(std::decay_t<Sender>(std::forward<Sender>(s)),
					detail::waiting_receiver<values>(&result));

	ex::start(state);
	result.here.sleep();
	if (result.error)
		std::rethrow_exception(result.error);
	return std::move(result.values);
}

} // namespace contd

#endif
