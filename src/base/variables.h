/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Variables CONTD_... of the environment. Those of settings are in dispatch/settings.c; this is the list of all others.
 *
 *     operation              thread  handler  progress
 *     contd__variable_at       yes     no     wait-free
 *     contd__variable_good     yes     no     wait-free
 *     contd__variable_other    yes     no     wait-free
 *     contd__distance          yes     no     wait-free
 */
#ifndef CONTD_BASE_VARIABLES_H
#define CONTD_BASE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/api.h"

/* A variable that one of contd's libraries reads where it acts, and that is no field of struct contd_config. */
struct contd__variable {
	const char *name, *standard; /* its default, or NULL */
	const char *must;            /* what a value must be, in words */
	const char *const *values;   /* NULL: any of 1 to 64 bytes */
	bool empty;                  /* the empty text is as good as none */
};

/* The i-th one, or NULL behind the last. */
const struct contd__variable *contd__variable_at(size_t i);

bool contd__variable_good(const struct contd__variable *v, const char *value);

/* Do the project's tests, scripts or tools read a variable of this name, and not its libraries? */
bool contd__variable_other(const char *name);

/* How many characters must be inserted, removed or replaced to make b of a (the distance of Levenshtein). Of b only the
 * first CONTD_NAME_MOST - 1 count. */
#define CONTD_NAME_MOST 256
CONTD_INTERNAL_API size_t contd__distance(const char *a, const char *b);

#endif
