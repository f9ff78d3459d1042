/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells between processes: bell.c arms and rings, peers.c lets processes find each other. dispatch/page.h has the
 * protocol.
 *
 *     operation               thread  handler  progress
 *     contd__bell_settle_sig    yes*    yes*   as contd__react_sig
 *     contd__bell_ring          yes     yes    wait-free
 *     contd__bell_there         yes     yes    wait-free, a system call
 *     contd__bell_drain_sig     yes     yes    wait-free, in a handler bounded by the scan's time
 *     contd_bell_listen/create  yes     no     blocking
 *     * on the attached thread itself: in its handler, or with the guard up
 */
#ifndef CONTD_SIGNAL_BELL_H
#define CONTD_SIGNAL_BELL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <contd/contd.h>

#include "base/api.h"
#include "dispatch/page.h"
#include "signal/attached.h"

/* linux/pidfd.h of Linux 6.9; Debian 12's headers are older than what it may run on. */
#define CONTD_PIDFD_THREAD 0200u /* O_EXCL */
#define CONTD_PIDFD_SIGNAL_THREAD 1u

/*
 * The si_code of each signal of contd, even if no timer sends it. At exec(2) the kernel drops pending signals of
 * timers. Others stay, such as sigqueue's SI_QUEUE, and kill a program that has no handler for them. Any code below 0
 * may be sent, but for SI_TKILL: rt_sigqueueinfo(2).
 */
#define CONTD_SI_CODE SI_TIMER

struct contd__peer {
	struct contd_bell bell; /* first */
	struct contd__page *page;
	int pidfd;
	/* The page's descriptor there, /proc/pid/fd/number, which an exec closes, and which file it is. */
	char proof[40];
	uint64_t inode;
	uint32_t device[2];
};

#define CONTD_PAGE_NAME "contd-bell"

struct contd__attached;

extern uint32_t contd__bell_no_thread_fds;

/*
 * Has this thread a use for being rung: it computes in a region, and something that it may drive or read is pending? If
 * it computes, and has none, it is asked when something becomes pending: contd__bell_ask_sig().
 */
bool contd__bell_wanted_sig(struct contd__attached *me);

/*
 * Something has become pending. If no thread is rung for it, interrupt one that computes and had no use for the bell
 * before; its handler arms the bell. Of those that do not compute, the next regions do.
 */
void contd__bell_ask_sig(void);

/* No thread may be rung now for what is pending: as if a ring had come that no thread has a use for. */
void contd__bell_taken_sig(void);

/* An interruption has found this thread outside regions. It may have been a ring, on behalf of regions. */
void contd__bell_outside_sig(struct contd__attached *me);

/* No peer rings this thread any more, but for a ring that is under way; if the thread goes, that is lost. Another one
 * that computes is rung. */
void contd__bell_disarm_sig(const struct contd__attached *me, bool goes);

/* After a look that ran so many continuations: arm, and look again. Returns how many ran then. */
uint32_t contd__bell_settle_sig(struct contd__attached *me, uint32_t ran);

/* Peers that have asked which process listens stay in the socket's queue, which has an end. Take some out, if there are
 * many. */
extern int contd__bell_socket; /* -1: none. Written by signal/peers.c, which makes it */
void contd__bell_drain_sig(void);

/* Does the peer still have its page? Not if it has ended, or contd has in it. */
CONTD_INTERNAL_API bool contd__bell_there(const struct contd_bell *bell);

/* A peer's ring has come, on any thread. */
void contd__bell_rung_sig(void);

#endif
