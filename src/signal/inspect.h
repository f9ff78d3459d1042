/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads whose ticks are inspected. Their program declares no regions, so a handler asks, about the place that it has
 * interrupted, whether that is as good as one. If it is, sources with WHERE_INSPECTED are driven there, and nothing
 * else: for continuations, and for other sources, the thread is where it was. This also holds if the program uses contd
 * itself.
 *
 *     operation              thread  handler  progress
 *     contd__inspect           yes*    no     wait-free; a system call if ticks begin
 *     contd__inspect_rest_sig  no      yes    wait-free
 *     contd__inspect_again     yes     no     wait-free in the number of attached threads; system calls
 *     contd__inspect_sig       no      yes    as the sources that it drives
 *     * the attached thread itself
 */
#ifndef CONTD_SIGNAL_INSPECT_H
#define CONTD_SIGNAL_INSPECT_H

#include <stdbool.h>

#include "base/api.h"
#include "signal/attached.h"

struct contd__inspector {
	/* May sources be driven now, on top of the code that the signal has interrupted there? `context` is the
	 * ucontext_t of the signal. Handlers call it: async-signal-safe code only. */
	bool (*allows)(const void *context);
	/* After that, if it was allowed, whether a source was driven or not. Handlers call it. NULL: nothing. */
	void (*after)(void);
};

/* From now on the calling thread, which must be attached, is inspected until it is detached; NULL ends it now. Returns
 * false if the thread is not attached. */
CONTD_INTERNAL_API bool contd__inspect(const struct contd__inspector *inspector);

/* In `allows`: ticks on this thread are of no use to the inspector until contd__inspect_again(), because it is another
 * thread's turn; or they are after all. After the first, look once more whether it is. The partner stores whose turn it
 * is, and calls that. */
CONTD_INTERNAL_API void contd__inspect_rest_sig(bool rests);

/* Ticks on the calling thread, or on each inspected thread, are of use again. */
CONTD_INTERNAL_API void contd__inspect_again(bool each);

/* After the look of a tick: ask, and drive. Returns whether a source has found work: it adds that to
 * contd__self.work. */
bool contd__inspect_sig(const struct contd__attached *me, const void *context);

#endif
