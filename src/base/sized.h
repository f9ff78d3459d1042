/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public structures begin with their size, as it was in the header that the program was compiled with. A program that
 * is older than the library gives a shorter one, and the missing fields have their defaults. A newer program gives a
 * longer one: fields that this library does not know must be zeros, because it would accept and ignore them.
 *
 *     operation           thread  handler  progress
 *     contd__sized_take     yes     no     wait-free
 *     contd__sized_give     yes     no     wait-free
 */
#ifndef CONTD_BASE_SIZED_H
#define CONTD_BASE_SIZED_H

#include <stddef.h>

#include "base/api.h"

/* No structure is longer: a larger value is something else in the place of the size. */
#define SIZED_MOST 2048u

/* The texts of the errors: CONTD_SIZED_TEXTS(), but of MPI's calls. */
struct contd__sized_texts {
	const char *size, *unknown;
};

/*
 * Copies *from into *to, which has the defaults and `known` bytes, and sets its size to that.
 *     -EINVAL: *from has no size that a compiler gives a structure of words
 *     -E2BIG: it has fields that this library does not know, and they are not zeros
 */
CONTD_INTERNAL_API int contd__sized_take(void *to, size_t known, const void *from,
					 const struct contd__sized_texts *texts);

/* The same the other way: copies as much of *from as *to, which begins with its size, has room for. The rest of *to
 * becomes zeros. */
CONTD_INTERNAL_API int contd__sized_give(void *to, const void *from, size_t known,
					 const struct contd__sized_texts *texts);

/* `call` is the call's name, `argument` what it calls the structure, `type` the structure's: literals. */
#define CONTD_SIZED_TEXTS(call, argument, type) \
	(&(const struct contd__sized_texts){call ": set " argument "->size to sizeof(" type ")", call \
					    ": " argument " has a field that is set and that this contd does not " \
					    "know: use the contd whose headers the program was compiled with"})

#endif
