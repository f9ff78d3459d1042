/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's callback comes back through a function that callbacks may call. */
/* rejected: from_callback() uses open */
/* allow: root handler handler # the example's */
/* allow: root from_callback callback # for the example's sake */
/* allow: pointer callback *program # for the example's sake */
/* allow: calls handler callback # for the example's sake */
#include <fcntl.h>

#include "example.h"

extern void (*volatile callback)(int n);
void (*volatile callback)(int n);
void from_callback(void);

void from_callback(void)
{
	others_data = open("/dev/null", O_RDONLY);
}

void handler(int signo)
{
	callback(signo);
	others_data = 3;
}
