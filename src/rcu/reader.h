/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RCU, flavor liburcu-memb: read-side critical sections are allowed in handlers, on the thread's own stack.
 *
 *     operation                 thread  handler  progress
 *     contd__read_lock_sig        yes     yes    wait-free; the thread must be registered
 *     contd__read_unlock_sig      yes     yes    wait-free (may make a futex(2) system call)
 *     contd__reader_register      yes     no     blocking; with all signals blocked
 *     contd__grace_period         yes     no     blocking; outside read-side critical sections
 *
 * It protects groups, and what else threads find without a lock (the portable backend's handles, libfabric's objects).
 * A pointer to a group that was found in a class's root stays valid inside a section. A thread that
 * goes on to use the group takes a reference inside the section and then leaves it, so a section lasts no longer than a
 * few loads. Scans run callbacks outside sections, and a handler that interrupts one runs nothing: it leaves a note,
 * and the end of the section acts on it. So a callback may wait for a grace period, or for a thread that waits for one.
 */
#ifndef CONTD_RCU_READER_H
#define CONTD_RCU_READER_H

#include <stdbool.h>

#include <contd/contd.h>

#include <urcu/urcu-memb.h>
/*
 * The read side inline: the library's own functions reach their thread-local data through __tls_get_addr, which may
 * allocate after any dlopen(3). These are the functions of ten lines at most that liburcu means for such use (LGPL-2.1,
 * section 5; the comments in this header say so).
 */
#include <urcu/static/urcu-memb.h>

#include "base/api.h"
#include "base/atomic.h"

#if defined(__SANITIZE_THREAD__)
#define CONTD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CONTD_TSAN 1
#endif
#endif

#ifdef CONTD_TSAN
/* ThreadSanitizer does not see liburcu's barriers (assembly, membarrier(2)): tell it what a grace period orders. */
void __tsan_acquire(void *);
void __tsan_release(void *);
CONTD_INTERNAL_API extern char contd__tsan_grace;
#define CONTD_TSAN_RELEASE() __tsan_release(&contd__tsan_grace)
#define CONTD_TSAN_ACQUIRE() __tsan_acquire(&contd__tsan_grace)
#define CONTD_URCU(call) urcu_memb_##call /* not inline: it would report liburcu's own plain accesses */
#else
#define CONTD_URCU(call) _urcu_memb_##call
#define CONTD_TSAN_RELEASE() ((void)0)
#define CONTD_TSAN_ACQUIRE() ((void)0)
#endif

static inline void contd__read_lock_sig(void)
{
	CONTD_URCU(read_lock)();
}

/* Is the thread in a read-side critical section? In a handler: was the interrupted code in one? Registered threads. */
static inline bool contd__reading_sig(void)
{
	return CONTD_URCU(read_ongoing)() != 0;
}

/* A section is a guard: a signal that came in it only left a note, and the end of the outermost section acts on it. */
static inline void contd__read_unlock_sig(void)
{
	CONTD_TSAN_RELEASE();
	CONTD_URCU(read_unlock)();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(contd__load(&contd__tls.flags) & CONTD__TLS_MISSED, 0))
		contd__guard_pickup();
}

void contd__reader_register(void);
/* The thread ends. The program may have unregistered it by now: then it is registered again, for contd's own end. */
void contd__reader_still(void);
void contd__reader_unregister(void);
CONTD_INTERNAL_API void contd__grace_period(void);

#endif
