/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_STATS_H
#define CONTD_DISPATCH_STATS_H

#include <stdint.h>

/* The calling thread's counters join the sum; at its end they are kept in it. Ordinary threads; may block. */
void contd__stats_thread_enter(void);
void contd__stats_thread_leave(void);

/* Continuations that run now, where the watchdog is on; at most `room`. Returns how many. Ordinary threads; may block. */
struct contd__running {
	const void *site;
	uint64_t since; /* in clock ticks */
	uint8_t context;
};
unsigned contd__stats_running(struct contd__running *running, unsigned room);

/* No thread's checkpoints watch the bell any more: its page is about to go. Ordinary threads; may block. */
void contd__stats_unwatch(void);

/* All counters to zero. */
void contd__stats_reset(void);

#endif
