/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stacks, and the switch from one to another: a few nanoseconds, because the compiler's own setjmp saves three pointers
 * and makes no call.
 */
#ifndef TASKRT_FIBER_H
#define TASKRT_FIBER_H

#include <ucontext.h>

#include "sanitized.h"

struct fiber {
	void *context[5]; /* where it was left: frame, address, end of the stack */
	struct fiber *came_from;
	struct sanitized_stack stack;
};

/* The compiler's longjmp must not stand in a function that has its setjmp. */
__attribute__((noipa, noreturn)) static void fiber_jump(struct fiber *to)
{
	__builtin_longjmp(to->context, 1);
}

/*
 * Leave the stack that one is on, which is `from`; to a place that was left so, or with `start` to another. It returns
 * when a thread switches to `from`, perhaps another thread, and then no register is what it was: noipa.
 */
__attribute__((noipa)) static void fiber_switch(struct fiber *from, struct fiber *to, const ucontext_t *start)
{
	to->came_from = from;
	if (__builtin_setjmp(from->context) == 0) {
		STACK_LEAVING(&from->stack, &to->stack);
		if (start)
			setcontext(start);
		fiber_jump(to);
	}
	STACK_ARRIVED(&from->stack, &from->came_from->stack);
}

/* A new one, on which body() runs until it leaves it. */
static inline void fiber_make(struct fiber *from, struct fiber *to, void *bottom, size_t bytes, void (*body)(void))
{
	ucontext_t start;

	to->stack = (struct sanitized_stack){.bottom = bottom, .bytes = bytes, .thread = STACK_MADE()};
	getcontext(&start);
	start.uc_stack.ss_sp = bottom;
	start.uc_stack.ss_size = bytes;
	makecontext(&start, body, 0);
	fiber_switch(from, to, &start);
}

#endif
