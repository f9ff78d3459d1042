/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_WATCHDOG_H
#define CONTD_DISPATCH_WATCHDOG_H

#include <stdbool.h>

struct contd_config;

/* These settings are in force: whom it tells, its bound. */
void contd__watchdog_settle(const struct contd_config *config);

/* Start the watchdog's thread if the settings want one and it does not run. 0, -EAGAIN. May block. */
int contd__watchdog_start(void);

/* Stop it where it runs; what was noted is reported first. May block. */
void contd__watchdog_end(void);

/* Is this the watchdog's thread? Whoever ends it waits for what it calls. Any context. */
bool contd__on_watchdog(void);

#endif
