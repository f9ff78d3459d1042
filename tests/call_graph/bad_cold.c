/* SPDX-License-Identifier: BSD-3-Clause */
/* In a part of the function that the compiler puts elsewhere. */
/* rejected: handler() uses abort */
/* allow: root handler handler # the example's */
#include <stdlib.h>

#include "example.h"

void handler(int signo)
{
	others_data++;
	if (__builtin_expect(signo == others_data, 0)) {
		others_data = 4;
		abort();
	}
	others_data += 3;
}
