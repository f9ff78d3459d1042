/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of progress by ticks. Ordinary threads; blocking. */
#ifndef CONTD_PROGRESS_BEGIN_H
#define CONTD_PROGRESS_BEGIN_H

#include <stdbool.h>

void contd__progress_before_init(void);
void contd__progress_begin(void);
void contd__progress_end(void);

/* The calling thread calls MPI, too. */
void contd__progress_join(void);

/* No progress any more; one line says why. */
void contd__progress_stop(const char *why);

#endif
