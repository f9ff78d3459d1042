/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/say.h"
#include "dispatch/outlet.h"
#include "dispatch/thread.h"

const struct contd__ordinary *contd__ordinary;
__thread struct contd__self contd__self __attribute__((tls_model("initial-exec")));
const uint32_t contd__never_rung = 1;
uint32_t contd__threads_count;
__thread struct contd_tls contd__tls __attribute__((tls_model("initial-exec"))) = {.watch = &contd__never_rung};

#define NO_REGION "contd_compute_end() without a contd_compute_begin() on this thread: it changes nothing"
#define NO_GUARD "contd_guard_end() without a contd_guard_begin() on this thread: it changes nothing"

void contd__unbalanced(uint32_t what)
{
	static uint32_t told;

	contd__fail(-EPERM, what == CONTD__END_OF_REGION ? NO_REGION : NO_GUARD);
	if (contd__or(&told, what) & what)
		return;
	/* contd_guard_end() is allowed in handlers. */
	if (what == CONTD__END_OF_REGION)
		contd__say_sig(NO_REGION, sizeof(NO_REGION) - 1);
	else
		contd__say_sig(NO_GUARD, sizeof(NO_GUARD) - 1);
}

void contd__thread_number_sig(void)
{
	contd__self.tid = (uint32_t)syscall(SYS_gettid);
}

void contd__wake_all_untold_sig(void)
{
	/* `untold` is not followed: a handler may wake these threads before the next instruction, and then their
	 * executor may go. */
	const struct contd__outlet_ops *ops = contd__self.untold_ops;

	if (ops)
		ops->wake_untold();
}
