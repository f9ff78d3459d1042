/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTD_DISPATCH_WATCH_H
#define CONTD_DISPATCH_WATCH_H

#include "rcu/table.h"

/* Stop watching for a withdrawn continuation; 1 if its word had not been found to hold. Ordinary threads; may block. */
uint32_t contd__word_remove(struct contd__slot *s);

void contd__words_fini(void);

#endif
