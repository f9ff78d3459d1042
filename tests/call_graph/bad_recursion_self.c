/* SPDX-License-Identifier: BSD-3-Clause */
/* A function that calls itself. */
/* rejected: recursion: descend -> descend */
/* allow: root handler handler # the example's */
#include "example.h"

static NOINLINE int descend(int n)
{
	volatile int here = n;

	return n > 1 ? descend(n / 2) * here + descend(n / 3) : others_data;
}

void handler(int signo)
{
	others_data = descend(signo);
}
