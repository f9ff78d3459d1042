/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursion with a bound, and more stack for it than there is. */
/* rejected: bytes of stack, more than the 4096 that are reckoned */
/* allow: root handler handler # the example's */
/* allow: again descend descend 10 # halved each time */
#include "example.h"

static NOINLINE int descend(int n)
{
	volatile char room[600];

	room[n % 600] = 1;
	return n > 1 ? descend(n / 2) + room[others_data] : others_data;
}

void handler(int signo)
{
	others_data = descend(signo);
}
