// SPDX-License-Identifier: BSD-3-Clause
/* As much of std::execution as senders are tested with: just(), then(), let_value(), sync_wait(), and a receiver that
 * notes. */
#ifndef TESTS_CPP_MINI_HPP
#define TESTS_CPP_MINI_HPP

#include <contd/contd.hpp>
#include <contd/sender.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>

namespace mini
{

namespace ex = contd::ex;

template <class Receiver, class... Values> struct just_state {
	using operation_state_concept = ex::operation_state_t;
	Receiver receiver;
	std::tuple<Values...> values;

	void start() & noexcept
	{
		std::apply([this](Values &...v) { ex::set_value(std::move(receiver), std::move(v)...); }, values);
	}
};

template <class... Values> struct just_sender {
	using sender_concept = ex::sender_t;
	using completion_signatures = ex::completion_signatures<ex::set_value_t(Values...)>;
	std::tuple<Values...> values;

	template <class Receiver> just_state<Receiver, Values...> connect(Receiver r) &&
	{
		return {std::move(r), std::move(values)};
	}
	template <class Receiver> just_state<Receiver, Values...> connect(Receiver r) const &
	{
		return {std::move(r), values};
	}
};

template <class... Values> just_sender<std::decay_t<Values>...> just(Values &&...v)
{
	return {{std::forward<Values>(v)...}};
}

/* Fails, or is stopped, at once. */
template <class Error> struct just_error_sender {
	using sender_concept = ex::sender_t;
	using completion_signatures = ex::completion_signatures<ex::set_value_t(), ex::set_error_t(Error)>;
	Error error;

	template <class Receiver> struct state {
		Receiver receiver;
		Error error;
		void start() & noexcept
		{
			ex::set_error(std::move(receiver), std::move(error));
		}
	};
	template <class Receiver> state<Receiver> connect(Receiver r) &&
	{
		return {std::move(r), std::move(error)};
	}
};

template <class F, class Receiver> struct then_receiver {
	using receiver_concept = ex::receiver_t;
	F f;
	Receiver receiver;

	template <class... Values> void set_value(Values &&...v) noexcept
	{
		using result = std::invoke_result_t<F &, Values...>;

		if constexpr (std::is_void_v<result>) {
			std::invoke(f, std::forward<Values>(v)...);
			ex::set_value(std::move(receiver));
		} else {
			ex::set_value(std::move(receiver), std::invoke(f, std::forward<Values>(v)...));
		}
	}
	template <class Error> void set_error(Error &&e) noexcept
	{
		ex::set_error(std::move(receiver), std::forward<Error>(e));
	}
	void set_stopped() noexcept
	{
		ex::set_stopped(std::move(receiver));
	}
	auto get_env() const noexcept
	{
		return ex::get_env(receiver);
	}
};

template <class F, class Values> struct then_signatures;
template <class F, class... Values> struct then_signatures<F, std::tuple<Values...>> {
	using result = std::invoke_result_t<F &, Values...>;
	template <class R> struct value {
		using type = ex::set_value_t(R);
	};
	template <class R>
		requires std::is_void_v<R>
	struct value<R> {
		using type = ex::set_value_t();
	};
	using type = ex::completion_signatures<typename value<result>::type, ex::set_error_t(std::exception_ptr),
					       ex::set_stopped_t()>;
};

template <class Sender, class F> struct then_sender {
	using sender_concept = ex::sender_t;
	using completion_signatures = typename then_signatures<F, contd::detail::sent_by<Sender, ex::empty_env>>::type;
	Sender sender;
	F f;

	template <class Receiver> auto connect(Receiver r) &&
	{
		return ex::connect(std::move(sender), then_receiver<F, Receiver>{std::move(f), std::move(r)});
	}
};

template <class F> struct then_closure {
	F f;
};
template <class F> then_closure<F> then(F f)
{
	return {std::move(f)};
}
template <class Sender, class F>
	requires contd::sender<Sender>
then_sender<std::decay_t<Sender>, F> operator|(Sender &&s, then_closure<F> c)
{
	return {std::forward<Sender>(s), std::move(c.f)};
}

/* The result of a sender. */
template <class... Values> struct noted {
	std::optional<std::tuple<Values...>> values;
	std::exception_ptr error;
	bool stopped = false;
	std::stop_token token;
	void (*wake)(void *) noexcept = nullptr;
	void *data = nullptr;

	void over() noexcept
	{
		if (wake)
			wake(data);
	}
};

struct env {
	std::stop_token token;

	std::stop_token query(ex::get_stop_token_t) const noexcept
	{
		return token;
	}
};

template <class Values> struct receiver;
template <class... Values> struct receiver<std::tuple<Values...>> {
	using receiver_concept = ex::receiver_t;
	noted<Values...> *to;

	void set_value(Values... v) noexcept
	{
		to->values.emplace(std::move(v)...);
		to->over();
	}
	void set_error(std::exception_ptr e) noexcept
	{
		to->error = std::move(e);
		to->over();
	}
	template <class Error> void set_error(Error e) noexcept
	{
		to->error = std::make_exception_ptr(std::move(e));
		to->over();
	}
	void set_stopped() noexcept
	{
		to->stopped = true;
		to->over();
	}
	env get_env() const noexcept
	{
		return {to->token};
	}
};

template <class Values> struct noted_of;
template <class... Values> struct noted_of<std::tuple<Values...>> {
	using type = noted<Values...>;
};

template <class Sender> struct started {
	using values = contd::detail::sent_by<Sender, env>;
	using state = ex::connect_result_t<Sender, receiver<values>>;

	started(Sender &&s, std::stop_token token, contd::next_fn *wake, void *data)
	    : result(with(std::move(token), wake, data)),
	      operation(ex::connect(std::move(s), receiver<values>{&result}))
	{
		ex::start(operation);
	}
	static typename noted_of<values>::type with(std::stop_token token, contd::next_fn *wake, void *data)
	{
		typename noted_of<values>::type n;

		n.token = std::move(token);
		n.wake = wake;
		n.data = data;
		return n;
	}

	typename noted_of<values>::type result;
	state operation;
};

/* The values; nullopt: stopped. */
template <class Sender> auto sync_wait(Sender s, std::stop_token token = {})
{
	contd::detail::sleeper here;
	started<Sender> run(std::move(s), std::move(token), contd::detail::sleeper::wake, &here);

	here.sleep();
	if (run.result.error)
		std::rethrow_exception(run.result.error);
	return std::move(run.result.values);
}

} // namespace mini

#endif
