/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of interruptions, and the pace of ticks. Any context. */
#ifndef CONTD_SIGNAL_BUDGET_H
#define CONTD_SIGNAL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "signal/attached.h"

/*
 * The interval that the overhead budget allows, within the limits, but at least twice what a tick costs; the same,
 * longer after many quiet ticks.
 */
uint64_t contd__budget_interval_sig(uint64_t empty_ticks);
uint64_t contd__quiet_interval_sig(const struct contd__attached *me);

/* Pay for an interruption that took so long in the handler, callbacks apart. The kernel's share is added. */
enum contd__interruption { BY_TIMER, BY_NOTICE, BY_BELL };
void contd__pay_sig(struct contd__attached *me, enum contd__interruption kind, uint64_t now, uint64_t handler_ticks);

/* The most that an empty handler is believed to have taken; the most that one interruption costs, the kernel's share
 * included. */
uint64_t contd__plausible_sig(const struct contd__attached *me);
uint64_t contd__dearest_sig(const struct contd__attached *me);

#endif
