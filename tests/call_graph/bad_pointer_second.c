/* SPDX-License-Identifier: BSD-3-Clause */
/* One pointer of a function is declared, another one not. */
/* rejected: indirect call in handler(), but this line calls through none of ops->first */
/* rejected: it reads: */
/* allow: root handler handler # the example's */
/* allow: pointer ops->first *outside # for the example's sake */
/* allow: calls handler ops->first # for the example's sake */
#include "example.h"

struct ops {
	void (*first)(int n);
	void (*second)(int n);
};
extern struct ops *bad_pointer_second_ops;
struct ops *bad_pointer_second_ops;

void handler(int signo)
{
	struct ops *ops = bad_pointer_second_ops;

	ops->first(signo);
	ops->second(signo);
	others_data = 3;
}
