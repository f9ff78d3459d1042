/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells the sanitizers about stacks, because they follow one for each thread. Without them all of this is nothing.
 *
 *   STACK_LEAVING(from, to)   before a jump from one stack to another
 *   STACK_ARRIVED(on, from)   after it, on the other one
 */
#ifndef TASKRT_SANITIZED_H
#define TASKRT_SANITIZED_H

#include <stddef.h>

struct sanitized_stack {
	const void *bottom; /* NULL: a thread's own stack, which is found when it is left */
	size_t bytes;
	void *fake;   /* AddressSanitizer's own stack */
	void *thread; /* ThreadSanitizer's: each stack is a thread for it */
};

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define STACK_LEAVING(from, to) __sanitizer_start_switch_fiber(&(from)->fake, (to)->bottom, (to)->bytes)
#define STACK_ARRIVED(on, from) __sanitizer_finish_switch_fiber((on)->fake, &(from)->bottom, &(from)->bytes)
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define STACK_LEAVING(from, to) __tsan_switch_to_fiber((to)->thread, 0)
#define STACK_ARRIVED(on, from) (void)(from)
#define STACK_HERE() __tsan_get_current_fiber()
#define STACK_MADE() __tsan_create_fiber(0)
#define STACK_GONE(stack) __tsan_destroy_fiber((stack)->thread)
#else
#define STACK_LEAVING(from, to) (void)(to)
#define STACK_ARRIVED(on, from) (void)(from)
#endif
#ifndef STACK_HERE
#define STACK_HERE() NULL
#define STACK_MADE() NULL
#define STACK_GONE(stack) (void)(stack)
#endif

#endif
