/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursion without a bound. */
/* rejected: recursion: descend */
/* rejected: TIMES # what bounds it */
/* allow: root handler handler # the example's */
#include "example.h"

static int descend(int n);

static NOINLINE int descend_more(int n)
{
	return descend(n / 2) + others_data;
}

static NOINLINE int descend(int n)
{
	return n > 1 ? descend_more(n - 1) + 1 : 0;
}

void handler(int signo)
{
	others_data = descend(signo);
}
