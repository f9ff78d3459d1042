/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>

#include "base/atomic.h"
#include "base/error.h"
#include "dispatch/live.h"

struct contd__live contd__live;

int contd__check_live_sig(const char *call)
{
	int err = 0;

	if (__builtin_expect(contd__load(&contd__live.forked), 0))
		err = contd__fail(
			-ECHILD,
			"this is the child of a fork: contd works in the process that started it, or after exec");
	else if (__builtin_expect(contd__load(&contd__live.users) == 0, 0))
		err = contd__fail(-EPERM, "contd is not running: call contd_init() first");
	return contd__fail_in(call, err);
}
