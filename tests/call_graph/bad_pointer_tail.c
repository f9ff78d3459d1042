/* SPDX-License-Identifier: BSD-3-Clause */
/* A function pointer that is not declared, and called last: a jump. */
/* rejected: indirect call in handler() that nothing declares */
/* allow: root handler handler # the example's */
#include "example.h"

extern void (*volatile bad_pointer_tail_hook)(int n);
void (*volatile bad_pointer_tail_hook)(int n);

void handler(int signo)
{
	bad_pointer_tail_hook(signo);
}
