// SPDX-License-Identifier: BSD-3-Clause
/* Shared by the tests of the C++ headers. */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>

#define CHECK(...) (static_cast<bool>(__VA_ARGS__) ? void() : failed(#__VA_ARGS__, __FILE__, __LINE__))

[[noreturn]] inline void failed(const char *what, const char *file, int line)
{
	std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", file, line, what);
	std::abort();
}

/* This thread, asked again: compilers take pthread_self(3) for a constant, in coroutines too, which change threads. */
__attribute__((noinline)) inline std::thread::id this_thread()
{
	__asm__ volatile("" ::: "memory");
	return std::this_thread::get_id();
}

/* Does it throw an E? */
template <class E, class F> bool throws(F &&f)
{
	try {
		f();
	} catch (const E &) {
		return true;
	}
	return false;
}

/* How far the stack reaches, from where the object was made: at each look. */
class stack_extent
{
public:
	stack_extent() : top_(here()), low_(top_), high_(top_)
	{
	}
	__attribute__((noinline)) void look()
	{
		std::uintptr_t at = here();

		low_ = at < low_ ? at : low_;
		high_ = at > high_ ? at : high_;
	}
	std::uintptr_t bytes() const
	{
		return high_ - low_;
	}

private:
	/* Not the address of a variable: the address sanitizer may put those elsewhere. */
	__attribute__((noinline)) static std::uintptr_t here()
	{
		return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
	}

	std::uintptr_t top_, low_, high_;
};

#endif
