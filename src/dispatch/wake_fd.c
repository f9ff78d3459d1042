/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors of contd's that waking threads write to, on ordinary threads. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cancel.h"
#include "base/own_fd.h"
#include "dispatch/wake.h"

#define W contd__wake

/* --------------------------------------------------------------------------------------------------- contd_fd() --- */

int contd__fd_make(void)
{
	int fd = contd__own_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));

	if (fd < 0)
		return -errno;
	contd__store_release(&W.fd, fd);
	/* Then the caller looks. Partner: the load in contd__wake_for_ready_sig(). */
	contd__store_seq(&W.fd_armed, 1);
	return fd;
}

/*
 * The descriptor is armed, or readable, or about to be: the thread that clears fd_armed writes. So it is read, a system
 * call, only if it is not armed, and armed only by a thread that has read it: a later write leaves it readable for the
 * next poll. The caller looks after that: what becomes ready then clears fd_armed again.
 */
void contd__fd_clear(int fd)
{
	uint64_t count;
	int cancel;

	if (contd__load_seq(&W.fd_armed))
		return;
	cancel = contd__cancel_off(); /* a thread that is cancelled after the read would not arm it */
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		contd__store_seq(&W.fd_armed, 1);
	contd__cancel_as(cancel);
}

void contd__fd_raise(int fd)
{
	if (contd__xchg(&W.fd_armed, 0))
		contd__poke_sig(fd);
}

/* --------------------------------------------------------------------------------------------------- the daemon --- */

int contd__daemon_fd_make(void)
{
	int fd;

	if (W.daemon_fd >= 0)
		return 0;
	fd = contd__own_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	if (fd < 0)
		return -errno;
	contd__store(&W.daemon_fd, fd);
	return 0;
}

/* --------------------------------------------------------------------------------------------------------- life --- */

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
