/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_WATCHDOG_H
#define CONTD_DISPATCH_WATCHDOG_H

#include <stdbool.h>

struct contd_config;

/* Put these settings into force: function and bound. */
void contd__watchdog_settle(const struct contd_config *config);

/* Start the watchdog's thread if the settings want one and it does not run. 0, -EAGAIN. May block. */
int contd__watchdog_start(void);

/* With the live lock held. */
bool contd__watchdog_runs(void);

/* Stop it if it runs; what was noted is reported first. Not on its own thread. May block. */
void contd__watchdog_stop(void);

/* Forget what was noted. At the end of contd, when no handler runs any more: they note how long they took. */
void contd__watchdog_forget(void);

/* Is this the watchdog's thread? The thread that ends it waits for the function that it calls. Any context. */
bool contd__on_watchdog(void);

#endif
