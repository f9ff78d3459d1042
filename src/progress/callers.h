/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the C library that call the program back, and the ends of the program. callers.c stands in front of
 * them. */
#ifndef CONTD_PROGRESS_CALLERS_H
#define CONTD_PROGRESS_CALLERS_H

#include <stdbool.h>

/* main() has begun. */
extern bool contd__main_runs __attribute__((visibility("hidden")));

/* The signal of contd's ticks; 0: none yet. */
extern int contd__tick_signal __attribute__((visibility("hidden")));

/* The program ends: no tick makes progress any more, when this returns; for the last of them it waits a second at most.
 */
void contd__program_ends(void);

#endif
