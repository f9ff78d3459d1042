/* SPDX-License-Identifier: BSD-3-Clause */
/* malloc behind two calls. */
/* rejected: third() uses malloc */
/* rejected: reached by handler -> second -> third */
/* allow: root handler handler # the example's */
#include <stdlib.h>

#include "example.h"

extern void *bad_malloc_kept;
void *bad_malloc_kept;

static NOINLINE void third(size_t bytes)
{
	bad_malloc_kept = malloc(bytes);
	others_data = 1;
}

static NOINLINE void second(int n)
{
	third((size_t)n + 1);
	others_data = 2;
}

void handler(int signo)
{
	second(signo);
	others_data = 3;
}
