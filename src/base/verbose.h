/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much contd says (enum contd_verbose). Until contd_init() has read the settings it is what the variable
 * CONTD_VERBOSE says, as far as that is right.
 *
 *     operation            thread  handler  progress
 *     contd__says            yes     no     wait-free (getenv)
 *     contd__verbose_set     yes     no     wait-free
 */
#ifndef CONTD_BASE_VERBOSE_H
#define CONTD_BASE_VERBOSE_H

#include <stdbool.h>

#include <contd/contd.h>

#include "base/api.h"

/* Is what belongs to this value said? */
CONTD_INTERNAL_API bool contd__says(enum contd_verbose what);

void contd__verbose_set(int verbose);

#endif
