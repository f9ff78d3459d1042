/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame whose size is not known. */
/* rejected: handler() has a stack frame without a bound */
/* allow: root handler handler # the example's */
#include "example.h"

void handler(int signo)
{
	volatile char *room = __builtin_alloca((size_t)signo + 1);

	room[signo] = 1;
	others_data = room[others_data];
}
