/* SPDX-License-Identifier: BSD-3-Clause */
/* More stack than there is, in two halves. */
/* rejected: bytes of stack, more than the 4096 that are reckoned */
/* allow: root handler handler # the example's */
#include "example.h"

static NOINLINE int half(int n)
{
	volatile char room[3000];

	room[n] = 1;
	return room[others_data];
}

void handler(int signo)
{
	volatile char room[3000];

	room[signo] = 1;
	others_data = half(signo) + room[others_data];
}
