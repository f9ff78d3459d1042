/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "base/cancel.h"
#include "base/rest.h"

#define YIELDS 4096u

void contd__rest(void)
{
	static __thread uint32_t yields __attribute__((tls_model("initial-exec")));
	static const struct timespec nap = {.tv_nsec = 1}; /* as short as the kernel's timer slack allows */
	int cancel;

	if (++yields % YIELDS) {
		sched_yield();
		return;
	}
	cancel = contd__cancel_off();
	nanosleep(&nap, NULL);
	contd__cancel_as(cancel);
}
