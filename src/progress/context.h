/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a context is: its instruction and its stack. Any thread, handlers too; wait-free. */
#ifndef CONTD_PROGRESS_CONTEXT_H
#define CONTD_PROGRESS_CONTEXT_H

#include <stdint.h>
#include <ucontext.h>

#if defined(__x86_64__)
static inline uintptr_t contd__pc_of(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

static inline uintptr_t contd__sp_of(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}
#elif defined(__aarch64__)
static inline uintptr_t contd__pc_of(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.pc;
}

static inline uintptr_t contd__sp_of(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.sp;
}
#else
#error "contd-progress is for x86-64 and aarch64"
#endif

#endif
