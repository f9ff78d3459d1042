/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors of contd's that waking threads write to, on ordinary threads. */
#include <unistd.h>

#include "base/atomic.h"
#include "dispatch/wake.h"

#define W contd__wake

void contd__wake_fini(void)
{
	if (W.fd >= 0)
		close(W.fd);
	if (W.daemon_fd >= 0)
		close(W.daemon_fd);
	W.fd = W.daemon_fd = -1;
	W.fd_armed = 0;
}

void contd__wake_forked(void)
{
	W.fd_armed = 0;
	contd__store(&W.daemon_mode, 0);
	contd__store(&W.daemon_asleep, 0);
}
