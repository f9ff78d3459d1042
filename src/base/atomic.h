/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomic accesses that contd uses, on plain types so that public structs stay usable from C++.
 * Read-modify-write operations are sequentially consistent: the protocols of the ready tree and of sleeping are of the
 * store-then-load kind (Dekker), where nothing weaker is enough, and on x86-64 nothing weaker is cheaper.
 * Every other access names its order.
 */
#ifndef CONTD_BASE_ATOMIC_H
#define CONTD_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define contd__load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define contd__load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define contd__load_seq(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define contd__store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define contd__store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define contd__store_seq(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define contd__xchg(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define contd__add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define contd__sub(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_SEQ_CST)
#define contd__or(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define contd__and(p, v) __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)
/* *expected is updated on failure */
#define contd__cas(p, expected, v) \
	__atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/*
 * Add n, and return the old value. On x86-64 this is one instruction without a locked bus, so that a handler on this
 * thread comes before or after it. For counts that threads change by turns, as the program's threads call MPI below
 * MPI_THREAD_MULTIPLE. Other threads may read them.
 */
#if defined(__x86_64__)
static inline uint32_t contd__add_by_turns(uint32_t *p, uint32_t n)
{
	__asm__ volatile("xaddl %0, %1" : "+r"(n), "+m"(*p) : : "cc", "memory");
	return n;
}
#else
#define contd__add_by_turns(p, n) __atomic_fetch_add((p), (n), __ATOMIC_RELAXED)
#endif

#endif
