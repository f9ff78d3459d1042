// SPDX-License-Identifier: BSD-3-Clause
/*
 * contd for C++20: MPI operations that coroutines await, and senders.
 *
 *	MPI_Status status = co_await contd::mpi(MPI_Irecv, buffer, n, MPI_INT, source, tag, comm);
 *
 * Any MPI function whose last parameter is an MPI_Request *: sends, receives, collectives, RMA with requests, files; and
 * whatever else can be called in this way, such as a lambda. Arguments are copied (decayed) into the operation and live as
 * long as that; what pointers point to is the caller's to keep. Link with contd-mpi or contd-mpi-mpich.
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

#include <functional>
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
		int initialized = 0, finalized = 1, bytes;

		MPI_Initialized(&initialized);
		MPI_Finalized(&finalized);
		if (initialized && !finalized && MPI_Error_string(code, text, &bytes) == MPI_SUCCESS)
			return text;
		return "MPI error " + std::to_string(code);
	}
	/* Of an error code its class: code == contd::mpi_class(MPI_ERR_TRUNCATE). */
	std::error_condition default_error_condition(int code) const noexcept override
	{
		int initialized = 0, finalized = 1, result = code;

		MPI_Initialized(&initialized);
		MPI_Finalized(&finalized);
		if (initialized && !finalized)
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
 * All that MPI operations have in common. One without a stop token is MPI's own, with a continuation. To one with a token
 * MPI_Cancel must be applied while its handle is valid, which nobody knows who has attached a continuation to it: so its
 * handle is kept here, and it is made part of a request of a template, whose function tests it, and cancels it where a
 * stop was requested. That function runs on threads that may call MPI, so that stops can be requested on any thread.
 */
class mpi_base : public operation
{
protected:
	using issue_fn = int(mpi_base *);         /* calls MPI with &request_; may throw */
	using stopped_fn = bool(const mpi_base *); /* is a stop requested? */

	mpi_base(issue_fn *issue, stopped_fn *stopped) noexcept : issue_(issue), stopped_(stopped)
	{
	}

	bool launch(next_fn *next, void *data)
	{
		begin(next, data);
		rc_ = 0;
		refused_ = 0;
		cancelled_ = false;
		thrown_ = nullptr;
		if (!issuer_)
			return go();
		nest here = {this, nest_top, false};
		nest_top = &here;
		contd_task_init(&task_, issuer_, issuer_priority_, run_issue, this);
		int rc = contd_task_submit(&task_, 0);
		nest_top = here.outer;
		if (rc == 0)
			return here.done ? go() : true;
		refused_ = rc; /* not here, then: this may be no thread that may call MPI */
		return false;
	}

	/* The error that it came to. */
	std::error_code conclude() noexcept
	{
		return cancelled_ ? cancelled_code() :
		       refused_   ? code_of(refused_) :
		       rc_	  ? std::error_code(rc_, mpi_category()) :
				    std::error_code();
	}
	[[noreturn]] void raise() const
	{
		if (thrown_)
			std::rethrow_exception(thrown_);
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

		for (nest *n = nest_top; n; n = n->outer)
			if (n->operation == self) {
				n->done = true;
				return;
			}
		try {
			under_way = self->go();
		} catch (...) {
			self->thrown_ = std::current_exception();
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
		/* What is complete needs no continuation; sends often are. */
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
				 MPIX_Continue(&request, on_result, this, MPIX_CONT_INVOKE_FAILED, &status_, MPI_REQUEST_NULL) :
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
		static const MPIX_Gr made = [] {
			MPIX_Gr gr = MPIX_GR_NULL;

			MPIX_Gr_init(template_start, template_push, template_complete, nullptr, &gr);
			return gr;
		}();

		return made;
	}
	bool drive()
	{
		cancel_tried_ = was_cancelled_ = false;
		kept_ = empty_status();
		int rc = MPIX_Gr_begin(the_template(), this, &driven_);
		if (rc) {
			rc_ = MPI_Wait(&request_, &status_);
			return starter_goes_on();
		}
		/* A copy: the function goes on using driven_, on other threads. */
		MPI_Request handle = driven_;
		rc = MPIX_Continue(&handle, on_driven, this, MPIX_CONT_INVOKE_FAILED, MPI_STATUS_IGNORE, cont_req_);
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

template <class F, class... Args>
concept mpi_invocable = std::is_invocable_r_v<int, std::decay_t<F> &, std::decay_t<Args> &..., MPI_Request *>;

/* What contd::mpi() makes. Options are named before it is awaited. */
template <class Mode, class F, class... Args>
class [[nodiscard]] mpi_operation : public detail::mpi_base, public detail::awaitable<mpi_operation<Mode, F, Args...>>
{
public:
	template <class G, class... Values>
	explicit mpi_operation(Mode mode, G &&f, Values &&...values)
	    : detail::mpi_base(issue, stopped), mode_(mode), f_(std::forward<G>(f)), args_(std::forward<Values>(values)...)
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
	 * When a stop is requested (on any thread) MPI_Cancel is called, by whoever makes progress: for what MPI can cancel,
	 * receives above all. Such an operation is tested by each look at MPI, while others cost nothing until they complete.
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
			return outcome<MPI_Status>{conclude(), status_};
		} else {
			if constexpr (std::is_same_v<Mode, detail::assigns>)
				*mode_.to = conclude();
			else if (failed())
				raise();
			return status_;
		}
	}

private:
	static int issue(mpi_base *base)
	{
		auto *self = static_cast<mpi_operation *>(base);

		return std::apply([self](auto &...args) -> int { return self->f_(args..., &self->request_); }, self->args_);
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
	return mpi_operation<detail::throws, std::decay_t<F>, std::decay_t<Args>...>(detail::throws{}, std::forward<F>(f),
										      std::forward<Args>(args)...);
}

template <class F, class... Args>
	requires mpi_invocable<F, Args...>
mpi_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...> mpi(nothrow_t, F &&f, Args &&...args)
{
	return mpi_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...>(detail::returns{}, std::forward<F>(f),
										       std::forward<Args>(args)...);
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

/*
 * What the receiver of a predecessor sees of the operation state: nothing that depends on what comes after, so that the types of
 * a chain name each stage's predecessors, and not each other in both directions.
 */
template <class Env, class Values> class stage;
template <class Env, class... Values> class stage<Env, std::tuple<Values...>>
{
public:
	void (*value)(stage *, Values &&...) noexcept;
	void (*error)(stage *, std::exception_ptr) noexcept;
	void (*stopped)(stage *) noexcept;
	Env (*env)(const stage *) noexcept;
};

template <class Env, class Values> class stage_receiver;
template <class Env, class... Values> class stage_receiver<Env, std::tuple<Values...>>
{
public:
	using receiver_concept = ex::receiver_t;

	explicit stage_receiver(stage<Env, std::tuple<Values...>> *s) noexcept : stage_(s)
	{
	}
	void set_value(Values... values) noexcept
	{
		stage_->value(stage_, std::move(values)...);
	}
	template <class Error> void set_error(Error &&e) noexcept
	{
		stage_->error(stage_, as_exception(std::forward<Error>(e)));
	}
	void set_stopped() noexcept
	{
		stage_->stopped(stage_);
	}
	Env get_env() const noexcept
	{
		return stage_->env(stage_);
	}

private:
	stage<Env, std::tuple<Values...>> *stage_;
};

template <class Sender, class F, class Receiver, class Values> class transform_state;
template <class Sender, class F, class Receiver, class... Values>
class transform_state<Sender, F, Receiver, std::tuple<Values...>>
    : public mpi_base, private stage<ex::env_of_t<Receiver>, std::tuple<Values...>>
{
	using env_type = ex::env_of_t<Receiver>;
	using values = std::tuple<Values...>;
	using stage_type = stage<env_type, values>;
	using inner_receiver = stage_receiver<env_type, values>;
	using inner_state = ex::connect_result_t<Sender, inner_receiver>;

public:
	using operation_state_concept = ex::operation_state_t;

	transform_state(Sender &&sender, F &&f, Receiver &&receiver)
	    : mpi_base(issue, stop_is_requested), stage_type{value_came, error_came, stopped_came, env_of}, f_(std::move(f)),
	      receiver_(std::move(receiver)), inner_(ex::connect(std::move(sender), inner_receiver(this)))
	{
	}
	void start() & noexcept
	{
		ex::start(inner_);
	}

private:
	static void value_came(stage_type *s, Values &&...came) noexcept
	{
		auto *self = static_cast<transform_state *>(s);
		bool under_way = false;

		try {
			self->values_.emplace(std::move(came)...);
			self->stoppable_ = ex::get_stop_token(ex::get_env(self->receiver_)).stop_possible();
			under_way = self->launch(over, self);
		} catch (...) {
			ex::set_error(std::move(self->receiver_), std::current_exception());
			return;
		}
		if (!under_way)
			over(self);
	}
	static void error_came(stage_type *s, std::exception_ptr e) noexcept
	{
		ex::set_error(std::move(static_cast<transform_state *>(s)->receiver_), std::move(e));
	}
	static void stopped_came(stage_type *s) noexcept
	{
		ex::set_stopped(std::move(static_cast<transform_state *>(s)->receiver_));
	}
	static env_type env_of(const stage_type *s) noexcept
	{
		return ex::get_env(static_cast<const transform_state *>(s)->receiver_);
	}

	static int issue(mpi_base *base)
	{
		auto *self = static_cast<transform_state *>(base);

		return std::apply([self](auto &...args) -> int { return std::invoke(self->f_, args..., &self->request_); },
				  *self->values_);
	}
	static bool stop_is_requested(const mpi_base *base)
	{
		return ex::get_stop_token(ex::get_env(static_cast<const transform_state *>(base)->receiver_)).stop_requested();
	}
	static void over(void *data) noexcept
	{
		auto *self = static_cast<transform_state *>(data);

		if (!self->failed()) {
			ex::set_value(std::move(self->receiver_), MPI_Status(self->status_));
			return;
		}
		if (self->conclude() == cancelled_code()) {
			ex::set_stopped(std::move(self->receiver_));
			return;
		}
		std::exception_ptr thrown;
		try {
			self->raise();
		} catch (...) {
			thrown = std::current_exception();
		}
		ex::set_error(std::move(self->receiver_), std::move(thrown));
	}

	F f_;
	Receiver receiver_;
	std::optional<values> values_;
	inner_state inner_;
};

template <class F> struct transform_closure {
	F f;
};

} // namespace detail

/* What transform_mpi() makes. */
template <class Sender, class F> class [[nodiscard]] transform_sender
{
public:
	using sender_concept = ex::sender_t;
	using completion_signatures =
		ex::completion_signatures<ex::set_value_t(MPI_Status), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>;

	transform_sender(Sender sender, F f) : sender_(std::move(sender)), f_(std::move(f))
	{
	}
	template <class Receiver>
	auto connect(Receiver receiver) && -> detail::transform_state<Sender, F, Receiver,
								      detail::sent_by<Sender, ex::env_of_t<Receiver>>>
	{
		return {std::move(sender_), std::move(f_), std::move(receiver)};
	}
	template <class Receiver>
	auto connect(Receiver receiver) const & -> detail::transform_state<Sender, F, Receiver,
									   detail::sent_by<Sender, ex::env_of_t<Receiver>>>
	{
		return {Sender(sender_), F(f_), std::move(receiver)};
	}

private:
	Sender sender_;
	F f_;
};

/*
 * A sender that calls f(values sent by the sender before..., MPI_Request *), and sends the MPI_Status when that operation has
 * completed: just(buf, n, type, dest, tag, comm) | transform_mpi(MPI_Isend). Errors are sent as std::exception_ptr (of
 * mpi_error); a stop that the receiver's stop token requests as by mpi_operation::stop(). The operation state holds
 * everything. Completes where the continuation runs: as those of groups without flags do.
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

namespace detail
{
template <class Sender, class F>
	requires sender<Sender>
auto operator|(Sender &&s, transform_closure<F> closure)
{
	return transform_sender<std::decay_t<Sender>, F>(std::forward<Sender>(s), std::move(closure.f));
}
} // namespace detail

} // namespace contd

#endif
