/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: a thread of contd that looks while no other thread does. Ordinary threads; may block. */
#ifndef CONTD_DISPATCH_DAEMON_H
#define CONTD_DISPATCH_DAEMON_H

#include <contd/contd.h>

#include "base/api.h"
#include "base/atomic.h"

/* Stops the daemon, even if the program has started it. */
void contd__daemon_end(void);

/* Put the settings into force: their agent starts, switches or stops the daemon, and the daemon's other settings
 * apply. */
int contd__daemon_configure(const struct contd_config *before);

/*
 * Called when the daemon may have ended: threads that compute in regions must now run what completers left to it. Some
 * of it may run in this call, so the caller holds no lock.
 */
void contd__daemon_hand_over(void);

/*
 * If not NULL, called when the daemon has ended. It only wakes threads that sleep on futex words because the daemon
 * looked for them. Ordinary threads and regions' handlers; no lock is held.
 */
CONTD_INTERNAL_API extern void (*contd__daemon_changed)(void);

/* The caller loads the daemon's mode next. Partner: contd__daemon_hand_over(). */
static inline void contd__daemon_on_change(void (*changed)(void))
{
	contd__store_seq(&contd__daemon_changed, changed);
}

/* Are the daemon's texts well-formed? 0 or -EINVAL. */
int contd__daemon_check(const struct contd_config *config);

/* In a child of fork: no daemon. */
void contd__daemon_forked(void);

#endif
