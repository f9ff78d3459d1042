/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking sleepers: threads in a wait, the daemon, and threads that poll contd_fd(). Each of them says that it sleeps,
 * then looks for the last time, then sleeps. A thread that makes something ready, or pending, sets that first, and then
 * calls one of the functions that wake (Dekker). Both sides of each of these pairs are functions of this unit:
 *
 *     who sleeps              says so by                   sleeps in               is woken by
 *     a thread in a wait      contd__sleeper_begin()       contd__sleeper_sleep()  contd__wake_sleepers_sig()
 *     the daemon, if nothing  contd__daemon_sleep_begin()  contd__daemon_sleep()   contd__wake_daemon_sig()
 *       is pending
 *     the daemon between      contd__daemon_arm()          contd__daemon_nap(),    contd__wake_daemon_sig(),
 *       two looks                                            poll(2)                 bells of peers
 *     a thread that polls     contd__fd_make(),            poll(2)                 contd__wake_for_ready_sig(),
 *       contd_fd()              contd__fd_clear()                                    contd__fd_raise()
 *
 * Descriptors. A writer to one of contd's descriptors (contd__poke_sig) loads its number first, in any thread or
 * handler, and may be held up before it writes. The number of a descriptor that was closed meanwhile may be that of a
 * file of the program. So a descriptor that is written to is made once, when it is first needed. Only contd_fini()
 * closes it, when no handler of contd runs any more and calls of other threads have returned. Descriptors that others
 * close (MPI's and libfabric's, for agent "block") are asked for and polled, never read or written. Those of a bell
 * belong to its owner: it closes the bell when no thread rings it any more (contd_bell_close).
 *
 *     operation               thread  handler  progress
 *     those that end in _sig    yes     yes    wait-free, but for one system call
 *     contd__sleeper_sleep,     yes     no     blocking
 *       contd__daemon_sleep,
 *       contd__daemon_nap
 *     all others                yes     no     wait-free, but for one system call
 */
#ifndef CONTD_DISPATCH_WAKE_H
#define CONTD_DISPATCH_WAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/api.h"
#include "base/atomic.h"

/* Read by each thread that makes something ready; one line. Only the functions below write it. */
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

/* ------------------------------------------------------------------------------------------- a thread in a wait --- */

/* This thread is about to sleep. Returns what contd__sleeper_sleep() needs. Next the caller looks for the last time. */
uint32_t contd__sleeper_begin(void);

/* Sleep until a wake-up that has come since contd__sleeper_begin(), for *most at most (NULL: no limit). */
void contd__sleeper_sleep(uint32_t seen, const struct timespec *most);

/* After each contd__sleeper_begin(). */
void contd__sleeper_end(void);

/* ---------------------------------------------------------------------------------------------- the daemon only --- */

/*
 * In which mode it runs (enum contd_agent), or 0: it does not. Others load the mode after they have made something
 * ready (contd__whom_sig()). So a caller that says 0 looks next for what they have left to it
 * (contd__daemon_hand_over()).
 */
void contd__daemon_says(uint32_t mode);

/* It sleeps because nothing is pending. Next the caller looks for the last time. */
void contd__daemon_sleep_begin(void);
void contd__daemon_sleep(void);
void contd__daemon_sleep_end(void);

/* It naps, or sleeps in poll(2): DAEMON_NAPS or DAEMON_POLLS. Next the caller looks for the last time. */
void contd__daemon_arm(uint32_t how);
void contd__daemon_nap(const struct timespec *most);

/* It does not do so any more. Who has woken it? */
enum contd__woken { WOKEN_NOT, WOKEN_HERE, WOKEN_BY_PEER };
enum contd__woken contd__daemon_disarm(void);

/* Its descriptor, which is made if there is none yet. 0 or -errno. */
int contd__daemon_fd_make(void);

/* --------------------------------------------------------------------------------------------------- contd_fd() --- */

/* Makes it, armed. The descriptor or -errno. The caller looks next. */
int contd__fd_make(void);

/* Before a poll looks. */
void contd__fd_clear(int fd);

/* Something is left that a poll would find. */
void contd__fd_raise(int fd);

/* --------------------------------------------------------------------------------------------------------- life --- */

/* contd_fini(): close the descriptors, which no thread uses any more. */
void contd__wake_fini(void);

/* In the child of a fork: there is no daemon, and the descriptors are the parent's too. */
void contd__wake_forked(void);

#endif
