// SPDX-License-Identifier: BSD-3-Clause
/*
 * contd for C++20: libfabric operations that coroutines await.
 *
 *	contd::fabric_result r = co_await contd::fabric(queue, fi_recv, endpoint, buffer, size, desc, FI_ADDR_UNSPEC);
 *
 * Any function whose last parameter is the operation's context: the arguments are given without it. It returns 0 or a
 * negative FI_E*, as libfabric's do; anything else becomes FI_EOTHER. If the provider returns -FI_EAGAIN, the next
 * thread that looks at contd makes the call again, until it returns something else. Link with contd-fabric.
 */
#ifndef CONTD_FABRIC_HPP
#define CONTD_FABRIC_HPP

#include <limits>
#include <string>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <contd/contd.hpp>
#include <contd/fabric.h>

namespace contd
{

namespace detail
{

class fabric_category_type : public std::error_category
{
public:
	const char *name() const noexcept override
	{
		return "fabric";
	}
	std::string message(int code) const override
	{
		return fi_strerror(code);
	}
	/* Those below 256 are errno values. */
	std::error_condition default_error_condition(int code) const noexcept override
	{
		return code < 256 ? std::error_condition(code, std::generic_category())
				  : std::error_condition(code, *this);
	}
};

} // namespace detail

/* Of FI_E* (positive). */
inline const std::error_category &fabric_category() noexcept
{
	static const detail::fabric_category_type category;

	return category;
}

/* A call or an operation of libfabric's failed. */
class fabric_error : public error
{
public:
	fabric_error(int status, const char *text) : error(std::error_code(-status, fabric_category()), text)
	{
	}
};

/* Of a completion; as in struct contd_fabric_op. */
struct fabric_result {
	uint64_t flags;
	size_t length;
	void *buffer;
	uint64_t data;
	uint64_t tag;
	fi_addr_t source;
	size_t truncated;
	int32_t status;
	int32_t provider_error;
	const char *text;
};

/* contd_fabric_queue_create() or contd_fabric_queue_adopt(), and contd_fabric_queue_destroy(). */
class fabric_queue
{
public:
	/* Without a fabric in attr it has no descriptor, and agent "block" looks in turns. */
	explicit fabric_queue(fid_domain *domain, const fi_cq_attr *cq = nullptr,
			      const contd_fabric_attr *attr = nullptr)
	{
		detail::check(contd_fabric_queue_create(domain, cq, attr, &queue_));
	}
	/* With one if the provider can do that. FI_THREAD_SAFE. */
	fabric_queue(fid_fabric *fabric, fid_domain *domain, const fi_cq_attr *cq = nullptr)
	{
		contd_fabric_attr attr = {};

		attr.size = sizeof(attr);
		attr.fabric = fabric;
		attr.threading = FI_THREAD_SAFE;
		detail::check(contd_fabric_queue_create(domain, cq, &attr, &queue_));
	}
	fabric_queue(fid_cq *cq, const contd_fabric_attr &attr)
	{
		detail::check(contd_fabric_queue_adopt(cq, &attr, &queue_));
	}
	fabric_queue(fabric_queue &&from) noexcept : queue_(std::exchange(from.queue_, nullptr))
	{
	}
	fabric_queue &operator=(fabric_queue &&from) noexcept
	{
		std::swap(queue_, from.queue_);
		return *this;
	}
	~fabric_queue()
	{
		if (queue_)
			contd_fabric_queue_destroy(queue_);
	}

	contd_fabric_queue *get() const noexcept
	{
		return queue_;
	}
	/* FI_WAIT_FD or FI_WAIT_NONE. */
	fi_wait_obj wait_object() const noexcept
	{
		return contd_fabric_queue_wait_object(queue_);
	}
	/* To bind endpoints to. */
	fid_cq *cq() const noexcept
	{
		return contd_fabric_queue_cq(queue_);
	}
	/* Before the endpoints are closed: contd_fabric_queue_stop(). */
	void stop()
	{
		detail::check(contd_fabric_queue_stop(queue_));
	}

private:
	contd_fabric_queue *queue_ = nullptr;
};

namespace detail
{

/*
 * The starter is done when libfabric has taken the operation, or it has been withdrawn. Until then only the call that
 * is made again (retry) touches it. That holds even if it has completed, which a closed queue can cause.
 */
class fabric_base : public operation
{
protected:
	using issue_fn = int(fabric_base *);

	fabric_base(contd_fabric_queue *queue, issue_fn *f) noexcept : queue_(queue), issue_(f)
	{
	}

	bool launch(next_fn *next, void *data)
	{
		begin(next, data);
		error_ = 0;
		thrown_ = nullptr;
		cancelled_ = token_.stop_requested();
		if (cancelled_)
			return starter_goes_on();
		if (!group_)
			group_ = common_group();
		error_ = contd_fabric_begin_continue(queue_, &op_, on_completion, this, group_);
		if (error_)
			return false;
		if (token_.stop_possible() && endpoint_)
			stop_.emplace(token_, cancellation{this});
		bool under_way;
		try {
			under_way = issue();
		} catch (...) {
			/* Its continuation comes, and must find it: it throws when that is here. */
			thrown_ = std::current_exception();
			contd_fabric_withdraw(&op_, -FI_ECANCELED);
			under_way = true;
		}
		if (!under_way)
			return true;
		return arm() & complete ? starter_goes_on() : true;
	}
	std::error_code conclude() noexcept
	{
		stop_.reset();
		if (cancelled_ || (op_.status == -FI_ECANCELED && token_.stop_requested()))
			return cancelled_code();
		if (error_)
			return code_of(error_);
		return op_.status ? std::error_code(-op_.status, fabric_category()) : std::error_code();
	}
	void rethrow() const
	{
		if (thrown_)
			std::rethrow_exception(thrown_);
	}
	[[noreturn]] void raise(const std::error_code &code) const
	{
		if (code == cancelled_code())
			throw cancelled();
		if (error_)
			throw error(code, "contd: the operation was refused");
		throw fabric_error(op_.status, text());
	}
	fabric_result outcome_of() const noexcept
	{
		return {op_.flags,  op_.length, op_.buffer, op_.data, op_.tag,
			op_.source, op_.truncated, op_.status, op_.provider_error, text()};
	}
	/* An operation that was never begun has none. */
	const char *text() const noexcept
	{
		return op_.text ? op_.text : "";
	}

	contd_fabric_op op_ = {};
	contd_fabric_queue *queue_;
	contd_group *group_ = nullptr;
	fid_ep *endpoint_ = nullptr;
	std::stop_token token_;
	std::exception_ptr thrown_;

private:
	struct cancellation {
		fabric_base *self;

		void operator()() const noexcept
		{
			fi_cancel(&self->endpoint_->fid, &self->op_);
		}
	};

	/* false: it is not through; retry() will be called, and from here on *this may be gone. */
	bool issue()
	{
		int rc = token_.stop_requested() ? -FI_ECANCELED : issue_(this);

		if (rc == -FI_EAGAIN) {
			static const uint64_t zero = 0;
			const contd_word always = {&zero, 0, 0, CONTD_WORD_EQ};

			/* By the next look: what is under way makes room meanwhile. */
			if (contd_word_continue(&always, retry, this, group_, nullptr) == 0)
				return false;
		}
		if (rc)
			contd_fabric_withdraw(&op_, rc);
		else if (token_.stop_requested() && endpoint_)
			fi_cancel(&endpoint_->fid, &op_); /* requested while the call was being made */
		return true;
	}
	static void retry(int, void *data)
	{
		auto *self = static_cast<fabric_base *>(data);

		if (!(self->state_.load(std::memory_order_acquire) & complete)) {
			try {
				if (!self->issue())
					return;
			} catch (...) {
				self->thrown_ = std::current_exception();
				contd_fabric_withdraw(&self->op_, -FI_ECANCELED);
			}
		}
		if (self->arm() & complete)
			self->completer_goes_on();
	}
	static void on_completion(int, void *data)
	{
		auto *self = static_cast<fabric_base *>(data);

		if (self->completed())
			self->completer_goes_on();
	}

	issue_fn *issue_;
	int error_ = 0;
	bool cancelled_ = false;
	std::optional<std::stop_callback<cancellation>> stop_;
};

} // namespace detail

template <class F, class... Args>
concept fabric_invocable = std::is_invocable_v<std::decay_t<F> &, std::decay_t<Args> &..., void *>;

/* The type that contd::fabric() returns. Options are named before it is awaited. */
template <class Mode, class F, class... Args>
class [[nodiscard]] fabric_operation : public detail::fabric_base,
				       public detail::awaitable<fabric_operation<Mode, F, Args...>>
{
public:
	template <class G, class... Values>
	explicit fabric_operation(Mode mode, const fabric_queue &queue, G &&f, Values &&...values)
	    : detail::fabric_base(queue.get(), issue), mode_(mode), f_(std::forward<G>(f)),
	      args_(std::forward<Values>(values)...)
	{
		if constexpr (sizeof...(Args) > 0) {
			using first = std::tuple_element_t<0, std::tuple<Args...>>;

			if constexpr (std::is_convertible_v<first, fid_ep *> && !std::is_null_pointer_v<first>)
				endpoint_ = std::get<0>(args_);
		}
	}

	/* Go on as a task of this executor's. */
	fabric_operation &on(const executor &e, int priority = CONTD_PRIORITY_NORMAL) noexcept
	{
		executor_ = e.get();
		priority_ = priority;
		return *this;
	}
	/* Outstanding in this group. */
	fabric_operation &in(contd_group *g) noexcept
	{
		group_ = g;
		return *this;
	}
	fabric_operation &in(const group &g) noexcept
	{
		return in(g.get());
	}
	/*
	 * fi_cancel() when a stop is requested, on the thread that requests it: on the endpoint that is the function's
	 * first argument, or this one. Whether that has an effect is the provider's to say.
	 */
	fabric_operation &stop(std::stop_token token) noexcept
	{
		token_ = std::move(token);
		return *this;
	}
	fabric_operation &stop(std::stop_token token, fid_ep *endpoint) noexcept
	{
		endpoint_ = endpoint;
		return stop(std::move(token));
	}

	bool start(next_fn *next, void *data)
	{
		return launch(next, data);
	}
	auto result()
	{
		std::error_code code = conclude();

		rethrow(); /* what the function threw, where errors are returned, too */
		if constexpr (std::is_same_v<Mode, detail::returns>) {
			return outcome<fabric_result>{code, outcome_of()};
		} else {
			if constexpr (std::is_same_v<Mode, detail::assigns>)
				*mode_.to = code;
			else if (code)
				raise(code);
			return outcome_of();
		}
	}

private:
	static int issue(fabric_base *base)
	{
		auto *self = static_cast<fabric_operation *>(base);

		return std::apply(
			[self](auto &...args) -> int {
				return code_of_call(self->f_(args..., static_cast<void *>(&self->op_)));
			},
			self->args_);
	}
	/* 0 or -FI_E*. Of a call that gives something else nothing is under way, as far as one can know. */
	static int code_of_call(long long rc) noexcept
	{
		return rc <= 0 && rc >= std::numeric_limits<int>::min() ? static_cast<int>(rc) : -FI_EOTHER;
	}

	[[no_unique_address]] Mode mode_;
	F f_;
	std::tuple<Args...> args_;
};

template <class F, class... Args>
	requires fabric_invocable<F, Args...>
fabric_operation<detail::throws, std::decay_t<F>, std::decay_t<Args>...>
fabric(const fabric_queue &queue, F &&f, Args &&...args)
{
	return fabric_operation<detail::throws, std::decay_t<F>, std::decay_t<Args>...>(
		detail::throws{}, queue, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
	requires fabric_invocable<F, Args...>
fabric_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...>
fabric(nothrow_t, const fabric_queue &queue, F &&f, Args &&...args)
{
	return fabric_operation<detail::returns, std::decay_t<F>, std::decay_t<Args>...>(
		detail::returns{}, queue, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
	requires fabric_invocable<F, Args...>
fabric_operation<detail::assigns, std::decay_t<F>, std::decay_t<Args>...>
fabric(std::error_code &code, const fabric_queue &queue, F &&f, Args &&...args)
{
	return fabric_operation<detail::assigns, std::decay_t<F>, std::decay_t<Args>...>(
		detail::assigns{&code}, queue, std::forward<F>(f), std::forward<Args>(args)...);
}

} // namespace contd

#endif
