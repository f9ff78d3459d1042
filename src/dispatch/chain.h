/* SPDX-License-Identifier: BSD-3-Clause */
/* A continuation of one group waits for another group. */
#ifndef CONTD_DISPATCH_CHAIN_H
#define CONTD_DISPATCH_CHAIN_H

#include <stdint.h>

#include "base/api.h"
#include "dispatch/group.h"
#include "rcu/table.h"

/*
 * Count one event at s, which is published, when awaited is complete. 1: it is already, and the caller counts it; 0;
 * -ELOOP; -EBUSY. Ordinary threads. The end of it, before that: 1 if it had not been counted.
 */
CONTD_INTERNAL_API int contd__group_await(struct contd_group *awaited, struct contd__slot *s);
CONTD_INTERNAL_API uint32_t contd__group_await_end(struct contd_group *awaited, struct contd__slot *s);

#endif
