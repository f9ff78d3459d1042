/* SPDX-License-Identifier: BSD-3-Clause */
/* All groups: making them, the places where scans find them, giving them back, freeing them. Ordinary threads. */
#ifndef CONTD_DISPATCH_GROUP_SET_H
#define CONTD_DISPATCH_GROUP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/group.h"
#include "dispatch/outlet.h"

struct contd__never_report;

/*
 * Free dead groups, if there are many, or if `all` is set. true if there were any. Until then they keep their places in
 * their roots. Ordinary threads, outside read-side critical sections; may block.
 */
bool contd__reap(bool all);

/* contd_init(): there are no groups. */
void contd__groups_start(void);

/*
 * Free all groups that are left, and clear all hints; returns how many continuations were outstanding, and adds them to
 * the report. For contd_fini(). The pool of an executor may still have such a continuation in its queue, and look at it
 * later. So as long as an executor exists, groups with something outstanding are kept instead, marked so that nothing
 * of them runs.
 */
uint32_t contd__groups_fini(struct contd__never_report *never);

/* An executor has been made; an executor is gone. */
void contd__groups_outlet_made(void);
void contd__groups_outlet_gone(void);

/* Wait until no thread uses anything that was unlinked before. Ordinary threads; blocks. */
void contd__grace_over(void);

/* From now on this executor (NULL: none) runs the group's continuations. The caller has seen that nothing of the group
 * is outstanding. 0, -EAGAIN. */
int contd__group_set_outlet(struct contd_group *group, struct contd__outlet *outlet);

/* Does a group have that executor that is not given back, or has something outstanding? */
bool contd__groups_name_outlet(const struct contd__outlet *outlet);

#endif
