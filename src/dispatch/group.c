/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached from the signal handler: async-signal-safe code only. */
#include "base/atomic.h"
#include "dispatch/group.h"
#include "dispatch/thread.h"
#include "rcu/reader.h"

struct contd__groups contd__groups = {.lock = PTHREAD_MUTEX_INITIALIZER};

void contd__group_unpin_sig(struct contd_group *g)
{
	if (contd__sub(&g->life, LIFE_REFERENCE) == LIFE_REFERENCE) {
		/* The last reference, and nothing is outstanding: an ordinary thread frees it (contd__reap). Count
		 * first: the thread that takes it off the stack counts down, never below 0. */
		contd__add(&contd__groups.dead_count, 1);
		cds_lfs_push((cds_lfs_stack_ptr_t){._s = &contd__groups.dead}, &g->dead);
	}
}

bool contd__enter_sig(void)
{
	if (contd__self.registered) {
		contd__read_lock_sig();
		return true;
	}
	contd__add(&contd__groups.strangers, 1);
	return false;
}

void contd__leave_sig(bool reader)
{
	if (reader)
		contd__read_unlock_sig();
	else
		contd__sub(&contd__groups.strangers, 1);
}
