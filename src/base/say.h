/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that contd writes to standard error. Each line begins with "contd: [host:pid rank n] ", or, while no MPI
 * library has told the rank, with "contd: [host:pid] ". A message is one write(2), so lines of several ranks do not
 * mix. errno is kept, and no function here is a cancellation point. A newline inside a message begins another line with
 * the same beginning; none is at the end.
 *
 *     operation          thread  handler  progress
 *     contd__say           yes     no     may block (memory, the terminal)
 *     contd__say_sig       yes     yes    may block (the terminal)
 *     contd__say_rank      yes     yes    wait-free
 */
#ifndef CONTD_BASE_SAY_H
#define CONTD_BASE_SAY_H

#include <stddef.h>

#include "base/api.h"

/* As printf(3). */
CONTD_INTERNAL_API void contd__say(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* One line of `length` bytes. */
CONTD_INTERNAL_API void contd__say_sig(const char *line, size_t length);

/* From now on each line has the rank. A child of this process keeps it. */
CONTD_INTERNAL_API void contd__say_rank(int rank);

/* The descriptor to which all of this goes. */
#define SAY_DESCRIPTOR 2
/* That rank, or -1. Any context. */
int contd__say_rank_known(void);

/* Writes what each line begins with; returns its length. */
#define SAY_BEGINNING 128
size_t contd__say_beginning_sig(char to[SAY_BEGINNING]);

#endif
