/* SPDX-License-Identifier: BSD-3-Clause */
/* The address of a function of another library is handed on. */
/* rejected: handler() uses free */
/* allow: root handler handler # the example's */
#include <stdlib.h>

#include "example.h"

extern void (*volatile bad_taken_import_hook)(void *p);
void (*volatile bad_taken_import_hook)(void *p);

void handler(int signo)
{
	others_data = signo;
	bad_taken_import_hook = free;
}
