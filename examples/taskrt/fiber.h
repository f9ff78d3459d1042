/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sanitizers want to know of stacks: they follow one a thread, and are told here of each change. Without them all of
 * this is nothing.
 *
 *   fiber_leaving(from, to)   before a jump from one stack to another
 *   fiber_arrived(on)         after it, on the other one
 */
#ifndef TASKRT_FIBER_H
#define TASKRT_FIBER_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

struct fiber {
	void *fake;         /* AddressSanitizer's own stack */
	const void *bottom; /* of the real one; NULL: a thread's, which is found when it is left */
	size_t bytes;
	void *context; /* ThreadSanitizer's */
	struct fiber *came_from;
};

/* A thread's own stack: on = 0, or a new one. */
static inline void fiber_init(struct fiber *f, void *bottom, size_t bytes)
{
	f->fake = NULL;
	f->bottom = bottom;
	f->bytes = bytes;
	f->came_from = NULL;
	f->context = NULL;
#if defined(__SANITIZE_THREAD__)
	f->context = bottom ? __tsan_create_fiber(0) : __tsan_get_current_fiber();
#endif
}

static inline void fiber_fini(struct fiber *f)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_destroy_fiber(f->context);
#endif
	(void)f;
}

static inline void fiber_leaving(struct fiber *from, struct fiber *to)
{
	to->came_from = from;
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(&from->fake, to->bottom, to->bytes);
#elif defined(__SANITIZE_THREAD__)
	__tsan_switch_to_fiber(to->context, 0);
#endif
}

static inline void fiber_arrived(struct fiber *on)
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(on->fake, &on->came_from->bottom, &on->came_from->bytes);
#endif
	(void)on;
}

#endif
