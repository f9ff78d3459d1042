/* SPDX-License-Identifier: BSD-3-Clause */
/* The signal handler: async-signal-safe code only. */
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "dump/asked.h"

uint32_t contd__asked;

void contd__asked_sig(int signal_number)
{
	int saved = errno;

	(void)signal_number;
	contd__add(&contd__asked, ASKED_ONCE);
	syscall(SYS_futex, &contd__asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
