/* SPDX-License-Identifier: BSD-3-Clause */
/* The timers of attached threads. Any context. */
#ifndef CONTD_SIGNAL_TIMER_H
#define CONTD_SIGNAL_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "signal/attached.h"

/* Start the timer of every attached thread that has a use for ticks. */
void contd__arm_sig(void);

/* The timer stands still until something sets it. */
void contd__timer_off_sig(struct contd__attached *a);

/* This thread has no use for ticks that only regions could use, until its next region begins. */
void contd__rest_sig(struct contd__attached *me);

/*
 * After a tick on this thread: keep, change or stop the timer. `cost` of the handler in clock ticks; ran: callbacks
 * ran; guarded: it has not looked.
 */
void contd__tick_done_sig(struct contd__attached *me, uint64_t cost, bool ran, bool guarded);

/* Tick once when this thread's purse bears rings again, within a second: for an agent without ticks. */
void contd__refill_sig(void);

/* Tick once at that time, whatever the agent: a notification was put off. */
void contd__tick_at_sig(struct contd__attached *a, uint64_t at);

#endif
