/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the program completes itself; sources' operations are events, too. */
#ifndef CONTD_DISPATCH_EVENT_H
#define CONTD_DISPATCH_EVENT_H

#include <stdint.h>

#include "base/api.h"
#include "rcu/table.h"

/* Complete n events, EVENTS_TOGETHER at most, with status 0, except those that are complete already. Any context. */
#define EVENTS_TOGETHER 16u
CONTD_INTERNAL_API void contd__events_complete_sig(struct contd_event *const event[], uint32_t n);

/* Detach the slot from its events; returns how many had not completed. */
uint32_t contd__events_detach_sig(struct contd__slot *s, uint32_t generation);

#endif
