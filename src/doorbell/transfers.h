/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that need the peer's progress more than once. Long messages go in several steps, and at each of them the
 * peer must be rung, not at the end alone. MPI does not tell of the steps. So the peer is rung now and then while this
 * process waits, or asks, for completion. It gets only as many rings as the transfers that were begun with it can use
 * (it is `owed` that many), because a ring costs the peer time. A peer that has ended is owed nothing.
 *
 *     operation              thread  progress
 *     contd__owe               yes   wait-free
 *     contd__owed_ring         yes   wait-free in the number of peers found
 *     contd__stall_turn        yes   the same
 *     contd__aside_enter       yes   wait-free; a system call if the helper thread sleeps; the first one makes it
 *     contd__aside_leave       yes   wait-free
 *     contd__aside_end         yes   blocking
 */
#ifndef CONTD_RING_TRANSFERS_H
#define CONTD_RING_TRANSFERS_H

#include "base/atomic.h"
#include "mpi/ring.h"

#define CONTD_LONG_BYTES 4096 /* no MPI sends less in more than one step, if the receiver waits for it */

extern int32_t contd__owed; /* to all; momentary */

/* In the child of a fork, and at the end: nothing is owed. */
static inline void contd__owed_none(void)
{
	contd__store(&contd__owed, 0);
}

/* A transfer of so many bytes with this peer has begun. */
void contd__owe(struct contd__place *p, int64_t bytes);

/* Something has completed, or may have moved: ring who is owed rings. */
void contd__owed_ring_all(void);

static inline void contd__owed_ring(void)
{
	if (__builtin_expect(contd__load(&contd__owed) > 0, 0))
		contd__owed_ring_all();
}

/* A wait: from turn to turn a little longer between two rings for the same. Zero at the beginning. */
struct contd__stall {
	int64_t next, gap; /* ns */
};

/* Ring that peer, or with NULL all that are owed rings, if it is time. */
void contd__stall_turn(struct contd__stall *s, struct contd__place *p);

/*
 * Calls that wait inside MPI, where their thread cannot ring: a helper thread does, once such a call lasts. `world` is
 * the rank that is waited for, or -1: all that were found. Returns what is to be given to contd__aside_leave. The
 * thread is made by the first such call of a process that has found a peer, sleeps while there are none, and calls
 * nothing of MPI.
 */
int contd__aside_enter(int world);
void contd__aside_leave(int slot);
void contd__aside_end(void);
void contd__aside_forked(void); /* in a child of fork */

#endif
