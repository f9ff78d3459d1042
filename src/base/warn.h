/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warnings: lines on standard error (base/say.h) that CONTD_VERBOSE=0 keeps back.
 *
 *     operation           thread  handler  progress
 *     contd__warn           yes     no     may block (memory, the terminal)
 *     contd__warn_here      yes     no     may block (memory, the terminal)
 */
#ifndef CONTD_BASE_WARN_H
#define CONTD_BASE_WARN_H

#include <contd/contd.h>

#include "base/api.h"

/* As printf(3). */
CONTD_INTERNAL_API void contd__warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* For a warning that applies to all ranks of the job: on each host one of them says it, and how many
 * ranks there are. */
CONTD_INTERNAL_API void contd__warn_here(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The same for another value than CONTD_VERBOSE_WARNINGS. `about`: what must be equal to be said once; NULL: the
 * text. */
CONTD_INTERNAL_API void contd__tell_here(enum contd_verbose what, const char *about, const char *text);

#endif
