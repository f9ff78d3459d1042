/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals from one thread to another. Any context. */
#ifndef CONTD_SIGNAL_NOTIFY_H
#define CONTD_SIGNAL_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "signal/attached.h"

/*
 * A ring came to a thread that has no use for it: interrupt another one that computes in a region, if there is one;
 * `whatever` its budget says, or within that. If there is none, the next region of each other thread arms the bell, and
 * looks. The second one is for the calling thread.
 */
void contd__hand_on_sig(const struct contd__attached *me, bool whatever);
void contd__hand_on_within_sig(void);

/* Interrupt a thread that computes and has `unasked`. The next regions of those that do not compute arm the bell. */
void contd__ask_sig(void);

/* Interrupt that thread, from which the bell was taken, or, if it is not attached any more, another one. */
void contd__ring_sig(int32_t tid);

/* Send a notification to that thread of this process; false: the kernel refuses, errno says why. */
bool contd__queue_sig(int32_t tid);

/* 1 if an attached thread has been or is being interrupted. */
int contd__notify_sig(void);

/* The same for one that computes in a region. If there is none, the thread that begins a region next looks. */
int contd__notify_region_sig(void);

/* After a scan by interruption that left something: ticks, or, if there are none, the next signal. */
void contd__again_sig(bool ran);

/* A tick on this thread soon, whatever the agent, as after a notification that was put off. */
void contd__later_sig(void);

#endif
