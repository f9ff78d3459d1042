/* SPDX-License-Identifier: BSD-3-Clause */
/* The address is taken in the code, of a static function. */
/* rejected: the address of newcomer() is taken (in install()) */
/* allow: root handler handler # the example's */
#include "example.h"

extern void (*volatile bad_taken_code_hook)(int n);
void (*volatile bad_taken_code_hook)(int n);
void install(void);

static void newcomer(int n)
{
	others_data = n + 1;
}

void install(void)
{
	bad_taken_code_hook = newcomer;
}

void handler(int signo)
{
	others_data = signo;
}
