/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that contd writes when it starts (CONTD_VERBOSE). Ordinary threads that hold the lock of
 * dispatch/live_lock.h. */
#ifndef CONTD_LIFE_BEGINNING_H
#define CONTD_LIFE_BEGINNING_H

#include <stdbool.h>

/* contd__config is in force. first: contd has just started, else its settings have changed. */
void contd__beginning_locked(bool first);

#endif
