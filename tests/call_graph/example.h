/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the examples. */
#ifndef CALL_GRAPH_EXAMPLE_H
#define CALL_GRAPH_EXAMPLE_H

#include <stddef.h>

/* The examples' signal handler. */
void handler(int signo);

extern int others_data;
int others_value(void);

#define NOINLINE __attribute__((noinline, noclone))

#endif
