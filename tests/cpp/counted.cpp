// SPDX-License-Identifier: BSD-3-Clause
#include "counted.hpp"

#include <cstdlib>
#include <new>

std::atomic<long> counted_news{0}, counted_mallocs{0};

extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);

void *malloc(std::size_t bytes)
{
	counted_mallocs.fetch_add(1, std::memory_order_relaxed);
	return __libc_malloc(bytes);
}
void *calloc(std::size_t n, std::size_t bytes)
{
	counted_mallocs.fetch_add(1, std::memory_order_relaxed);
	return __libc_calloc(n, bytes);
}
void *realloc(void *p, std::size_t bytes)
{
	counted_mallocs.fetch_add(1, std::memory_order_relaxed);
	return __libc_realloc(p, bytes);
}
}

void *operator new(std::size_t bytes)
{
	void *p = malloc(bytes);

	counted_news.fetch_add(1, std::memory_order_relaxed);
	if (!p)
		throw std::bad_alloc();
	return p;
}
void operator delete(void *p) noexcept
{
	free(p);
}
void operator delete(void *p, std::size_t) noexcept
{
	free(p);
}
