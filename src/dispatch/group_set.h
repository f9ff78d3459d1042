/* SPDX-License-Identifier: BSD-3-Clause */
/* All groups: making them, the places where scans find them, giving them back, freeing them. Ordinary threads. */
#ifndef CONTD_DISPATCH_GROUP_SET_H
#define CONTD_DISPATCH_GROUP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/group.h"
#include "dispatch/outlet.h"

/*
 * Free dead groups, when there are many or when told so: true if there were any. Until then they keep their places in
 * their roots. Ordinary threads, outside read-side sections; may block.
 */
bool contd__reap(bool all);

/*
 * Frees what is left of groups; returns how many continuations were outstanding. contd_fini(). The pool of an executor
 * may still have such a continuation in its queue, and look at it later: while there is an executor, a group with
 * something outstanding is kept instead, marked so that nothing of it runs.
 */
uint32_t contd__groups_fini(void);

/* An executor is there from now on, or is gone. */
void contd__groups_outlet_made(void);
void contd__groups_outlet_gone(void);

/* Nobody uses any more what was unlinked before. Ordinary threads; blocks. */
void contd__grace_over(void);

/* From now on these run what becomes ready of it. The caller has seen that nothing of it is outstanding. 0, -EAGAIN. */
int contd__group_set_outlet(struct contd_group *group, struct contd__outlet *outlet);

#endif
