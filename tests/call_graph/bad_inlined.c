/* SPDX-License-Identifier: BSD-3-Clause */
/* malloc in a function of a header that was inlined. */
/* rejected: inlined.h: */
/* rejected: inlined_get() uses malloc */
/* allow: root handler handler # the example's */
#include "inlined.h"

#include "example.h"

extern void *bad_inlined_kept;
void *bad_inlined_kept;

void handler(int signo)
{
	bad_inlined_kept = inlined_get((size_t)signo);
	others_data = 3;
}
