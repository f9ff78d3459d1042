/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics that CONTD_STATS asks for: one line, a JSON object, when contd ends in this process. A program that
 * exits without its last contd_fini() has it written at the exit. Ordinary threads.
 */
#ifndef CONTD_LIFE_ENDING_H
#define CONTD_LIFE_ENDING_H

#include <stdint.h>

#include "base/api.h"

/* contd__config is in force. Under the lock of dispatch/live_lock.h. */
void contd__ending_prepare_locked(void);

/* contd ends: threads are still attached; and then: nothing runs any more, `left` continuations never ran. Under the
 * same lock. */
void contd__ending_begins_locked(void);
void contd__ending_locked(uint32_t left);

/* The backend of MPI: a constant text. */
CONTD_INTERNAL_API void contd__ending_backend(const char *name);

#endif
