/* SPDX-License-Identifier: BSD-3-Clause */
/* A second function comes to be behind a pointer, and only the first one is declared. */
/* rejected: the address of newcomer() is taken (in a table in */
/* allow: root handler handler # the example's */
/* allow: pointer ops->first known # for the example's sake */
/* allow: calls handler ops->first # for the example's sake */
#include "example.h"

struct ops {
	void (*first)(int n);
};

static void known(int n)
{
	others_data = n;
}

static void newcomer(int n)
{
	others_data = n + 1;
}

extern const struct ops bad_taken_table[];
const struct ops bad_taken_table[] = {{known}, {newcomer}};

void handler(int signo)
{
	const struct ops *ops = &bad_taken_table[others_data];

	ops->first(signo);
	others_data = 3;
}
