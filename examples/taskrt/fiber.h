/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stacks, and the switch from one to another: a few nanoseconds, for the compiler's own setjmp saves three pointers and makes
 * no call. The sanitizers follow one stack a thread, and are told of each change.
 */
#ifndef TASKRT_FIBER_H
#define TASKRT_FIBER_H

#include <stddef.h>
#include <ucontext.h>

struct fiber {
	void *context[5]; /* where it was left */
	struct fiber *came_from;
	void (*body)(struct fiber *self);
	/* For the sanitizers. */
	const void *bottom; /* NULL: a thread's own stack, which is found when it is left */
	size_t bytes;
	void *fake, *tsan;
};

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_LEAVING(from, to) __sanitizer_start_switch_fiber(&(from)->fake, (to)->bottom, (to)->bytes)
#define FIBER_ARRIVED(on) __sanitizer_finish_switch_fiber((on)->fake, &(on)->came_from->bottom, &(on)->came_from->bytes)
#else
#define FIBER_LEAVING(from, to) (void)0
#define FIBER_ARRIVED(on) (void)0
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#undef FIBER_LEAVING
#define FIBER_LEAVING(from, to) __tsan_switch_to_fiber((to)->tsan, 0)
#else
#define __tsan_get_current_fiber() NULL
#define __tsan_create_fiber(flags) NULL
#define __tsan_destroy_fiber(fiber) (void)0
#endif

/* The compiler's longjmp must not stand in a function that has its setjmp. */
__attribute__((noipa, noreturn)) static void fiber_jump(struct fiber *to)
{
	__builtin_longjmp(to->context, 1);
}

/* Leave the stack that one is on, which is `from`. It returns when somebody switches to `from`, perhaps on another thread. */
__attribute__((noipa)) static void fiber_switch(struct fiber *from, struct fiber *to)
{
	to->came_from = from;
	if (__builtin_setjmp(from->context) == 0) {
		FIBER_LEAVING(from, to);
		fiber_jump(to);
	}
	FIBER_ARRIVED(from);
}

/* The stack that one is on. */
static void fiber_here(struct fiber *f)
{
	*f = (struct fiber){.tsan = __tsan_get_current_fiber()};
}

static __thread struct fiber *fiber_made;

static void fiber_begin(void)
{
	struct fiber *self = fiber_made;

	FIBER_ARRIVED(self);
	fiber_switch(self, self->came_from);
	self->body(self);
}

/* A new one: the first switch to it calls body(), which does not return. */
__attribute__((noipa)) static void fiber_make(struct fiber *f, void *bottom, size_t bytes, void (*body)(struct fiber *))
{
	struct fiber here;
	ucontext_t start;

	fiber_here(&here);
	*f = (struct fiber){
		.bottom = bottom, .bytes = bytes, .body = body, .came_from = &here, .tsan = __tsan_create_fiber(0)};
	getcontext(&start);
	start.uc_stack.ss_sp = bottom;
	start.uc_stack.ss_size = bytes;
	makecontext(&start, fiber_begin, 0);
	fiber_made = f;
	if (__builtin_setjmp(here.context) == 0) {
		FIBER_LEAVING(&here, f);
		setcontext(&start);
	}
	FIBER_ARRIVED(&here);
}

#endif
