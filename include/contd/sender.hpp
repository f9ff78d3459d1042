// SPDX-License-Identifier: BSD-3-Clause
/*
 * The words of std::execution (P2300R10) that contd's senders are made with. The standard library of C++20 has none of
 * them. If CONTD_STDEXEC is defined, contd::ex is stdexec's; otherwise it is the few below, of the same shape, which
 * are enough for the program's own receivers. A program must define CONTD_STDEXEC in all its files or in none.
 */
#ifndef CONTD_SENDER_HPP
#define CONTD_SENDER_HPP

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#ifdef CONTD_STDEXEC
#include <stdexec/execution.hpp>

namespace contd
{
namespace ex
{
using stdexec::completion_signatures;
using stdexec::connect;
using stdexec::connect_result_t;
using empty_env = stdexec::env<>;
using stdexec::env_of_t;
using stdexec::get_delegation_scheduler_t;
using stdexec::get_env;
using stdexec::get_stop_token;
using stdexec::operation_state_t;
using stdexec::receiver_t;
using stdexec::sender_t;
using stdexec::set_error;
using stdexec::set_error_t;
using stdexec::set_stopped;
using stdexec::set_stopped_t;
using stdexec::set_value;
using stdexec::set_value_t;
using stdexec::start;
} // namespace ex

namespace detail
{
template <class... Sets> struct only_values;
template <class Values> struct only_values<Values> {
	using type = Values;
};
template <class... Sets> using only_values_t = typename only_values<Sets...>::type;
template <class... Values> using decayed_tuple = std::tuple<std::decay_t<Values>...>;

/* The values that a sender sends, as a tuple: it must send in one way. */
template <class Sender, class Env>
using sent_by = stdexec::value_types_of_t<std::decay_t<Sender>, Env, decayed_tuple, only_values_t>;
} // namespace detail
} // namespace contd

#else

namespace contd
{
namespace ex
{

struct sender_t {
};
struct receiver_t {
};
struct operation_state_t {
};

struct set_value_t {
	template <class Receiver, class... Values> void operator()(Receiver &&r, Values &&...values) const noexcept
	{
		std::forward<Receiver>(r).set_value(std::forward<Values>(values)...);
	}
};
struct set_error_t {
	template <class Receiver, class Error> void operator()(Receiver &&r, Error &&e) const noexcept
	{
		std::forward<Receiver>(r).set_error(std::forward<Error>(e));
	}
};
struct set_stopped_t {
	template <class Receiver> void operator()(Receiver &&r) const noexcept
	{
		std::forward<Receiver>(r).set_stopped();
	}
};
struct start_t {
	template <class State> void operator()(State &state) const noexcept
	{
		state.start();
	}
};
struct connect_t {
	template <class Sender, class Receiver> auto operator()(Sender &&sender, Receiver &&receiver) const
	{
		return std::forward<Sender>(sender).connect(std::forward<Receiver>(receiver));
	}
};

struct empty_env {
};
struct never_stop_token {
	static constexpr bool stop_possible() noexcept
	{
		return false;
	}
	static constexpr bool stop_requested() noexcept
	{
		return false;
	}
};
struct get_env_t {
	/* Its result may be a reference. */
	template <class T> decltype(auto) operator()(const T &of) const noexcept
	{
		if constexpr (requires { of.get_env(); })
			return of.get_env();
		else
			return empty_env{};
	}
};
/* Asked of a receiver's environment: a thread waits there that runs what this scheduler is given, and nothing else. */
struct get_delegation_scheduler_t {
};
struct get_stop_token_t {
	template <class Env> auto operator()(const Env &env) const noexcept
	{
		if constexpr (requires { env.query(*this); })
			return env.query(*this);
		else
			return never_stop_token{};
	}
};

inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};
inline constexpr start_t start{};
inline constexpr connect_t connect{};
inline constexpr get_env_t get_env{};
inline constexpr get_delegation_scheduler_t get_delegation_scheduler{};
inline constexpr get_stop_token_t get_stop_token{};

template <class Receiver> using env_of_t = decltype(get_env(std::declval<const Receiver &>()));
template <class Sender, class Receiver>
using connect_result_t = decltype(connect(std::declval<Sender>(), std::declval<Receiver>()));

template <class... Signatures> struct completion_signatures {
};

} // namespace ex

namespace detail
{
template <class... Signatures> struct sent;
template <class... Values, class... Others> struct sent<ex::set_value_t(Values...), Others...> {
	using type = std::tuple<std::decay_t<Values>...>;
};
template <class Other, class... Others> struct sent<Other, Others...> : sent<Others...> {
};
template <class Signatures> struct sent_in;
template <class... Signatures> struct sent_in<ex::completion_signatures<Signatures...>> : sent<Signatures...> {
};

/* The values that a sender sends, as a tuple: it must send in one way. */
template <class Sender, class Env>
using sent_by = typename sent_in<typename std::decay_t<Sender>::completion_signatures>::type;
} // namespace detail
} // namespace contd

#endif

namespace contd
{
template <class T>
concept sender = requires { typename std::remove_cvref_t<T>::sender_concept; } &&
		 std::derived_from<typename std::remove_cvref_t<T>::sender_concept, ex::sender_t>;
} // namespace contd

#endif
