/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: a thread of contd's that looks while nobody else does. Ordinary threads; may block. */
#ifndef CONTD_DISPATCH_DAEMON_H
#define CONTD_DISPATCH_DAEMON_H

#include <contd/contd.h>

#include "base/api.h"

/* Stops the daemon, whoever started it. */
void contd__daemon_end(void);

/* The agent of the settings takes over: starts, switches or stops the daemon; its other settings take effect. */
int contd__daemon_configure(const struct contd_config *before);

/*
 * It may have ended: what completers have left to it is for threads that compute in regions now. It may run there and
 * then: without locks.
 */
void contd__daemon_hand_over(void);

/*
 * If it is not NULL, it is called when the daemon has ended. Threads may sleep on futex words because the daemon
 * looked for them. It only wakes. Ordinary threads and regions' handlers; no lock is held.
 */
CONTD_INTERNAL_API extern void (*contd__daemon_changed)(void);

/* Are the daemon's texts well-formed? 0 or -EINVAL. */
int contd__daemon_check(const struct contd_config *config);

/* In a child of fork: no daemon. */
void contd__daemon_forked(void);

#endif
