/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dumps that a signal asks for (dump_signal in struct contd_config). The handler leaves a note. A thread of contd's,
 * which exists only while there is such a setting, then writes the dump.
 *
 *     operation              thread  handler  progress
 *     contd__asked_sig         yes     yes    wait-free, a system call
 *     contd__asked_start       yes     no     blocking; with the live lock held
 *     contd__asked_stop        yes     no     blocking (a dump that is being written); with the live lock held
 */
#ifndef CONTD_DUMP_ASKED_H
#define CONTD_DUMP_ASKED_H

#include <stdint.h>

struct contd_config;

/* 0, -EBUSY (the signal has a handler), -EAGAIN (no thread). */
int contd__asked_start(const struct contd_config *config);
void contd__asked_stop(void);

/* The handler. It stays installed, as contd's other one. */
void contd__asked_sig(int signal_number);

/* Futex word of the thread: ASKED_ONCE for each time that it was asked, and whether it is to end. */
#define ASKED_END 1u
#define ASKED_ONCE 2u
extern uint32_t contd__asked;

#endif
