/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reached from the signal handler: async-signal-safe code only. Doorbells: arming this process's, ringing a peer's. The
 * protocol is in dispatch/page.h; pidfd_send_signal(2) and futex(2) are plain system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "dispatch/interrupt.h"
#include "dispatch/limits.h"
#include "dispatch/page.h"
#include "dispatch/react.h"
#include "dispatch/source.h"
#include "dispatch/stats.h"
#include "dispatch/thread.h"
#include "dispatch/wake.h"
#include "dispatch/word.h"
#include "signal/attached.h"
#include "signal/bell.h"

#define DRAIN_AT 64u /* peers in the queue */

uint32_t contd__bell_no_thread_fds; /* pidfd_open(2) knows no threads here; tests set it */
int contd__bell_socket = -1;

/* -------------------------------------------------------------------------------------------------- who is rung --- */

/* Does a peer ring, or the daemon on behalf of regions? */
static bool rings_come(void)
{
	return contd__load(&contd__signals.listens) || contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK;
}

static bool something_pending(void)
{
	return contd__load_seq(&contd__words.pending) || contd__sources_pending_sig(WHERE_REGION);
}

/*
 * Does a ring reach a thread, if the bell's word is this? No signal comes for a thread whose checkpoints watch the
 * bell: there are none outside its regions, and when its region ends only ticks of other threads find that out.
 */
static bool is_rung(uint32_t armed)
{
	if (armed & BELL_WATCHED)
		return contd__load(&contd__signals.timers) &&
		       contd__signals_computing_sig((int32_t)(armed & ~BELL_WATCHED));
	return armed != 0;
}

/* Is no thread rung for what is pending? */
static bool missed(void)
{
	return rings_come() && !is_rung(contd__load_seq(&contd__load_seq(&contd__page)->armed.by.thread)) &&
	       something_pending();
}

static bool useful(void)
{
	return rings_come() && (contd__load_seq(&contd__words.pending) || contd__sources_here_sig(WHERE_REGION));
}

bool contd__bell_wanted_sig(struct contd__attached *me)
{
	if (!contd__tls.region || contd__in_continuation_sig())
		return false;
	/* Store, then look. Partner: contd__arm_sig(), called when something has become pending. If there is a use now,
	 * too: another thread may take the bell over, and go. */
	contd__store_seq(&me->unasked, UNASKED_ANY);
	CONTD_TESTPOINT("bell_unasked");
	if (useful())
		return true;
	/* Only other threads may drive it: it is no use to ask this one again for the same. */
	if (contd__sources_elsewhere_sig(WHERE_REGION)) {
		contd__store_seq(&me->unasked, UNASKED_FOR_ALL);
		contd__bell_ask_sig();
	}
	return false;
}

void contd__bell_ask_sig(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	/* With other agents each thread's ticks find that out. */
	if (contd__load(&contd__signals.timers) && contd__load(&contd__wake.daemon_mode) != CONTD_AGENT_BLOCK)
		return;
	if (ops && missed())
		ops->ask();
}

/* Arm this process's bell for the thread, if it has a use for it and can pay for it. true: it is armed, and the caller
 * looks. */
static bool arm_bell(struct contd__attached *me)
{
	uint32_t *word = &contd__page->armed.by.thread, armed = contd__load_seq(word);
	uint32_t mine = (uint32_t)contd__load(&me->tid);
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	if (armed == mine || !mine || !contd__bell_wanted_sig(me))
		return false;
	/* Its checkpoints watch the bell, as long as there are any: between two ticks there is one at least. */
	if (armed == (mine | BELL_WATCHED) && contd__self.checkpoint.at > me->checkpoints_seen) {
		me->checkpoints_seen = contd__self.checkpoint.at;
		contd__bell_ask_sig();
		return false;
	}
	if ((armed & ~BELL_WATCHED) != mine && is_rung(armed) &&
	    contd__signals_computing_sig((int32_t)(armed & ~BELL_WATCHED)))
		return false; /* another thread is rung, and can do the same */
	if (!contd__purse_bears_sig(&me->purse, contd__ticks())) {
		contd__store_seq(&me->unasked, UNASKED_NOT); /* a tick comes */
		if (contd__load(&contd__signals.rung))
			me->quiet = 0;
		if (ops && !contd__load(&contd__signals.timers)) {
			/* No other tick looks meanwhile, or arms the bell afterwards. That one may come between two
			 * regions. */
			contd__or(&contd__tls.flags, CONTD__TLS_REARM);
			ops->refill();
			contd__bell_ask_sig(); /* another thread may be able to pay */
		}
		return false;
	}
	contd__bell_drain_sig();
	/* Store, then look again (the caller). Partner: contd_bell_ring(), which makes visible, then looks here. */
	contd__store_seq(word, mine);
	CONTD_TESTPOINT("bell_armed");
	/* Wake a daemon that watches descriptors on behalf of regions. */
	if (contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK)
		contd__wake_daemon_sig(false);
	return true;
}

void contd__bell_taken_sig(void)
{
	const struct contd__signal_ops *ops = contd__load_acquire(&contd__interrupt.ops);

	if (ops && missed())
		ops->hand_on();
}

void contd__bell_outside_sig(struct contd__attached *me)
{
	if (!rings_come() || is_rung(contd__load_seq(&contd__page->armed.by.thread)))
		return;
	contd__or(&contd__tls.flags, CONTD__TLS_REARM);
	/* Once is enough, until its next region has looked. */
	if (!me->handed_on) {
		me->handed_on = 1;
		contd__bell_taken_sig();
	}
}

void contd__bell_disarm_sig(const struct contd__attached *me, bool goes)
{
	/* At the end of a thread the caller is counted in `senders` before this: Dekker with record_retire
	 * (attach.c). */
	uint32_t mine = (uint32_t)contd__load_seq(&me->tid), armed;
	struct contd__page *page;

	if (!mine)
		return;
	page = contd__load_seq(&contd__page);
	CONTD_TESTPOINT("bell_disarms");
	armed = contd__load_seq(&page->armed.by.thread);
	if (((armed & ~BELL_WATCHED) == mine && contd__cas(&page->armed.by.thread, &armed, 0)) || goes)
		contd__bell_taken_sig();
}

void contd__bell_drain_sig(void)
{
	/* Two threads at a time may miscount it: one finds the queue empty, and puts it right. */
	static uint32_t drained;
	uint32_t opened = contd__load(&contd__page->opened), n = 0;
	bool in_handler = contd__me && contd__load(&contd__me->inside);
	uint64_t begin;
	int fd = 0, saved = errno;
	bool empty;

	if (opened - contd__load(&drained) < DRAIN_AT)
		return;
	/* Each takes a microsecond or two, and there may be 4096. A handler has as long as for a scan, and takes one at
	 * least. The next call goes on. */
	begin = contd__ticks();
	for (; !in_handler || !n || contd__ticks() - begin < contd__load(&contd__limits.scan_ticks); n++) {
		fd = (int)syscall(SYS_accept4, contd__bell_socket, NULL, NULL, O_CLOEXEC /* SOCK_CLOEXEC */);
		if (fd < 0)
			break;
		syscall(SYS_close, fd);
	}
	empty = fd < 0 && errno == EAGAIN; /* or the program has no descriptor left: the next call goes on */
	contd__store(&drained, empty ? opened : contd__load(&drained) + n);
	errno = saved;
}

uint32_t contd__bell_settle_sig(struct contd__attached *me, uint32_t ran)
{
	uint32_t again = 0;

	/*
	 * Arm, look again. Completions that the look finds need no ring, and the bell stays armed. Those who set memory
	 * words (devices, say) need not ring: while one is watched, rings are no reason for rarer ticks.
	 */
	if (arm_bell(me)) {
		again = contd__react_sig(LOOK_LAST);
		if (contd__load(&contd__signals.rung) && !contd__load(&contd__words.pending))
			contd__quiet_where_rung(&me->quiet);
	}
	/* A function that a callback called (MPI_Send, say) may have taken more from descriptors than was looked at.
	 * The daemon finds that out. */
	if ((ran || again) && contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK)
		contd__wake_daemon_sig(false);
	return again;
}

void contd__bell_rung_sig(void)
{
	int fd = contd__load(&contd__wake.daemon_fd);

	contd__store(&contd__signals.rung, 1);
	/*
	 * A peer can wake a daemon that polls only by a signal, which any thread may get. The peer has already set the
	 * daemon's word to awake.
	 */
	if (contd__load_seq(&contd__load_seq(&contd__page)->armed.by.daemon) != DAEMON_AWAKE) {
		contd__wake_daemon_sig(true);
	} else if (fd >= 0 && contd__load(&contd__wake.daemon_mode) == CONTD_AGENT_BLOCK) {
		int saved = errno;

		contd__poke_sig(fd);
		errno = saved;
	}
}

/* ----------------------------------------------------------------------------------------------------- ringing --- */

/*
 * exec(2) keeps the process but takes its handlers away: a ring would kill the new program, which may know nothing of
 * contd, or use another signal. But exec also closes the page. (A microsecond is left between this and the signal,
 * unless the program calls contd_fini() before exec.)
 */
static bool still_there(const struct contd__peer *peer)
{
	struct statx now;

	return syscall(SYS_statx, AT_FDCWD, peer->proof, 0, STATX_INO, &now) == 0 && now.stx_ino == peer->inode &&
	       now.stx_dev_major == peer->device[0] && now.stx_dev_minor == peer->device[1];
}

bool contd__bell_there(const struct contd_bell *bell)
{
	int saved = errno;
	bool there = still_there((const struct contd__peer *)bell);

	errno = saved;
	return there;
}

/* Signal the thread that has armed the bell, or, if none has, the one that the kernel chooses. */
static int send(struct contd__peer *peer, uint32_t armed)
{
	const struct contd__page *page = peer->page;
	uint32_t thread = armed ? armed : (uint32_t)page->pid;
	siginfo_t info = {.si_code = CONTD_SI_CODE};
	int fd = peer->pidfd, rc = 0;
	unsigned flags = 0;

	if (!still_there(peer))
		return -ESRCH;
	info.si_signo = page->signal_number; /* pidfd_send_signal(2) compares it with the signal */
	info.si_value.sival_ptr = (void *)(uintptr_t)page->mark;
	/*
	 * A descriptor, not a number: so a process or thread that has ended is never mistaken for another one that got
	 * its number. It goes to the thread if the kernel can do that (Linux 6.9), otherwise to the process: the kernel
	 * prefers its main thread, and the thread that gets the signal passes it on.
	 */
	if (thread != (uint32_t)page->pid && !contd__load(&contd__bell_no_thread_fds)) {
		fd = (int)syscall(SYS_pidfd_open, thread, CONTD_PIDFD_THREAD);
		if (fd < 0 && errno == EINVAL)
			contd__store(&contd__bell_no_thread_fds, 1);
		/* The number was read from the page: is that thread one of the peer's, and the peer still the peer? */
		if (fd >= 0 && syscall(SYS_tgkill, page->pid, thread, 0) == 0 &&
		    syscall(SYS_pidfd_send_signal, peer->pidfd, 0, NULL, 0) == 0) {
			flags = CONTD_PIDFD_SIGNAL_THREAD;
		} else {
			if (fd >= 0)
				syscall(SYS_close, fd);
			fd = peer->pidfd;
		}
	}
	/* The main thread's descriptor is the process's. */
	if (thread == (uint32_t)page->pid && armed && !contd__load(&contd__bell_no_thread_fds))
		flags = CONTD_PIDFD_SIGNAL_THREAD;
	rc = (int)syscall(SYS_pidfd_send_signal, fd, page->signal_number, &info, flags);
	if (rc && errno == EINVAL && flags && fd == peer->pidfd) {
		contd__store(&contd__bell_no_thread_fds, 1);
		rc = (int)syscall(SYS_pidfd_send_signal, fd, page->signal_number, &info, 0);
	}
	rc = rc ? -errno : 0;
	if (fd != peer->pidfd)
		syscall(SYS_close, fd);
	return rc;
}

int contd__bell_ring(struct contd_bell *bell)
{
	struct contd__peer *peer = (struct contd__peer *)bell;
	struct contd__page *page = peer->page;
	int saved = errno, rc = 0, rang = 0;
	uint32_t thread = 0, how = DAEMON_AWAKE;

	if (contd__load_seq(&page->armed.by.thread))
		thread = contd__xchg(&page->armed.by.thread, 0);
	if (contd__load_seq(&page->armed.by.daemon) != DAEMON_AWAKE)
		how = contd__xchg(&page->armed.by.daemon, DAEMON_AWAKE);
	CONTD_TESTPOINT("bell_taken");
	if (how == DAEMON_NAPS) {
		syscall(SYS_futex, &page->armed.by.daemon, FUTEX_WAKE, 1, NULL, NULL, 0);
		rang = 1;
	}
	if (thread & BELL_WATCHED) {
		rang = 1;
		thread = 0;
	}
	if (thread || how == DAEMON_POLLS) {
		rc = send(peer, thread);
		rang = rang || rc == 0;
	}
	if (rang)
		CONTD_COUNT_STRAY(rings_sent);
	errno = saved;
	return rang ? 1 : rc;
}
