/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: a thread of contd's that looks while nobody else does. Ordinary threads; may block. */
#ifndef CONTD_DISPATCH_DAEMON_H
#define CONTD_DISPATCH_DAEMON_H

#include <contd/contd.h>

/* Stops the daemon, whoever started it. */
void contd__daemon_end(void);

/* The agent of the settings takes over: starts, switches or stops the daemon; its other settings take effect. */
int contd__daemon_configure(const struct contd_config *before);

/* Are the daemon's texts well-formed? 0 or -EINVAL. */
int contd__daemon_check(const struct contd_config *config);

/* In a child of fork: no daemon. */
void contd__daemon_forked(void);

#endif
