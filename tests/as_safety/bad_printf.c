/* SPDX-License-Identifier: BSD-3-Clause */
/* stdio locks its streams. */
/* rejected: printf */
#include <stdio.h>

void bad_printf(int value);

void bad_printf(int value)
{
	printf("%d\n", value);
}
