/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <contd/contd.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "dispatch/page.h"
#include "dispatch/wake.h"

struct contd__wake contd__wake = {.fd = -1, .daemon_fd = -1};

#define W contd__wake

/*
 * Make an eventfd(2) readable. This fails only if its counter is full, and then it is readable anyway. It does not call
 * write(3), a cancellation point: that could end a thread in the middle of a handler.
 */
void contd__poke_sig(int fd)
{
	uint64_t one = 1;

	CONTD_TESTPOINT("descriptor_loaded");
	syscall(SYS_write, fd, &one, sizeof(one));
}

/* ------------------------------------------------------------------------------------------- a thread in a wait --- */

uint32_t contd__sleeper_begin(void)
{
	contd__add(&W.sleepers, 1);
	/* After the addition: a wake-up that comes later changes it. */
	return contd__load_seq(&W.word);
}

void contd__sleeper_sleep(uint32_t seen, const struct timespec *most)
{
	syscall(SYS_futex, &W.word, FUTEX_WAIT_PRIVATE, seen, most, NULL, 0);
}

void contd__sleeper_end(void)
{
	contd__sub(&W.sleepers, 1);
}

void contd__wake_sleepers_sig(void)
{
	int saved;

	/* The caller has set something. Partner: the addition in contd__sleeper_begin(), whose caller then looks. */
	if (!contd__load_seq(&W.sleepers))
		return;
	saved = errno;
	contd__add(&W.word, 1);
	syscall(SYS_futex, &W.word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	errno = saved;
}

/* --------------------------------------------------------------------------------------------------- the daemon --- */

void contd__daemon_says(uint32_t mode)
{
	/* Then the caller looks. Partner: the load in contd__whom_sig() (interrupt.c), after the mark. */
	contd__store_seq(&W.daemon_mode, mode);
}

void contd__daemon_sleep_begin(void)
{
	/* Then the caller looks. Partner: the first load in contd__wake_daemon_sig(). */
	contd__store_seq(&W.daemon_asleep, 1);
}

void contd__daemon_sleep(void)
{
	syscall(SYS_futex, &W.daemon_asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

void contd__daemon_sleep_end(void)
{
	contd__store_seq(&W.daemon_asleep, 0);
}

void contd__daemon_arm(uint32_t how)
{
	contd__store(&W.daemon_called, 0);
	/* Then the caller looks. Partners: the load in contd__wake_daemon_sig(), and contd_bell_ring() of a peer. */
	contd__store_seq(&contd__page->armed.by.daemon, how);
}

void contd__daemon_nap(const struct timespec *most)
{
	syscall(SYS_futex, &contd__page->armed.by.daemon, FUTEX_WAIT, DAEMON_NAPS, most, NULL, 0);
}

enum contd__woken contd__daemon_disarm(void)
{
	if (contd__xchg(&contd__page->armed.by.daemon, DAEMON_AWAKE) != DAEMON_AWAKE)
		return WOKEN_NOT;
	/* If none of this process has, a peer has. */
	return contd__load_seq(&W.daemon_called) ? WOKEN_HERE : WOKEN_BY_PEER;
}

/* The caller has set what the daemon looks for. */
void contd__wake_daemon_sig(bool ready)
{
	/* A handler on a thread that is not attached may run beside contd_fini(): Dekker, see stray (handler.c). */
	uint32_t *word = &contd__load_seq(&contd__page)->armed.by.daemon, how;
	int saved;

	if (contd__load_seq(&W.daemon_asleep) && contd__xchg(&W.daemon_asleep, 0)) {
		saved = errno;
		syscall(SYS_futex, &W.daemon_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		errno = saved;
		return;
	}
	how = contd__load_seq(word);
	if (how == DAEMON_AWAKE || (how == DAEMON_NAPS && !ready))
		return;
	contd__store(&W.daemon_called, 1); /* the exchange orders it */
	if ((how = contd__xchg(word, DAEMON_AWAKE)) == DAEMON_AWAKE)
		return;
	saved = errno;
	if (how == DAEMON_POLLS)
		contd__poke_sig(contd__load(&W.daemon_fd));
	else
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); /* not the private kind: peers wake it too */
	errno = saved;
}

/* ---------------------------------------------------------------------------------------------------------- all --- */

/* Something of a group with these flags is ready. */
void contd__wake_for_ready_sig(uint32_t flags)
{
	/* These pairs are Dekker's: the bit or count before was set with sequential consistency, and the other side
	 * says that it sleeps (is armed) before it looks for the last time. */
	contd__wake_sleepers_sig();
	if (flags & CONTD_THREAD_ANY && !(flags & CONTD_POLL_ONLY))
		contd__wake_daemon_sig(true);
	if (!(flags & CONTD_POLL_ONLY) && contd__load_seq(&W.fd_armed) && contd__xchg(&W.fd_armed, 0)) {
		int saved = errno;

		CONTD_TESTPOINT("fd_disarmed");
		contd__poke_sig(contd__load(&W.fd));
		errno = saved;
	}
}
