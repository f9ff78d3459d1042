/* SPDX-License-Identifier: BSD-3-Clause */
/* The pointer is declared, and what is behind it is followed. */
/* rejected: opens() uses open */
/* allow: root handler handler # the example's */
/* allow: pointer ops->first opens # for the example's sake */
/* allow: calls handler ops->first # for the example's sake */
#include <fcntl.h>

#include "example.h"

struct ops {
	void (*first)(int n);
};

static void opens(int n)
{
	others_data = open("/dev/null", n);
}

static const struct ops table = {opens};
extern const struct ops *volatile bad_pointer_behind_ops;
const struct ops *volatile bad_pointer_behind_ops = &table;

void handler(int signo)
{
	const struct ops *ops = bad_pointer_behind_ops;

	ops->first(signo);
	others_data = 3;
}
