/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_STATS_H
#define CONTD_DISPATCH_STATS_H

/* The calling thread's counters join the sum; at its end they are kept in it. Ordinary threads; may block. */
void contd__stats_thread_enter(void);
void contd__stats_thread_leave(void);

/* All counters to zero. */
void contd__stats_reset(void);

#endif
