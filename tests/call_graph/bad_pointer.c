/* SPDX-License-Identifier: BSD-3-Clause */
/* A function pointer that is not declared. */
/* rejected: indirect call in handler() that nothing declares */
/* rejected: "calls handler POINTER # why" */
/* allow: root handler handler # the example's */
#include "example.h"

extern void (*volatile bad_pointer_hook)(int n);
void (*volatile bad_pointer_hook)(int n);

void handler(int signo)
{
	bad_pointer_hook(signo);
	others_data = 3;
}
