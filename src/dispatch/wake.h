/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking sleepers: threads in a wait, the daemon, and threads that poll contd_fd(). Each of them says that it sleeps
 * before it looks for the last time. A thread that makes something ready, or pending, sets that first, and then calls
 * one of these functions (Dekker).
 *
 * Descriptors. A writer to one of contd's descriptors (contd__poke_sig) loads its number first, in any thread or
 * handler, and may be held up before it writes. The number of a descriptor that was closed meanwhile may be that of a
 * file of the program. So a descriptor that is written to is made once, when it is first needed. Only contd_fini()
 * closes it, when no handler of contd runs any more and calls of other threads have returned. Descriptors that others
 * close (MPI's and libfabric's, for agent "block") are asked for and polled, never read or written. Those of a bell
 * belong to its owner: it closes the bell when no thread rings it any more (contd_bell_close).
 *
 *     operation                 thread  handler  progress
 *     all of them                 yes     yes    wait-free, but for one system call
 */
#ifndef CONTD_DISPATCH_WAKE_H
#define CONTD_DISPATCH_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/atomic.h"

/* Read by each thread that makes something ready; one line. */
struct contd__wake {
	uint32_t sleepers __attribute__((aligned(64))); /* threads in, or about to enter, contd_group_wait's sleep */
	uint32_t word;                                  /* futex word of those threads; goes up at each wake-up */
	uint32_t fd_armed;                              /* the eventfd is to be written when something becomes ready */
	int fd;                                         /* contd_fd()'s, or -1: there is none yet */
	int daemon_fd;                                  /* eventfd that wakes a daemon in poll(2), or -1 */
	uint32_t daemon_asleep; /* futex word: nothing is pending, and it sleeps until something is */
	uint32_t daemon_called; /* a thread of this process has woken the daemon since it said that it sleeps */
	uint32_t daemon_mode;   /* enum contd_agent of a daemon that runs: tick, block or spin; 0: none */
};
CONTD_INTERNAL_API extern struct contd__wake contd__wake;

/* Threads in a wait look again. */
CONTD_INTERNAL_API void contd__wake_sleepers_sig(void);

/* Wake the daemon if it sleeps because nothing is pending, or in poll(2); with `ready` also if it naps. */
CONTD_INTERNAL_API void contd__wake_daemon_sig(bool ready);

/* Wake all that may run what is ready of a group with these flags. */
void contd__wake_for_ready_sig(uint32_t flags);

/* Make an eventfd(2) readable. */
void contd__poke_sig(int fd);

/* contd_fini(): close the descriptors, which no thread uses any more. */
void contd__wake_fini(void);

/* In the child of a fork: there is no daemon, and the descriptors are the parent's too. */
void contd__wake_forked(void);

#endif
