// SPDX-License-Identifier: BSD-3-Clause
/* Counts what is allocated in this program: by operator new, and by malloc and its kin, libraries included. */
#ifndef TESTS_CPP_COUNTED_HPP
#define TESTS_CPP_COUNTED_HPP

#include <atomic>

extern std::atomic<long> counted_news, counted_mallocs;

#endif
