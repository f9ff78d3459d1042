/* SPDX-License-Identifier: BSD-3-Clause */
/* A continuation of one group waits for another group. */
#ifndef CONTD_DISPATCH_CHAIN_H
#define CONTD_DISPATCH_CHAIN_H

#include <stdint.h>

#include "base/api.h"
#include "dispatch/group.h"
#include "rcu/table.h"

/*
 * contd__group_await: one event of s, which is published, is counted when `awaited` is complete. Returns 1 if it is
 * complete already (then the caller counts the event), 0, -ELOOP or -EBUSY. contd__group_await_end takes this back: 1
 * if the event had not been counted. Ordinary threads.
 */
CONTD_INTERNAL_API int contd__group_await(struct contd_group *awaited, struct contd__slot *s);
CONTD_INTERNAL_API uint32_t contd__group_await_end(struct contd_group *awaited, struct contd__slot *s);

#endif
